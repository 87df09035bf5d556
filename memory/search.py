"""Finding what is known by words: pure. Thai has no spaces, so a run of it is found inside another; Latin words are
found as words. Space, `_` and `-` are alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from memory.episodes import Episode
from memory.facts import Fact, shown
from memory.procedures import Procedure
from processors.models import MemoryEvent
from processors.normalise import PARTICLES, normalise

KINDS = ("fact", "episode", "procedure", "event")
_ENOUGH = 0.3  # a score from which something is found
_RUNS = re.compile(r"[ก-๎]+|[^\W_ก-๎]+")
_IDLE = frozenset({"the", "a", "an", "of", "to", "is", "my", "me", "do", "you", "what", "for", "and", "in", "at"})


@dataclass(frozen=True, slots=True)
class Hit:
    """`score` 0.0-1.0; `kind` one of KINDS."""

    id: str
    kind: str
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that can be found. `weight` breaks ties between equally good ones: confidence, importance."""

    id: str
    kind: str
    text: str
    found_by: str
    weight: float = 1.0


def of_fact(fact: Fact) -> Entry:
    words = f"{fact.key} {fact.text} {shown(fact.value)}"
    return Entry(fact.id, "fact", fact.text, words, fact.confidence)


def of_episode(episode: Episode) -> Entry:
    said = " ".join(line["message"] for line in episode.conversation)
    return Entry(
        episode.id, "episode", f"{episode.started_at:%Y-%m-%d} {episode.text}", f"{episode.summary} {said}", 0.8
    )


def of_procedure(procedure: Procedure) -> Entry:
    words = f"{procedure.name} {shown(list(procedure.trigger.values()))} {procedure.content}"
    return Entry(procedure.id, "procedure", procedure.content, words, 0.9)


def of_event(event: MemoryEvent) -> Entry | None:
    said = event.payload.get("original_message")
    if not event.event_id or not isinstance(said, str) or not said:
        return None
    return Entry(event.event_id, "event", f"{event.timestamp:%Y-%m-%d} {said}", said, event.importance_score)


def best(query: str, entries: Iterable[Entry], limit: int) -> list[Hit]:
    """The best first; equally good ones by weight, then by id, so that the order is always the same."""
    scored = [(score(query, entry.found_by), entry) for entry in entries]
    found = [(value, entry) for value, entry in scored if value >= _ENOUGH]
    found.sort(key=lambda one: (-round(one[0], 3), -one[1].weight, one[1].id))
    return [Hit(entry.id, entry.kind, entry.text, round(value, 3)) for value, entry in found[: max(0, limit)]]


def score(query: str, text: str) -> float:
    """How much of what is looked for stands in the text, 0.0-1.0."""
    wanted = _parts(query)
    if not wanted:
        return 0.0
    have = _parts(text)
    words, runs = {one for one in have if not _thai(one)}, [one for one in have if _thai(one)]
    total = sum(map(len, wanted))
    return sum(len(one) * (_in_runs(one, runs) if _thai(one) else _in_words(one, words)) for one in wanted) / total


@lru_cache(maxsize=4096)
def _parts(text: str) -> tuple[str, ...]:
    plain = normalise(text.replace("_", " ").replace("-", " "))
    plain = PARTICLES.sub(" ", plain)
    found = _RUNS.findall(plain)
    return tuple(one for one in found if one not in _IDLE) or tuple(found)


def _in_words(wanted: str, words: set[str]) -> float:
    if wanted in words:
        return 1.0
    if wanted.isdigit() or len(wanted) < 3:
        return 0.0
    best = 0.0
    for word in words:
        if word in (wanted + "s", wanted + "es") or wanted in (word + "s", word + "es"):
            return 0.95
        if len(wanted) >= 4 and word.startswith(wanted):
            best = max(best, 0.7)
        elif len(wanted) >= 5 and len(word) >= 5 and (alike := _alike(wanted, word)) >= 0.5:
            best = max(best, 0.8 * alike)
    return best


def _in_runs(wanted: str, runs: Sequence[str]) -> float:
    """Thai: as it stands, else the share of its three-letter pieces that stand there, if that is most of them."""
    if any(wanted in run for run in runs):
        return 1.0
    pieces = _pieces(wanted)
    if len(wanted) < 5:
        return 0.0
    there = sum(any(piece in run for run in runs) for piece in pieces) / len(pieces)
    return there if there >= 0.5 else 0.0


def _alike(one: str, other: str) -> float:
    """Shared three-letter pieces: a slip of the finger is found."""
    mine, theirs = set(_pieces(f" {one} ")), set(_pieces(f" {other} "))
    return len(mine & theirs) / len(mine | theirs)


def _pieces(word: str) -> list[str]:
    return [word[at : at + 3] for at in range(len(word) - 2)] or [word]


def _thai(word: str) -> bool:
    return "\u0e01" <= word[0] <= "\u0e4e"
