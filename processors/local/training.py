"""Training and measuring the local classifier. Needs nothing but numpy."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from processors.local.classifier import BAND_STARTS, Classifier, Weights, banded, probabilities
from processors.local.features import TYPES, rarity, row
from processors.local.vectors import Vectors
from processors.models import EventType
from processors.normalise import normalise
from processors.rules import Rules, default_rules
from processors.rules.engine import scores_of

WRITTEN = Path(__file__).parent / "messages.tsv"
_FLATNESS = 1e-3  # how strongly weights are drawn to zero
_STEPS = 200
_CORRECTION = 4.0  # what a correction of the shop's own people counts beside one message of the training set


@dataclass(frozen=True, slots=True)
class Example:
    """One labelled message. `importance` is a score inside its band; None: not judged."""

    text: str
    event_type: EventType
    importance: float | None = None
    also: frozenset[EventType] = frozenset()  # types that a careful second reader could defend
    language: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Measured:
    """Out-of-fold results: `shares` (examples, 8) are calibrated probabilities, `bands` (examples,) band numbers."""

    shares: Any
    bands: Any
    temperature: float


def written() -> list[Example]:
    """The messages that were written by hand for training."""
    examples = []
    for line in WRITTEN.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            label, importance, also, text = line.split("\t")
            others = frozenset(EventType(name) for name in also.split(",") if name)
            examples.append(Example(text, EventType(label), float(importance), others))
    return examples


def labelled(path: Path) -> list[Example]:
    """The messages of a JSON Lines file with `text`, `label`, `also_ok`, `importance_band` ("0.5-0.6"), `language`."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [
        Example(
            r["text"],
            EventType(r["label"]),
            float(r["importance_band"][:3]) + 0.05,
            frozenset(map(EventType, r.get("also_ok", ()))),
            r.get("language", ""),
        )
        for r in rows
    ]


def train(base: Sequence[Example], corrections: Iterable[Example], vectors: Vectors) -> Classifier:
    """A classifier from the base examples and a shop's own corrections, which count more. About ten seconds for a
    thousand examples: run it in a process of its own."""
    examples = [*base, *(replace(c, weight=_CORRECTION * c.weight) for c in corrections)]
    table = _Table(examples, vectors)
    return Classifier(table.fit(np.arange(len(examples)), table.temperature()), vectors)


def measure(examples: Sequence[Example], always: Sequence[Example], vectors: Vectors, folds: int = 5) -> Measured:
    """Cross-validation over `examples`; `always` are trained with in every fold and never measured."""
    return _Table([*examples, *always], vectors).measure(len(examples), folds)


def calibration_error(shares: Any, right: Any, bins: int = 10) -> float:
    """Expected calibration error: how far confidence lies from the share that is right, weighted over bins."""
    confidence = shares.max(axis=1)
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = [
        (place == b).mean() * abs(confidence[place == b].mean() - right[place == b].mean())
        for b in range(bins)
        if (place == b).any()
    ]
    return float(sum(gaps))


class _Table:
    """The features of all examples, turned so that there are no more columns than examples: the best weights lie in
    the span of the examples anyway, and fitting becomes several times cheaper."""

    def __init__(self, examples: Sequence[Example], vectors: Vectors, rules: Rules | None = None) -> None:
        self._texts = texts = [example.text for example in examples]
        self._rarity = rarity(texts)
        scores = _unseen_scores(texts, rules or default_rules())
        encoded = vectors.encode(texts)
        rows = np.stack([row(t, v, s, self._rarity) for t, v, s in zip(texts, encoded, scores, strict=True)])
        left, sizes, self._back = np.linalg.svd(rows, full_matrices=False)
        self._rows = (left * sizes).astype(np.float32)
        self._types = np.array([TYPES.index(example.event_type) for example in examples])
        judged = [example.importance for example in examples]
        self._bands = np.array([-1 if j is None else int(np.searchsorted(BAND_STARTS, j, "right")) for j in judged])
        self._weights = np.array([example.weight for example in examples])

    def fit(self, chosen: Any, temperature: float = 1.0) -> Weights:
        types, bands = self._turned(chosen)
        whole = self._back.T
        return Weights(
            (whole @ types).astype(np.float32), (whole @ bands).astype(np.float32), self._rarity, temperature
        )

    def measure(self, count: int, folds: int) -> Measured:
        fold = np.random.default_rng(0).permutation(count) % folds
        rest = np.arange(count, len(self._rows))
        scores: Any = np.zeros((count, len(TYPES)))
        bands: Any = np.zeros(count, int)
        judge = default_rules()
        for number in range(folds):
            held = np.flatnonzero(fold == number)
            types, by_band = self._turned(np.concatenate([np.flatnonzero(fold != number), rest]))
            scores[held] = self._rows[held] @ types
            for at, found in zip(held, self._rows[held] @ by_band, strict=True):
                guessed = TYPES[int(scores[at].argmax())]
                bands[at] = banded(found, guessed, judge.classify(self._texts[at]))
        temperature = _temperature(scores, self._types[:count])
        return Measured(probabilities(scores / temperature), bands, temperature)

    def temperature(self) -> float:
        return self.measure(len(self._rows), 3).temperature

    def _turned(self, chosen: Any) -> tuple[Any, Any]:
        judged = chosen[self._bands[chosen] >= 0]
        return (
            _logistic(self._rows[chosen], self._types[chosen], self._weights[chosen], len(TYPES)),
            _logistic(self._rows[judged], self._bands[judged], self._weights[judged], len(BAND_STARTS) + 1),
        )


def _unseen_scores(texts: Sequence[str], rules: Rules) -> list[dict[EventType, float]]:
    """The rules' scores as they'd be for messages that nobody had seen when the rules were written: without what
    fires on this one alone. Else the classifier would learn to trust the rules more than they deserve."""
    hits = [rules.hits(text) for text in texts]
    fired = Counter((t, name) for found in hits for t, names in found.items() for name in names)
    common: Callable[[EventType, str], bool] = lambda t, name: fired[t, name] > 1  # noqa: E731
    kept = [
        {t: left for t, names in found.items() if (left := {n: w for n, w in names.items() if common(t, n)})}
        for found in hits
    ]
    return [scores_of(found, normalise(text)) for found, text in zip(kept, texts, strict=True)]


def _logistic(rows: Any, labels: Any, weights: Any, classes: int) -> Any:
    """Multinomial logistic regression by Adam, whole batches: (columns, classes)."""
    wanted: Any = np.eye(classes, dtype=np.float32)[labels]
    share: Any = (weights / weights.sum())[:, None].astype(np.float32)
    found: Any = np.zeros((rows.shape[1], classes), np.float32)
    first, second = np.zeros_like(found), np.zeros_like(found)
    for step in range(1, _STEPS + 1):
        slope = rows.T @ ((probabilities(rows @ found) - wanted) * share) + _FLATNESS * found
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope * slope
        found -= 0.05 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return found


def _temperature(scores: Any, labels: Any) -> float:
    """The divisor of the scores that makes the labels likeliest."""
    candidates = np.geomspace(0.3, 3.0, 60)
    picked = np.arange(len(labels))
    losses = [-np.log(probabilities(scores / t)[picked, labels] + 1e-12).mean() for t in candidates]
    return float(candidates[int(np.argmin(losses))])
