"""The ranking of what a question may mean: by words, by meaning, by weight and age. Ranks are fused, not scores: no
part has to know another's scale, and each may be missing."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple
from zlib import crc32

from memory.recall.beside import Beside
from memory.recall.entry import Entry, Findable, Frames, Hit, Keep, anything, frames, in_line
from memory.recall.lexical import Fit, Lexical, Packed, best_of, no_texts
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
_MOST = 80  # of each part that are looked at
_FOR_A_FEW = 30  # the same where the best few are asked for: of those more are right
# What of its neighbours' fit an entry gets: of a question before it, of one beside it, of one further.
_ANSWER, _NEXT, _AFTER = 0.8, 0.3, 0.2
_BY_MEANING = 0.6  # of that: neighbours are alike in meaning anyway
_ASKING = 0.8  # a question tells less than what was said of itself
_TALK, _OF_A_TALK = 0.6, 3  # what the best talk lifts its entries by, and how many of it tell how good it is
_SPEAKER = 1.8  # who is named in the question said it
_ALIKE = 1e-6
HALF_LIFE = 90.0  # days
_HALVED = HALF_LIFE * 86_400  # seconds
_EACH = 180  # bytes that an entry takes beside its words
_REBUILD = 0.3  # the share of removed entries from which the rest is taken over into a new one


class Kept(NamedTuple):
    """A `Ranking` as plain values: what takes time to be made. What else belongs to an entry comes with the next
    update."""

    ids: list[str]
    marks: bytes
    sums: bytes
    asking: list[int]
    words: Packed


class Ranking:
    """Entries of one owner. `update` takes over what changed."""

    def __init__(self, entries: Sequence[Entry] = (), kept: Kept | None = None) -> None:
        self._begin(kept)
        if kept is None:
            self.update(entries)

    def _begin(self, kept: Kept | None = None) -> None:
        given = kept or Kept([], b"", b"", [], no_texts())
        self._lexical = Lexical(given.words)
        self._ids = given.ids
        self._marks = array("I", given.marks)
        self._sums = array("I", given.sums)  # of what each is found by: its mark may be another where that is the same
        # Where each stands: among the few, or at a place in the line of the many, the first that ever was being 0; -1:
        # it has not come yet, or went, or is one of the few.
        self._entries: dict[int, Entry] = {}
        self._places = array("i", [-1]) * len(self._ids)
        nothing = bytes(8 * len(self._ids))
        self._weights, self._times = array("d", nothing), array("d", nothing)  # as they are now; in seconds
        self._number = dict(zip(self._ids, range(len(self._ids)), strict=True))
        self._asking = set(given.asking)
        self._beside = Beside(len(self._ids))
        self._end: tuple[float, int] | None = None  # of the many; None: they are to be put in a line anew
        self._speakers = Speakers(())
        self._few: list[Entry] = []
        self._placed: Callable[[int, str], Findable] | None = None  # how a Line makes one of them
        self._many: Sequence[Findable] | None = None  # None: what has a number may be none of what is given
        self._first = 0  # the place of the first of the many
        self._line = array("i")  # their numbers; -1: there is nothing to be found
        self.added = 0  # since it was made, or kept last

    def __len__(self) -> int:
        return len(self._number)

    @property
    def size(self) -> int:
        """Bytes, about."""
        return self._lexical.size + _EACH * len(self._ids)

    def update(
        self,
        entries: Sequence[Entry],
        many: Sequence[Findable] = (),
        shown: Set[str] = frozenset(),
        told: Frames | None = None,
    ) -> bool:
        """Whether anything changed. `many` are of one kind, with times, and ids that are none of the others'; as long
        as they go at the beginning and come at the end, those that stay are only compared. What came at the end is left
        for later as long as all of it is `shown`, as nobody looks for that: several at once take less. `told`: the
        `frames` of the many, where somebody asked for them already."""
        few, many = list(entries), many if in_line(many) else list(many)
        went = _went(self._many, many) if self._many is not None else None
        new: Sequence[Findable] = many[max(0, len(self._line) - went) :] if went is not None else ()
        if shown >= {one.id for one in new}:
            new = ()
        if went == 0 and not new and few == self._few:
            self._give(many, self._first)
            return False
        if self._lexical.wasted > _REBUILD:
            self._begin(self.kept(self._number.values()))
            went = None
        if went is None:
            self._beside, self._end, self._few, self._line = Beside(len(self._ids)), None, [], array("i")
            given, told = list(many), told or frames(many)
            theirs = {*told.ids}
            for name in self._number.keys() - theirs - {one.id for one in few}:
                self._drop(name)
            for number in [number for number, one in self._entries.items() if one.id in theirs]:
                del self._entries[number]  # it was one of the few
            while given and (last := told.ids[len(given) - 1]) in shown and last not in self._number:
                given.pop()
            self._take_few(few)
            self._take_many(many, given, 0, told)
            return True
        for place, number in enumerate(self._line[:went], self._first):
            if number >= 0 and self._places[number] == place:
                if self._end is not None and (number == self._end[1] or self._beside.before[number] >= 0):
                    self._end = None
                self._drop(self._ids[number])
        self._line = self._line[went:]
        if few != self._few:  # behind what went: of the many some may be among the few now
            self._take_few(few)
        self._take_many(many, new, self._first + went)
        return True

    def _take_few(self, few: list[Entry]) -> None:
        given = {one.id: one for one in few}
        for one in self._few:
            if one.id in self._number:
                if one.id in given:
                    self._beside.drop(self._number[one.id])
                else:
                    self._drop(one.id)
        chains: dict[tuple[str, bool], list[tuple[float, str, int]]] = {}
        for one in given.values():
            number = self._taken(one)
            if number is None:
                continue
            self._entries[number], self._weights[number] = one, one.weight
            self._times[number] = one.at.timestamp() if one.at is not None else math.inf
            if one.at is not None:  # a talk as a whole is none of its lines
                chains.setdefault((one.kind, bool(one.by)), []).append((self._times[number], one.id, number))
        for chain in chains.values():
            self._beside.chain((at, number) for at, _, number in sorted(chain))
        self._speakers = Speakers({one.by for one in few if one.by})
        self._few = few

    def _take_many(
        self, many: Sequence[Findable], new: Sequence[Findable], first: int, told: Frames | None = None
    ) -> None:
        """`new` are at the end of them; `first`: the place in the line of the first of them; `told`: what is needed of
        them, and of what comes behind them."""
        begin = len(self._line)
        self._line += self._all_taken(new, told or frames(new), first + begin)
        self._give(many, first)  # until here what went can be looked up
        line = self._in_line(self._line[begin:])
        if not begin:
            self._end = None
        elif self._end is None or (line and line[0][0] <= self._end[0]):
            for number in self._line:
                if number >= 0:
                    self._beside.drop(number)
            line = self._in_line(self._line)
            self._end = None
        chain = [*([self._end] if self._end else ()), *((at, number) for at, _, number in line)]
        self._beside.chain(chain)
        self._end = chain[-1] if chain else None

    def _give(self, many: Sequence[Findable], first: int) -> None:
        self._many, self._first = many, first
        self._placed = many.placed if in_line(many) else None

    def _in_line(self, numbers: Iterable[int]) -> list[tuple[float, str, int]]:
        """Those with a time, by their times."""
        ids, times = self._ids, self._times
        some = dict.fromkeys(numbers)
        return sorted([(at, ids[one], one) for one in some if one >= 0 and (at := times[one]) < math.inf])

    def _all_taken(self, some: Sequence[Findable], told: Frames, place: int) -> array[int]:
        """Their numbers; nearly always they are known, and there may be a thousand. They stand at this place in the
        line and the following."""
        of, marks, weights, times, places = self._number, self._marks, self._weights, self._times, self._places
        out = array("i")
        for at_place, (one, name, mark, weight, at) in enumerate(zip(some, *told, strict=False), place):
            number: int | None = of.get(name)
            if number is None or marks[number] != mark:
                number = self._taken(one)
                if number is None:
                    out.append(-1)
                    continue
            weights[number], times[number], places[number] = weight, at, at_place
            out.append(number)
        return out

    def _taken(self, one: Findable) -> int | None:
        """Its number; a new one where it is new, or another one under this id. None: there is nothing to be found."""
        number, mark = self._number.get(one.id), one.mark
        if number is None or self._marks[number] != mark:
            words = one.found_by
            total = crc32(words.encode("utf-8", "surrogatepass"))
            if number is not None and self._sums[number] == total:
                self._marks[number] = mark
            else:
                if number is not None:
                    self._drop(one.id)
                if not (words and one.id):
                    return None
                number = self._added(one.id, mark, total, words)
        return number

    def _added(self, name: str, mark: int, total: int, words: str) -> int:
        number = self._number[name] = self._lexical.add(terms(words))
        self._ids.append(name)
        self._marks.append(mark)
        self._sums.append(total)
        self._places.append(-1)
        self._weights.append(0.0)
        self._times.append(0.0)
        self._beside.add()
        if asks(words):
            self._asking.add(number)
        self.added += 1
        return number

    def _drop(self, name: str) -> None:
        number = self._number.pop(name)
        one = self._entries.pop(number, None) or self._at(number)
        self._places[number] = -1
        self._lexical.remove(number, terms(one.found_by) if one is not None and one.id == name else None)
        self._beside.drop(number)

    def kept(self, numbers: Iterable[int]) -> Kept:
        """What is known of those."""
        wanted = sorted(numbers)
        new = {number: at for at, number in enumerate(wanted)}
        return Kept(
            [self._ids[number] for number in wanted],
            array("I", [self._marks[number] for number in wanted]).tobytes(),
            array("I", [self._sums[number] for number in wanted]).tobytes(),
            sorted(new[number] for number in self._asking if number in new),
            self._lexical.packed(wanted),
        )

    def of_owner(self, owner: str) -> list[int]:
        """The numbers of what is one user's, and of the many."""
        few = self._entries
        return [number for number in self._number.values() if number not in few or few[number].owner == owner]

    def find(
        self,
        question: str,
        limit: int,
        *,
        closeness: Any = None,
        floor: float = 1.0,
        trust: float = 0.6,
        keep: Keep = anything,
        around: bool = False,
        now: datetime | None = None,
        most: int | None = None,
        shown: Set[str] = frozenset(),
    ) -> list[Hit]:
        """Best first. `closeness` (id to cosine) speaks for those of at least `floor`, and weighs `trust`
        beside words, which weigh 1. `around` is for a model that will read what is found: what stands next to a good
        one is found too, and what has only something to do with the question; without it only what has its words, or
        surely means the same. `most`: so many of the many at most, the few beside them; `shown`: ids of those
        that whoever asks is shown anyway, which are no hits. Who said the same several times is told to a model as
        having said it last; where that is shown, not at all."""
        if not self._number:
            return []
        looked_at = _MOST if most is None else _FOR_A_FEW
        asked = asked_terms(question)
        let = None if keep is anything else lambda number: keep(self._entry(number))
        told = [self._number[one] for one in self._number.keys() & shown]
        if around:
            fit = self._lexical.scores(asked, echo=True, about=_ABOUT)
            speaker = self._speakers.named(asked)
            room = looked_at + len(told)  # what is shown takes no place of these
            best = fit.best[:room] or best_of(fit.scores, room)
            found = self._in_talks({number: fit.scores[number] for number in best}, speaker, without=told)
            meant = self._meant(closeness, floor, speaker) if closeness else {}
        else:
            enough = FOUND if len(asked.words) + sum(map(len, asked.runs)) / 4 > 2 else WORD
            fit = self._lexical.scores(asked, least=enough, keep=let)
            found = {number: score for number, score in fit.scores.items() if fit.share(number) >= enough}
            surely = floor + (1 - floor) * SURELY
            meant = {number: value for number, value in self._close(closeness).items() if value >= surely}
            for number in told:
                found.pop(number, None)
        if let is not None:
            found = {number: score for number, score in found.items() if let(number)}
            meant = {number: value for number, value in meant.items() if let(number)}
        if meant:
            for number in told:
                meant.pop(number, None)
        if not around and any(fit.share(number) > _ALL for number in (*found, *meant)):
            # Where the words stand somewhere, what is about the same thing alone is not what was looked for.
            found = {number: score for number, score in found.items() if number in fit.worded or number in meant}
        fused = self._fused(found, meant, trust, now, looked_at)
        ids, few = self._ids, self._entries
        left, waited_for = math.inf if most is None else most, len(few.keys() & fused.keys())
        least, score, hits = math.inf, 1.0, list[Hit]()
        sums, times = self._sums, self._times
        same = dict.fromkeys([sums[number] for number in told], -1) if around else {}  # what was said again: its place
        again = same.get
        # Alike ones by their ids, which nearly none are.
        ordered = fused if len({*fused.values()}) == len(fused) else sorted(fused, key=ids.__getitem__)
        for number in sorted(ordered, key=fused.__getitem__, reverse=True)[: max(0, limit)]:
            if (place := again(sums[number])) is not None and self._entry(number).kind == "event":
                if place >= 0 and times[number] > times[self._number[hits[place].id]]:
                    hits[place] = Hit(self._entry(number), hits[place].score)
                waited_for -= number in few
                continue
            if left <= 0 and not waited_for:
                if not same:
                    break
                continue
            share = self._told(fit, number) if around else fit.share(number)
            if meant:
                share = max(share, meant.get(number, 0.0))
            if share < least:
                least, score = share, round(min(1.0, max(share, 0.01)), 3)
            if number in few:
                waited_for -= 1
            elif (left := left - 1) < 0:
                continue
            one = self._entry(number)
            if around and one.kind == "event":
                same[sums[number]] = len(hits)
            hits.append(Hit(one, score))
        return hits

    def _entry(self, number: int) -> Findable:
        found = self._entries.get(number) or self._at(number)
        assert found is not None  # else it would have no terms
        return found

    def _at(self, number: int) -> Findable | None:
        """Of the many."""
        many, at = self._many, self._places[number] - self._first
        if many is None or self._places[number] < 0 or not 0 <= at < len(many):
            return None
        return many[at] if self._placed is None else self._placed(at, self._ids[number])

    def _close(self, closeness: Mapping[str, float] | None) -> dict[int, float]:
        if not closeness:
            return {}
        return {self._number[name]: float(value) for name, value in closeness.items() if name in self._number}

    def _meant(self, closeness: Mapping[str, float], floor: float, speaker: str) -> dict[int, float]:
        lifted = {number: value - floor for number, value in self._close(closeness).items() if value > floor}
        told = self._in_talks(dict(sorted(lifted.items(), key=itemgetter(1), reverse=True)), speaker, _BY_MEANING)
        return {number: value + floor for number, value in told.items()}

    def _in_talks(
        self, scores: Mapping[int, float], speaker: str, part: float = 1.0, without: Iterable[int] = ()
    ) -> dict[int, float]:
        """What each one's place among others makes of its score: what answers stands after what was asked, a talk about
        it has more of it than a word in passing, and who is asked about tells it best. `scores`: the best first;
        `without`: for whom nobody asks."""
        after, before, talk_of = self._beside.quickly(len(scores))
        out, asking = self._spread(scores, part, after, before), self._asking
        about: dict[int, float] = {}
        told: dict[int, int] = {}  # how many of it
        for number, score in scores.items():
            if (talk := talk_of[number]) < 0:
                talk = number
            if (so_many := told.get(talk, 0)) < _OF_A_TALK:
                about[talk] = about.get(talk, 0.0) + score
                told[talk] = so_many + 1
        most = max(about.values(), default=1.0) / _TALK
        lifts = {talk: 1 + value / most for talk, value in about.items()}
        for number in without:
            out.pop(number, None)
        for number, score in out.items():
            if (talk := talk_of[number]) < 0:
                talk = number
            if talk in lifts:
                score *= lifts[talk]
            if number in asking:
                score *= _ASKING
            if speaker and self._entry(number).by == speaker:
                score *= _SPEAKER
            out[number] = score
        return out

    def _spread(
        self, scores: Mapping[int, float], part: float, after: Sequence[int], before: Sequence[int]
    ) -> dict[int, float]:
        """Each one's score and a part of its neighbours'."""
        out, asking = dict(scores), self._asking
        get = out.get
        for number, score in scores.items():
            score *= part
            further = _AFTER * score
            if (one := after[number]) >= 0:
                out[one] = get(one, 0.0) + (_ANSWER if number in asking else _NEXT) * score
                if (other := after[one]) >= 0:
                    out[other] = get(other, 0.0) + further
            if (one := before[number]) >= 0:
                out[one] = get(one, 0.0) + _NEXT * score
                if (other := before[one]) >= 0:
                    out[other] = get(other, 0.0) + further
        return out

    def _told(self, fit: Fit, number: int) -> float:
        """The share of the question that it has, or that what it answers or stands beside lends it."""
        share = fit.share(number)
        if (one := self._beside.before[number]) >= 0:
            share = max(share, (_ANSWER if one in self._asking else _NEXT) * fit.share(one))
        if (one := self._beside.after[number]) >= 0:
            share = max(share, _NEXT * fit.share(one))
        return share

    def _fused(
        self,
        words: Mapping[int, float],
        meant: Mapping[int, float],
        trust: float,
        now: datetime | None,
        most: int,
    ) -> dict[int, float]:
        fused: dict[int, float] = {}
        _rank(words, 1.0, fused, most)
        best: Iterable[int] = fused  # in order, as they got there
        if meant:
            _rank(meant, trust, fused, most)
            best = best_of(fused, most)
        _rank(self._strength(best, now.timestamp() if now else -math.inf), STRENGTH, fused, most)
        return fused

    def _strength(self, numbers: Iterable[int], now: float) -> dict[int, float]:
        """Weight, and how new it is: half of it is left of what is old."""
        weights, times = self._weights, self._times
        return {
            n: weights[n] * (0.5 + 0.5 * 0.5 ** ((now - at) / _HALVED if (at := times[n]) < now else 0.0))
            for n in numbers
        }


def _rank(scores: Mapping[int, float], weight: float, fused: dict[int, float], most: int) -> None:
    """Adds what the best get for their ranks; those that are alike share one."""
    alike, given, get = math.inf, 0.0, fused.get
    for place, number in enumerate(best_of(scores, most), _K):
        score = scores[number]
        if score < alike:
            given = weight / place
        alike = score - _ALIKE
        fused[number] = get(number, 0.0) + given


def _went(before: Sequence[Findable], now: Sequence[Findable]) -> int | None:
    """How many went from the beginning, where the rest is what it begins with now; None where it is not."""
    if in_line(now) and in_line(before):
        return now.first - before.first if now.follows(before) else None
    if not (before and now):
        return len(before)
    try:
        first = before.index(now[0])
    except ValueError:
        return None
    left = list(before[first:])
    return first if left == list(now[: len(left)]) else None
