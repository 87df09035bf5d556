"""What is looked for in a list over a whole tenant, and how well a record fits: pure. The stores say what stands where.

The terms and shares are those that a person's memories are found by (`lexical.py`, `ranking.py`). But here a record's
score depends on nothing but the record and the question, and `Order` goes with the cursor: so pages stay stable while
other records come and go.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory.recall.lexical import TOPIC
from memory.recall.ranking import FOUND, HALF_LIFE, STRENGTH, SURELY, WORD
from memory.recall.terms import SHORT, groups, terms

Meant = Mapping[tuple[str, str], float]  # by owner and id: how much is meant by it beside words, which weigh 1
BEST = "best"  # the order of a list in which something is looked for

_MOST = 64  # terms of a question
_COMMON, _LARGE = 0.05, 1000  # a term that more of a large list have tells nothing
_LITERAL = 0.9  # the share of what has the words' letters, if only inside other words
_NEAR = TOPIC + 0.01  # of the best one's share: what fits far less was not meant; what is about the same alone neither
_ORDER = re.compile(rf"{BEST}:(\d{{1,6}}):(\d{{1,3}}):([\d,]{{0,400}})")
_LONG = 60  # terms of a record from which its length counts against it


@dataclass(frozen=True, slots=True)
class Sought:
    """`indexed` are terms as `terms` makes them, `runs` short Thai words that are found whole or not at all."""

    indexed: tuple[str, ...]
    runs: tuple[str, ...]
    enough: float

    @classmethod
    def of(cls, question: str) -> Sought:
        asked = terms(question)
        told = [*asked.words, *(one for run in asked.runs if len(run) > SHORT for one in groups(run))]
        short = [run for run in asked.runs if len(run) <= SHORT]
        several = len(asked.words) + sum(map(len, asked.runs)) / 4 > 2
        return cls(
            tuple(dict.fromkeys(told))[:_MOST], tuple(dict.fromkeys(short))[:8], FOUND if several else WORD
        )  # fmt: skip

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.indexed, *self.runs)

    def weights(self, having: Sequence[int], total: int) -> tuple[int, ...]:
        """Of `all`, by how many records have each; 0 for what tells nothing."""
        rare = [
            max(1, round(10 * math.log(1 + max(0.0, total - count + 0.5) / (count + 0.5)))) * _letters(term)
            for term, count in zip(self.all, having, strict=True)
        ]
        telling = [tells(count, total) for count in having]
        if not any(tell and count for tell, count in zip(telling, having, strict=True)):
            return tuple(rare)
        return tuple(w * tell for w, tell in zip(rare, telling, strict=True))

    def share(self, weights: Sequence[int], held: int) -> float:
        """What part of the question stands in a record. `held` has a bit for each place in `all` whose term it has, and
        the next one if all of it stands there as it is written."""
        mine = [weight if held >> at & 1 else 0 for at, weight in enumerate(weights)]
        share = sum(mine) / (sum(weights) or 1)
        topics = [at for at, term in enumerate(self.indexed) if term.startswith("#") and weights[at]]
        if topics:
            share = max(share, TOPIC * sum(mine[at] for at in topics) / sum(weights[at] for at in topics))
        return max(share, _LITERAL) if held >> len(weights) & 1 else share


@dataclass(frozen=True, slots=True)
class Order:
    """What a list's first page was ranked by: the day, the least share in percent, the weights of `Sought.all`."""

    day: int
    least: int
    weights: tuple[int, ...]

    def __str__(self) -> str:
        return f"{BEST}:{self.day}:{self.least}:{','.join(map(str, self.weights))}"

    @classmethod
    def of(cls, text: str, sought: Sought) -> Order | None:
        """None where the text is no order of these terms."""
        found = _ORDER.fullmatch(text)
        if found is None:
            return None
        weights = tuple(int(one) for one in found[3].split(",") if one)
        return cls(int(found[1]), int(found[2]), weights) if len(weights) == len(sought.all) else None


def tells(having: int, total: int) -> bool:
    """Whether what so many records of a list have tells them apart."""
    return total < _LARGE or having < _COMMON * total


def least(sought: Sought, best: float) -> int:
    """The least share that is shown, in percent, where the best one is that."""
    return math.ceil(100 * max(sought.enough, _NEAR * min(1.0, best)))


def surely(floor: float) -> float:
    """The cosine from which something is found by its meaning alone."""
    return floor + (1 - floor) * SURELY


def score(share: float, length: int, meant: float, weight: float, at: int, day: int) -> float:
    """`length` in terms; `meant` 0.0-1.0, weighed already; `weight` 0.0-1.0; `at` in milliseconds, `day` in days, both
    since 1970."""
    fresh = 0.5 + 0.5 * math.pow(0.5, max(0.0, day - at / 86_400_000) / HALF_LIFE)
    return round(share * (1 - 0.15 * length / (length + _LONG)) + meant + STRENGTH * weight * fresh, 6)


def _letters(term: str) -> int:
    """A short Thai word stands for as many groups of letters as it has."""
    return max(1, len(term) - 2) if "\u0e01" <= term[0] <= "\u0e4e" else 1
