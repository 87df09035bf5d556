"""Which texts have the words of a question, and how well: BM25 over terms. In memory, grows and shrinks in place."""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from functools import cache, lru_cache
from heapq import nlargest
from itertools import chain, compress
from operator import add
from sys import intern
from typing import Any, NamedTuple

from memory.recall.postings import Bits, Postings, Stored, Texts, as_bytes, key
from memory.recall.terms import SHORT, Terms, groups, stem, terms, thai

_K1, _B = 0.9, 0.4
_COMMON = 0.05  # of a large collection: a term in more of its texts than that tells nothing
_LARGE = 1000
_ECHO_FROM, _ECHO_TERMS, _ECHO, _ECHO_TO = 8, 10, 0.15, 300  # words that go with the best texts count a little too
TOPIC = 0.6  # the share where a text has none of the words, but all that the question speaks of
_LATIN = re.compile(r"[^\W_ก-๎]+")
_VAST = 4000  # texts from which arrays are quicker
_BEST = 1000  # of those that are looked at further
_PACKED = 240  # texts until which bits tell which have a term; of more the numbers are packed
_LAST, _PART, _AT_MOST = 60, 8, 1000  # of those behind what is packed, at least, which part of it, and at most
_LOOSE = 700  # bytes that a text takes that is not packed
_LAST_LETTER = chr(0x10FFFF)  # behind all others
_LIKE = 0.5  # the share of letter groups from which a word is another one with a slip


class Fit(NamedTuple):
    """By number: how well a text fits, and what `share` of the question stands in it (0.0-1.0, rare terms count more).
    `worded` have a word of it, not its topic alone. In a large collection of the best alone."""

    scores: dict[int, float]
    share: Callable[[int], float]
    worded: Set[int]
    best: Sequence[int] = ()  # all of them, the best first, where that is known


class Packed(NamedTuple):
    """A `Lexical` as plain values: texts are numbered from 0, none is removed."""

    numbers: Stored
    packed_to: int  # how many texts are in them
    keys: bytes  # of the terms of the texts behind what is packed there; see Bits
    bits: bytes
    again: dict[str, dict[int, int]]
    lengths: bytes
    latin: dict[str, list[str]]
    plain: str  # see Texts
    begins: bytes


def no_texts() -> Packed:
    return Packed(Stored(), 0, b"", b"", {}, b"", {}, *Texts().kept(()))


class _Weighed(NamedTuple):
    """What of a question weighs how much: each of its terms that is written down or a topic, by itself; the others in
    sum, by the last texts that have them, as bits; with the texts what is found in another way; and with how often what
    texts have more than once. `words` are those of the question. `spoken` is of its topics alone, `whole` of all."""

    terms: dict[str, float]
    alike: list[tuple[float, int]]
    others: list[tuple[float, list[int]]]
    again: list[tuple[float, dict[int, int]]]
    words: Collection[str]
    spoken: float
    whole: float


