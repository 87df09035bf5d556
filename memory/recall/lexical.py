"""Which texts have the words of a question, and how well: BM25 over terms. In memory, grows and shrinks in place."""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from heapq import nlargest
from typing import Any, NamedTuple

from memory.recall.terms import SHORT, Terms, groups, stem, thai

_K1, _B = 0.9, 0.4
_COMMON = 0.05  # of a large collection: a term in more of its texts than that tells nothing
_LARGE = 1000
_ECHO_FROM, _ECHO_TERMS, _ECHO, _ECHO_TO = 8, 10, 0.15, 300  # words that go with the best texts count a little too
TOPIC = 0.6  # the share where a text has none of the words, but all that the question speaks of
_LATIN = re.compile(r"[^\W_ก-๎]+")
_VAST = 4000  # texts from which arrays are quicker
_BEST = 1000  # of those that are looked at further
_NONE, _NO_COUNTS = array("I"), array("f")
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
    counts: dict[str, bytes]
    lengths: bytes
    latin: dict[str, list[str]]
    plain: list[str]


class Postings(dict[str, Any]):
    """Arrays by term. Those that come packed are unpacked when they are asked for: a question has few of all terms."""

    def __init__(self, code: str, packed: dict[str, bytes]) -> None:
        super().__init__()
        self._code = code
        self._packed = packed

    def __missing__(self, term: str) -> Any:
        held = self[term] = array(self._code, self._packed[term])
        return held

    def __contains__(self, term: object) -> bool:
        return dict.__contains__(self, term) or term in self._packed

    def get(self, term: str, default: Any = None) -> Any:
        found = dict.get(self, term)
        return found if found is not None else self[term] if term in self._packed else default

    def terms(self) -> list[str]:
        return list(self._packed.keys() | self.keys())

    def packed(self) -> dict[str, bytes]:
        return self._packed | {term: held.tobytes() for term, held in self.items()}


