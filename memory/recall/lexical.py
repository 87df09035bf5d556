"""Which texts have the words of a question, and how well: BM25 over terms. In memory, grows and shrinks in place."""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from heapq import nlargest
from itertools import compress
from typing import Any, NamedTuple

from memory.recall.terms import SHORT, Terms, groups, stem, terms, thai

_K1, _B = 0.9, 0.4
_COMMON = 0.05  # of a large collection: a term in more of its texts than that tells nothing
_LARGE = 1000
_ECHO_FROM, _ECHO_TERMS, _ECHO, _ECHO_TO = 8, 10, 0.15, 300  # words that go with the best texts count a little too
TOPIC = 0.6  # the share where a text has none of the words, but all that the question speaks of
_LATIN = re.compile(r"[^\W_ก-๎]+")
_VAST = 4000  # texts from which arrays are quicker
_BEST = 1000  # of those that are looked at further
_Weighed = tuple[str, float, Sequence[int]]  # a term, what it weighs, the texts that have it or what it stands for
_LIKE = 0.5  # the share of letter groups from which a word is another one with a slip


class Fit(NamedTuple):
    """By number: how well a text fits, and what share of the question stands in it (0.0-1.0, rare terms count more).
    `worded` have a word of it, not its topic alone. In a large collection of the best alone."""

    scores: dict[int, float]
    shares: dict[int, float]
    worded: set[int]


class Packed(NamedTuple):
    """A `Lexical` as plain values: texts are numbered from 0, none is removed."""

    numbers: dict[str, bytes]
    again: dict[str, dict[int, int]]
    lengths: bytes
    latin: dict[str, list[str]]
    plain: list[str]


