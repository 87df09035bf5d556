"""A channel or a shop is removed while its customers' messages wait."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gateway import assembly
from gateway.dead_letter_commands import list_letters
from gateway.dead_letters import DeadLetters
from gateway.inbox.redis import RedisInbox
from tests.house import house, shop

CHAT = 4242
WAITS = {"debounce_ms": 1000, "max_attempts": 1}


@pytest.mark.parametrize("goes", ["channel", "shop"])
async def test_what_waits_for_a_channel_that_is_gone_is_buried_with_the_reason_and_found(
    tmp_path: Path, redis_url: str, goes: str, caplog: pytest.LogCaptureFixture
) -> None:
    tenant = shop(behaviour=WAITS)
    async with house(tmp_path, redis_url, {"shop": tenant}) as home:
        assert await home.telegram_says(CHAT, "is there tea") == 200
        file = tmp_path / "config" / "tenants" / "shop.yaml"
        del tenant["channels"]["telegram-main"]
        if goes == "shop":
            file.unlink()
        else:
            file.write_text(yaml.safe_dump(tenant, allow_unicode=True), encoding="utf-8")
        home.tenants.load()
        await home.quiet()
        client = assembly.inbox_client(home.settings, home.redis_url)
        inbox = RedisInbox(client, "test")
        (letter,) = await DeadLetters(client, inbox).list("shop")
        await inbox.close()
        why = "gave up after 1 tries: shop/telegram-main/default is not configured"
        assert (letter.message.text, letter.reason) == ("is there tea", why)
        assert [why in line for line in await list_letters(home.settings, None)] == [True]
    assert "Traceback" not in caplog.text
    assert "turn failed" not in caplog.text
