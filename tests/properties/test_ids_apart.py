"""Ids that look alike, or say something in a key or path, meet in no key and no file."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from urllib.parse import quote, unquote

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from gateway.inbox.base import event_of, name_of
from gateway.messages import InboundMessage
from memory import keys
from memory.keys import ConversationRef
from memory.long_term.forgotten import Marks
from memory.pseudonyms import Pseudonyms

BASE = Path("/base")
_SIGNS = "a A é e\u0301 ｅ ก ำ ํา ß ss K \u212a İ i : / . .. % %2F ~ _ \\ { } * line:U1 group: default main sm: cc:"
pieces = st.sampled_from([*re.split(" ", _SIGNS), "\x00", " ", "\u200b", "\u202e", "\ud800"])
ids = st.one_of(
    st.lists(pieces, min_size=1, max_size=8).map("".join),
    pieces.map(lambda one: (one * 512)[:512]),
    pieces.map(lambda one: one[:1] or "x"),
)


def alike(one: str) -> set[str]:
    """What somebody could take for the same id, and what our own names look like."""
    out = {one, one.upper(), one.lower(), one.casefold(), one.swapcase(), keys.escape(one), unquote(one), one + "\x00"}
    if not any("\ud800" <= sign <= "\udfff" for sign in one):
        out |= {unicodedata.normalize(form, one) for form in ("NFC", "NFD", "NFKC", "NFKD")}
        out |= {quote(one, safe="")}
    for sign in ":/.%":
        out |= {one.replace(sign, ""), one + sign, sign + one, one.replace(":", sign)}
    out |= {f"{one}/default/main", f"{one}/../x", f"../{one}", one[:511], f"{one}.json", f"{one} ", one[:1]}
    return {each for each in out if each}


def names(user: str) -> list[str]:
    """Everything that is called after a person."""
    ref = ConversationRef("shop", user)
    return [
        keys.escape(user),
        keys.session(ref),
        keys.session(ConversationRef("shop", "x", "sales", user)),
        keys.beside(keys.session(ref), "web", user),
        keys.shared("name", "shop", user),
        *(str(make(BASE, "shop", user)) for make in (keys.longterm_file, keys.transcript_dir, keys.archive_file)),
        *(str(make(BASE, "shop", user)) for make in (keys.media_dir, keys.conversation_file)),
        str(Marks(BASE)._path("shop", user)),
    ]


@settings(deadline=None, max_examples=60)
@given(ids)
def test_ids_that_look_alike_meet_in_no_key_and_no_file(one: str) -> None:
    every = alike(one)
    for of_one_kind in zip(*map(names, every), strict=True):
        assert len(set(of_one_kind)) == len(every)


@settings(deadline=None, max_examples=60)
@given(ids)
def test_nothing_is_called_after_a_person_outside_the_tenants_folder(one: str) -> None:
    for user in alike(one):
        for name in names(user):
            assert "\x00" not in name
            assert "/../" not in name
            assert not name.startswith("/") or all(len(part.encode()) <= 255 for part in name.split("/"))


@settings(deadline=None, max_examples=60)
@given(ids, ids)
def test_deliveries_of_ids_that_look_alike_are_others(one: str, event: str) -> None:
    def put(user: str, event_id: str) -> tuple[str, str]:
        message = InboundMessage(
            tenant="shop", channel="main", platform="line", event_id=event_id, user_id=user, chat_id="x"
        )
        return name_of(message), event_of(message)

    several = [(user, one_event) for user in list(alike(one))[:12] for one_event in list(alike(event))[:6]]
    assert len({put(*each) for each in several}) == len(set(several))


@settings(deadline=None, max_examples=60)
@given(ids, st.sampled_from(["default", "general", "sales"]), st.sampled_from(["main", "second"]))
def test_a_conversation_has_one_name_in_the_inbox_and_among_the_sessions(user: str, agent: str, talk: str) -> None:
    message = InboundMessage(
        tenant="shop", channel="main", platform="line", event_id="1", user_id=user, chat_id="x", agent=agent,
        conversation_id=talk,
    )  # fmt: skip
    assert name_of(message) == keys.session(ConversationRef("shop", user, agent, talk))


def test_names_of_deliveries_take_the_place_of_no_others() -> None:
    message = InboundMessage(
        tenant="shop", channel="main", platform="line", event_id="1", user_id="line:U1", chat_id="x"
    )
    names = {event_of(message)}
    held = keys.escape.cache_info().currsize
    names |= {event_of(structs.replace(message, event_id=str(number))) for number in range(2, 50)}
    assert len(names) == 49
    assert keys.escape.cache_info().currsize == held


def test_pseudonyms_of_ids_that_look_alike_are_others(tmp_path: Path) -> None:
    own = Pseudonyms(tmp_path)
    every = alike("line:Ué/..%2F") | alike("ก" * 512)
    assert len({own.of("shop", one) for one in every}) == len(every)
