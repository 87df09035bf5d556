"""Messages of one claim that change each other; and messages in words."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.batch import fold
from gateway.described import asked, described
from gateway.messages import InboundMessage, Kind
from gateway.record import words


def message(
    number: int, text: str = "", kind: Kind = Kind.TEXT, user: str = "line:U1", **fields: Any
) -> InboundMessage:
    return InboundMessage(
        tenant="shop",
        channel="line-main",
        platform="line",
        event_id=f"e{number}",
        user_id=user,
        chat_id="U1",
        kind=kind,
        text=text,
        **{"message_id": f"m{number}"} | fields,
    )


def test_what_changes_nothing_stays_as_it_is() -> None:
    said = [message(1, "a"), message(2, "b")]
    assert fold(said) == (said, [])


def test_an_edit_in_the_batch_replaces_the_text_in_its_place() -> None:
    edit = message(3, "two", Kind.EDITED, message_id="m1")
    messages, amendments = fold([message(1, "one"), message(2, "b"), edit])
    assert [(one.event_id, one.text) for one in messages] == [("e1", "two"), ("e2", "b")]
    assert messages[0].extra["edited_from"] == "one"
    assert amendments == []


def test_what_is_taken_back_in_the_batch_is_gone() -> None:
    taken = message(3, kind=Kind.UNSEND, message_id="m1")
    messages, amendments = fold([message(1, "one"), message(2, "b"), taken])
    assert ([one.text for one in messages], amendments) == (["b"], [])


def test_a_message_that_comes_after_what_changes_it_is_changed_all_the_same() -> None:
    taken = message(1, kind=Kind.UNSEND, message_id="m2")
    edit = message(3, "new", Kind.EDITED, message_id="m4")
    messages, amendments = fold([taken, message(2, "secret"), edit, message(4, "old")])
    assert ([(one.text, one.extra) for one in messages], amendments) == ([("new", {"edited_from": "old"})], [])


def test_what_was_changed_and_taken_back_before_it_was_known_is_not_answered() -> None:
    edit = message(1, "new", Kind.EDITED, message_id="m0")
    taken = message(2, kind=Kind.UNSEND, message_id="m0")
    assert fold([edit, taken]) == fold([taken, edit]) == fold([taken])


def test_what_is_about_earlier_messages_is_told_apart() -> None:
    edit = message(3, "two", Kind.EDITED, message_id="m0")
    taken = message(4, kind=Kind.UNSEND, message_id=None, extra={"message_ids": ["8", "9"]})
    messages, amendments = fold([edit, message(1, "one"), taken])
    assert [one.text for one in messages] == ["one"]
    assert [(one.message_id, one.edited) for one in amendments] == [("m0", edit), ("8", None), ("9", None)]


def test_an_album_stands_in_its_own_order_in_its_own_places() -> None:
    def part(number: int, **extra: Any) -> InboundMessage:
        return message(number, kind=Kind.IMAGE, message_id=str(number), extra={"album": "a", **extra})

    by_index, _ = fold([part(1, album_index=2), message(5, "and this"), part(2, album_index=1)])
    assert [one.event_id for one in by_index] == ["e2", "e5", "e1"]
    by_number, _ = fold([part(12), part(9)])
    assert [one.event_id for one in by_number] == ["e9", "e12"]


@pytest.mark.parametrize(
    ("kind", "text", "extra", "told"),
    [
        (Kind.TEXT, "hello", {}, "hello"),
        (Kind.IMAGE, "this one", {}, "[photo] this one"),
        (Kind.IMAGE, "", {"unread": "too large"}, "[photo that could not be opened (too large)]"),
        (Kind.FILE, "", {"file_name": "เมนู [ใหม่].pdf"}, "[file: เมนู (ใหม่).pdf]"),
        (Kind.CONTACT, "", {"first_name": "Ann", "phone_number": "+66811"}, "[contact: Ann, +66811]"),
        (Kind.LOCATION, "", {"title": "Home", "latitude": 13.7, "longitude": 100}, "[location: Home, 13.7, 100]"),
        (Kind.STICKER, "", {"keywords": ["happy", "dance"]}, "[sticker: happy, dance]"),
        (Kind.POSTBACK, "pick", {"params": {"date": "2026-03-01"}}, "pick (date: 2026-03-01)"),
    ],
)
def test_a_message_in_words(kind: Kind, text: str, extra: dict[str, Any], told: str) -> None:
    assert described(message(1, text, kind, extra=extra)) == told


def test_what_others_wrote_is_data_and_not_the_customers_own() -> None:
    forwarded = message(1, "my name is <b>Max</b>", extra={"forwarded": "Max"})
    assert asked(forwarded) == (
        "<forwarded>\nForwarded by the customer; first written by Max:\nmy name is &lt;b&gt;Max&lt;/b&gt;\n</forwarded>"
    )
    assert words([forwarded, message(2, "what is this?")]) == "what is this?"
    assert words([message(1, kind=Kind.CONTACT, extra={"phone_number": "0811111111"})]) == ""


def test_a_group_knows_who_speaks() -> None:
    named = message(1, "hi", user="line:group:C1", sender_id="line:U1234", sender_name="Ann")
    unnamed = message(1, "hi", user="line:group:C1", sender_id="line:U1234")
    nobody = message(1, "hi", user="line:group:C1")
    assert [asked(one) for one in (named, unnamed, nobody)] == ["Ann: hi", "member 1234: hi", "a member: hi"]
