"""The trained classifier: reads its small file, gives a type, a confidence that can be believed, and an importance."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from processors.local.features import TYPES, row
from processors.local.vectors import Vectors
from processors.models import EventType
from processors.rules import Rules, default_rules
from processors.rules.engine import reckoned
from processors.rules.importance import heard
from processors.rules.wording import BANDS, evidence, likely_band

FILE = Path(__file__).parent / "classifier.npz"
_ARRAYS = ("types", "bands", "rarity", "usual", "judge")
NEAR = 2.0  # see `likely_band`; surer of the band than the rules are, it need not lean as far to the middle
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
    letters; the temperatures divide the scores so that shares are what they say; `usual` (8, 5, 5) and `judge` (5, 19)
    are for `wording.evidence` and `likely_band`."""

    types: Any
    bands: Any
    rarity: Any
    temperature: float
    band_temperature: float
    usual: Any
    judge: Any
    base: int = 0  # of a tenant's own: which shipped weights it was made from

    def write(self, path: Path) -> None:
        halves = {name: getattr(self, name).astype(np.float16) for name in _ARRAYS}
        heats = np.float32([self.temperature, self.band_temperature])
        np.savez_compressed(path, temperatures=heats, base=np.uint32(self.base), **halves)

    @classmethod
    def read(cls, path: Path) -> Weights:
        """Raises OSError or ValueError for a file that `write` did not make."""
        try:
            with np.load(path, allow_pickle=False) as data:
                whole = {name: data[name].astype(np.float32) for name in _ARRAYS}
                types, bands = map(float, data["temperatures"])
                base = int(data["base"]) if "base" in data else 0
        except (KeyError, EOFError, BadZipFile, zlib.error) as error:
            raise ValueError(f"{path.name} holds no weights: {error}") from None
        return cls(temperature=types, band_temperature=bands, base=base, **whole)


def probabilities(scores: Any) -> Any:
    """Each row's scores as shares of one."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


class Classifier:
    """Guesses in 3 to 5 ms a message, from several threads at once."""

    def __init__(self, weights: Weights, vectors: Vectors, rules: Rules | None = None) -> None:
        self.vectors = vectors
        self.weights = weights
        self._rules = rules or default_rules()
        self._usual, self._judge = weights.usual.tolist(), weights.judge.tolist()
        self.guess = lru_cache(maxsize=_KEPT)(self._guess)

    @classmethod
    def read(cls, vectors: Vectors, path: Path = FILE) -> Classifier:
        """The one that comes with the product, or a tenant's own. Raises OSError or ValueError for a bad file."""
        return cls(Weights.read(path), vectors)

    def _guess(self, text: str) -> Guess:
        """The guess for any text; never raises for one."""
        verdict = self._rules.classify(text)
        features = row(text, self.vectors.encode([text])[0], verdict.signs, self.weights.rarity)
        told = features.nonzero()[0]  # a twelfth of the columns
        features = features[told]
        shares = probabilities((features @ self.weights.types[told])[None, :] / self.weights.temperature)[0]
        bands = probabilities((features @ self.weights.bands[told])[None, :] / self.weights.band_temperature)[0]
        best = int(shares.argmax())
        speaks = evidence(shares.tolist(), bands.tolist(), reckoned(verdict.found), self._usual)
        band = likely_band(speaks, self._judge, NEAR)
        return Guess(
            event_type=TYPES[best],
            confidence=round(float(shares[best]), 3),
            importance=heard(TYPES[best], verdict.found, BANDS[band]),
            probabilities=dict(zip(TYPES, map(float, shares), strict=True)),
        )
