"""A tenant's own classifier: the one that comes with the product, moved by what the shop's own people corrected.

The shipped weights stay the base: training looks for the smallest change that gets the corrections right while hand-
written messages of every kind are understood as before.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from processors.corrections import CLASSIFIER, Correction
from processors.local.classifier import Classifier, Weights, probabilities
from processors.local.features import TYPES, row
from processors.local.training import written
from processors.local.vectors import Vectors
from processors.rules import default_rules
from processors.rules.wording import BAND_STARTS

_STRENGTH = 4.0  # what a correction counts beside one message that is to stay as it is
_STEPS = 300
_FLATNESS = 2e-4  # how strongly the change is drawn to nothing
_LOSS = 0.02  # of the other messages, at most so many more may be taken for something else


class NothingLearned(ValueError):
    """The corrections made no better classifier; the old one stays."""


@dataclass(frozen=True, slots=True)
class Learned:
    """How many corrections there are, and how many of them are understood as corrected, before and after."""

    corrections: int
    before: int
    after: int


def mark(base: Weights) -> int:
    """Tells which shipped weights a tenant's were made from: others need training anew."""
    return crc32(base.types.astype(np.float16).tobytes())


def train(base: Classifier, corrections: Sequence[Correction]) -> tuple[Weights, Learned]:
    """Takes some ten seconds of one core. Raises NothingLearned."""
    if not corrections:
        raise NothingLearned("there are no corrections")
    anchors = written()
    texts = [one.text for one in corrections] + [one.text for one in anchors]
    rows = _rows(texts, base.vectors, base.weights)
    count = len(corrections)
    types = np.array([TYPES.index(one.event_type) for one in corrections])
    start = rows @ base.weights.types
    wanted = probabilities(start)
    wanted[:count] = np.eye(len(TYPES))[types]
    moved = base.weights.types + _change(rows, start, wanted, count)
    judged = [at for at, one in enumerate(corrections) if one.importance is not None]
    bands = base.weights.bands
    if judged:
        of_bands = rows @ bands
        told = probabilities(of_bands)
        for at in judged:
            told[at] = np.eye(told.shape[1])[
                int(np.searchsorted(BAND_STARTS, corrections[at].importance or 0.0, "right"))
            ]
        bands = bands + _change(rows, of_bands, told, count)
    labels = np.array([TYPES.index(one.event_type) for one in anchors])
    now = (rows @ moved).argmax(axis=1)
    lost = float((start[count:].argmax(axis=1) == labels).mean() - (now[count:] == labels).mean())
    before, after = int((start[:count].argmax(axis=1) == types).sum()), int((now[:count] == types).sum())
    if after < before or lost > _LOSS:
        raise NothingLearned(
            f"{after} of {count} corrections right where {before} were, {lost:.1%} of other messages lost: "
            "do some of the corrections contradict each other?"
        )
    weights = replace(
        base.weights, types=moved.astype(np.float32), bands=bands.astype(np.float32), base=mark(base.weights)
    )
    return weights, Learned(count, before, after)


def write(folder: Path, weights: Weights) -> Path:
    """Whole or not at all: a worker may be reading. Raises OSError."""
    path, new = folder / CLASSIFIER, folder / f"new-{CLASSIFIER}"
    weights.write(new)
    with new.open("rb") as file:
        os.fsync(file.fileno())
    return new.replace(path)


def read(folder: Path, base: Classifier) -> Classifier | None:
    """The tenant's own; None: it has none. Raises OSError or ValueError for one that can't be used."""
    path = folder / CLASSIFIER
    if not path.exists():
        return None
    weights = Weights.read(path)
    if weights.base != mark(base.weights):
        raise ValueError(f"{path.name} was made for another version: train it again")
    return Classifier(weights, base.vectors)


def _rows(texts: Sequence[str], vectors: Vectors, weights: Weights) -> Any:
    rules, encoded = default_rules(), vectors.encode(texts)
    return np.stack([row(t, v, rules.classify(t).signs, weights.rarity) for t, v in zip(texts, encoded, strict=True)])


def _change(rows: Any, start: Any, wanted: Any, count: int) -> Any:
    """What to add to the weights (columns, classes), found among the combinations of the rows."""
    lengths, turn = np.linalg.eigh((rows @ rows.T).astype(np.float64))
    kept = lengths > 1e-5
    turned = (turn[:, kept] * np.sqrt(lengths[kept])).astype(np.float32)
    share: Any = np.ones(len(rows), np.float32)
    share[:count] = _STRENGTH
    # However many there are, the corrections weigh as much as a tenth of the others at the least.
    share[:count] *= max(1.0, (len(rows) - count) / 10 / (_STRENGTH * count))
    share /= share.sum()
    found: Any = np.zeros((turned.shape[1], wanted.shape[1]), np.float32)
    first, second = np.zeros_like(found), np.zeros_like(found)
    for step in range(1, _STEPS + 1):
        told = probabilities(start + turned @ found)
        slope = turned.T @ ((told - wanted) * share[:, None]).astype(np.float32) + _FLATNESS * found
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope * slope
        found -= 0.02 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return rows.T @ (turn[:, kept] / np.sqrt(lengths[kept])).astype(np.float32) @ found
