"""Finds the tenant's own answer to a question, without a model: meanings shared by Thai and English words, and
character pairs and triples for everything else, so that neither segmentation nor spelling matters much."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Protocol

import yaml
from ahocorasick_rs import AhoCorasick, MatchKind

from processors.normalise import normalise, words_apart

SURE = 0.62  # may be answered with; set on tests/unit/faq_pairs.yaml
POSSIBLE = 0.38  # worth being shown to a language model

_CONCEPT = 3.0  # a shared meaning says more than shared letters
_ASKING = {"time": 2.0, "where": 2.0, "days": 2.0, "help": 2.0}  # in "where can I park" it's parking that counts
_PIECE = re.compile(r"[ก-๎]{2,}|[a-z0-9]{2,}")
_DEEP = 300  # characters: a longer text asks more than one thing, and no question of a list is that long


_HALF_OF_IT = 0.49  # the score of an entry that leaves out what was asked: offered, never sent as it stands
# A question stands by itself; over the text as it was written.
_CLAUSES = re.compile(r"[!.,\n]+\s*|(?<=\?)\s*|(?<=ค่ะ)\s+|(?<=ครับ)\s+")
_ASKS = re.compile(
    r"\?|ไหม|กี่|อะไร|ยังไง|เท่าไหร่|ที่ไหน|ตรงไหน|เมื่อไหร่|หรือยัง"
    r"|^\W*(?:what|when|where|which|who|how|do|does|is|are|can|could|will|would|may)\b"
)
_PLACES = {"#where", "#help"}  # "where do I return it": what is said of returning it tells that too
_SAME_MEANING = 0.55  # cosine of two sentences from which they are about the same; unrelated ones lie at 0.1
_BY_MEANING = 0.55  # the score of an entry that only its meaning speaks for: shown or offered, never sent as it stands
_BACKED = 0.45  # a score of words with which a shared meaning makes an entry sure
_CLOSE = 0.75  # cosine that does so


class Meanings(Protocol):
    """Gives each text a vector of unit length; texts that mean the same lie close together, whatever their words."""

    def encode(self, texts: Sequence[str]) -> Any: ...


@dataclass(frozen=True, slots=True)
class Match:
    """The entry that fits; `score` 0.0 to 1.0; `sure`: good enough to answer with it as it stands."""

    index: int
    score: float
    sure: bool


class FaqIndex:
    """Entries are (questions, answer) in order; an entry may ask in several ways and languages. `meanings` is asked
    for sentence vectors at each look-up, and gives None as long as there are none."""

    def __init__(
        self, entries: Sequence[tuple[Sequence[str], str]], meanings: Callable[[], Meanings | None] = lambda: None
    ) -> None:
        self._meanings = meanings
        self._asked = [(index, question) for index, (questions, _) in enumerate(entries) for question in questions]
        self._vectors: Any = None
        # What each entry speaks of, in question or answer.
        self._subjects = [
            {name for said in (*questions, answer) for name in _features(said) if name.startswith("#")}
            for questions, answer in entries
        ]
        self._questions: list[tuple[int, Mapping[str, float]]] = []
        in_entries: dict[str, set[int]] = {}
        for index, (questions, _) in enumerate(entries):
            for question in questions:
                features = _features(question)
                if not features:
                    continue
                self._questions.append((index, features))
                for name in features:
                    in_entries.setdefault(name, set()).add(index)
        count = max(len(entries), 1)
        self._idf = {name: math.log(1 + count / len(seen)) for name, seen in in_entries.items()}
        # What no entry says is as telling as the rarest word: it speaks against every entry.
        self._unseen = math.log(1 + count)
        self._norms = [self._norm(features) for _, features in self._questions]

    def best(self, text: str) -> Match | None:
        """The best entry, None where nothing fits. `sure` also asks that no other entry fits about as well."""
        first = self._best(text)
        if first is None or not first.sure:
            # "I just moved here, how do I find you?": what is told before a question hides it.
            asked = [clause for clause in _CLAUSES.split(text[:_DEEP]) if clause and _ASKS.search(normalise(clause))]
            if len(asked) == 1 and asked[0] != text:
                of_clause = self._best(asked[0])
                if of_clause is not None and of_clause.sure and not self._leaves_out(of_clause.index, text):
                    return of_clause
        return first

    def _best(self, text: str) -> Match | None:
        found = self.top(text, 2)
        if not found:
            return None
        first = found[0]
        if len(found) > 1 and first.score < 0.9 and found[1].score > 0.9 * first.score:
            return Match(first.index, first.score, sure=False)
        if first.score < 0.95 and self._leaves_out(first.index, text):
            return Match(first.index, min(first.score, _HALF_OF_IT), sure=False)
        return first

    def _leaves_out(self, index: int, text: str) -> bool:
        """Is something asked that the entry does not speak of, and another one does? "What time is delivery?" is
        answered by neither the hours nor the fee."""
        missing = {n for n in _features(text) if n.startswith("#")} - self._subjects[index] - _PLACES
        return any(missing & subjects for subjects in self._subjects)

    def top(self, text: str, limit: int = 3) -> list[Match]:
        """The best entries, best first, each once."""
        if not self._questions:
            return []
        asked = _features(text)
        norm = self._norm(asked)
        if not norm:
            return []
        scores: dict[int, float] = {}
        for (index, features), other in zip(self._questions, self._norms, strict=True):
            shared = sum(w * features[n] * self._weight(n) ** 2 for n, w in asked.items() if n in features)
            if shared:
                scores[index] = max(scores.get(index, 0.0), shared / (norm * other))
        self._weigh_meanings(scores, text)
        ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        return [Match(i, round(s, 3), s >= SURE) for i, s in ranked[:limit] if s >= POSSIBLE]

    def _weigh_meanings(self, scores: dict[int, float], text: str) -> None:
        """Lifts the entries that mean the same in other words."""
        if (meanings := self._meanings()) is None:
            return
        if self._vectors is None:
            self._vectors = meanings.encode([question for _, question in self._asked])
        closeness: dict[int, float] = {}
        for (index, _), value in zip(self._asked, self._vectors @ meanings.encode([text])[0], strict=True):
            closeness[index] = max(closeness.get(index, 0.0), float(value))
        index, close = max(closeness.items(), key=lambda item: item[1])
        if close >= _SAME_MEANING:
            backed = close >= _CLOSE and scores.get(index, 0.0) >= _BACKED
            scores[index] = max(scores.get(index, 0.0), SURE if backed else _BY_MEANING)

    def _weight(self, name: str) -> float:
        return self._idf.get(name, self._unseen)

    def _norm(self, features: Mapping[str, float]) -> float:
        return math.sqrt(sum((w * self._weight(n)) ** 2 for n, w in features.items()))


@lru_cache(maxsize=256)  # a turn asks about one message several times
def _features(text: str) -> Mapping[str, float]:
    """Meanings, and letter groups of what has none; empty for a text that says nothing."""
    apart = words_apart(normalise(text, _DEEP))
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
        for gram in grams:
            # A word weighs about the same however long it is.
            out[gram] = max(out.get(gram, 0.0), 2.0 / math.sqrt(len(grams)))
    return out


def _pieces(texts: Iterable[str]) -> Iterable[str]:
    for text in texts:
        for piece in _PIECE.findall(text):
            # The commonest endings: "opens", "opening", "opened" are one word.
            yield re.sub(r"(?<=[a-z]{3})(?:ing|ed|es|s)$", "", piece)


@cache
def _concepts() -> tuple[list[list[str]], AhoCorasick]:
    data = yaml.safe_load((Path(__file__).parent / "rules" / "concepts.yaml").read_text(encoding="utf-8"))
    names: dict[str, list[str]] = {}
    for name, words in data.items():
        for word in filter(None, map(normalise, words.split(";"))):
            names.setdefault(words_apart(word), []).extend([name] if name else [])
    words = sorted(names)
    return [names[word] for word in words], AhoCorasick(words, matchkind=MatchKind.LeftmostLongest)