class Lexical:
    """Texts by number. What is removed keeps its number and is found no more.

    Which texts have a term is told by bits: that takes next to nothing to be made, and most of a question's terms are
    found in the same few texts, so there is little to add up. Most people's are all of these; of more texts the numbers
    are packed, but for the last ones.
    """

    def __init__(self, packed: Packed | None = None) -> None:
        given = packed or no_texts()
        self._packed = Postings(given.numbers)
        self._asked: dict[str, int] = {}  # by term, its place in what is packed, -1: none; of one search
        self._again = given.again  # of a term: how often the texts have it that have it more than once
        self._lengths = array("I", given.lengths)
        self._begin = given.packed_to  # the number of the first of the last texts
        # By term, its texts among the last ones. Of what comes from a file (`_unread`) those that were asked for since;
        # of the other terms what came since is in `_beside`.
        self._last: dict[str, int] = {}
        self._unread = Bits(given.keys, given.bits) if given.keys else None
        self._beside: dict[str, int] = {}
        self._there = (1 << len(self) - self._begin) - 1  # of the last ones, those that are not gone
        # Words that a slip may have been made in, by their first letter, in order.
        self._latin = {first: sorted(words) for first, words in given.latin.items()}
        # Latin words and numbers that more than one text has, or had; None: not known, as some lie in a file or packed.
        self._twice: set[str] | None = None if given.lengths else set()
        self._plain = Texts.read(given.plain, given.begins)
        self._said: dict[int, tuple[str, ...]] = {}
        self._total = sum(self._lengths)
        self._gone: set[int] = set()
        self._fewer: dict[str, int] = {}  # by term, how many of those that are packed are gone

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def size(self) -> int:
        """Bytes, about."""
        return self._packed.size + self._plain.size + _LOOSE * (len(self) - self._begin)

    @property
    def wasted(self) -> float:
        return len(self._gone) / max(1, len(self._lengths))

    def add(self, text: Terms) -> int:
        number, said = len(self._lengths), text.all
        if number - self._begin >= (_most_behind(self._begin) if self._begin else _PACKED):
            self._pack()
        bit, last, again = 1 << number - self._begin, self._last, self._again
        new = last if self._unread is None else self._beside
        for word in text.words:
            if word[0] == "#":
                continue
            if self._twice is not None and word in last:
                self._twice.add(word)
            if not word.isdigit():
                known = self._latin.setdefault(word[0], [])
                if (at := bisect_left(known, word)) == len(known) or known[at] != word:
                    known.insert(at, word)
        get = new.get
        for term in said:
            where, has = new, get(term)
            if has is None:
                if new is last or (has := last.get(term)) is None:
                    new[intern(term) if new is last else term] = bit  # others have nearly all of them too
                    continue
                where = last
            if has < bit:  # which is above those of all before it
                where[term] = has | bit
            else:
                counts = again.setdefault(term, {})
                counts[number] = counts.get(number, 1) + 1
        self._there |= bit
        self._lengths.append(len(said))
        self._plain.add(text.plain)
        self._total += len(said)
        return number

    def remove(self, number: int, text: Terms | None = None) -> None:
        """`text`: the one that was added; without it, as near as can be told by now."""
        self._gone.add(number)
        self._total -= self._lengths[number]
        if number >= self._begin:
            self._there &= ~(1 << number - self._begin)
            return
        fewer, packed = self._fewer, self._packed
        for term in {*(text or terms(self._plain[number])).all}:
            if packed.has(term, number):
                fewer[term] = fewer.get(term, 0) + 1

    def packed(self, kept: Sequence[int]) -> Packed:
        """Of these numbers, which are none that were removed, in rising order; they are counted from 0 there. What is
        added here later is not in it."""
        plain = self._plain.kept(kept)
        if len(kept) == len(self):
            again = {term: dict(counts) for term, counts in self._again.items()}
            latin = {first: words.copy() for first, words in self._latin.items()}
            return Packed(
                self._packed.stored,
                self._begin,
                *as_bytes(self._by_key, len(self) - self._begin),
                again,
                self._lengths.tobytes(),
                latin,
                *plain,
            )
        if self._begin:
            self._pack()
        new = {number: at for at, number in enumerate(kept)}
        last: dict[int, int] = {}
        for named, held in self._by_key.items():
            if left := sum([1 << new[place] for place in _places(held & self._there) if place in new]):
                last[named] = left
        numbers, again = self._packed.of(kept, len(self)), {}
        for term, counts in self._again.items():
            if still := {new[number]: count for number, count in counts.items() if number in new}:
                again[term] = still
        latin = {
            first: [one for one in words if key(one) in last or numbers.place(one) >= 0]
            for first, words in self._latin.items()
        }
        lengths = array("I", [self._lengths[number] for number in kept])
        begin = len(kept) if self._begin else 0
        bits = as_bytes(last, len(kept) - begin)
        return Packed(numbers.stored, begin, *bits, again, lengths.tobytes(), latin, *plain)

    def _pack(self) -> None:
        begin, there = self._begin, self._there
        more = {
            named: [begin + place for place in _places(left)]
            for named, held in self._by_key.items()
            if (left := held & there)
        }
        self._packed = self._packed.with_more(more, len(self))
        self._plain.pack()
        self._last, self._unread, self._beside, self._twice = {}, None, {}, None
        self._there, self._begin, self._asked = 0, len(self), {}

    @property
    def _by_key(self) -> dict[int, int]:
        """The last texts of every term that is in them."""
        last = {key(term): held for term, held in self._last.items() if held}
        if self._unread is None:
            return last
        out = self._unread.all() | last
        for term, held in self._beside.items():
            at = key(term)
            out[at] = out.get(at, 0) | held
        return out

    def _read(self, asked: Iterable[str]) -> None:
        """Of what comes from a file."""
        last, beside = self._last, self._beside
        if self._unread is not None and (new := [term for term in asked if term not in last]):
            found = self._unread.having(new)
            if not last:  # most who are read anew are asked once: nobody needs less memory for them
                self._last = {term: held | beside.pop(term, 0) for term, held in found.items()} if beside else found
                return
            for term, held in found.items():
                last[intern(term)] = held | beside.pop(term, 0)

    def _having(self, term: str) -> list[int]:
        """The texts that have it, and of those that are written down maybe some that are gone."""
        found = [*self._written(term)]
        if held := self._last.get(term, 0) & self._there:
            found += [self._begin + place for place in _places(held)]
        return found

    def _written(self, term: str) -> Sequence[int]:
        """Those of what is packed."""
        packed = self._packed
        return packed.having(place) if packed.keys and (place := self._place(term)) >= 0 else ()

    def _count(self, term: str) -> int:
        """How many of the texts that are there have it."""
        last = (self._last.get(term, 0) & self._there).bit_count()
        if self._packed.keys and (place := self._place(term)) >= 0:
            last += self._packed.count(place) - self._fewer.get(term, 0)
        return last

    def _place(self, term: str) -> int:
        """Of something that is packed."""
        place = self._asked.get(term)
        if place is None:
            place = self._asked[term] = self._packed.place(term)
        return place

    def scores(
        self,
        question: Terms,
        *,
        echo: bool = False,
        about: float = 1.0,
        least: float = 0.0,
        keep: Callable[[int], bool] | None = None,
    ) -> Fit:
        """`echo`: texts that speak like the best ones are lifted; none is found by that alone. `about`: the most that a
        text's topics tell by themselves. Of a large collection only what has a share of `least` and is to be kept
        counts among the best."""
        vast = len(self) >= _VAST and (arrays := numpy()) is not None
        weighed = self._weighed(question)
        if vast:
            fit = self._among_many(arrays, weighed, about, least, keep)
        else:
            fit = self._among_few(weighed, about)
        if echo and fit.scores and (best := self._echo(fit.scores, weighed.words)):
            fit = Fit(fit.scores, fit.share, fit.worded, best)
        self._asked = {}
        return fit

    def _among_few(self, weighed: _Weighed, most: float) -> Fit:
        """Each text is scored as if it had each term once, which is nearly always so; then the rest is added."""
        told, about = [0.0] * len(self), [0.0] * len(self)  # by words, by topics
        spoken, whole = weighed.spoken, weighed.whole or 1.0  # nothing of a question may be a term
        places_of, size, last, there = _SET, (len(self) - self._begin + 7) // 8, self._last, self._there
        added = [(told, weight, held) for weight, held in weighed.alike]
        for term, weight in weighed.terms.items():
            by = about if term[0] == "#" else told
            added.append((by, weight, last.get(term, 0) & there))
            for number in self._written(term):
                by[number] += weight
        for by, weight, held in added:
            number = self._begin
            for eight in held.to_bytes(size, "little"):
                if eight:
                    for place in places_of[eight]:
                        by[number + place] += weight
                number += 8
        for weight, listed in weighed.others:
            for number in listed:
                told[number] += weight
        for number in self._gone:
            told[number] = about[number] = 0.0
        numbers, whole_of = range(len(told)), told
        if any(about):
            whole_of = list(map(add, told, about))
        fixed, slope = self._shape
        once, least, lengths = _K1 + 1, 1 + fixed, self._lengths
        scores = {
            number: weight * once / (least + slope * length)
            for number, weight, length in compress(zip(numbers, whole_of, lengths, strict=True), whole_of)
        }
        for weight, counts in weighed.again:
            for number, count in counts.items():
                if number in scores:
                    scores[number] += weight * _more(count, fixed + slope * lengths[number])

        def share(number: int) -> float:
            """Of the few that somebody asks for."""
            part = whole_of[number] / whole
            if spoke := about[number]:
                part = max(part, TOPIC * spoke / spoken)
                if not told[number]:
                    part = min(part, most)
            return part

        return Fit(scores, share, scores.keys() if whole_of is told else set(compress(numbers, told)))

    def _weighed(self, question: Terms) -> _Weighed:
        """A short Thai word is looked for in the texts themselves."""
        words, runs = dict.fromkeys(question.words), dict.fromkeys(question.runs)
        sought = dict.fromkeys(chain(words, *[groups(run) for run in runs if len(run) > SHORT]))
        count, total, whole = self._count, len(self._lengths) - len(self._gone), 0.0
        topics = [word for word in words if word[0] == "#"]
        single = {*topics}
        if self._unread is not None:
            self._read(sought)
        if self._packed.keys:
            self._asked = dict.fromkeys(sought, -1)
            places = self._packed.places(sought)
            self._asked |= places
            single |= places.keys()
        if total >= _LARGE:  # what may be common is counted by itself
            last, there = self._last, self._there
            single.update([term for term in sought if (last.get(term, 0) & there).bit_count() >= _COMMON * total])
        held: dict[int, int] = {}
        rest = sought
        if single:
            rest = sought.copy()  # quicker than a set without them
            for term in single:
                del rest[term]
        for those in filter(None, map(self._last.get, rest)):
            held[those] = held.get(those, 0) + 1
        alike, nowhere = [], len(sought) - len(single)
        for those, times in held.items():
            if those := those & self._there:
                weight = rarity(total, those.bit_count()) * times
                whole += weight
                nowhere -= times
                alike.append((weight, those))
        counts = {term: having for term in single if (having := count(term))}
        weights = {term: rarity(total, having) for term, having in counts.items()}
        nowhere += len(single) - len(weights)
        others = [(one, 1, found) for one in words if not count(one) and (found := self._slips(one))]
        nowhere -= len(others)
        others += [
            (run, max(1, len(run) - 2), self._within(run)) for run in runs if len(run) <= SHORT and run not in sought
        ]
        again = {term: having for term in self._again.keys() & sought.keys() if (having := count(term))}
        if total >= _LARGE:
            most = _COMMON * total
            common = {term for term, having in counts.items() if having >= most}
            common.update([term for term, _, _ in others if count(term) >= most])
            if nowhere or alike or len(common) < len(weights) + len(others):
                for some in (words, weights, again):
                    for term in common & some.keys():
                        del some[term]
                others = [one for one in others if one[0] not in common]
        weighed = [(rarity(total, len(found)) * times, found) for _, times, found in others]
        none = rarity(total, 0)
        return _Weighed(
            weights,
            alike,
            weighed,
            [(rarity(total, having), self._again[term]) for term, having in again.items()],
            words,
            sum([weights.get(topic, none) for topic in topics if topic in words]),
            whole + sum(weights.values()) + sum([weight for weight, _ in weighed]) + nowhere * none,
        )

    def _within(self, run: str) -> list[int]:
        """The texts that have these letters."""
        return [number for number in self._plain.having(run) if number not in self._gone]

    @property
    def _shape(self) -> tuple[float, float]:
        """BM25's for how much a text's length takes from what its words count."""
        average = self._total / max(1, len(self) - len(self._gone)) or 1.0
        return _K1 * (1 - _B), _K1 * _B / average

    def _slips(self, word: str) -> list[int]:
        """The texts with a Latin word that begins like this one, or is it with a slip of the finger."""
        known = self._latin.get(word[0], ())
        if _is_code(word):
            others = known[bisect_left(known, word) : bisect_left(known, word + _LAST_LETTER)]
        else:
            others = slips(word, known)
        if not others:
            return []
        self._read(others)
        return sorted({number for other in others for number in self._having(other)} - self._gone)

    def _among_many(
        self,
        np: Any,
        weighed: _Weighed,
        most: float,
        least: float,
        keep: Callable[[int], bool] | None,
    ) -> Fit:
        """The same in arrays: a search that touches tens of thousands of texts has no time for each of them."""
        told, about = np.zeros(len(self), np.float32), np.zeros(len(self), np.float32)
        for term, weight in weighed.terms.items():
            (about if term[0] == "#" else told)[np.asarray(self._having(term), np.uint32)] += weight
        for weight, held in weighed.alike:
            told[np.asarray(_places(held), np.uint32) + self._begin] += weight
        for weight, listed in weighed.others:
            told[np.asarray(listed, np.uint32)] += weight
        fixed, slope = self._shape
        rest = fixed + slope * np.frombuffer(self._lengths, np.uint32)
        scores = (told + about) * np.float32(_K1 + 1) / (1 + rest)
        for weight, counts in weighed.again:
            at = np.fromiter(counts.keys(), np.int64)
            scores[at] += weight * _more(np.fromiter(counts.values(), np.float32), rest[at])
        shares = (told + about) / (weighed.whole or 1.0)
        if weighed.spoken:
            shares = np.maximum(shares, TOPIC * about / weighed.spoken)
            shares = np.where(told > 0, shares, np.minimum(shares, most))
        if self._gone:
            scores[np.fromiter(self._gone, np.int64)] = 0.0
        found = np.flatnonzero((scores > 0) & (shares >= least))
        found = found[np.argsort(-scores[found], kind="stable")]
        best: list[int] = []
        for number in found.tolist():
            if keep is None or keep(number):
                best.append(number)
                if len(best) >= _BEST:
                    break
        share = {number: float(shares[number]) for number in best}
        return Fit(
            {number: float(scores[number]) for number in best},
            lambda number: share.get(number, 0.0),
            {number for number in best if told[number]},
        )

    def _echo(self, scores: dict[int, float], asked: Collection[str]) -> Sequence[int]:
        """All of them, the best first, where it lifted none and had to know."""
        twice = self._twice
        if twice is not None and not twice:
            return ()
        best = best_of(scores, _ECHO_TO)
        told: dict[str, float] = {}
        for number in best[:_ECHO_FROM]:
            for word in self._words(number):
                if word not in asked and (twice is None or word in twice):
                    told[word] = told.get(word, 0.0) + scores[number]
        self._read(told)
        total = len(self._lengths) - len(self._gone)
        weights = {word: rarity(total, count) for word in told if (count := self._count(word)) > 1}
        if not weights:
            return best if len(best) == len(scores) else ()
        lifted = scores.keys() if len(best) == len(scores) else set(best)
        fixed, slope = self._shape
        for word in nlargest(_ECHO_TERMS, weights, key=lambda one: (told[one] * weights[one], one)):
            weight, counts = _ECHO * weights[word], self._again.get(word, {})
            once = weight * (_K1 + 1)
            for number in _among(self._having(word), lifted):
                rest = fixed + slope * self._lengths[number]
                scores[number] += once / (1 + rest)
                if number in counts:
                    scores[number] += weight * _more(counts[number], rest)
        return ()

    def _words(self, number: int) -> Collection[str]:
        """The Latin words of a text. Held, as each turn asks for those of nearly the same texts."""
        found = self._said.get(number)
        if found is None:
            found = self._said[number] = tuple({intern(stem(one)) for one in _LATIN.findall(self._plain[number])})
        return found


