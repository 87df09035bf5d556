"""Text in, structure out: classification, importance, language. Knows no store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from processors.models import EventType, MemoryEvent

if TYPE_CHECKING:
    from processors.event_processor import EventProcessor

__all__ = ["EventProcessor", "EventType", "MemoryEvent"]


def __getattr__(name: str) -> Any:
    # Whoever wants the models alone doesn't pay for the rules and the language model's client.
    if name == "EventProcessor":
        from processors.event_processor import EventProcessor

        return EventProcessor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
