"""What the stand-ins and their tests speak of: calls, faults, answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

Json = Any


@dataclass(frozen=True, slots=True)
class Recorded:
    """One call as it arrived. `headers` have lower-case names; `body` is parsed where it could be, else text.

    `answered_status` is 0 while no answer has gone out: the call still waits, or its connection was cut.
    """

    number: int
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Json
    at_monotonic: float
    answered_status: int = 0


@dataclass(frozen=True, slots=True)
class Fault:
    """What a coming call meets instead of the usual answer.

    status   the answer's; 0 leaves the usual answer (with `delay`: a slow one)
    body     a string goes out as it is (text/html), anything else as JSON
    delay    seconds before the answer; with `landed` the call takes effect before them, else after
    cut      the connection is closed with no answer
    landed   the call takes effect although the caller gets this answer
    on       only for calls with this in their path; a fault waits in the queue until such a call comes
    times    for how many calls
    shape    a stand-in's own word for what goes wrong inside the usual answer
    """

    status: int = 0
    body: Json = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: bool = False
    landed: bool = False
    on: str = ""
    times: int = 1
    shape: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes out. `stream` holds pieces to send one by one: a number is a pause in seconds, None a broken line."""

    status: int = 200
    body: Json = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    stream: Sequence[bytes | float | None] | None = None


def faults_of(orders: Iterable[Mapping[str, Json]]) -> list[Fault]:
    """Faults from JSON. ValueError for a word that Fault doesn't know."""
    known = {each.name for each in fields(Fault)}
    made = []
    for order in orders:
        if strange := set(order) - known:
            raise ValueError(f"a fault has no {sorted(strange)}")
        made.append(Fault(**order))
    return made


def utf16(text: str) -> int:
    """Length in UTF-16 code units; a lone surrogate counts as one."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
