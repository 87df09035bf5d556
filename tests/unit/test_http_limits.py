"""Shares of calls, and what may be served to other machines."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi import HTTPException, Request

from config.settings import Settings
from config.tenants import Tenant
from gateway.cli.common import Failed
from gateway.http_limits import Share, Shares
from gateway.key_ring import KeyRing, Scope
from gateway.processes import check_exposure
from gateway.routes.auth import Keys
from memory.lists import FileLists

SHOP = Tenant.model_validate({"id": "shop", "name": "Shop", "channels": {"web": {"platform": "web"}}})
NOW = datetime(2026, 11, 28, 9, tzinfo=UTC)


def test_a_share_is_used_up_and_comes_back_and_is_nobody_elses() -> None:
    now = [100.0]
    shares, share = Shares(lambda: now[0]), Share(a_second=2.0, at_once=3.0)
    assert [shares.wait("a", share) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert shares.wait("b", share) == 0.0
    assert shares.wait("a", share, 0.0) == 0.5  # looking takes nothing
    now[0] += 0.5
    assert [shares.wait("a", share) for _ in range(2)] == [0.0, 0.5]
    now[0] += 3600
    assert [shares.wait("a", share) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "shop.example"])
def test_beyond_this_machine_nothing_is_served_under_a_key_nobody_chose(host: str) -> None:
    with pytest.raises(Failed, match=r"set ADMIN_API_KEY, or TLS_PROXY=true"):
        check_exposure(Settings(), host)
    check_exposure(Settings(admin_api_key="test-key"), host)
    check_exposure(Settings(tls_proxy=True), host)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_this_machine_alone_is_always_served(host: str) -> None:
    check_exposure(Settings(), host)


def asking(key: str, method: str, path: str) -> Request:
    headers = [(b"authorization", f"Bearer {key}".encode())]
    return Request({"type": "http", "method": method, "path": path, "headers": headers})


CALLS = (
    ("GET", "/api/v1/memory"),
    ("PATCH", "/api/v1/memory/f_1"),
    ("POST", "/chat"),
    ("GET", "/api/v1/memory/export"),
    ("DELETE", "/api/v1/memory"),
    ("POST", "/api/v1/memory-users/batch-delete"),
)


@pytest.mark.parametrize(
    ("scope", "may"), [("read", CALLS[:1]), ("write", CALLS[:3]), ("admin", CALLS)], ids=["read", "write", "admin"]
)
def test_a_key_opens_what_its_scope_covers(tmp_path: Path, scope: Scope, may: tuple[tuple[str, str], ...]) -> None:
    ring = KeyRing(FileLists(tmp_path))
    _, key = ring.make("shop", "till", NOW, scope)
    keys = Keys("the admin key", lambda: [SHOP], ring, lambda: NOW)
    assert [keys.opens(asking(key, *call)) for call in may] == ["shop"] * len(may)
    for call in CALLS[len(may) :]:
        with pytest.raises(HTTPException, match="403"):
            keys.opens(asking(key, *call))
    assert keys.known(key)
    assert keys.whose(key) == ("shop" if scope == "admin" else None)  # the admin page takes no lesser one


def test_a_key_ends_on_its_day_and_its_last_use_is_known(tmp_path: Path) -> None:
    now = [NOW]
    ring = KeyRing(FileLists(tmp_path))
    made, key = ring.make("shop", "fair", NOW, "read", days=2)
    keys = Keys("the admin key", lambda: [SHOP], ring, lambda: now[0])
    assert (made.expires_at[:10], ring.of("shop")[0].last_used) == ("2026-11-30", "")
    assert keys.known(key)
    now[0] += timedelta(minutes=5)
    assert keys.known(key)
    assert KeyRing(FileLists(tmp_path)).of("shop")[0].last_used == "2026-11-28T09:00:00Z"
    now[0] += timedelta(minutes=6)
    assert keys.known(key)
    assert KeyRing(FileLists(tmp_path)).of("shop")[0].last_used == "2026-11-28T09:11:00Z"
    now[0] += timedelta(days=2)
    assert not keys.known(key)
    with pytest.raises(HTTPException, match="401"):
        keys.opens(asking(key, "GET", "/api/v1/memory"))


CALLS_OUT = re.compile(
    r"\b(ClientSession|urlopen|AsyncClient|Httpx2AiohttpClient|RESTClientObject|Posts|urlretrieve)\("
)
# Each calls addresses that the operator set: the platforms', the language model's, the embeddings'.
CALLERS = {
    "gateway/adapters/downloads.py",
    "gateway/adapters/line_api.py",
    "gateway/adapters/line_sender.py",
    "gateway/adapters/line_tokens.py",
    "gateway/adapters/telegram_session.py",
    "gateway/doctor.py",
    "gateway/probes.py",
    "processors/embeddings.py",
    "processors/hearing.py",
    "processors/ways.py",
}


def test_nothing_calls_out_but_what_is_known_to_and_nothing_is_led_elsewhere() -> None:
    root = Path(__file__).parents[2]
    found = {
        str(file.relative_to(root)): text
        for room in ("gateway", "memory", "processors", "config")
        for file in (root / room).rglob("*.py")
        if CALLS_OUT.search(text := file.read_text("utf-8"))
    }
    assert set(found) == CALLERS
    calls = re.compile(r"\.(?:get|post|request)\((?:url|f\"\{self\._host)[^)]*=[^)]*\)")
    asked = [call for text in found.values() for call in calls.findall(text)]
    assert len(asked) >= 5
    assert [call for call in asked if "allow_redirects=False" not in call] == []