class Lexical:
    """Texts by number. What is removed keeps its number and is found no more."""

    def __init__(self, packed: Packed | None = None) -> None:
        given = packed or Packed({}, {}, b"", {}, [])
        self._packed = dict(given.numbers)  # unpacked when they are asked for: a question has few of all terms
        self._numbers: dict[str, array[int]] = {}
        self._again = given.again  # of a term: how often the texts have it that have it more than once
        self._lengths = array("I", given.lengths)
        self._latin = given.latin  # words that a slip may have been made in, by their first letter
        self._plain = given.plain
        self._said: dict[int, tuple[str, ...]] = {}
        self._total = sum(self._lengths)
        self._gone: set[int] = set()
        self._fewer: dict[str, int] = {}  # by term, how many of its texts are gone

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def wasted(self) -> float:
        return len(self._gone) / max(1, len(self._lengths))

    def add(self, text: Terms) -> int:
        number, said, held = len(self._lengths), text.all, self._numbers
        self._unpacked(said)
        for word in text.words:
            if word not in held and not (word[0] == "#" or word.isdigit()):
                self._latin.setdefault(word[0], []).append(word)
                held[word] = array("I")
        for term in said:
            listed = held.get(term)
            if listed is None:
                held[term] = array("I", (number,))
            elif not listed or listed[-1] != number:
                listed.append(number)
            else:
                counts = self._again.setdefault(term, {})
                counts[number] = counts.get(number, 1) + 1
        self._lengths.append(len(said))
        self._plain.append(text.plain)
        self._total += len(said)
        return number

    def remove(self, number: int, text: Terms | None = None) -> None:
        """`text`: the one that was added; without it, as near as can be told by now."""
        self._gone.add(number)
        self._total -= self._lengths[number]
        said, fewer = set((text or terms(self._plain[number])).all), self._fewer
        held = self._unpacked(said)
        for term in said:
            listed = held.get(term, ())
            if (at := bisect_left(listed, number)) < len(listed) and listed[at] == number:
                fewer[term] = fewer.get(term, 0) + 1

    def packed(self, kept: Sequence[int]) -> Packed:
        """Of these numbers, which are none that were removed, in rising order; they are counted from 0 there. What is
        added here later is not in it."""
        if len(kept) == len(self):
            numbers = self._packed | {term: held.tobytes() for term, held in self._numbers.items()}
            again = {term: dict(counts) for term, counts in self._again.items()}
            latin = {first: list(words) for first, words in self._latin.items()}
            return Packed(numbers, again, self._lengths.tobytes(), latin, list(self._plain))
        new = {number: at for at, number in enumerate(kept)}
        numbers = {}
        for term, listed in self._unpacked(list(self._packed)).items():
            if left := [new[number] for number in listed if number in new]:
                numbers[term] = array("I", left).tobytes()
        again = {}
        for term, counts in self._again.items():
            if still := {new[number]: count for number, count in counts.items() if number in new}:
                again[term] = still
        latin = {first: [one for one in words if one in numbers] for first, words in self._latin.items()}
        lengths = array("I", [self._lengths[number] for number in kept])
        return Packed(numbers, again, lengths.tobytes(), latin, [self._plain[number] for number in kept])

    def _unpacked(self, terms: Iterable[str]) -> dict[str, array[int]]:
        """The texts by term, in which these terms can be looked up now."""
        if self._packed:
            for term in self._packed.keys() & terms:
                self._numbers[term] = array("I", self._packed.pop(term))
        return self._numbers

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
        weighed, whole = self._weighed(question)
        spoken = sum([weight for term, weight, _ in weighed if term[0] == "#"])
        if len(self) >= _VAST and (arrays := numpy()) is not None:
            fit = self._among_many(arrays, weighed, whole, spoken, about, least, keep)
        else:
            fit = self._among_few(weighed, whole, spoken, about)
        if echo and fit.scores:
            self._echo(fit.scores, {term for term, _, _ in weighed})
        return fit

    def _among_few(self, weighed: Sequence[_Weighed], whole: float, spoken: float, most: float) -> Fit:
        """Each text is scored as if it had each term once, which is nearly always so; then the rest is added."""
        told, about = [0.0] * len(self), dict[int, float]()  # by words, by topics
        for term, weight, listed in weighed:
            if term[0] == "#":
                for number in listed:
                    about[number] = about.get(number, 0.0) + weight
            else:
                for number in listed:
                    told[number] += weight
        for number in self._gone:
            told[number] = 0.0
            about.pop(number, None)
        found = list(compress(range(len(told)), told))
        worded = set(found)
        if about:
            found = sorted(worded | about.keys())
            for number, topics in about.items():
                told[number] += topics
        fixed, slope = self._shape
        once, least, lengths = _K1 + 1, 1 + fixed, self._lengths
        scores = {number: told[number] * once / (least + slope * lengths[number]) for number in found}
        shares = {number: told[number] / whole for number in found}
        for number, topics in about.items():
            share = max(shares[number], TOPIC * topics / spoken)
            shares[number] = share if number in worded else min(share, most)
        for weight, counts in self._repeated(weighed):
            for number, count in counts.items():
                if number in scores:
                    scores[number] += weight * _more(count, fixed + slope * lengths[number])
        return Fit(scores, shares, worded)

    def _weighed(self, question: Terms) -> tuple[list[_Weighed], float]:
        """The question's terms with their weights, but for Thai groups that stand nowhere; and what all of them weigh
        together. A short Thai word is looked for in the texts themselves."""
        words, pieces, short = dict.fromkeys(question.words), dict[str, None](), []
        for run in question.runs:
            if len(run) <= SHORT:
                short.append(run)
            else:
                pieces |= dict.fromkeys(groups(run))
        self._unpacked(words)
        having = self._unpacked(pieces).get
        fewer, slips = self._fewer.get, self._slips
        listed: dict[str, Sequence[int]] = {word: having(word) or slips(word) for word in words}
        listed |= {word: slips(word) for word in words if fewer(word) == len(listed[word]) > 0} if self._gone else {}
        listed |= {piece: found for piece in pieces if (found := having(piece))}
        nowhere = len(words) + len(pieces) - len(listed)
        counts = list(map(len, listed.values()))
        if self._gone:  # what a slip stands for is all there
            counts = [len(found) - (fewer(term, 0) if found is having(term) else 0) for term, found in listed.items()]
        rarity = {count: self._rarity(count) for count in {0, *counts}}
        out: list[_Weighed] = [
            (term, rarity[count], found) for (term, found), count in zip(listed.items(), counts, strict=True)
        ]
        for run in dict.fromkeys(short):
            if run not in pieces:
                among = self._having(run)
                out.append((run, self._rarity(len(among)) * max(1, len(run) - 2), among))
        if len(self) - len(self._gone) >= _LARGE:
            most = _COMMON * (len(self) - len(self._gone))
            told = [one for one in out if len(having(one[0], ())) - fewer(one[0], 0) < most]
            out = told if told or nowhere else out
        return out, sum([weight for _, weight, _ in out]) + nowhere * rarity[0]

    def _having(self, run: str) -> list[int]:
        """The texts with a short Thai word."""
        if len(run) < 3:
            return [at for at, plain in enumerate(self._plain) if run in plain and at not in self._gone]
        pieces = groups(run)
        held = self._unpacked(pieces)
        rarest = min((held.get(one, ()) for one in pieces), key=len)
        return [at for at in rarest if run in self._plain[at] and at not in self._gone]

    def _rarity(self, having: int) -> float:
        count = max(len(self._lengths) - len(self._gone), having)
        return math.log(1 + (count - having + 0.5) / (having + 0.5))

    @property
    def _shape(self) -> tuple[float, float]:
        """BM25's for how much a text's length takes from what its words count."""
        average = self._total / max(1, len(self) - len(self._gone)) or 1.0
        return _K1 * (1 - _B), _K1 * _B / average

    def _slips(self, word: str) -> list[int]:
        """The texts with a Latin word that begins like this one, or is it with a slip of the finger."""
        others = slips(word, self._latin.get(word[0], ()))
        held = self._unpacked(others)
        return sorted({number for other in others for number in held[other]} - self._gone)

    def _among_many(
        self,
        np: Any,
        weighed: Sequence[_Weighed],
        whole: float,
        spoken: float,
        most: float,
        least: float,
        keep: Callable[[int], bool] | None,
    ) -> Fit:
        """The same in arrays: a search that touches tens of thousands of texts has no time for each of them."""
        told, about = np.zeros(len(self), np.float32), np.zeros(len(self), np.float32)
        for term, weight, listed in weighed:
            (about if term[0] == "#" else told)[np.asarray(listed, np.uint32)] += weight
        fixed, slope = self._shape
        rest = fixed + slope * np.frombuffer(self._lengths, np.uint32)
        scores = (told + about) * np.float32(_K1 + 1) / (1 + rest)
        for weight, counts in self._repeated(weighed):
            at = np.fromiter(counts.keys(), np.int64)
            scores[at] += weight * _more(np.fromiter(counts.values(), np.float32), rest[at])
        shares = (told + about) / whole
        if spoken:
            shares = np.maximum(shares, TOPIC * about / spoken)
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
        return Fit(
            {number: float(scores[number]) for number in best},
            {number: float(shares[number]) for number in best},
            {number for number in best if told[number]},
        )

    def _repeated(self, weighed: Sequence[_Weighed]) -> list[tuple[float, dict[int, int]]]:
        """Of the terms that a text has more than once: their weight, and how often. A short word counts once."""
        again, held = self._again, self._numbers
        return [(weight, again[term]) for term, weight, listed in weighed if term in again and held.get(term) is listed]

    def _echo(self, scores: dict[int, float], asked: set[str]) -> None:
        best = nlargest(_ECHO_TO, scores, key=scores.__getitem__)
        told: dict[str, float] = {}
        for number in best[:_ECHO_FROM]:
            for word in self._words(number):
                if word not in asked:
                    told[word] = told.get(word, 0.0) + scores[number]
        held = self._unpacked(told)
        weights = {word: self._rarity(len(held[word]) - self._fewer.get(word, 0)) for word in told if word in held}
        if not weights:
            return
        lifted = set(best)
        fixed, slope = self._shape
        for word in nlargest(_ECHO_TERMS, weights, key=lambda one: (told[one] * weights[one], one)):
            once, counts = _ECHO * weights[word] * (_K1 + 1), self._again.get(word)
            for number in _among(held[word], lifted):
                rest = fixed + slope * self._lengths[number]
                scores[number] += once / (1 + rest)
                if counts and number in counts:
                    scores[number] += _ECHO * weights[word] * _more(counts[number], rest)

    def _words(self, number: int) -> Collection[str]:
        """The Latin words of a text. Held, as each turn asks for those of nearly the same texts."""
        found = self._said.get(number)
        if found is None:
            found = self._said[number] = tuple({stem(one) for one in _LATIN.findall(self._plain[number])})
        return found


