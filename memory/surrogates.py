"""Lone surrogates: half characters that no JSON and no UTF-8 can hold. They become U+FFFD."""

from __future__ import annotations

import re
from typing import Any

_LONE = re.compile("[\ud800-\udfff]")


def without_surrogates(value: Any) -> Any:
    """The same text, or the same structure of dicts and lists, with every lone surrogate replaced by U+FFFD."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return _LONE.sub("�", value)
        return value
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_surrogates(item) for item in value]
    return value
