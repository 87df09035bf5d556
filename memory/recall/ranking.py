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
from memory.recall.terms import terms

# Set on two of five long conversations and half of the Thai pairs; see benchmarks/recall.py.
_K = 15  # the first few ranks differ little: what two parts put third goes before what one puts first
STRENGTH = 0.05  # beside words, which weigh 1
FOUND = 0.12  # the share of a question from which a text is found by words
WORD = 0.5  # the same where the question is a word or two
SURELY = 1 / 3  # of the way from the floor to the same words: what is found by meaning alone where no model reads it
_ALL = 0.99  # the share that is every word of the question
_ABOUT = 0.4  # the most that what is about the same, and has no word of the question, tells
_MOST = 200  # of each part that are looked at
_NEXT, _AFTER = 0.4, 0.2  # how much of its neighbours' fit an entry gets: what answers stands next to what was asked
_NEXT_MEANING, _AFTER_MEANING = 0.3, 0.1
_SAME_TALK = timedelta(hours=1)
_SPEAKER = 1.2  # who is named in the question said it
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
            self._number[one.id] = self._lexical.add(terms(one.found_by))
            self._entries.append(one)
        self._link(given)
        self._given = list(entries)
        return True

    def _link(self, given: Mapping[str, Entry]) -> None:
        self._next, self._before = {}, {}
        last: dict[str, Entry] = {}
        for one in sorted((one for one in given.values() if one.at is not None), key=lambda one: (one.at, one.id)):
            assert one.at is not None  # sorted out above
            earlier = last.get(one.kind)
            if earlier is not None and earlier.at is not None and one.at - earlier.at <= _SAME_TALK:
                self._next[self._number[earlier.id]] = self._number[one.id]
                self._before[self._number[one.id]] = self._number[earlier.id]
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
        beside words, which weigh 1. `around` is for a model that
        will read what is found: what stands next to a good one is found too, and what has only something to do with the
        question; without it only what has its words, or surely means the same."""
        asked = terms(question)
        enough = FOUND if len(asked.words) + sum(map(len, asked.runs)) / 4 > 2 else WORD
        words, shares, worded = (
            self._lexical.scores(asked, echo=True)
            if around
            else self._lexical.scores(asked, least=enough, keep=lambda number: keep(self._entries[number]))
        )
        found = {number: score for number, score in words.items() if shares[number] >= enough}
        if around:
            found = self._spread({number: words[number] for number in self._best(words)}, _NEXT, _AFTER)
        meant = self._meant(closeness, floor if around else floor + (1 - floor) * SURELY, around)
        allowed = {n for n in found.keys() | meant.keys() if keep(self._entries[n])}
        if not around and any(shares.get(number, 0.0) > _ALL for number in allowed):
            # Where the words stand somewhere, what is about the same thing alone is not what was looked for.
            allowed &= worded | meant.keys()
        fused = self._fused(
            {n: score for n, score in found.items() if n in allowed},
            {n: value for n, value in meant.items() if n in allowed},
            trust,
            asked.words,
            now,
        )
        order = sorted(fused, key=lambda n: (-fused[n], self._entries[n].id))[: max(0, limit)]
        best, hits = 1.0, []
        for number in order:
            one = self._entries[number]
            share = shares.get(number, 0.0)
            if around and number not in worded:
                share = min(share, _ABOUT)
            best = min(best, max(share, meant.get(number, 0.0), 0.01))
            hits.append(Hit(one.id, one.kind, one.text, round(best, 3)))
        return hits

    def _meant(self, closeness: Mapping[str, float] | None, floor: float, around: bool) -> dict[int, float]:
        if not closeness:
            return {}
        close = {self._number[name]: float(value) for name, value in closeness.items() if name in self._number}
        if around:
            lifted = {number: value - floor for number, value in close.items() if value > floor}
            spread = self._spread(lifted, _NEXT_MEANING, _AFTER_MEANING)
            return {number: value + floor for number, value in spread.items()}
        return {number: value for number, value in close.items() if value >= floor}

    def _spread(self, scores: Mapping[int, float], near: float, far: float) -> dict[int, float]:
        """Each one's score and a part of its neighbours'."""
        out = dict(scores)
        for number, score in scores.items():
            for beside in (self._next, self._before):
                one = beside.get(number)
                if one is not None:
                    out[one] = out.get(one, 0.0) + near * score
                    other = beside.get(one)
                    if other is not None:
                        out[other] = out.get(other, 0.0) + far * score
        return out

    def _fused(
        self,
        words: Mapping[int, float],
        meant: Mapping[int, float],
        trust: float,
        asked: Sequence[str],
        now: datetime | None,
    ) -> dict[int, float]:
        fused: dict[int, float] = {}
        for weight, scores in ((1.0, words), (trust, meant)):
            for number, rank in self._ranks(scores):
                fused[number] = fused.get(number, 0.0) + weight / (_K + rank)
        strength = {number: self._strength(self._entries[number], now) for number in self._best(fused)}
        for number, rank in self._ranks(strength):
            fused[number] += STRENGTH / (_K + rank)
        named = {self._speakers[word] for word in asked if word in self._speakers}
        if len(named) == 1:
            fused = {n: score * (_SPEAKER if self._entries[n].by in named else 1.0) for n, score in fused.items()}
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
