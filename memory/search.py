"""What of somebody's memory can be found, as entries for the one search (`memory.recall`): pure."""

from __future__ import annotations

from memory.episodes import Episode
from memory.facts import Fact, Scope, shown
from memory.long_term.events import entry_of
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


def of_episode(episode: Episode, user: str = "") -> Entry:
    said = " ".join(line["message"] for line in episode.conversation)
    text = f"{episode.started_at:%Y-%m-%d} {episode.text}"
    return Entry(episode.id, "episode", text, f"{episode.summary} {said}", 0.8, episode.started_at, owner=user)


def of_procedure(procedure: Procedure) -> Entry:
    words = f"{procedure.name} {shown(list(procedure.trigger.values()))} {procedure.content}"
    return Entry(procedure.id, "procedure", procedure.content, words, 0.9, owner="")


def of_event(event: MemoryEvent, user: str = "") -> Entry | None:
    said = event.payload.get("original_message")
    return entry_of(event.event_id, said, event.importance_score, event.timestamp, user)
