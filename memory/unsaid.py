"""What the bot repeated of a message that its writer took back: pure.

Its answers stay in the history with `…` in place of the repeated words: numbers, whatever the message told of the
person, and any longer run of its characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from difflib import SequenceMatcher
from typing import Any, cast

from memory.models import Message

GAP = "…"
_RUN = 12  # characters in a row that both say: fewer are everybody's words
_COMPARED = 2000  # characters of either side
_NUMBER = re.compile(r"\d(?:[\d ().-]*\d)?")
_DIGITS = 4  # of a number that says something of anybody


def without(answer: Message, taken_back: str, told: Collection[str] = ()) -> Message:
    """The bot's answer without what it repeats of the message `taken_back`, which `told` these values. The very same
    where it repeats nothing."""
    said = str(answer["message"])
    kept = _masked(said, taken_back, told)
    metadata: dict[str, Any] = dict(answer.get("metadata") or {})
    done = json.dumps(metadata.get("actions", ""), ensure_ascii=False)
    if _masked(done, taken_back, told) != done:
        del metadata["actions"]
    elif kept == said:
        return answer
    return cast("Message", {**answer, "message": kept, "metadata": metadata})


def _masked(said: str, taken_back: str, told: Collection[str]) -> str:
    gaps = sorted(_repeated(said, taken_back, told))
    out: list[str] = []
    at = 0
    for start, end in gaps:
        if end > at:
            out += [said[at:start], GAP] if start > at or not out else []
            at = end
    return "".join([*out, said[at:]])


def _repeated(said: str, taken_back: str, told: Collection[str]) -> Iterator[tuple[int, int]]:
    numbers = {digits for found in _NUMBER.finditer(taken_back) if len(digits := _digits(found[0])) >= _DIGITS}
    for found in _NUMBER.finditer(said):
        if _digits(found[0]) in numbers:
            yield found.span()
    for value in told:
        for found in re.finditer(re.escape(value), said, re.IGNORECASE):
            yield found.span()
    runs = SequenceMatcher(None, taken_back[:_COMPARED], said[:_COMPARED], autojunk=False).get_matching_blocks()
    for run in runs:
        if run.size >= _RUN:
            yield run.b, run.b + run.size


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)
