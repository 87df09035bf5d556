"""The trained classifier: reads its small file, gives a type, a confidence that can be believed, and an importance."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from processors.local.features import TYPES, row
from processors.local.vectors import Vectors
from processors.models import EventType
from processors.rules import Rules, Verdict, default_rules
from processors.rules.importance import score

FILE = Path(__file__).parent / "classifier.npz"
BANDS = (0.15, 0.35, 0.55, 0.75, 0.92)  # the score that stands for each band of importance
BAND_STARTS = (0.25, 0.45, 0.65, 0.85)
_RULES_VOTE = 1.0  # in the scale of the scores: e to this power likelier
_KEPT = 512  # messages whose guess is kept: one message is looked at more than once in a turn


@dataclass(frozen=True, slots=True)
class Guess:
    """`confidence`: how often, of a hundred such guesses, the type is right; 0.0 to 1.0."""

    event_type: EventType
    confidence: float
    importance: float
    probabilities: Mapping[EventType, float]


@dataclass(frozen=True, slots=True)
class Weights:
    """What training leaves. `types` (features, 8) and `bands` (features, 5) are float32, `rarity` one a bucket of
    letters; `temperature` divides the type scores so that confidence is what it says."""

    types: Any
    bands: Any
    rarity: Any
    temperature: float

    def write(self, path: Path) -> None:
        halves = {name: getattr(self, name).astype(np.float16) for name in ("types", "bands", "rarity")}
        np.savez_compressed(path, temperature=np.float32(self.temperature), **halves)

    @classmethod
    def read(cls, path: Path) -> Weights:
        with np.load(path, allow_pickle=False) as data:
            whole = {name: data[name].astype(np.float32) for name in ("types", "bands", "rarity")}
            return cls(temperature=float(data["temperature"]), **whole)


def probabilities(scores: Any) -> Any:
    """Each row's scores as shares of one."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def banded(scores: Any, event_type: EventType, verdict: Verdict) -> int:
    """The number of the band: what was learned, and what the rules make of a message of that type."""
    votes = scores.copy()
    votes[bisect(BAND_STARTS, score(event_type, verdict.found))] += _RULES_VOTE
    return int(votes.argmax())


class Classifier:
    """Guesses in 3 to 5 ms a message, from several threads at once."""

    def __init__(self, weights: Weights, vectors: Vectors, rules: Rules | None = None) -> None:
        self.vectors = vectors
        self.weights = weights
        self._rules = rules or default_rules()
        self.guess = lru_cache(maxsize=_KEPT)(self._guess)

    @classmethod
    def read(cls, vectors: Vectors, path: Path = FILE) -> Classifier:
        """The one that comes with the product, or a tenant's own. Raises OSError or ValueError for a bad file."""
        return cls(Weights.read(path), vectors)

    def _guess(self, text: str) -> Guess:
        """The guess for any text; never raises for one."""
        verdict = self._rules.classify(text)
        vector = self.vectors.encode([text])[0]
        features = row(text, vector, verdict.scores, self.weights.rarity)
        told = features.nonzero()[0]  # a twelfth of the columns
        features = features[told]
        scores = features @ self.weights.types[told]
        shares = probabilities(scores[None, :] / self.weights.temperature)[0]
        best = int(shares.argmax())
        band = banded(features @ self.weights.bands[told], TYPES[best], verdict)
        return Guess(
            event_type=TYPES[best],
            confidence=round(float(shares[best]), 3),
            importance=BANDS[band],
            probabilities=dict(zip(TYPES, map(float, shares), strict=True)),
        )