class Lexical:
    """Texts by number. What is removed keeps its number and is found no more."""

    def __init__(self, packed: Packed | None = None) -> None:
        given = packed or Packed({}, {}, b"", {}, [])
        self._numbers: Postings = Postings("I", given.numbers)
        self._counts: Postings = Postings("f", given.counts)
        self._lengths = array("I", given.lengths)
        self._latin = given.latin  # words that a slip may have been made in, by their first letter
        self._plain = given.plain
        self._total = sum(self._lengths)
        self._gone: set[int] = set()

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def wasted(self) -> float:
        return len(self._gone) / max(1, len(self._lengths))

    def add(self, text: Terms) -> int:
        number, said = len(self._lengths), text.all
        numbers, counts = self._numbers, self._counts
        for term, count in Counter(said).items():
            if (listed := numbers.get(term)) is None:
                counts[term], numbers[term] = array("f", (count,)), array("I", (number,))
                if not (term[0] == "#" or thai(term) or term.isdigit()):
                    self._latin.setdefault(term[0], []).append(term)
            else:
                counts[term].append(count)
                listed.append(number)
        length = len(said)
        self._lengths.append(length)
        self._plain.append(text.plain)
        self._total += length
        return number

    def remove(self, number: int) -> None:
        self._gone.add(number)
        self._total -= self._lengths[number]

    def packed(self, kept: Sequence[int]) -> Packed:
        """Of these numbers, which are none that were removed, in rising order; they are counted from 0 there."""
        if len(kept) == len(self):
            return Packed(
                self._numbers.packed(), self._counts.packed(), self._lengths.tobytes(), self._latin, self._plain
            )
        new = {number: at for at, number in enumerate(kept)}
        numbers, counts = {}, {}
        for term in self._numbers.terms():
            pairs = [(new[n], c) for n, c in zip(self._numbers[term], self._counts[term], strict=True) if n in new]
            if pairs:
                numbers[term] = array("I", [number for number, _ in pairs]).tobytes()
                counts[term] = array("f", [count for _, count in pairs]).tobytes()
        latin = {first: [one for one in words if one in numbers] for first, words in self._latin.items()}
        lengths = array("I", [self._lengths[number] for number in kept])
        return Packed(numbers, counts, lengths.tobytes(), latin, [self._plain[number] for number in kept])

    def scores(
        self, question: Terms, *, echo: bool = False, least: float = 0.0, keep: Callable[[int], bool] | None = None
    ) -> Fit:
        """`echo`: texts that speak like the best ones are lifted; none is found by that alone. Of a large collection
        only what has a share of `least` and is to be kept counts among the best."""
        weights = self._weights(question)
        if len(self) >= _VAST and (arrays := numpy()) is not None:
            return self._among_many(arrays, weights, echo, least, keep)
        scores: dict[int, float] = {}
        shares: dict[int, float] = {}
        whole = sum([weight for weight, _ in weights.values()])
        topics: dict[int, float] = {}
        worded: set[int] = set()
        spoken = sum([weight for term, (weight, _) in weights.items() if term[0] == "#"])
        once = array("f", (1.0,))
        # Spelled out: a turn looks through some hundred places, and each call in here would cost more than the place.
        fixed, slope = self._shape
        lengths, numbers, counts = self._lengths, self._numbers, self._counts
        score_of, share_of = scores.get, shares.get
        for term, (weight, among) in weights.items():
            if among is None and term not in numbers:
                continue
            listed = numbers[term] if among is None else among
            share, times = weight / whole, weight * (_K1 + 1)
            for number, count in zip(listed, counts[term] if among is None else once * len(among), strict=True):
                value = times * count / (count + fixed + slope * lengths[number])
                scores[number] = score_of(number, 0.0) + value
                shares[number] = share_of(number, 0.0) + share
            if term[0] != "#":
                worded.update(listed)
            else:
                for number in listed:
                    topics[number] = topics.get(number, 0.0) + TOPIC * weight / spoken
        shares |= {number: share for number, share in topics.items() if share > shares[number]}
        for number in self._gone & scores.keys():
            del scores[number], shares[number]
        if echo and scores:
            self._echo(scores, set(weights))
        return Fit(scores, shares, worded)

    def _weights(self, question: Terms) -> dict[str, tuple[float, list[int] | None]]:
        """The question's terms with their weights; for a term that stands for others, the texts that have those."""
        out: dict[str, tuple[float, list[int] | None]] = {}
        unseen = self._rarity(0), None
        for word in question.words:
            if (listed := self._numbers.get(word)) is not None:
                out[word] = self._rarity(len(listed)), None
            elif word[0] == "#":
                out[word] = unseen
            else:
                near = self._slips(word)
                out[word] = self._rarity(len(near)), near
        for run in question.runs:
            if len(run) <= SHORT:
                having = self._having(run)
                out[run] = (self._rarity(len(having)) * max(1, len(run) - 2), having)
            else:
                for group in groups(run):
                    listed = self._numbers.get(group)
                    out[group] = (self._rarity(len(listed)), None) if listed is not None else unseen
        if len(self) < _LARGE:
            return out
        most = _COMMON * len(self)
        return {term: told for term, told in out.items() if len(self._numbers.get(term, ())) < most} or out

    def _having(self, run: str) -> list[int]:
        """The texts with a short Thai word."""
        if len(run) < 3:
            return [at for at, plain in enumerate(self._plain) if run in plain]
        rarest = min((self._numbers.get(group, ()) for group in groups(run)), key=len)
        return [at for at in rarest if run in self._plain[at]]

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
        found: set[int] = set()
        for other in slips(word, self._latin.get(word[0], ())):
            found.update(self._numbers[other])
        return sorted(found)

    def _among_many(
        self,
        np: Any,
        weights: Mapping[str, tuple[float, list[int] | None]],
        echo: bool,
        least: float,
        keep: Callable[[int], bool] | None,
    ) -> Fit:
        """The same in arrays: a search that touches tens of thousands of texts has no time for each of them."""
        scores, shares, topics = (np.zeros(len(self), np.float32) for _ in range(3))
        worded = np.zeros(len(self), bool)
        lengths = np.frombuffer(self._lengths, np.uint32)
        fixed, slope = self._shape
        whole = sum(weight for weight, _ in weights.values())
        spoken = sum(weight for term, (weight, _) in weights.items() if term.startswith("#"))
        for term, (weight, among) in weights.items():
            if among is not None:
                at, counts = np.asarray(among, np.uint32), np.float32(1.0)
            else:
                at = np.frombuffer(self._numbers.get(term) or _NONE, np.uint32)
                counts = np.frombuffer(self._counts.get(term) or _NO_COUNTS, np.float32)
            scores[at] += weight * counts * (_K1 + 1) / (counts + fixed + slope * lengths[at])
            shares[at] += weight / whole
            if term.startswith("#"):
                topics[at] += TOPIC * weight / spoken
            else:
                worded[at] = True
        shares = np.maximum(shares, topics)
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
        fit = Fit(
            {number: float(scores[number]) for number in best},
            {number: float(shares[number]) for number in best},
            {number for number in best if worded[number]},
        )
        if echo and best:
            self._echo(fit.scores, set(weights))
        return fit

    def _held_by(self, word: str, among: set[int]) -> Iterable[tuple[int, float]]:
        """How often a word stands in some of the texts that have it."""
        numbers, counts = self._numbers[word], self._counts[word]
        if len(numbers) < 4 * len(among):
            return [pair for pair in zip(numbers, counts, strict=True) if pair[0] in among]
        at = {number: bisect_left(numbers, number) for number in among}
        return [(number, counts[i]) for number, i in at.items() if i < len(numbers) and numbers[i] == number]

    def _echo(self, scores: dict[int, float], asked: set[str]) -> None:
        best = nlargest(_ECHO_TO, scores, key=scores.__getitem__)
        lifted = set(best)
        said: dict[str, float] = {}
        for number in best[:_ECHO_FROM]:
            for word in {stem(one) for one in _LATIN.findall(self._plain[number])} - asked:
                if word in self._numbers:
                    said[word] = said.get(word, 0.0) + self._rarity(len(self._numbers[word])) * scores[number]
        fixed, slope = self._shape
        for word in nlargest(_ECHO_TERMS, said, key=lambda one: (said[one], one)):
            weight = _ECHO * self._rarity(len(self._numbers[word]))
            for number, count in self._held_by(word, lifted):
                scores[number] += weight * count * (_K1 + 1) / (count + fixed + slope * self._lengths[number])


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
    mine, found = _pieces(word), []
    for other in among:
        if other.startswith(word):
            found.append(other)
        elif len(other) >= 4 and abs(len(other) - len(word)) <= 2:
            theirs = _pieces(other)
            if len(mine & theirs) >= _LIKE * len(mine | theirs):
                found.append(other)
    return found


def _pieces(word: str) -> set[str]:
    padded = f" {word} "
    return {padded[at : at + 3] for at in range(len(padded) - 2)}
