"""The ranking of what a question may mean: by words, by meaning, by weight and age. Ranks are fused, not scores: no
part has to know another's scale, and each may be missing."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from heapq import nlargest
from operator import lt, sub
from typing import Any, NamedTuple

from memory.recall.entry import NONE, Entry, Hit, Many, anything
from memory.recall.lexical import Lexical, Packed
from memory.recall.speakers import Speakers
from memory.recall.terms import asked as asked_terms
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
_SPEAKER = 1.8  # who is named in the question said it
_ALIKE = 1e-6
HALF_LIFE = 90.0  # days
_REBUILD = 0.3  # the share of removed entries from which the rest is taken over into a new one


class Kept(NamedTuple):
    """A `Ranking` as plain values: what takes time to be made. What else belongs to an entry comes with the next
    update."""

    ids: list[str]
    marks: bytes
    asking: list[int]
    words: Packed


class Ranking:
    """Entries of one owner. `update` takes over what changed."""

    def __init__(self, entries: Sequence[Entry] = (), kept: Kept | None = None) -> None:
        self._begin(kept)
        if kept is None:
            self.update(entries)

    def _begin(self, kept: Kept | None = None) -> None:
        given = kept or Kept([], b"", [], Packed({}, {}, b"", {}, []))
        self._lexical = Lexical(given.words)
        self._ids = given.ids
        self._marks = array("I", given.marks)
        self._entries: list[Entry | None] = [None] * len(self._ids)  # None: one of many
        self._number = dict(zip(self._ids, range(len(self._ids)), strict=True))
        self._next: dict[int, int] = {}
        self._before: dict[int, int] = {}
        self._talk: dict[int, int] = {}  # the first one of it, for what stands in a talk
        self._asking = set(given.asking)
        self._speakers = Speakers(())
        self._given: list[Entry] | None = None
        self._many = NONE
        self._of_many: dict[int, int] = {}  # their places by number
        self.added = 0  # since it was made, or kept last

    def __len__(self) -> int:
        return len(self._number)

    def update(self, entries: Sequence[Entry], many: Many = NONE) -> bool:
        """Whether anything changed. Ids of `many` are none of the others'."""
        same = self._many.ids == many.ids and self._many.marks == many.marks
        if self._given == entries and same:
            return False
        if self._lexical.wasted > _REBUILD:
            self._begin(self.kept(self._number.values()))
        given = {one.id: one for one in entries}
        for name in self._number.keys() - given.keys() - set(many.ids):
            self._lexical.remove(self._number.pop(name))
        for one in given.values():
            self._entries[self._numbered(one.id, one.mark, one)] = one
        self._of_many = self._places(many)
        self._many = many
        self._link(given)
        self._given = list(entries)
        return True

    def _places(self, many: Many) -> dict[int, int]:
        """By number, of those of the many that can be found. Without a look at each as long as none is new."""
        numbers: list[int] = [self._number.get(name, -1) for name in many.ids]
        known = self._marks
        for at, number in enumerate(numbers):
            if number < 0 or known[number] != many.marks[at]:
                found = many.entry(at)
                numbers[at] = -1 if found is None else self._numbered(many.ids[at], many.marks[at], found)
        places = dict(zip(numbers, range(len(numbers)), strict=True))
        places.pop(-1, None)
        return places

    def _numbered(self, name: str, mark: int, one: Entry) -> int:
        """Its number; a new one where it is new, or another one under this id."""
        number = self._number.get(name)
        if number is not None:
            if self._marks[number] == mark:
                return number
            self._lexical.remove(number)
        number = self._number[name] = self._lexical.add(terms(one.found_by))
        self._ids.append(name)
        self._marks.append(mark)
        self._entries.append(None)
        if asks(one.found_by):
            self._asking.add(number)
        self.added += 1
        return number

    def kept(self, numbers: Iterable[int]) -> Kept:
        """What is known of those."""
        wanted = sorted(numbers)
        new = {number: at for at, number in enumerate(wanted)}
        return Kept(
            [self._ids[number] for number in wanted],
            array("I", [self._marks[number] for number in wanted]).tobytes(),
            sorted(new[number] for number in self._asking if number in new),
            self._lexical.packed(wanted),
        )

    def of_owner(self, owner: str) -> list[int]:
        """The numbers of what is one user's, and of the many."""
        return [n for n in self._number.values() if (one := self._entries[n]) is None or one.owner == owner]

    def _entry(self, number: int) -> Entry:
        found = self._entries[number] or self._many.entry(self._of_many[number])
        assert found is not None  # else it would have no number
        return found

    def _link(self, given: Mapping[str, Entry]) -> None:
        self._next, self._before, self._talk = {}, {}, {}
        chains: dict[str, list[tuple[datetime, str, int]]] = {}
        for one in given.values():
            if one.at is not None:  # a talk as a whole is none of its lines
                chains.setdefault(f"{one.kind} {bool(one.by)}", []).append((one.at, one.id, self._number[one.id]))
        for chain in chains.values():
            chain.sort()
            self._chain([at for at, _, _ in chain], [number for _, _, number in chain])
        ids, times, numbers = self._many.ids, self._many.times, list(self._of_many)
        places = list(self._of_many.values())
        whens = [times[at] for at in places]
        if not all(map(lt, whens, whens[1:])):
            order = sorted(range(len(places)), key=lambda at: (whens[at], ids[places[at]]))
            whens, numbers = [whens[at] for at in order], [numbers[at] for at in order]
        self._chain(whens, numbers)
        self._speakers = Speakers({one.by for one in given.values() if one.by})

    def _chain(self, times: Sequence[datetime], numbers: Sequence[int]) -> None:
        """Of one kind, in the order of their times."""
        near = [at for at, gap in enumerate(map(sub, times[1:], times)) if gap <= _SAME_TALK]
        for at in near:
            before, number = numbers[at], numbers[at + 1]
            self._next[before], self._before[number] = number, before
            self._talk[number] = self._talk.setdefault(before, before)

    def find(
        self,
        question: str,
        limit: int,
        *,
        closeness: Any = None,
        floor: float = 1.0,
        trust: float = 0.6,
        keep: Callable[[Entry], bool] = anything,
        around: bool = False,
        now: datetime | None = None,
    ) -> list[Hit]:
        """Best first. `closeness` (id to cosine) speaks for those of at least `floor`, and weighs `trust`
        beside words, which weigh 1. `around` is for a model that will read what is found: what stands next to a good
        one is found too, and what has only something to do with the question; without it only what has its words, or
        surely means the same."""
        asked = asked_terms(question)
        enough = FOUND if len(asked.words) + sum(map(len, asked.runs)) / 4 > 2 else WORD
        words, shares, worded = (
            self._lexical.scores(asked, echo=True)
            if around
            else self._lexical.scores(
                asked, least=enough, keep=None if keep is anything else lambda number: keep(self._entry(number))
            )
        )
        found = {number: score for number, score in words.items() if shares[number] >= enough}
        speaker = self._speakers.named(asked)
        if around:
            found = self._in_talks({number: words[number] for number in self._best(words)}, speaker)
        meant = self._meant(closeness, floor if around else floor + (1 - floor) * SURELY, around, speaker)
        fits = found.keys() | meant.keys()
        allowed = set(fits) if keep is anything else {n for n in fits if keep(self._entry(n))}
        if not around and any(shares.get(number, 0.0) > _ALL for number in allowed):
            # Where the words stand somewhere, what is about the same thing alone is not what was looked for.
            allowed &= worded | meant.keys()
        fused = self._fused(
            {n: score for n, score in found.items() if n in allowed},
            {n: value for n, value in meant.items() if n in allowed},
            trust,
            now,
        )
        order = sorted(fused, key=lambda n: (-fused[n], self._ids[n]))[: max(0, limit)]
        told = {n: share if n in worded else min(share, _ABOUT) for n, share in shares.items()} if around else {}
        best, hits = 1.0, []
        for number in order:
            one = self._entry(number)
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
            out[number] *= lifted * asking * (_SPEAKER if speaker and self._entry(number).by == speaker else 1.0)
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
        strength = {number: self._strength(number, now) for number in self._best(fused)}
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

    def _strength(self, number: int, now: datetime | None) -> float:
        one = self._entries[number]
        if one is not None:
            weight, at = one.weight, one.at
        else:
            place = self._of_many[number]
            weight, at = self._many.weight(place), self._many.times[place]
        age = max(0.0, (now - at).total_seconds() / 86400) if now and at else 0.0
        return weight * (0.5 + 0.5 * math.pow(0.5, age / HALF_LIFE))
