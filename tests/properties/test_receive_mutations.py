"""Whatever is missing from a webhook, added to it or of a wrong type in it: the customer's words get through."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.receiving import PAYLOADS, line, payload, telegram

WORDS = {
    "line/01_text_user": "Hello, what time do you open today?",
    "line/03_text_group_mention_self": "ช่วยสรุปเมนูวันนี้หน่อย",
    "line/07_text_quote": "ตอบข้อความเมื่อกี้",
    "line/44_batch_mixed_users": "A",
    "telegram/01_message_text_thai": "สวัสดีครับ ร้านเปิดกี่โมง 🙏",
    "telegram/04_group_mention_utf16": "สรุปให้หน่อย https://example.com/a?b=1",
    "telegram/06_reply_to_bot_with_quote": "แล้วเมื่อวานล่ะ",
    "telegram/07_forum_topic": "ในหัวข้อนี้",
    "telegram/34_business_message": "ส่งของวันไหนคะ",
}
# Without these nobody could say who wrote, what, or where to answer.
NEEDED = [
    ("events",),
    ("events", 0),
    ("events", 0, "message"),
    ("events", 0, "message", "text"),
    ("events", 0, "source"),
    ("events", 0, "source", "userId"),
    ("events", 0, "source", "groupId"),
    *((kind, *rest) for kind in ("message", "business_message") for rest in ((), ("text",), ("chat",), ("chat", "id"))),
]

odd_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*path, index))


def at(body: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        body = body[step]
    return body


@pytest.mark.parametrize("name", WORDS)
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_mutated_webhook_still_brings_the_words(name: str, data: st.DataObject) -> None:
    body = copy.deepcopy(payload(name))
    for _ in range(data.draw(st.integers(1, 3), "mutations")):
        free = [path for path in places(body) if path and path not in NEEDED]
        path = data.draw(st.sampled_from(free), "place")
        parent = at(body, path[:-1])
        before = parent[path[-1]]
        what = data.draw(st.sampled_from(["delete", "replace", "insert"]), "what")
        if what == "insert":
            if isinstance(before, dict):
                before["new_field"] = data.draw(odd_values, "value")
            elif isinstance(parent, list):
                parent.append(data.draw(odd_values, "value"))
        elif what == "delete":
            del parent[path[-1]]
        else:
            other = data.draw(odd_values, "value")
            # Another text may be another kind of event, also in the place of what a mutation put there before.
            parent[path[-1]] = None if type(other) in (type(before), str) else other
    received = line(body) if name.startswith("line/") else telegram(body)
    assert WORDS[name] in received.messages[0].text


@pytest.mark.parametrize("path", sorted(PAYLOADS.glob("*/*.json")), ids=lambda path: path.stem)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_no_event_whatever_is_wrong_in_it_takes_a_customers_words_along(path: Path, data: st.DataObject) -> None:
    body = payload(f"{path.parent.name}/{path.stem}")
    inside = [place for place in places(body) if len(place) > 1]
    for place in data.draw(st.lists(st.sampled_from(inside), min_size=1, max_size=3), "places") if inside else ():
        with suppress(KeyError, IndexError, TypeError):  # gone with what an earlier change replaced
            at(body, place[:-1])[place[-1]] = data.draw(odd_values, "value")
    if path.parent.name == "telegram":
        telegram(body)  # one update a webhook: whatever it is, it is taken
        return
    events = body["events"] if isinstance(body["events"], list) else []
    words = payload("line/01_text_user")["events"]
    received = line({**body, "events": [*events, *words]})
    assert received.messages[-1].text == WORDS["line/01_text_user"]


@given(odd_values)
@settings(max_examples=200, deadline=None)
def test_any_json_is_taken_without_a_complaint(body: Any) -> None:
    for given_body in (body, {"events": body}, {"events": [body]}, {"message": body}, {"callback_query": body}):
        assert line(given_body).messages == telegram(given_body).messages == ()
