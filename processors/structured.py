"""A model's answer into an object of a JSON Schema: found in prose, mended where that is safe, refused otherwise.

Understands what our schemas use: type, enum, properties, required, items, minimum, maximum, default.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

_OURS = frozenset(("default", "minimum", "maximum"))
_PLAIN = frozenset((str, list, bool))  # what a Mapping is not takes long to tell by its class
_decoder = json.JSONDecoder()
_LABEL = re.compile(r"[\s\-]+")


class NotUsable(ValueError):
    """The text holds no object of the schema."""


def parse(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The first object in `text` that fits `schema`: fences and prose around it are passed over, a cut end is closed,
    numbers are clamped, labels matched loosely. Raises NotUsable."""
    reason = "no JSON object in the answer"
    for candidate in _objects(text):
        try:
            value = _fit(candidate, schema, "answer")
        except NotUsable as error:
            reason = str(error)
            continue
        if isinstance(value, dict):
            return value
    raise NotUsable(reason)


def wire_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as sent: without the keywords that some providers refuse in strict mode; we hold to them ourselves."""
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _OURS:
            continue
        if value.__class__ in _PLAIN:
            out[key] = value
        elif key == "properties":
            out[key] = {name: wire_schema(inner) for name, inner in value.items()}
        else:
            out[key] = wire_schema(value) if isinstance(value, Mapping) else value
    return out


def _objects(text: str) -> list[Any]:
    """Everything in the text that reads as a JSON object, whole ones first."""
    whole: list[Any] = []
    at = text.find("{")
    first = at
    tries = 0
    while at >= 0 and tries < 50:
        tries += 1
        try:
            value, end = _decoder.raw_decode(text, at)
            whole.append(value)
        except (ValueError, RecursionError):
            end = at + 1
        at = text.find("{", end)
    if not whole and first >= 0 and (closed := _closed(text[first:])) is not None:
        whole.append(closed)
    return whole


def _closed(text: str) -> Any:
    """A cut-off object with its open string, list and braces closed; None where that gives nothing."""
    stack: list[str] = []
    quoted = escaped = False
    cut = 0  # up to here every member is complete
    closers: list[str] = []
    for position, char in enumerate(text[:20_000]):
        if escaped:
            escaped = False
        elif quoted:
            escaped = char == "\\"
            quoted = char != '"'
        elif char == '"':
            quoted = True
        elif char in "{[":
            stack.append("}" if char == "{" else "]")
        elif char in "}]" and stack:
            stack.pop()
        elif char == "," and stack:
            cut, closers = position, stack.copy()
    ends = [text + ('"' if quoted else "") + "".join(reversed(stack)), text[:cut] + "".join(reversed(closers))]
    for attempt in ends:
        try:
            return json.loads(attempt)
        except (ValueError, RecursionError):
            continue
    return None


def _fit(value: Any, schema: Mapping[str, Any], where: str) -> Any:
    if "enum" in schema:
        return _one_of(value, schema, where)
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if value is None and "null" in kinds:
        return None
    if "object" in kinds:
        return _object(value, schema, where)
    if "array" in kinds:
        if not isinstance(value, list):
            value = [] if value is None else [value]
        return [_fit(item, schema.get("items", {}), f"{where}[]") for item in value]
    if "number" in kinds or "integer" in kinds:
        return _number(value, schema, where, whole="number" not in kinds)
    if "boolean" in kinds:
        if isinstance(value, bool):
            return value
        raise NotUsable(f"{where} is not true or false")
    if "string" in kinds:
        if isinstance(value, str):
            return value
        if isinstance(value, int | float):
            return str(value)
        raise NotUsable(f"{where} is not a text")
    return value


def _object(value: Any, schema: Mapping[str, Any], where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise NotUsable(f"{where} is not an object")
    out = {}
    required = schema.get("required", ())
    for name, inner in schema.get("properties", {}).items():
        kinds = inner.get("type")
        optional = name not in required or "null" in (kinds if isinstance(kinds, list) else ())
        if name not in value:
            if "default" in inner:
                out[name] = inner["default"]
            elif not optional:
                raise NotUsable(f"{where} has no {name}")
            continue
        try:
            out[name] = _fit(value[name], inner, name)
        except NotUsable:
            if "default" in inner:
                out[name] = inner["default"]
            elif not optional:
                raise
    return out


def _one_of(value: Any, schema: Mapping[str, Any], where: str) -> Any:
    if value in schema["enum"]:
        return value
    if isinstance(value, str):
        wanted = _LABEL.sub("_", value.strip().casefold())
        for label in schema["enum"]:
            if isinstance(label, str) and label.casefold() == wanted:
                return label
    raise NotUsable(f"{where} is none of the labels asked for")


def _number(value: Any, schema: Mapping[str, Any], where: str, *, whole: bool) -> float | int:
    if isinstance(value, str):
        try:
            value = float(value.strip().rstrip("%")) / (100 if value.strip().endswith("%") else 1)
        except ValueError:
            raise NotUsable(f"{where} is not a number") from None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise NotUsable(f"{where} is not a number")
    value = min(max(value, schema.get("minimum", value)), schema.get("maximum", value))
    return int(value) if whole else value
