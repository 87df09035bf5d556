"""What reads ordinary texts in one step says what the way of all others says, or leaves them to it."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.adapters.line import read
from gateway.adapters.line_texts import texts
from tests.properties.test_receive_mutations import at, odd_values, places
from tests.unit.receiving import NOW, PAYLOADS, payload

LINE = sorted(path.stem for path in (PAYLOADS / "line").glob("*.json"))
ORDINARY = ["01_text_user", "02_text_thai_emoji", "08_text_redelivery"]
odd = odd_values | st.sampled_from(
    ["", "0" * 32, "x" * 2000, "a\x00b", 0, -1, 1.5, 10**15, 2**70, "line:1", "ก", "user"]
)


def same(body: bytes) -> bool:
    """Whether it was read in one step; then both must say the same."""
    found = texts(body, "shop", "line-main", NOW)
    assert found is None or found == read(body, "shop", "line-main", NOW)
    return found is not None


@pytest.mark.parametrize("name", LINE)
def test_the_two_agree_on_every_kind_of_webhook(name: str) -> None:
    same(json.dumps(payload(f"line/{name}")).encode())


def test_ordinary_texts_are_read_in_one_step_and_what_is_unknown_is_not() -> None:
    body = copy.deepcopy(payload("line/01_text_user"))
    assert same(json.dumps(body).encode()) is True
    assert same(json.dumps(body | {"events": body["events"] * 2}, ensure_ascii=False).encode()) is True
    assert same(json.dumps(body | {"new": 1}).encode()) is False
    assert same(b'{"destination":"U1","events":[{}]}') is False
    assert same(json.dumps(body).encode().replace(b"Hello", b"\xff")) is False


@pytest.mark.parametrize("name", ORDINARY)
@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_they_agree_whatever_is_missing_added_or_odd(name: str, data: st.DataObject) -> None:
    body: Any = copy.deepcopy(payload(f"line/{name}"))
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from([path for path in places(body) if path]))
        parent = at(body, path[:-1])
        what = data.draw(st.sampled_from(["delete", "replace", "insert"]))
        if what == "delete":
            del parent[path[-1]]
        elif what == "replace" or not isinstance(parent, dict):
            parent[path[-1]] = data.draw(odd)
        else:
            parent[data.draw(st.sampled_from(["new", "quoteToken", "markAsReadToken", "mode"]))] = data.draw(odd)
    same(json.dumps(body, ensure_ascii=data.draw(st.booleans())).encode("utf-8", "surrogatepass"))