def _more(count: Any, rest: Any) -> Any:
    """What BM25 gives for a term that a text has so often, beyond what it gives for once. Also of arrays."""
    return (_K1 + 1) * (count / (count + rest) - 1 / (1 + rest))


def _among(listed: Sequence[int], some: set[int]) -> Iterable[int]:
    """Those of a rising list that are among some."""
    if len(listed) < 64 * len(some):
        return some.intersection(listed)
    at = {number: bisect_left(listed, number) for number in some}
    return [number for number, i in at.items() if i < len(listed) and listed[i] == number]


@cache
def numpy() -> Any:
    """None where it is not installed. Not loaded before it is of use."""
    try:
        import numpy as found
    except ImportError:
        return None
    return found


def slips(word: str, among: Iterable[str]) -> list[str]:
    """Latin words with the same first letter that begin like this one, or are it with a slip of the finger."""
    if len(word) < 4 or word.isdigit() or thai(word):
        return []
    mine, found = set(_pieces(word)), []
    for other in among:
        if other.startswith(word):
            found.append(other)
        elif len(other) >= 4 and abs(len(other) - len(word)) <= 2:
            shared = len(mine.intersection(_pieces(other)))
            # The second set is made where the first look leaves a chance.
            if shared >= _LIKE * len(mine) and shared >= _LIKE * len(mine.union(_pieces(other))):
                found.append(other)
    return found


def _pieces(word: str) -> Iterable[tuple[str, str, str]]:
    padded = f" {word} "
    return zip(padded, padded[1:], padded[2:], strict=False)
