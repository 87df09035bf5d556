"""Phrases and patterns over the normalised text add up to a score for each event type; what the wording says beside
them (`wording.py`) is weighed in, and the likeliest type wins.

Phrases are found with one Aho-Corasick pass, leftmost-longest: a longer word of another meaning (`mask`) hides the
phrase inside it, and a Latin phrase is only ever found between word boundaries (see `words_apart`).
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml
from ahocorasick_rs import AhoCorasick, MatchKind
from msgspec import Struct

from processors.language import detect
from processors.models import EventType, Language
from processors.normalise import SCANNED, normalise, words_apart
from processors.rules.importance import SCORES, Found, heard, score
from processors.rules.signs import TYPES, signs
from processors.rules.wording import BAND_STARTS, BANDS, default_wording, evidence, likely_band
from processors.sought import Patterns, Sought

_HERE = Path(__file__).parent
_FILES = ("th.yaml", "en.yaml", "romanised.yaml")
_OWN = 8.0  # a tenant's own keyword decides, whatever else stands in the message
_REPEATED = 0.4  # what a further hit of a type adds, of its weight: many weak words shouldn't drown one strong
# Where two types are equally likely, the one that costs the shop most if missed.
COST = (
    EventType.TRANSACTION,
    EventType.COMPLAINT,
    EventType.SUPPORT,
    EventType.REQUEST,
    EventType.INQUIRY,
    EventType.INFORMATION,
    EventType.FEEDBACK,
    EventType.GENERIC_EVENT,
)


class Verdict(Struct, frozen=True):
    """What the rules make of a message. `confidence`: how often, of a hundred such verdicts, the type is right; 0.0 to
    1.0."""

    event_type: EventType
    importance: float
    confidence: float
    strongest: str | None  # the phrase or pattern of that type that counted most
    scores: dict[EventType, float]  # of the phrases and patterns alone
    found: Found  # for `importance.score` of another type
    signs: Mapping[int, float]  # see signs.signs
    own: bool = False  # a keyword of the tenant's decided

    @property
    def rule(self) -> str:
        """What counted most, e.g. "COMPLAINT: พัง"; where no phrase or pattern fired, the letters that did."""
        if self.strongest:
            return f"{self.event_type}: {self.strongest}"
        letters = default_wording().loudest(self.found.text, self.event_type)
        return f"{self.event_type}: letters “{letters}”" if letters else "no rule"


@dataclass(frozen=True, slots=True)
class _Hit:
    event_type: EventType
    weight: float
    name: str


def _phrases(text: str) -> Iterator[str]:
    """The phrases of a `;`-separated list, in the form in which they are looked for."""
    for phrase in text.split(";"):
        if phrase := normalise(phrase):
            yield words_apart(phrase)


class Rules:
    """The built-in rules and a tenant's own keywords. Building takes some milliseconds: keep it."""

    def __init__(self, keywords: Mapping[EventType, Sequence[str]] | None = None) -> None:
        types: dict[str, list[_Hit]] = {}
        marks: dict[str, set[str]] = {}
        masks: set[str] = set()
        # Only those of a script that the message has: patterns are the dearer half.
        self._patterns = {name.partition(".")[0]: _patterns(name) for name in _FILES}
        for name in _FILES:
            data = _load(name)
            for label, weights in data["types"].items():
                for weight, phrases in weights.items():
                    for phrase in _phrases(str(phrases)):
                        types.setdefault(phrase, []).append(_Hit(EventType(label), float(weight), phrase.strip()))
            for mark, phrases in data["marks"].items():
                for phrase in _phrases(phrases):
                    marks.setdefault(phrase, set()).add(mark)
            masks.update(_phrases(data["mask"]))
        masks.update(line for line in _lines("masks.txt") if not line.startswith("#"))
        self._own = {keyword for own in (keywords or {}).values() for keyword in own}
        for event_type, own in (keywords or {}).items():
            for keyword in own:
                for phrase in _phrases(keyword.replace(";", " ")):
                    types[phrase] = [_Hit(event_type, _OWN, keyword)]
                    masks.discard(phrase)
        words = sorted({*types, *masks})
        self._hits = [tuple(types.get(phrase, ())) for phrase in words]
        self._types = AhoCorasick(words, matchkind=MatchKind.LeftmostLongest)
        words = sorted({*marks, *masks})
        self._marks = [tuple(sorted(marks.get(phrase, ()))) for phrase in words]
        self._markers = AhoCorasick(words, matchkind=MatchKind.LeftmostLongest)
        self._wording = default_wording()  # now: what it looks for is found in the pass that all share
        self._verdict = lru_cache(maxsize=256)(self._classify)  # a turn asks more than once about a message

    def classify(self, text: str) -> Verdict:
        """The verdict on any text; never raises. Looks at the text's first characters only (normalise.SCANNED)."""
        return self._verdict(text[: 2 * SCANNED])

    def _classify(self, text: str) -> Verdict:
        plain = normalise(text)
        apart = words_apart(plain)
        language = detect(text)
        hits = self._hits_in(plain, apart, language)
        scores = scores_of(hits, plain)
        marks = self._marks_in(apart)
        found = Found(plain, marks, scores)
        seen = signs(plain, language, scores, marks)
        wording = self._wording
        told = wording.tell(plain, seen)
        if own := bool(self._own) and self._decides(hits, scores):
            best = max(COST, key=lambda t: scores.get(t, 0.0))
            confidence, importance = 1.0, score(best, found)
        else:
            confidence = max(told.types)
            best = TYPES[told.types.index(confidence)]
            speaks = evidence(told.types, told.bands, reckoned(found), wording.usual)
            importance = BANDS[likely_band(speaks, wording.judge)]
        return Verdict(
            event_type=best,
            importance=heard(best, found, importance),
            confidence=round(confidence, 3),
            strongest=max(fired, key=fired.__getitem__) if (fired := hits.get(best)) else None,
            scores=scores,
            found=found,
            signs=seen,
            own=own,
        )

    def _decides(self, hits: Mapping[EventType, Mapping[str, float]], scores: Mapping[EventType, float]) -> bool:
        """Has a keyword of the tenant's led to the type that the rules would choose?"""
        return not self._own.isdisjoint(hits.get(max(COST, key=lambda t: scores.get(t, 0.0)), ()))

    def marks(self, text: str) -> dict[str, int]:
        """What makes it important or not, by name, with how often it stands there."""
        return self._marks_in(words_apart(normalise(text)))

    def _marks_in(self, apart: str) -> dict[str, int]:
        marks: dict[str, int] = {}
        for index, _, _ in self._markers.find_matches_as_indexes(apart):
            for mark in self._marks[index]:
                marks[mark] = marks.get(mark, 0) + 1
        return marks

    def hits(self, text: str) -> dict[EventType, dict[str, float]]:
        """The phrases and patterns that fire, by type, with their weights."""
        plain = normalise(text)
        return self._hits_in(plain, words_apart(plain), detect(text))

    def _hits_in(self, plain: str, apart: str, language: Language | None) -> dict[EventType, dict[str, float]]:
        hits: dict[EventType, dict[str, float]] = {}
        for index, _, _ in self._types.find_matches_as_indexes(apart):
            for hit in self._hits[index]:
                hits.setdefault(hit.event_type, {})[hit.name] = hit.weight
        for script in _scripts(plain, language):
            for hit in self._patterns[script].matching(plain):
                hits.setdefault(hit.event_type, {})[hit.name] = hit.weight
        return hits


