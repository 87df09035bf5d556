"""The table of decisions, and the page that is made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway import kinds
from gateway.kinds import Fate
from gateway.messages import Kind
from tests.unit.receiving import PAYLOADS, line, telegram

PAGE = Path(__file__).parents[2] / "docs" / "events.md"


def test_the_page_says_what_the_code_does() -> None:
    assert PAGE.read_text("utf-8") == kinds.page()


def test_every_kind_of_message_is_decided() -> None:
    assert set(kinds.KINDS) == set(Kind)


@pytest.mark.parametrize("rows", [kinds.line_rows, kinds.telegram_rows])
def test_no_event_is_decided_twice(rows: object) -> None:
    assert callable(rows)
    names = [name for name, _ in rows()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("path", sorted(PAYLOADS.glob("*/*.json")), ids=lambda path: path.stem)
def test_what_is_passed_over_is_counted_under_a_name_in_the_table(path: Path) -> None:
    on_line = path.parent.name == "line"
    received = line(path.read_bytes()) if on_line else telegram(path.read_bytes())
    rows = dict(kinds.line_rows() if on_line else kinds.telegram_rows())
    for name in received.passed_over:
        decision = rows.get(name) or rows[f"message: {name}"]
        assert decision.fate is Fate.COUNTED
