"""What a session was about, and what somebody said in it of themselves: read by a language model in one call."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from processors.language import detect
from processors.llm import Access, ChatModel, ChatRequest, LLMError
from processors.models import Language
from processors.normalise import normalise, safe
from processors.summary import LONGEST, summarise_session
from processors.whose import told_of_others

_AT_ONCE = 40  # messages of one call; a longer session is read in parts, each with the summary of those before
_CHARACTERS = 1500  # of each message
_KNOWN = 60  # facts that the model is told
_THAI = re.compile(r"[ก-๎]")
_LATIN = re.compile(r"[A-Za-z]")
_NUMBERS = re.compile(r"\d+")

# Keys under which everybody reads a fact as the customer's own.
OWN = frozenset(
    {"name", "nickname", "phone", "email", "address", "city", "birthday", "size", "shoe_size", "allergies", "diet",
     "likes", "dislikes"}
)  # fmt: skip

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["summary", "facts"],
    "properties": {
        "summary": {"type": "string"},
        "facts": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["key", "value", "text", "type", "confidence", "message", "ended"],
                "properties": {
                    "key": {"type": "string"},
                    "value": {"type": "string"},
                    "text": {"type": "string"},
                    "type": {
                        "type": "string",
                        "enum": [
                            "fact", "preference", "context", "procedure", "entity", "relationship", "correction",
                            "self_knowledge",
                        ],
                        "default": "fact",
                    },
                    "confidence": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.7},
                    "message": {"type": "integer"},
                    "ended": {"type": "boolean", "default": False},
                },
            },
        },
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """One statement; `message` is the place in the conversation of the one that says it."""

    key: str
    value: str
    text: str
    type: str
    confidence: float
    message: int
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """`understood`: the model read all of it; else `summary` is told from the messages and it is to be read again."""

    summary: str
    facts: tuple[Found, ...] = ()
    understood: bool = True
    by_rules: bool = False


async def read(
    llm: ChatModel | None,
    access: Access | None,
    messages: Sequence[Mapping[str, Any]],
    before: str,
    known: Mapping[str, Any],
    language: Language | None,
) -> Reading:
    """Never raises for a failing model or a nonsensical answer. Without a model: the summary by rules, and nothing is
    to be read again."""
    if llm is None or access is None or not access.api_key:
        return Reading(await summarise_session(None, None, messages, before, language), by_rules=True)
    thai = _is_thai(messages, language)
    summary = before
    found: list[Found] = []
    for start in range(0, len(messages), _AT_ONCE):
        part = messages[start : start + _AT_ONCE]
        try:
            data = await _ask(llm, access, part, start, summary, known, thai)
        except LLMError:
            data = None
        usable = _facts(data, messages) if data else None
        if data is None or usable is None or not _fits(data["summary"], thai):
            told = await summarise_session(None, None, messages, before, language)
            return Reading(told, tuple(found), understood=False, by_rules=True)
        summary = safe(data["summary"]).strip()[:LONGEST]
        found += usable
    return Reading(summary, tuple(found))


async def _ask(
    llm: ChatModel,
    access: Access,
    messages: Sequence[Mapping[str, Any]],
    start: int,
    before: str,
    known: Mapping[str, Any],
    thai: bool,
) -> dict[str, Any] | None:
    told = {
        "earlier_summary": before[:LONGEST],
        "language": "Thai" if thai else "English",
        "known": {key: known[key] for key in list(known)[:_KNOWN]},
        "messages": [
            {"number": start + at, "from": "customer" if m.get("role") == "user" else "shop",
             "text": safe(str(m.get("message", "")))[:_CHARACTERS]}
            for at, m in enumerate(messages)
        ],
    }  # fmt: skip
    request = ChatRequest(
        messages=[
            {"role": "system", "content": _prompt()},
            {"role": "user", "content": _written(told)},
        ],
        access=access,
        schema=SCHEMA,
        max_tokens=1200,
        temperature=0.0,
    )
    return (await llm.complete(request)).data


def _written(told: Mapping[str, Any]) -> str:
    try:
        return orjson.dumps(told, default=str).decode()
    except TypeError:  # a lone surrogate, or a number over 64 bits
        return json.dumps(told, ensure_ascii=False, default=str)


def _facts(data: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> list[Found] | None:
    """Those that the conversation bears out; None: there were some, and it bears out none of them."""
    given = data.get("facts") or []
    kept, mixed_up = [], False  # whose it is, it got wrong; what was said, it read
    for one in given:
        at = one["message"]
        key = re.sub(r"\W+", "_", safe(one["key"]).strip()).strip("_").lower()[:60]
        value, text = safe(one["value"]).strip(), safe(one["text"]).strip()
        if not key or not value or not 0 <= at < len(messages) or messages[at].get("role") != "user":
            continue
        said = str(messages[at].get("message", ""))
        if key in OWN and told_of_others(said, value):
            mixed_up = True
            continue
        if borne_out(value, said):
            kind, sure = one["type"], float(one["confidence"])
            kept.append(Found(key, value[:500], (text or value)[:500], kind, sure, at, bool(one["ended"])))
    return kept if kept or mixed_up or not given else None


def borne_out(value: str, message: str) -> bool:
    """Numbers are those of the message, and the script is: a translated name is another name."""
    plain = normalise(message)
    if not set(_NUMBERS.findall(normalise(value))) <= set(_NUMBERS.findall(plain)):
        return False
    return all(script.search(message) or not script.search(value) for script in (_THAI, _LATIN))


def _fits(summary: str, thai: bool) -> bool:
    """A summary in another language than the customer's would mislead every later answer."""
    return bool(summary.strip()) and (detect(summary) in ("th", "mixed")) == thai


def _is_thai(messages: Sequence[Mapping[str, Any]], language: Language | None) -> bool:
    if language in ("th", "en"):
        return language == "th"
    return any(detect(str(m.get("message", ""))) in ("th", "mixed") for m in messages if m.get("role") == "user")


@cache
def _prompt() -> str:
    return (Path(__file__).parent / "prompts" / "extract.txt").read_text(encoding="utf-8").strip()