def reckoned(found: Found) -> Callable[[int], int]:
    """Tells the number of the band that the rules reckon for a message if it is of a type, by its number in TYPES."""
    return lambda at: bisect(BAND_STARTS, _SCORES[at](found))


_SCORES = tuple(SCORES[event_type] for event_type in TYPES)


def scores_of(hits: Mapping[EventType, Mapping[str, float]], plain: str) -> dict[EventType, float]:
    """What `hits` in the normalised text `plain` add up to."""
    scores: dict[EventType, float] = {}
    most = 0.0  # of what is no small talk
    for event_type, found in hits.items():
        if len(found) == 1:
            [score] = found.values()
        else:
            first, *rest = sorted(found.values(), reverse=True)
            score = first + _REPEATED * sum(rest)
        scores[event_type] = score
        if score > most and event_type is not EventType.GENERIC_EVENT:
            most = score
    # What the words alone can't tell: the shape of the message.
    if most >= 3 and len(plain) > 25 and EventType.GENERIC_EVENT in scores:
        scores[EventType.GENERIC_EVENT] *= 0.5  # a greeting before or thanks after the matter itself is not the matter
    if _QUESTION.may(plain):
        for event_type in (EventType.TRANSACTION, EventType.FEEDBACK, EventType.INFORMATION):
            if event_type in scores:
                scores[event_type] *= 0.7
    elif len(plain) > 60 and EventType.INFORMATION in scores:
        scores[EventType.INFORMATION] *= 0.8
    return scores


_THAI = re.compile(r"[ก-๎]")
_LATIN = re.compile("[a-z]")
_QUESTION = Sought(r"\?|ไหม|หรอ|เหรอ|กี่|เท่าไหร่|ยังไง|อะไร|เมื่อไหร่|ป่าว|รึยัง|หรือยัง")  # one of these strings


def _scripts(plain: str, language: Language | None) -> Sequence[str]:
    """Whose patterns are worth trying."""
    latin = _LATIN.search(plain)
    if _THAI.search(plain):
        return ("th", "en") if latin else ("th",)
    return ("en", "romanised") if latin and language == "mixed" else ("en",)


@cache
def _load(name: str) -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    data: dict[str, Any] = yaml.load((_HERE / name).read_text(encoding="utf-8"), Loader=loader)
    return data


@cache
def _patterns(name: str) -> Patterns[_Hit]:
    """A file's patterns, the same for all tenants."""
    script = name.partition(".")[0]
    compiled = []
    for label, by_weight in _load(name)["patterns"].items():
        number = 0
        for weight, patterns in by_weight.items():
            for pattern in patterns:
                number += 1
                compiled.append((pattern, _Hit(EventType(label), float(weight), f"{script} pattern {number}")))
    return Patterns(compiled)


def _lines(name: str) -> list[str]:
    return (_HERE / name).read_text(encoding="utf-8").splitlines()


@cache
def default_rules() -> Rules:
    """The built-in rules alone, built once a process."""
    return Rules()
