"""The model's complaints in plain words: what is wrong, and how to mend it. No value is ever repeated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from config.broadcasts import Broadcasts, FollowUp
from config.holidays import Holidays
from config.mistakes import Loc, Mistake, nearest
from config.routing import Routing, Rule
from config.tenant_model import (
    LLM,
    Agent,
    Attachment,
    Behaviour,
    Faq,
    LineChannel,
    Memory,
    Replies,
    Staff,
    Sticker,
    TelegramChannel,
    TenantFile,
    TerminalChannel,
    Understanding,
    WebChannel,
)
from config.texts import Text
from config.yaml_source import Document

CHANNELS: Mapping[str, type[BaseModel]] = {
    "line": LineChannel,
    "telegram": TelegramChannel,
    "web": WebChannel,
    "terminal": TerminalChannel,
}
_SECRETS = frozenset({"channel_secret", "channel_access_token", "bot_token", "webhook_secret", "api_key"})
_SECTIONS: Mapping[str, type[BaseModel]] = {
    "llm": LLM,
    "understanding": Understanding,
    "memory": Memory,
    "behaviour": Behaviour,
    "staff": Staff,
    "replies": Replies,
    "holidays": Holidays,
    "routing": Routing,
    "broadcasts": Broadcasts,
}
_NAMED: Mapping[str, frozenset[str]] = {  # sections of names, and the fields below a name
    "channels": frozenset(field for channel in CHANNELS.values() for field in channel.model_fields),
    "agents": frozenset(Agent.model_fields),
}
_MEANT = {"ไทย": "th", "ภาษาไทย": "th", "อังกฤษ": "en", "ภาษาอังกฤษ": "en", "english": "en", "ไลน์": "line"}
_MEANT |= {"order": "TRANSACTION", "purchase": "TRANSACTION", "สั่งซื้อ": "TRANSACTION", "question": "INQUIRY"}
_NUMBERS = {
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
}
_TYPES = {
    "int": ("should be a whole number", "write digits alone, such as 10"),
    "float": ("should be a number", "write a number, such as 0.5"),
    "finite": ("should be a number", "write a number, such as 0.5"),
    "bool": ("should be true or false", "write true or false"),
    "dict": ("should be a section of fields", "write its fields below it, indented, as `field: value`"),
    "model": ("should be a section of fields", "write its fields below it, indented, as `field: value`"),
    "tuple": ("should be a list", "write [one, two], or each below it as `- one`"),
    "list": ("should be a list", "write [one, two], or each below it as `- one`"),
}


def explain(document: Document, error: ValidationError) -> list[Mistake]:
    """Pydantic's errors as mistakes in the file. A missing field whose name is misspelt is one mistake."""
    found = [_Error(document, one) for one in error.errors(include_url=False)]
    misspelt = {(*one.loc[:-1], one.near) for one in found if one.near}
    return [one.mistake() for one in found if one.kind != "missing" or one.loc not in misspelt]


class _Error:
    """One of pydantic's errors, its place in the file's own terms."""

    def __init__(self, document: Document, error: ErrorDetails) -> None:
        loc: Loc = tuple(error["loc"])
        self._of_key = loc[-1:] == ("[key]",)
        if self._of_key:
            loc = loc[:-1]
        if loc[:1] == ("channels",) and len(loc) > 2:
            loc = (*loc[:2], *loc[3:])  # pydantic names the platform in between
        keys = document.keys
        if loc[:2] == ("agents", "default") and loc[:2] not in keys and ("agents", "general") in keys:
            loc = ("agents", "general", *loc[2:])
        self.loc, self.kind = loc, error["type"]
        self._document, self._error = document, error
        self._known: list[str] = []
        self.near: str | None = None  # of an unknown field: the right word
        if self.kind == "extra_forbidden":
            self._known = [name for name in _fields(document, loc[:-1]) if name != "id"]
            self.near = nearest(str(loc[-1]), self._known)

    def mistake(self) -> Mistake:
        if self.kind == "extra_forbidden":
            return self._document.mistake(self.loc, "is not a known field", self._unknown(), at_key=True)
        what, remedy = _words(self.loc, self.kind, self._error.get("ctx") or {}, self._error.get("input"))
        at_key = self._of_key or self.kind in ("missing", "union_tag_not_found")
        return self._document.mistake(self.loc, what, remedy, at_key=at_key)

    def _unknown(self) -> str:
        word = str(self.loc[-1])
        home = next((name for name, section in _SECTIONS.items() if word in section.model_fields), None)
        if self.near:
            return f"did you mean {self.near}?"
        if home and self.loc[:1] != (home,):
            return f"did you mean {home}.{word}? It belongs under {home}"
        return f"remove it; known here: {', '.join(self._known)}"


