"""Passages of the shop's files as a model reads them, and what a customer reads of where an answer comes from. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gateway.texts import Tongue, text
from memory.library.library import Found

_MARK = re.compile(r"\[(\d{1,2})\](?!\()")


def label(found: Found, language: Tongue) -> str:
    """As its readers call it: title, heading, page."""
    passage = found.passage
    named = " › ".join(filter(None, (passage.title, passage.heading)))
    return f"{named}, {text('page', language, number=passage.page)}" if passage.page else named


def told(found: Sequence[Found], language: Tongue) -> list[str]:
    """For a model, each below its number and name."""
    return [f"[{at}] {label(one, language)}\n{one.passage.text}" for at, one in enumerate(found, 1)]


def cited(answer: str, found: Sequence[Found], language: Tongue) -> str:
    """The answer, and below it the names of the passages whose numbers stand in it: never one that was not told."""
    used = dict.fromkeys(int(mark) for mark in _MARK.findall(answer))
    names = [f"[{number}] {label(found[number - 1], language)}" for number in used if 0 < number <= len(found)]
    return f"{answer}\n\n{text('sources', language)} {'; '.join(names)}" if names else answer


def quoted(found: Found, language: Tongue) -> str:
    """A passage as an answer of its own, with where it stands: the shop's own words, Markdown as they are."""
    return f"{found.passage.text}\n\n{text('sources', language)} {label(found, language)}"
