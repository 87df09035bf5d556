"""What a script says: who writes what, what a stubbed model answers, and what is expected of each turn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from config.business_hours import mistake
from config.field_types import EventName
from config.mistakes import Loc, Mistake, TenantError, nearest
from config.yaml_source import Document, decode, parse, read_bytes

_WAIT = re.compile(r"(\d+)\s*(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_BOUND = re.compile(r"(>=|<=|>|<|=)?\s*(\d(?:\.\d+)?)")


def _duration(value: object) -> object:
    found = _WAIT.fullmatch(value) if isinstance(value, str) else None
    if not found:
        raise mistake("is not a time span", "write a number and s, m, h or d, such as 30m or 2d")
    return timedelta(seconds=int(found[1]) * _SECONDS[found[2]])


def _moment(value: object) -> object:
    try:
        return datetime.strptime(str(value), "%Y-%m-%d %H:%M")  # noqa: DTZ007 - the shop's own time
    except ValueError:
        raise mistake("is not a day and a time", 'write "2026-11-30 10:00": the shop\'s own time') from None


def _bound(value: str) -> str:
    if not _BOUND.fullmatch(value):
        raise mistake("is not a bound", 'write ">=0.5", "<0.3" or "=1"')
    return value


def _some(turns: tuple[Any, ...]) -> tuple[Any, ...]:
    if not turns:
        raise mistake("is empty", "write at least one turn: `- say: …`")
    return turns


Texts = Annotated[tuple[str, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]
Types = Annotated[tuple[EventName, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]
Span = Annotated[timedelta, BeforeValidator(_duration)]
Moment = Annotated[datetime, BeforeValidator(_moment)]
Bound = Annotated[str, BeforeValidator(str), AfterValidator(_bound)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Expected(_Part):
    """Texts are looked for whatever their case and spacing; of several each has to hold."""

    answer: Texts = ()
    never: Texts = ()  # not in the answer
    type: Types = ()  # one of these
    importance: Bound | None = None
    buttons: Texts = ()
    remembers: Texts = ()  # in what is known of the customer after this turn
    asks_model: bool | None = None  # whether an answer of the language model was asked for
    silent: bool = False  # there is no answer


class TurnOf(_Part):
    say: str = Field(min_length=1)
    by: str | None = None  # another customer than the script's
    wait: Span | None = None  # before it
    model: str | None = None  # what the stubbed language model answers to it
    expect: Expected = Expected()


class Script(_Part):
    tenant: str  # a file beside the script, or the id of one in CONFIG_DIR/tenants
    about: str = ""
    customer: str = "customer"
    at: Moment = datetime(2026, 3, 2, 10, 0)  # noqa: DTZ001 - the shop's own time: a Monday
    model: str | None = None  # what the stubbed language model answers where a turn says nothing
    turns: Annotated[tuple[TurnOf, ...], AfterValidator(_some)]

    @property
    def stubbed(self) -> bool:
        return self.model is not None or any(turn.model is not None for turn in self.turns)


def read(file: Path) -> Script:
    """Raises TenantError with every mistake in a script."""
    document = parse(file, decode(file, read_bytes(file)))
    found: list[Mistake] = list(document.mistakes)
    try:
        script = Script.model_validate(document.data)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        near = {(*one["loc"][:-1], _near(one["loc"])) for one in errors if one["type"] == "extra_forbidden"}
        found += [
            _told(document, one["loc"], one["type"], one)
            for one in errors
            if one["type"] != "missing" or one["loc"] not in near
        ]
        raise TenantError(sorted(found, key=lambda one: (one.line, one.column))) from None
    if found:
        raise TenantError(found)
    return script


def _told(document: Document, loc: Loc, kind: str, error: Any) -> Mistake:
    if kind == "mistake":
        return document.mistake(loc, error["ctx"]["what"], error["ctx"]["remedy"])
    if kind == "extra_forbidden":
        near = _near(loc)
        remedy = f"did you mean {near}?" if near else f"remove it; known here: {', '.join(_fields(loc))}"
        return document.mistake(loc, "is not a known field", remedy, at_key=True)
    if kind == "missing":
        return document.mistake(loc, "is missing", f"add {loc[-1]}: …", at_key=True)
    if kind == "literal_error":
        words = re.findall(r"'([^']*)'", str(error["ctx"].get("expected", "")))
        near = nearest(str(error.get("input")), words)
        return document.mistake(loc, f"is none of {', '.join(words)}", f"did you mean {near}?" if near else "write one")
    if kind in ("string_too_short", "too_short"):
        return document.mistake(loc, "is empty", "write it, or leave the field out")
    return document.mistake(loc, "can't be used", f"{error['msg'][0].lower()}{error['msg'][1:]}; see docs/tenants.md")


def _near(loc: Loc) -> str | None:
    return nearest(str(loc[-1]), _fields(loc))


def _fields(loc: Sequence[str | int]) -> list[str]:
    model: type[BaseModel] = Script
    if "expect" in loc[:-1]:
        model = Expected
    elif "turns" in loc[:-1]:
        model = TurnOf
    return list(model.model_fields)
