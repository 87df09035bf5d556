"""What took how long within one message's way, for whoever wants to look: the seam of `gateway.tracing`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Spans(Protocol):
    """Attributes are ids of tenants and channels, kinds and counts; no person's id and no word of a message."""

    def whole(
        self, name: str, parents: Sequence[str] = (), **attributes: str | int | float
    ) -> AbstractContextManager[None]:
        """A span within which others lie. `parents` are what `here` said elsewhere: it goes on with the first."""
        ...

    def part(self, name: str, **attributes: str | int | float) -> AbstractContextManager[None]:
        """A span within a whole one; nothing where there is none."""
        ...

    def here(self) -> str:
        """Names this place, to be carried along with a message: a W3C `traceparent`; "": nothing is traced."""
        ...

    def ids(self) -> Mapping[str, str]:
        """`trace_id` and `span_id`, for log lines; none outside of a span."""
        ...


class NoSpans:
    """Nobody wants to look."""

    _nothing = nullcontext()

    def whole(
        self, name: str, parents: Sequence[str] = (), **attributes: str | int | float
    ) -> AbstractContextManager[None]:
        return self._nothing

    def part(self, name: str, **attributes: str | int | float) -> AbstractContextManager[None]:
        return self._nothing

    def here(self) -> str:
        return ""

    def ids(self) -> Mapping[str, str]:
        return {}


NO_SPANS = NoSpans()
