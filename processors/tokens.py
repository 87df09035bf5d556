"""How many tokens a text is: counted where the extra `tokens` is installed and knows the model's way of cutting, else
estimated, never below the truth for Thai and English (held by tests/unit/test_tokens.py)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

_PIECES = re.compile(
    r"(?P<word>[A-Z]?[a-z]+|[A-Z]+)|(?P<digits> ?[0-9]+)|(?P<thai>[ก-๛]+)|(?P<space>\s+)|(?P<other>.)", re.DOTALL
)
# Tokens a Thai letter. What is not known may fall back to bytes, of which a Thai letter has three.
_THAI = {"o200k": 0.8, "cl100k": 1.35}
_BYTES = 3.0
_LETTERS = 4  # of a Latin word that at least make a token, beyond its first

MESSAGE = 5  # tokens around one message
Count = Callable[[str], int]


def counter(tokens: str) -> Count:
    """`tokens` as `ModelSize.tokens`."""
    return _counted(tokens) if tokens in _THAI and _installed() else partial(estimate, tokens=tokens)


def estimate(text: str, tokens: str = "") -> int:
    """Rather too many than too few."""
    a_letter = _THAI.get(tokens, _BYTES)
    total = 0.0
    for found in _PIECES.finditer(text):
        size = found.end() - found.start()
        match found.lastgroup:
            case "word":
                total += 1 + (size - 1) // _LETTERS
            case "digits":
                total += size
            case "thai":
                total += a_letter * size + (0 if tokens == "" else 1 + found[0].count("ๆ"))
            case "space":
                total += 0 if found[0] == " " else size
            case _:
                total += len(found[0].encode("utf-8", "surrogatepass"))
    return int(total) + 2


@cache
def _installed() -> bool:
    return find_spec("bpe_openai") is not None


@cache
def _counted(tokens: str) -> Count:
    import bpe_openai

    encoding: Any = bpe_openai.get_encoding(f"{tokens}_base")

    def count(text: str) -> int:
        return len(encoding.encode_ordinary(text.encode("utf-8", "replace").decode("utf-8")))

    return count
