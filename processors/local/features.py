"""A message as a row of numbers: its sentence vector, its letter groups, what the rules say, its shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from processors.language import detect
from processors.models import EventType
from processors.normalise import normalise

BUCKETS = 8192  # of letter groups
_LETTERS = 300  # characters that letter groups are taken from
_GROUPS = (2, 3, 4, 5)
_WEIGHT = 3.0  # of vector and letter groups, which have unit length; of the other columns none is above 2
_ENOUGH = 12.0  # a rule score above says nothing more
TYPES = tuple(EventType)


def groups(text: str) -> list[int]:
    """The buckets of the letter groups in a text, each once."""
    padded = f" {normalise(text)[:_LETTERS]} "
    found = {padded[i : i + n] for n in _GROUPS for i in range(len(padded) - n + 1)}
    return sorted({crc32(group.encode()) % BUCKETS for group in found})


def rarity(texts: Sequence[str]) -> Any:
    """What each bucket weighs (float32, one a bucket): the rarer in the texts, the more."""
    seen = np.zeros(BUCKETS)
    for text in texts:
        seen[groups(text)] += 1
    return np.log((1 + len(texts)) / (1 + seen)).astype(np.float32)


def row(text: str, vector: Any, scores: Mapping[EventType, float], weights: Any) -> Any:
    """The row of one message (float32). `scores` are the rules'; `weights` are `rarity`'s."""
    letters: Any = np.zeros(BUCKETS, np.float32)
    found = groups(text)
    letters[found] = weights[found]
    length = float(np.linalg.norm(letters)) or 1.0
    told = [min(scores.get(event_type, 0.0), _ENOUGH) / _ENOUGH for event_type in TYPES]
    best = max(range(len(told)), key=told.__getitem__) if any(told) else None
    first = [0.5 * (index == best) for index in range(len(told))]
    return np.concatenate([vector * _WEIGHT, letters * (_WEIGHT / length), told, first, _shape(text), [1.0]]).astype(
        np.float32
    )


def _shape(text: str) -> list[float]:
    size = len(text)
    digits = sum(map(str.isdigit, text[:_LETTERS]))
    language = detect(text)
    return [
        min(size, 200) / 100,
        float(size < 6),
        float(size < 15),
        float("?" in text),
        float(digits > 0),
        digits / max(1, min(size, _LETTERS)),
        float(language == "th"),
        float(language == "en"),
    ]
