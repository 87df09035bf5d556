"""How large a language model is and how much it reads at once, told from its name and `model_sizes.yaml`."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

_SIZE = re.compile(r"(?<![a-z0-9.])(?:(\d+)x)?e?(\d+(?:\.\d+)?)(b|m)(?![a-z0-9])")


class ModelSize(NamedTuple):
    """`size` in billions of parameters; `window` in tokens, question and answer together; `tokens` names how text is
    cut (see `processors.tokens`), "" where that is not known."""

    size: float
    window: int
    tokens: str = ""


def size_in(name: str) -> float | None:
    """What a name says: 7 for `mistral-7b-instruct`, 56 for `8x7b`, 0.135 for `135m`. Of `235b-a22b` the whole."""
    found = _SIZE.search(name.lower().replace("_", "-"))
    if found is None:
        return None
    times, number, unit = found.groups()
    return int(times or 1) * float(number) / (1 if unit == "b" else 1000)


@lru_cache(maxsize=256)
def model_size(name: str, size: float | None = None, window: int | None = None) -> ModelSize:
    """Of any model; `size` and `window` are what the shop says of it."""
    plain = name.lower().rsplit("/", 1)[-1]
    known = next(one for one in _table() if fnmatchcase(plain, one["name"]))
    return ModelSize(
        size or size_in(plain) or float(known["size"]), window or int(known["window"]), str(known.get("tokens", ""))
    )


@cache
def _table() -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return loaded
