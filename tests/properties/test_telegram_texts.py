"""What reads ordinary texts in one step says what the way of all others says, or leaves them to it."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.adapters.parsing import load_json
from gateway.adapters.telegram import TelegramReceiver
from gateway.adapters.telegram_texts import texts
from gateway.errors import ReceiveFault
from tests.properties.test_receive_mutations import at, odd_values, places
from tests.unit.receiving import NOW, PAYLOADS, SHOP, payload

TELEGRAM = sorted(path.stem for path in (PAYLOADS / "telegram").glob("*.json"))
PERSON = {"id": 700, "first_name": "Mali", "last_name": " S.\n", "username": "mali"}
ORDINARY = {
    "update_id": 1,
    "message": {
        "message_id": 7,
        "date": 1_793_000_000,
        "text": "สวัสดี",
        "from": {**PERSON, "is_bot": False, "language_code": "th", "is_premium": True},
        "chat": {**PERSON, "type": "private"},
    },
}
odd = odd_values | st.sampled_from(
    ["", "x" * 2000, "a\x00b", "/start", 0, -1, 1.0, 1.5, 10**15, 2**53, 2**64, 2**70, "ก", "group", True, None]
)


def same(body: bytes) -> bool:
    """Whether it was read in one step; then both must say the same."""
    found = texts(body, "shop", "tg", NOW)
    if found is not None:
        try:
            assert found == TelegramReceiver().read(SHOP, "tg", load_json(body), NOW)
        except ReceiveFault as fault:
            raise AssertionError("the way of all others refuses it") from fault
    return found is not None


@pytest.mark.parametrize("name", TELEGRAM)
def test_the_two_agree_on_every_kind_of_update(name: str) -> None:
    same(json.dumps(payload(f"telegram/{name}")).encode())


def test_ordinary_texts_are_read_in_one_step_and_what_is_unknown_is_not() -> None:
    assert same(json.dumps(ORDINARY).encode()) is True
    assert same(json.dumps(ORDINARY, ensure_ascii=False).encode()) is True
    assert same(json.dumps(ORDINARY | {"new": 1}).encode()) is False
    for text in ("/start", "a\x00b", "", "x" * 20_001):
        assert same(json.dumps(ORDINARY | {"message": ORDINARY["message"] | {"text": text}}).encode()) is False  # type: ignore[operator]
    assert same(json.dumps(ORDINARY).encode().replace(b"Mali", b"\xff")) is False


@given(data=st.data())
@settings(max_examples=600, deadline=None)
def test_they_agree_whatever_is_missing_added_or_odd(data: st.DataObject) -> None:
    body: Any = copy.deepcopy(ORDINARY)
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from([path for path in places(body) if path]))
        parent = at(body, path[:-1])
        what = data.draw(st.sampled_from(["delete", "replace", "insert"]))
        if what == "delete":
            del parent[path[-1]]
        elif what == "replace" or not isinstance(parent, dict):
            parent[path[-1]] = data.draw(odd)
        else:
            parent[data.draw(st.sampled_from(["new", "sender_chat", "is_topic_message", "entities"]))] = data.draw(odd)
    same(json.dumps(body, ensure_ascii=data.draw(st.booleans())).encode("utf-8", "surrogatepass"))