@lru_cache(maxsize=8192)
def rarity(total: int, having: int) -> float:
    """What a term weighs that so many of all texts have."""
    count = max(total, having)
    return math.log(1 + (count - having + 0.5) / (having + 0.5))


def _places(bits: int) -> Sequence[int]:
    """Those that are set."""
    if bits < len(_SET):
        return _SET[bits]
    if bits.bit_count() <= _FEW:
        out = []
        while bits:
            lowest = bits & -bits
            out.append(lowest.bit_length() - 1)
            bits ^= lowest
        return out
    told = bits.to_bytes((bits.bit_length() + 7) // 8, "little")
    return [
        at + place for at, byte in zip(range(0, 8 * len(told), 8), told, strict=True) if byte for place in _SET[byte]
    ]


_FEW = 8  # until so many, one after the other is faster
_SET = [tuple([place for place in range(8) if byte >> place & 1]) for byte in range(256)]


def _most_behind(packed: int) -> int:
    return min(_AT_MOST, max(_LAST, packed // _PART))


def _more(count: Any, rest: Any) -> Any:
    """What BM25 gives for a term that a text has so often, beyond what it gives for once. Also of arrays."""
    return (_K1 + 1) * (count / (count + rest) - 1 / (1 + rest))


def _among(listed: Sequence[int], some: Set[int]) -> Iterable[int]:
    """Those of a rising list that are among some."""
    if len(listed) < 64 * len(some):
        return [number for number in listed if number in some]
    at = {number: bisect_left(listed, number) for number in some}
    return [number for number, i in at.items() if i < len(listed) and listed[i] == number]


def best_of(scores: Mapping[int, float], most: int) -> list[int]:
    """Numbers, the best first; alike ones as they come."""
    if len(scores) <= 8 * most:  # a heap is slower
        return sorted(scores, key=scores.__getitem__, reverse=True)[:most]
    return nlargest(most, scores, key=scores.__getitem__)


@cache
def numpy() -> Any:
    """None where it is not installed. Not loaded before it is of use."""
    try:
        import numpy as found
    except ImportError:
        return None
    return found


def slips(word: str, among: Collection[str]) -> list[str]:
    """Latin words with the same first letter that begin like this one, or are it with a slip of the finger: a code with
    another digit is another one."""
    if not among or len(word) < 4 or word.isdigit() or thai(word):
        return []
    if _is_code(word):
        return [other for other in among if other.startswith(word)]
    mine, found = set(_pieces(word)), []
    for other in among:
        if other.startswith(word):
            found.append(other)
        elif len(other) >= 4 and abs(len(other) - len(word)) <= 2 and other.isalpha():
            shared = len(mine.intersection(_pieces(other)))
            # The second set is made where the first look leaves a chance.
            if shared >= _LIKE * len(mine) and shared >= _LIKE * len(mine.union(_pieces(other))):
                found.append(other)
    return found


def _is_code(word: str) -> bool:
    return len(word) >= 4 and not (word.isalpha() or word.isdigit() or thai(word))


def _pieces(word: str) -> Iterable[tuple[str, str, str]]:
    padded = f" {word} "
    return zip(padded, padded[1:], padded[2:], strict=False)
