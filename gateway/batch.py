"""A claim's messages as they are to be answered: pure.

What was changed or taken back while it waited is answered as it is by then, or not at all; an album stands in its own
order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from gateway.messages import InboundMessage, Kind

AMENDS = frozenset((Kind.EDITED, Kind.UNSEND))


@dataclass(frozen=True, slots=True)
class Amendment:
    """A message that is not in the batch, by the platform's id, was changed (its new form) or taken back (None)."""

    message_id: str
    edited: InboundMessage | None


def fold(messages: Sequence[InboundMessage]) -> tuple[list[InboundMessage], list[Amendment]]:
    """What is to be answered, and what was changed of earlier messages. LINE keeps no order: a message may come after
    what changes it."""
    taken = {one for message in messages if message.kind is Kind.UNSEND for one in amended_ids(message)}
    said = [message for message in messages if message.kind not in AMENDS]
    out = [message for message in said if message.message_id not in taken]
    here = {message.message_id for message in said}
    amendments: list[Amendment] = []
    for message in messages:
        for message_id in amended_ids(message) if message.kind in AMENDS else ():
            if message.kind is Kind.UNSEND:
                amendments += [] if message_id in here else [Amendment(message_id, None)]
            elif message_id in here - taken:
                at = next(n for n, earlier in enumerate(out) if earlier.message_id == message_id)
                out[at] = _edited(out[at], message)
            elif message_id not in taken:
                amendments.append(Amendment(message_id, message))
    return _albums_in_order(out), amendments


def amended_ids(message: InboundMessage) -> list[str]:
    """The platform's ids of the messages that an edit or unsend is about."""
    several = message.extra.get("message_ids")
    ids = several if isinstance(several, list) else [message.message_id]
    return [str(one) for one in ids if one is not None]


def as_message(edited: InboundMessage) -> InboundMessage:
    """An edit of a message that never reached us is that message."""
    kind = edited.extra.get("kind")
    return msgspec.structs.replace(edited, kind=Kind(kind) if kind in set(Kind) else Kind.TEXT)


def _edited(before: InboundMessage, edit: InboundMessage) -> InboundMessage:
    extra = {**before.extra, "edited_from": before.text}
    mentioned = before.mentioned or edit.mentioned
    return msgspec.structs.replace(before, text=edit.text, extra=extra, mentioned=mentioned)


def _albums_in_order(messages: list[InboundMessage]) -> list[InboundMessage]:
    """The parts of each album, wherever they stand, in the album's order."""
    out = list(messages)
    for album in {message.extra["album"] for message in messages if "album" in message.extra}:
        places = [n for n, message in enumerate(messages) if message.extra.get("album") == album]
        for place, part in zip(places, sorted((messages[n] for n in places), key=_place_in_album), strict=True):
            out[place] = part
    return out


def _place_in_album(message: InboundMessage) -> int:
    index = message.extra.get("album_index")
    if type(index) is int:
        return index
    return (
        int(message.message_id)
        if message.message_id and message.message_id.isascii() and message.message_id.isdigit()
        else 0
    )
