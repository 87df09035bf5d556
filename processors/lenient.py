"""JSON that the fast parser refuses, but whose meaning is plain: a lone surrogate (half a character, where somebody cut
one in two), bytes that are not UTF-8, NaN and infinities, a byte order mark."""

from __future__ import annotations

import json
import math
from typing import Any

import orjson

_LONGEST_NUMBER = 300  # digits; Python refuses to turn more than 4300 into an int, and no id has more than 20


def loads(body: bytes | str) -> Any:
    """The value in `body`: lone surrogates and bytes that are not UTF-8 become U+FFFD, NaN and infinities null.

    Raises ValueError, also for JSON nested deeper than anybody nests it.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return mended(_with_halves(body))


def with_halves(body: bytes) -> Any:
    """`loads`, but lone surrogates stay: the other half may come in the next piece."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return _with_halves(body)


def mended(value: Any) -> Any:
    """The same value, in whose texts halves that meet are whole and others are U+FFFD. Raises ValueError."""
    try:
        return orjson.loads(whole(json.dumps(value, ensure_ascii=False)))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def whole(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _with_halves(body: bytes | str) -> Any:
    text = body.decode("utf-8-sig", "replace") if isinstance(body, bytes) else body
    try:
        return json.loads(text, parse_int=_int, parse_float=_float, parse_constant=_nothing)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _int(digits: str) -> int | None:
    return int(digits) if len(digits) < _LONGEST_NUMBER else None


def _float(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def _nothing(_: str) -> None:
    return None
