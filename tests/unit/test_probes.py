"""When a channel is to be looked at."""

from __future__ import annotations

from typing import Any

import pytest

from config.tenants import Tenant
from gateway import probes
from gateway.probes import Probes


def tenant(token: str) -> Tenant:
    channel = {"platform": "telegram", "bot_token": token, "webhook_secret": "s" * 16}
    return Tenant.model_validate({"id": "shop", "name": "Shop", "channels": {"tg": channel}})


def test_a_file_is_taken_apart_once_each_time_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, seen, mark_of = [tenant("1:a")], list[Tenant](), probes.mark_of

    class Loaded:
        def all(self) -> list[Tenant]:
            return loaded

    def counted(one: Tenant) -> str:
        seen.append(one)
        return mark_of(one)

    monkeypatch.setattr(probes, "mark_of", counted)
    nothing: Any = None
    looking = Probes(nothing, Loaded(), nothing, nothing, nothing, nothing, nothing, None)  # type: ignore[arg-type]
    assert looking._due() == [(loaded[0], "tg")]
    assert looking._due() == []
    assert seen == [loaded[0]]
    loaded[:] = [tenant("1:b")]  # its secret alone is another one
    assert looking._due() == [(loaded[0], "tg")]
    assert len(seen) == 2
