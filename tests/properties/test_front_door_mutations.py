"""Whatever is missing from a webhook, added to it or of a wrong type in it: the customer gets an answer."""

from __future__ import annotations

import asyncio
import copy
import json
import uuid
from pathlib import Path
from typing import Any

import aiohttp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.house import LINE_SECRET, LINE_TOKEN, TELEGRAM_SECRET, house, shop
from tests.properties.test_receive_mutations import NEEDED, at, odd_values, places
from tests.standins.line import sign
from tests.standins.line_model import LineChannel
from tests.unit.receiving import payload

BOT = LineChannel(user_id="U2f7d2998820cd4e187e711f4aa950c20", token=LINE_TOKEN, secret=LINE_SECRET)
TOKEN = "7123456789:TESTTOKEN"
# With these odd, the message is another's, somebody else's to answer, or has been answered before.
OTHERS = ("source", "chat", "from", "mode", "replyToken", "webhookEventId", "update_id", "destination", "sender_chat")
NAMES = ["line/01_text_user", "telegram/01_message_text_thai", "telegram/34_business_message"]
MUTATED = 6  # webhooks a run: each is answered by a whole house


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A payload's name, and its body with one to three things wrong in unimportant places."""
    name = draw(st.sampled_from(NAMES))
    body = copy.deepcopy(payload(name))
    for _ in range(draw(st.integers(1, 3))):
        free = [path for path in places(body) if path and path not in NEEDED and not set(OTHERS) & set(path)]
        path = draw(st.sampled_from(free))
        parent = at(body, path[:-1])
        if draw(st.booleans()) and isinstance(parent, dict):
            parent[f"new_{path[-1]}"] = draw(odd_values)
        else:
            other = draw(odd_values)
            parent[path[-1]] = None if type(other) is type(parent[path[-1]]) else other
    return name, body


@given(bodies=st.lists(mutated(), min_size=MUTATED, max_size=MUTATED))
@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_mutated_webhook_is_answered(
    tmp_path_factory: Any, redis_url: str, bodies: list[tuple[str, dict[str, Any]]]
) -> None:
    asyncio.run(answered(tmp_path_factory.mktemp("house"), redis_url, bodies))


async def answered(folder: Path, redis_url: str, bodies: list[tuple[str, dict[str, Any]]]) -> None:
    channels = shop()["channels"]
    channels["telegram-main"]["bot_token"] = TOKEN
    file = shop(channels=channels, behaviour={"debounce_ms": 0, "rate_limit_per_minute": 0})
    async with house(folder, redis_url, {"shop": file}, line_channels=(BOT,), telegram_tokens=(TOKEN,)) as home:
        home.line.known_tokens_only = False
        for number, (name, body) in enumerate(bodies):
            await post_as_new(home, name, body, number)
            await home.quiet()
            replies = len(home.line.calls_to("/message/reply")) + len(home.telegram.calls_to("/sendMessage"))
            assert replies == number + 1, body


async def post_as_new(home: Any, name: str, body: dict[str, Any], number: int) -> None:
    """Delivers it under an id that was never seen."""
    if name.startswith("telegram/"):
        body["update_id"] = uuid.uuid4().int % 10**9
        assert await home.telegram.deliver(home.telegram_hook(), body, TELEGRAM_SECRET) == 200
        return
    body["events"][0] |= {"webhookEventId": f"E{uuid.uuid4().hex}", "replyToken": f"token-{number}-{uuid.uuid4().hex}"}
    raw = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
    headers = {"x-line-signature": sign(LINE_SECRET, raw)}
    async with aiohttp.ClientSession() as http, http.post(home.line_hook(), data=raw, headers=headers) as response:
        assert response.status == 200
