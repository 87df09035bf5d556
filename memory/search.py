"""What of somebody's memory can be found, as entries for the one search (`memory.recall`): pure."""

from __future__ import annotations

from memory.episodes import Episode, moment
from memory.facts import Fact, Scope, shown
from memory.long_term.event import dated
from memory.message import Message
from memory.procedures import Procedure
from memory.recall.entry import Entry, Hit
from memory.wording import slug
from processors.models import MemoryEvent

__all__ = ["KINDS", "Entry", "Hit", "of_episode", "of_event", "of_fact", "of_procedure"]

KINDS = ("fact", "episode", "procedure", "event", "knowledge", "faq")


def of_fact(fact: Fact, user: str = "") -> Entry:
    """`user`: whose it is, where it is a user's."""
    told = [fact.text] if fact.key == slug(fact.text) else [fact.key, fact.text]
    words = " ".join(told if fact.value == fact.text else [*told, shown(fact.value)])
    owner = {Scope.SESSION: None, Scope.USER: user}.get(fact.scope, "")
    return Entry(fact.id, "fact", fact.text, words, fact.confidence, fact.last_used_at, owner=owner)


def of_episode(episode: Episode, user: str = "") -> list[Entry]:
    """The talk as a whole, and of a group's talk each member's line by itself, with who wrote it. What a person alone
    with the bot said that matters stands among their events."""
    lines, rest = [], []
    for at, line in enumerate(episode.conversation):
        if (entry := _of_line(episode, at, line, user)) is not None:
            lines.append(entry)
        else:
            rest.append(line["message"])
    text = f"{episode.started_at:%Y-%m-%d} {episode.text}"
    words = " ".join([episode.summary, *rest])
    return [Entry(episode.id, "episode", text, words, 0.8, episode.started_at, owner=user), *lines]


def _of_line(episode: Episode, at: int, line: Message, user: str) -> Entry | None:
    name = (line.get("metadata") or {}).get("sender_name")
    if not isinstance(name, str) or not name or not line["message"].strip():
        return None
    when = moment(line) or episode.started_at
    told = f"{name}: {line['message']}"
    own = line.get("message_id") or at
    return Entry(f"{episode.id}/{own}", "episode", f"{when:%Y-%m-%d} {told}", told, 0.8, when, name, user)


def of_procedure(procedure: Procedure) -> Entry:
    words = f"{procedure.name} {shown(list(procedure.trigger.values()))} {procedure.content}"
    return Entry(procedure.id, "procedure", procedure.content, words, 0.9, owner="")


def of_event(event: MemoryEvent, user: str = "") -> Entry | None:
    """None: there is nothing in it that could be found."""
    said, at = event.payload.get("original_message"), event.timestamp
    if not event.event_id or not isinstance(said, str) or not said:
        return None
    return Entry(event.event_id, "event", dated(at, said), said, event.importance_score, at, owner=user)