def _words(loc: Loc, kind: str, context: Mapping[str, Any], given: Any) -> tuple[str, str]:
    name = str(loc[-1]) if loc else ""
    if kind == "mistake":
        return context["what"], context["remedy"]
    if kind == "missing":
        if name in _SECRETS:
            return "is missing", f"add {name}: ${{NAME}} and set NAME in the environment or in config/secrets/NAME"
        return "is missing", f"add {name}: …"
    if kind == "union_tag_not_found":
        return "has no platform", f"add platform: {', '.join(CHANNELS)} (one of them)"
    if kind == "union_tag_invalid":
        tag = given.get("platform") if isinstance(given, dict) else None
        return "has an unknown platform", _pick(str(tag), list(CHANNELS))
    if kind == "literal_error":
        words = re.findall(r"'([^']*)'", str(context.get("expected", "")))
        return f"is none of {', '.join(words)}", _pick(str(given), words)
    if kind == "string_type":
        number = isinstance(given, bool | int | float)
        return "should be a text", "put it in quotes" if number else "write a text"
    if kind in ("string_too_short", "too_short"):
        return "is empty", "write it, or leave the field out"
    if kind == "string_pattern_mismatch":
        return "is not a name", "use 1 to 64 letters a-z, digits, _ and -, beginning with a letter or digit"
    if kind in _NUMBERS:
        return "is out of range", f"write {_NUMBERS[kind].format(**context)}"
    if kind.startswith(("model", "dict")):
        if isinstance(given, str) and re.match(r"[A-Za-z_]\w*:\S", given):
            return "has no space after a colon", "write `field: value`"
        if len(loc) == 2 and loc[0] in _NAMED and name in _NAMED[str(loc[0])]:
            return "stands where a name should", "indent it further in: it belongs to the name above it"
    return _TYPES.get(kind.split("_")[0], ("can't be used", "compare it with config/examples/full.yaml"))


def _pick(word: str, words: list[str]) -> str:
    near = nearest(_MEANT.get(word.strip().lower(), word), words)
    return f"did you mean {near}?" if near else f"write one of {', '.join(words)}"


def _fields(document: Document, parent: Loc) -> list[str]:
    """The fields that may stand in the section `parent`."""
    model: type[BaseModel] = TenantFile
    match parent:
        case ("channels", name, *_):
            platform = document.data["channels"][name].get("platform")
            model = CHANNELS.get(platform, WebChannel)
        case ("agents", *_):
            model = Agent
        case ("broadcasts", "follow_ups", _):
            model = FollowUp
        case ("broadcasts", "follow_ups", _, "message"):
            model = Text
        case ("routing", "rules", *_):
            model = Rule
        case ("faq", _):
            model = Faq
        case ("faq", _, "media", _):
            model = Attachment
        case ("faq", _, "media", _, "sticker"):
            model = Sticker
        case ("faq" | "replies", _, *_):
            model = Text
        case (str() as section, *_):
            model = _SECTIONS.get(section, Text)
    return list(model.model_fields)
