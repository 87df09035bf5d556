"""What is to be said, and to whom."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, field_validator, model_validator

from config.documented import Documented
from config.texts import Text
from processors.models import EventType

LONGEST = 4000  # characters of a message
_Part = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


Moment = Annotated[datetime, AfterValidator(_utc)]
Platform = Literal["line", "telegram", "web"]


class Audience(Documented):
    """Who is meant: every condition holds; what is left out lets everybody through. Times are UTC where they have no
    zone."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tags: tuple[_Part, ...] = Field(default=(), max_length=10)
    """All of this is remembered of them: `vip`, or `city=Chiang Mai`."""
    events: tuple[EventType, ...] = Field(default=(), max_length=10)
    """They wrote something of one of these kinds …"""
    event_since: Moment | None = None
    """… not before …"""
    event_until: Moment | None = None
    """… and before."""
    seen_since: Moment | None = None
    """Last seen not before."""
    seen_until: Moment | None = None
    """Last seen before."""
    language: Literal["th", "en"] | None = None
    """Who writes in it. Somebody of whom it is not known counts as `th`, or as the shop's own language."""
    channels: tuple[_Part, ...] = Field(default=(), max_length=50)
    platforms: tuple[Platform, ...] = ()
    users: tuple[_Part, ...] = Field(default=(), max_length=500)
    """These alone, by any of their ids: for a test, say. Not kept with the broadcast."""

    @model_validator(mode="after")
    def _events_named(self) -> Audience:
        if (self.event_since or self.event_until) and not self.events:
            raise ValueError("event_since and event_until need events: which kinds are meant?")
        return self


class Draft(Documented):
    """A broadcast before it is sent."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    to: Audience = Audience()
    message: Text
    """One text, or `{"th": …, "en": …}`: the customer's language chooses. `{{user.name}}` and the shop's own variables
    are filled in."""
    buttons: tuple[_Part, ...] = Field(default=(), max_length=10)
    """Pressing one sends its words."""

    @field_validator("message")
    @classmethod
    def _short(cls, message: Text) -> Text:
        if max(len(message.th or ""), len(message.en or "")) > LONGEST:
            raise ValueError(f"is longer than {LONGEST} characters")
        return message
