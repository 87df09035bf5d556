"""Finds the tenant's own answer to a question, without a model: meanings shared by Thai and English words, and
character pairs and triples for everything else, so that neither segmentation nor spelling matters much."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from unicodedata import is_normalized

import yaml
from ahocorasick_rs import AhoCorasick, MatchKind

from processors.normalise import PARTICLES, normalise, words_apart
from processors.sought import Sought

SURE = 0.9  # certainty from which an entry may be answered with as it stands; set with benchmarks/faq.py
LIKELY = 0.7  # certainty from which it may be answered with below its question, so that a customer sees what it answers
POSSIBLE = 0.38  # score from which one is worth being shown to a language model, or offered

# What makes an entry certain, of 0.0 to 1.0 each: its score, the share of what is asked that the shop's list speaks of
# at all, its lead before the next one; with meanings also how close they are, and the lead in that. A logistic
# regression on two of the three lists of benchmarks/faq_questions.yaml and on tests/unit/faq_pairs.yaml.
_BY_WORDS = (-2.4, 2.2, 1.6, 2.4)
_WITH_MEANINGS = (-3.3, 1.5, 2.9, 1.3, 0.8, 4.9)

_CONCEPT = 3.0  # a shared meaning says more than shared letters
# In "where can I park" it's parking that counts.
_ASKING = {"time": 1.5, "where": 2.0, "days": 1.5, "help": 2.0, "price": 1.5}
_PIECE = re.compile(r"[ก-๎]{2,}|[a-z0-9]{2,}")
_MARKS = re.compile(r"[\s!-/:-@\[-`{-~…]+")
_ENDING = re.compile(r"(?<=[a-z]{3})(?:ing|ed|es|s)$")
_DEEP = 300  # characters: a longer text asks more than one thing, and no question of a list is that long


_HALF_OF_IT = 0.49  # the score of an entry that leaves out what was asked: offered, never sent as it stands
# A question stands by itself; over the text as it was written.
_CLAUSES = re.compile(r"[!.,\n]+\s*|(?<=\?)\s*|(?<=[ก-๎])\s+(?=[ก-๎])")
_ASKS = Sought(
    r"\?|ไหม|กี่|อะไร|ยังไง|เท่าไหร่|ที่ไหน|ตรงไหน|เมื่อไหร่|หรือยัง"
    r"|^\W*(?:what|when|where|which|who|how|do|does|is|are|can|could|will|would|may)\b"
)
_PLACES = {"#where", "#help"}  # "where do I return it": what is said of returning it tells that too
_SAME_MEANING = 0.55  # cosine of two sentences from which they are about the same; unrelated ones lie at 0.1
_BY_MEANING = 0.55  # the score of an entry that only its meaning speaks for: shown or offered
_SCORED = 16  # texts: a turn asks several things about one message
_WORDS_TOO = (
    0.2  # a score of words without which a meaning alone makes no entry sure: names, numbers and "not" are lost
)


class Meanings(Protocol):
    """Gives each text a vector of unit length; texts that mean the same lie close together, whatever their words."""

    def encode(self, texts: Sequence[str]) -> Any: ...


@dataclass(frozen=True, slots=True)
class Match:
    """The entry that fits; `score` and `certainty` 0.0 to 1.0; `sure`: good enough to answer with it as it stands."""

    index: int
    score: float
    sure: bool
    certainty: float = field(default=0.0, compare=False)


class _Scores(NamedTuple):
    """Of each entry that may fit: its score, what of that is by words, and how close the meanings are; and what each
    thing that is asked weighs, squared."""

    every: Mapping[int, float]
    words: Mapping[int, float]
    close: Mapping[int, float]
    asked: Mapping[str, float]


_NONE = _Scores({}, {}, {}, {})


class FaqIndex:
    """Entries are (questions, answer) in order; an entry may ask in several ways and languages. `meanings` is asked
    for sentence vectors at each look-up, and gives None as long as there are none; from a certainty of `sure` on an
    entry may be answered with."""

    def __init__(
        self,
        entries: Sequence[tuple[Sequence[str], str]],
        meanings: Callable[[], Meanings | None] = lambda: None,
        *,
        sure: float = SURE,
    ) -> None:
        self._meanings = meanings
        self._sure = sure
        self._asked = [(index, question) for index, (questions, _) in enumerate(entries) for question in questions]
        self._vectors: Any = None
        said = [{name for text in (*questions, answer) for name in _features(text)} for questions, answer in entries]
        self._spoken = frozenset().union(*said)
        self._subjects = [{name for name in names if name.startswith("#")} for names in said]  # of each entry
        self._exactly = {_bare(question): index for index, question in reversed(self._asked)}
        self._entry: list[int] = []  # of each question
        self._of: dict[str, list[tuple[int, float]]] = {}  # in which questions a name is, and what it weighs there
        every: list[Mapping[str, float]] = []
        in_entries: dict[str, set[int]] = {}
        for index, (questions, _) in enumerate(entries):
            for question in questions:
                features = _features(question)
                if not features:
                    continue
                for name, weight in features.items():
                    in_entries.setdefault(name, set()).add(index)
                    self._of.setdefault(name, []).append((len(every), weight))
                self._entry.append(index)
                every.append(features)
        count = max(len(entries), 1)
        self._idf = {name: math.log(1 + count / len(seen)) for name, seen in in_entries.items()}
        # What no entry says is as telling as the rarest word: it speaks against every entry.
        self._unseen = math.log(1 + count)
        self._norms = [math.sqrt(sum(self._squares(features).values())) for features in every]
        self._scored = lru_cache(_SCORED)(self._score)

    def best(self, text: str) -> Match | None:
        """The best entry, None where nothing fits. `sure` also asks that no other entry fits about as well."""
        if not self._entry:
            return None
        first = self._best(text)
        if (first is None or not first.sure) and _ASKS.may(normalise(text)):
            # "I just moved here, how do I find you?": what is told before a question hides it.
            asked = [clause for clause in _CLAUSES.split(text[:_DEEP]) if clause and _ASKS.search(normalise(clause))]
            if len(asked) == 1 and asked[0] != text:
                of_clause = self._best(asked[0])
                if of_clause is not None and of_clause.sure and not self._leaves_out(of_clause.index, text):
                    return of_clause
        return first

    def _best(self, text: str) -> Match | None:
        every, words, close, asked = self._scores(text)
        if not every:
            return None
        (index, score), *others = sorted(every.items(), key=lambda item: (-item[1], item[0]))
        # Word for word it is one of the shop's questions, though another may hold all that is in it as well.
        if (exactly := self._exactly.get(_bare(text), -1)) in every:
            return Match(exactly, round(every[exactly], 3), sure=True, certainty=1.0)
        if score < POSSIBLE:
            return None
        known = sum(weight for name, weight in asked.items() if name in self._spoken) / sum(asked.values())
        told = [1.0, score, known, score - (others[0][1] if others else 0.0)]
        weighed: tuple[float, ...] = _BY_WORDS
        if close:
            weighed = _WITH_MEANINGS
            told += [close[index], close[index] - max((c for i, c in close.items() if i != index), default=0.0)]
        certainty = 1 / (1 + math.exp(-sum(weight * value for weight, value in zip(weighed, told, strict=True))))
        found = Match(index, round(score, 3), certainty >= self._sure, round(certainty, 3))
        if self._leaves_out(index, text):
            return replace(found, score=min(found.score, _HALF_OF_IT), sure=False, certainty=0.0)
        return found if words.get(index, 0.0) >= _WORDS_TOO else replace(found, sure=False)

    def _leaves_out(self, index: int, text: str) -> bool:
        """Is something asked that the entry does not speak of, and another one does? "What time is delivery?" is
        answered by neither the hours nor the fee."""
        missing = {n for n in _features(text) if n.startswith("#")} - self._subjects[index] - _PLACES
        return any(missing & subjects for subjects in self._subjects)

    def top(self, text: str, limit: int = 3) -> list[Match]:
        """The best entries, best first, each once."""
        ranked = sorted(self._scores(text).every.items(), key=lambda item: (-item[1], item[0]))
        return [Match(i, round(s, 3), s >= 1.0) for i, s in ranked[:limit] if s >= POSSIBLE]

    def _scores(self, text: str) -> _Scores:
        return self._scored(text, self._meanings() is not None) if self._entry else _NONE

    def _score(self, text: str, meant: bool) -> _Scores:
        features = _features(text)
        asked = self._squares(features)
        norm = math.sqrt(sum(asked.values()))
        if not norm:
            return _NONE
        shared: dict[int, float] = {}
        for name, weight in features.items():
            for question, other in self._of.get(name, ()):
                shared[question] = shared.get(question, 0.0) + weight * other * self._idf[name] ** 2
        words: dict[int, float] = {}
        for question, both in shared.items():
            index = self._entry[question]
            words[index] = max(words.get(index, 0.0), both / (norm * self._norms[question]))
        close = self._closeness(text) if meant else {}
        lifted = {index: _BY_MEANING for index, value in close.items() if value >= _SAME_MEANING}
        every = {i: max(words.get(i, 0.0), lifted.get(i, 0.0)) for i in words.keys() | lifted.keys()}
        return _Scores(every, words, close, asked)

    def _closeness(self, text: str) -> dict[int, float]:
        if (meanings := self._meanings()) is None:
            return {}
        if self._vectors is None:
            self._vectors = meanings.encode([question for _, question in self._asked])
        close: dict[int, float] = {}
        for (index, _), value in zip(self._asked, self._vectors @ meanings.encode([text])[0], strict=True):
            close[index] = max(close.get(index, 0.0), float(value))
        return close

    def _squares(self, features: Mapping[str, float]) -> dict[str, float]:
        idf, unseen = self._idf, self._unseen
        return {name: (weight * idf.get(name, unseen)) ** 2 for name, weight in features.items()}


def _bare(text: str) -> str:
    """Without what makes no difference: spaces, marks, politeness."""
    return _MARKS.sub("", PARTICLES.sub(" ", _plain(text)))


def _plain(text: str) -> str:
    """The text's beginning, normalised: as everybody has it, where nothing is cut off."""
    whole = len(text) <= _DEEP and is_normalized("NFC", text)
    return normalise(text) if whole else normalise(text, _DEEP)


