"""The ranking of what a question may mean: by words, by meaning, by weight and age. Ranks are fused, not scores: no
part has to know another's scale, and each may be missing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from heapq import nlargest
from typing import Any

from memory.recall.entry import Entry, Hit
from memory.recall.lexical import Lexical
from memory.recall.terms import asks, terms

# See benchmarks/recall.py. Those of talks were set on five long conversations, each of which they help.
_K = 15  # the first few ranks differ little: what two parts put third goes before what one puts first
STRENGTH = 0.05  # beside words, which weigh 1
FOUND = 0.12  # the share of a question from which a text is found by words
WORD = 0.5  # the same where the question is a word or two
SURELY = 1 / 3  # of the way from the floor to the same words: what is found by meaning alone where no model reads it
_ALL = 0.99  # the share that is every word of the question
_ABOUT = 0.4  # the most that what is about the same, and has no word of the question, tells
_MOST = 200  # of each part that are looked at
# What of its neighbours' fit an entry gets: of a question before it, of one beside it, of one further.
_ANSWER, _NEXT, _AFTER = 0.8, 0.3, 0.2
_BY_MEANING = 0.6  # of that: neighbours are alike in meaning anyway
_ASKING = 0.8  # a question tells less than what was said of itself
_SAME_TALK = timedelta(hours=1)
_TALK, _OF_A_TALK = 0.6, 3  # what the best talk lifts its entries by, and how many of it tell how good it is
_SPEAKER = 1.4  # who is named in the question said it
_ALIKE = 1e-6
HALF_LIFE = 90.0  # days
_REBUILD = 0.3  # the share of removed entries from which the rest is taken over into a new one


class Ranking:
    """Entries of one owner. `update` takes over what changed."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self._begin()
        self.update(entries)

    def _begin(self) -> None:
        self._lexical = Lexical()
        self._entries: list[Entry] = []
        self._number: dict[str, int] = {}
        self._next: dict[int, int] = {}
        self._before: dict[int, int] = {}
        self._talk: dict[int, int] = {}  # the first one of it, for what stands in a talk
        self._asking: set[int] = set()
        self._speakers: dict[str, str] = {}
        self._given: list[Entry] = []

    def __len__(self) -> int:
        return len(self._number)

    def update(self, entries: Sequence[Entry]) -> bool:
        """Whether anything changed."""
        if self._given == entries:
            return False
        if self._lexical.wasted > _REBUILD:
            self._begin()
        given = {one.id: one for one in entries}
        for name in [name for name in self._number if name not in given]:
            self._lexical.remove(self._number.pop(name))
        for one in given.values():
            number = self._number.get(one.id)
            if number is not None and self._entries[number].found_by == one.found_by:
                self._entries[number] = one
                continue
            if number is not None:
                self._lexical.remove(number)
            number = self._number[one.id] = self._lexical.add(terms(one.found_by))
            self._entries.append(one)
            if asks(one.found_by):
                self._asking.add(number)
        self._link(given)
        self._given = list(entries)
        return True

    def _link(self, given: Mapping[str, Entry]) -> None:
        self._next, self._before, self._talk = {}, {}, {}
        last: dict[str, Entry] = {}
        for one in sorted((one for one in given.values() if one.at is not None), key=lambda one: (one.at, one.id)):
            assert one.at is not None  # sorted out above
            earlier = last.get(one.kind)
            if earlier is not None and earlier.at is not None and one.at - earlier.at <= _SAME_TALK:
                before, number = self._number[earlier.id], self._number[one.id]
                self._next[before], self._before[number] = number, before
                self._talk[number] = self._talk.setdefault(before, before)
            last[one.kind] = one
        self._speakers = {word: one.by for one in given.values() if one.by for word in terms(one.by).words}

    def find(
        self,
        question: str,
        limit: int,
        *,
        closeness: Any = None,
        floor: float = 1.0,
        trust: float = 0.6,
        keep: Callable[[Entry], bool] = lambda entry: True,
        around: bool = False,
        now: datetime | None = None,
    ) -> list[Hit]:
        """Best first. `closeness` (id to cosine) speaks for those of at least `floor`, and weighs `trust`
        beside words, which weigh 1. `around` is for a model that will read what is found: what stands next to a good
        one is found too, and what has only something to do with the question; without it only what has its words, or
        surely means the same."""
        asked = terms(question)
        enough = FOUND if len(asked.words) + sum(map(len, asked.runs)) / 4 > 2 else WORD
        words, shares, worded = (
            self._lexical.scores(asked, echo=True)
            if around
            else self._lexical.scores(asked, least=enough, keep=lambda number: keep(self._entries[number]))
        )
        found = {number: score for number, score in words.items() if shares[number] >= enough}
        speakers = {self._speakers[word] for word in asked.words if word in self._speakers}
        speaker = speakers.pop() if len(speakers) == 1 else ""
        if around:
            found = self._in_talks({number: words[number] for number in self._best(words)}, speaker)
        meant = self._meant(closeness, floor if around else floor + (1 - floor) * SURELY, around, speaker)
        allowed = {n for n in found.keys() | meant.keys() if keep(self._entries[n])}
        if not around and any(shares.get(number, 0.0) > _ALL for number in allowed):
            # Where the words stand somewhere, what is about the same thing alone is not what was looked for.
            allowed &= worded | meant.keys()
        fused = self._fused(
            {n: score for n, score in found.items() if n in allowed},
            {n: value for n, value in meant.items() if n in allowed},
            trust,
            now,
        )
        order = sorted(fused, key=lambda n: (-fused[n], self._entries[n].id))[: max(0, limit)]
        told = {n: share if n in worded else min(share, _ABOUT) for n, share in shares.items()} if around else {}
        best, hits = 1.0, []
        for number in order:
            one = self._entries[number]
            share = self._told(number, told) if around else shares.get(number, 0.0)
            best = min(best, max(share, meant.get(number, 0.0), 0.01))
            hits.append(Hit(one.id, one.kind, one.text, round(best, 3)))
        return hits

    def _meant(
        self, closeness: Mapping[str, float] | None, floor: float, around: bool, speaker: str
    ) -> dict[int, float]:  # fmt: skip
        if not closeness:
            return {}
        close = {self._number[name]: float(value) for name, value in closeness.items() if name in self._number}
        if around:
            lifted = {number: value - floor for number, value in close.items() if value > floor}
            told = self._in_talks(lifted, speaker, _BY_MEANING)
            return {number: value + floor for number, value in told.items()}
        return {number: value for number, value in close.items() if value >= floor}

    def _in_talks(self, scores: Mapping[int, float], speaker: str, part: float = 1.0) -> dict[int, float]:
        """What each one's place among others makes of its score: what answers stands after what was asked, a talk about
        it has more of it than a word in passing, and who is asked about tells it best."""
        out = self._spread(scores, part)
        talks: dict[int, list[float]] = {}
        for number, score in scores.items():
            talks.setdefault(self._talk.get(number, number), []).append(score)
        about = {talk: sum(nlargest(_OF_A_TALK, told)) for talk, told in talks.items()}
        most = max(about.values(), default=1.0)
        for number in out:
            lifted = 1 + _TALK * about.get(self._talk.get(number, number), 0.0) / most
            asking = _ASKING if number in self._asking else 1.0
            out[number] *= lifted * asking * (_SPEAKER if speaker and self._entries[number].by == speaker else 1.0)
        return out

    def _spread(self, scores: Mapping[int, float], part: float) -> dict[int, float]:
        """Each one's score and a part of its neighbours'."""
        out = dict(scores)
        for number, score in scores.items():
            answer = _ANSWER if number in self._asking else _NEXT
            for beside, near in ((self._next, answer), (self._before, _NEXT)):
                one = beside.get(number)
                if one is not None:
                    out[one] = out.get(one, 0.0) + part * near * score
                    other = beside.get(one)
                    if other is not None:
                        out[other] = out.get(other, 0.0) + part * _AFTER * score
        return out

    def _told(self, number: int, told: Mapping[int, float]) -> float:
        """The share of the question that an entry has, or that what it answers or stands beside lends it."""
        before = self._before.get(number, -1)
        lent = (_ANSWER if before in self._asking else _NEXT) * told.get(before, 0.0)
        return max(told.get(number, 0.0), lent, _NEXT * told.get(self._next.get(number, -1), 0.0))

    def _fused(
        self,
        words: Mapping[int, float],
        meant: Mapping[int, float],
        trust: float,
        now: datetime | None,
    ) -> dict[int, float]:
        fused: dict[int, float] = {}
        for weight, scores in ((1.0, words), (trust, meant)):
            for number, rank in self._ranks(scores):
                fused[number] = fused.get(number, 0.0) + weight / (_K + rank)
        strength = {number: self._strength(self._entries[number], now) for number in self._best(fused)}
        for number, rank in self._ranks(strength):
            fused[number] += STRENGTH / (_K + rank)
        return fused

    def _ranks(self, scores: Mapping[int, float]) -> Iterator[tuple[int, int]]:
        """The best with their ranks; those that are alike share one."""
        rank, last = 0, math.inf
        for place, number in enumerate(self._best(scores)):
            if scores[number] < last - _ALIKE:
                rank = place
            last = scores[number]
            yield number, rank

    def _best(self, scores: Mapping[int, float]) -> list[int]:
        """Numbers, the best first; alike ones as they come."""
        return nlargest(_MOST, scores, key=scores.__getitem__)

    def _strength(self, entry: Entry, now: datetime | None) -> float:
        age = max(0.0, (now - entry.at).total_seconds() / 86400) if now and entry.at else 0.0
        return entry.weight * (0.5 + 0.5 * math.pow(0.5, age / HALF_LIFE))
