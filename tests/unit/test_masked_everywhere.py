"""What a shop does not want written down is masked on every way into a store, not only on that of a plain message."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from config.tenants import Tenant
from gateway.media import Content, Media
from gateway.messages import InboundMessage, Kind
from memory import MemoryConfig, MemoryManager
from memory.keys import ConversationRef
from memory.media import MediaFiles
from processors.hearing import Hearing
from processors.llm import Access, Usage

NUMBER, ANN = "0812345678", "line:U4af"
SHOP = Tenant.model_validate(
    {
        "id": "shop",
        "name": "Shop",
        "channels": {"web": {"platform": "web"}},
        "agents": {"default": {"hearing": "whisper-1"}},
        "privacy": {"mask": ["phone"]},
    }
)


class Recording:
    async def fetch(self, tenant: Tenant, message: InboundMessage, largest: int) -> Content:
        return Content(b"OggS\0\2 a recording", "audio/ogg")

    async def close(self) -> None: ...


class Heard(Hearing):
    async def words(
        self, data: bytes, suffix: str, model: str, access: Access, *, took: Callable[[str, Usage], None] | None = None
    ) -> str | None:
        return f"call me on {NUMBER}"


async def test_the_words_of_a_recording_are_kept_masked_and_whole_in_the_turn_itself(tmp_path: Path) -> None:
    message = InboundMessage(
        tenant="shop", channel="web", platform="line", event_id="e1", user_id=ANN, chat_id="c", kind=Kind.AUDIO, text=""
    )
    agent = SHOP.agent()
    assert agent is not None
    media = Media({"line": Recording()}, MediaFiles(tmp_path), Heard())
    (attached,) = await media.attach(SHOP, agent, ConversationRef("shop", ANN), [message], Access(api_key="k"))
    assert attached.text == f"call me on {NUMBER}"
    assert [one.read_text() for one in tmp_path.rglob("*.words")] == ["call me on [phone]"]


async def test_what_a_tool_remembers_over_mcp_is_masked(tmp_path: Path) -> None:
    mcp = pytest.importorskip("gateway.mcp_server")
    manager = MemoryManager(
        MemoryConfig(lm_base_path=tmp_path / "longterm"), clock=lambda: datetime(2026, 3, 2, tzinfo=UTC)
    )
    await mcp._call(manager, SHOP.privacy.mask, "shop", ANN, "remember", {"key": "phone_at_work", "value": NUMBER})
    known = await manager.longterm.load("shop", ANN)
    assert known is not None
    assert NUMBER not in known.model_dump_json()
    await manager.close()