@lru_cache(maxsize=256)  # a turn asks about one message several times
def _features(text: str) -> Mapping[str, float]:
    """Meanings, and letter groups of what has none; empty for a text that says nothing."""
    apart = words_apart(_plain(text))
    names, automaton = _concepts()
    out: dict[str, float] = {}
    rest, at = [], 0
    for index, start, end in automaton.find_matches_as_indexes(apart):
        rest.append(apart[at:start])
        at = end
        for name in names[index]:
            out[f"#{name}"] = _ASKING.get(name, _CONCEPT)
    rest.append(apart[at:])
    for piece in _pieces(rest):
        grams = {piece[i : i + 3] for i in range(max(1, len(piece) - 2))}
        share = 2.0 / math.sqrt(len(grams))  # a word weighs about the same however long it is
        for gram in grams:
            if out.get(gram, 0.0) < share:
                out[gram] = share
    return out


def _pieces(texts: Iterable[str]) -> Iterable[str]:
    for text in texts:
        for piece in _PIECE.findall(text):
            # The commonest endings: "opens", "opening", "opened" are one word.
            yield _ENDING.sub("", piece) if piece.isascii() else piece


@cache
def _concepts() -> tuple[list[list[str]], AhoCorasick]:
    data = yaml.safe_load((Path(__file__).parent / "rules" / "concepts.yaml").read_text(encoding="utf-8"))
    names: dict[str, list[str]] = {}
    for name, words in data.items():
        for word in filter(None, map(normalise, words.split(";"))):
            names.setdefault(words_apart(word), []).extend([name] if name else [])
    words = sorted(names)
    return [names[word] for word in words], AhoCorasick(words, matchkind=MatchKind.LeftmostLongest)
