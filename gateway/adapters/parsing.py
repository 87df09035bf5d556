"""Reading what a platform sent: JSON that we did not write, and offsets that count UTF-16 units.

Nothing here raises for odd content: a getter gives the value when it has the right type, else nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from gateway.errors import NotJson
from gateway.messages import MAX_TEXT
from processors import lenient

Object = Mapping[str, Any]

EMPTY: Object = {}


def load_json(body: bytes | str) -> Any:
    """The value in `body`. What the fast parser refuses but a customer's message may carry is mended: a lone surrogate
    and bytes that are not UTF-8 become U+FFFD, NaN and infinities become null, a byte order mark is dropped.

    Raises NotJson, also for JSON nested deeper than any platform nests it.
    """
    try:
        return lenient.loads(body)
    except ValueError as error:
        raise NotJson("The body is not JSON.") from error


def obj(parent: Object, key: str) -> Object:
    """The object under `key`, or an empty one."""
    value = parent.get(key)
    return value if isinstance(value, dict) else EMPTY


def objects(parent: Object, key: str) -> list[Object]:
    """The objects in the list under `key`; whatever else stands in it is left out."""
    value = parent.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def string(parent: Object, key: str, longest: int = 1024) -> str | None:
    """The text under `key` if it is one, not empty and at most `longest` characters."""
    value = parent.get(key)
    return value if isinstance(value, str) and 0 < len(value) <= longest else None


def integer(parent: Object, key: str) -> int | None:
    value = parent.get(key)
    return value if type(value) is int else None


def number(parent: Object, key: str) -> float | None:
    """The number under `key`; True and False are none."""
    value = parent.get(key)
    return value if type(value) is int or type(value) is float else None


def moment(parent: Object, key: str, per_second: int, otherwise: float) -> float:
    """The time under `key`, given in so many units a second, in seconds since 1970."""
    value = number(parent, key)
    return value / per_second if value is not None and 0 < value < 1e11 * per_second else otherwise


def known(parent: Object, names: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Plain values (text, numbers, booleans) under the platform's names, renamed to ours."""
    found = {}
    for theirs, ours in names:
        value = parent.get(theirs)
        if isinstance(value, (str, int, float, bool)) and value != "":
            found[ours] = value[:MAX_TEXT] if isinstance(value, str) else value
    return found


def derived_id(event: Object, without: str = "") -> str:
    """An id for an event that has none: the same whenever the same event is delivered, whatever stands in `without`."""
    steady = {key: value for key, value in event.items() if key != without}
    try:
        written = orjson.dumps(steady, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # it reads JSON that is nested deeper than it writes
        written = _step_by_step(steady)
    return "derived:" + hashlib.sha256(written).hexdigest()[:40]


def _step_by_step(value: Any) -> bytes:
    """All that stands in it, its order and its nesting, however deep."""
    written, waiting = [], [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            written.append(f"{{{len(one)}")
            waiting += [part for pair in sorted(one.items(), key=lambda pair: pair[0]) for part in pair]
        elif isinstance(one, list):
            written.append(f"[{len(one)}")
            waiting += one
        else:
            written.append(repr(one))
    return "\n".join(written).encode()


def shorten(text: str, extra: dict[str, Any]) -> str:
    """At most MAX_TEXT characters of `text`, without NUL; `extra["cut"]` then tells how many characters are gone."""
    if "\x00" in text:
        text = text.replace("\x00", "")
    if len(text) > MAX_TEXT:
        extra["cut"] = len(text) - MAX_TEXT
        text = text[:MAX_TEXT]
    return text


def piece(text: str, offset: int | None, length: int | None) -> tuple[int, int] | None:
    """Where `length` UTF-16 units from `offset` lie in `text`, in characters; None when they are not inside it
    or would cut a character in half."""
    if offset is None or length is None or offset < 0 or length <= 0:
        return None
    units = text.encode("utf-16-le", "surrogatepass")
    if 2 * (offset + length) > len(units):
        return None
    try:
        start = len(units[: 2 * offset].decode("utf-16-le"))
        return start, start + len(units[2 * offset : 2 * (offset + length)].decode("utf-16-le"))
    except UnicodeDecodeError:
        return None


def without(text: str, places: Iterable[tuple[int, int]]) -> str:
    """`text` without the given places (in characters), and without the gaps that they leave."""
    for start, end in sorted(places, reverse=True):
        before, after = text[:start].rstrip(" "), text[end:].lstrip(" ")
        text = f"{before} {after}" if before and after else before + after
    return text.strip()
