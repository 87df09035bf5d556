"""A message as a row of numbers: its sentence vector, its letter groups, and what is seen beside its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from processors.normalise import normalise
from processors.rules.signs import TYPES, in_line

__all__ = ["BUCKETS", "TYPES", "groups", "rarity", "row"]

BUCKETS = 8192  # of letter groups
_LETTERS = 300  # characters that letter groups are taken from
_GROUPS = (2, 3, 4, 5)
_WEIGHT = 3.0  # of vector and letter groups, which have unit length; of the signs none is above 2


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


def row(text: str, vector: Any, signs: Mapping[int, float], weights: Any) -> Any:
    """The row of one message (float32). `signs` are the rules'; `weights` are `rarity`'s."""
    letters: Any = np.zeros(BUCKETS, np.float32)
    found = groups(text)
    letters[found] = weights[found]
    length = float(np.linalg.norm(letters)) or 1.0
    return np.concatenate([vector * _WEIGHT, letters * (_WEIGHT / length), in_line(signs)]).astype(np.float32)
