"""What a shop writes to its customers unasked: when, how many pushes it may cost, and what is said by itself."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from config.business_hours import block_of, mistake
from config.documented import Documented
from config.field_types import EventName, Name, OneOrMany, Words
from config.mistakes import Loc, nearest
from config.texts import Text

if TYPE_CHECKING:
    from config.tenant_model import Tenant

_DAY_MINUTES = 24 * 60


class _Model(Documented):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def _quiet(value: object) -> object:
    if value in (False, "closed"):
        return value
    try:
        block_of(str(value))
    except PydanticCustomError:
        what, remedy = "is not a span of hours", 'write "21:00-08:00", closed (outside business_hours) or false'
        raise mistake(what, remedy) from None
    return value


Quiet = Annotated[str | Literal[False], BeforeValidator(_quiet, json_schema_input_type=str | Literal[False])]


class FollowUp(_Model):
    """A message that goes out by itself, to each person once."""

    message: Text
    days: int = Field(ge=1, le=365)
    """Days after which it is sent, if they have not written since."""
    after: EventName | None = None
    """Days after their last message of this kind, such as TRANSACTION; left out: after their last message of any."""
    tags: Annotated[tuple[Words, ...], OneOrMany] = ()
    """Only people of whom all of this is remembered: `vip`, or `city=เชียงใหม่`."""
    channels: Annotated[tuple[Words, ...], OneOrMany] = ()
    """Only on these."""
    language: Literal["th", "en"] | None = None
    """Only people who write in it."""
    buttons: Annotated[tuple[Words, ...], OneOrMany] = ()
    """Pressing one sends its words."""


class Broadcasts(_Model):
    """What the shop writes to its customers unasked."""

    quiet_hours: Quiet = "21:00-08:00"
    """When nothing is sent, by the shop's time; `closed`: whenever the shop is closed; false: never."""
    monthly_pushes: int | None = Field(default=None, ge=0)
    """LINE pushes a month, those of late answers included, beyond which no broadcast goes; LINE's own quota counts
    anyway."""
    follow_ups: dict[Name, FollowUp] = Field(default_factory=dict)
    """Messages that go out by themselves, by a name of your own. A person gets each once, so another name is another
    message."""


def quiet(tenant: Tenant, now: datetime) -> bool:
    """Whether nothing is to be sent unasked at `now` (aware)."""
    hours = tenant.broadcasts.quiet_hours
    if hours is False:
        return False
    if hours == "closed":
        return not tenant.is_open(now)
    start, end = block_of(hours)
    local = now.astimezone(ZoneInfo(tenant.timezone))
    minute = local.hour * 60 + local.minute
    return start <= minute < end or start <= minute + _DAY_MINUTES < end


def unknown(tenant: Tenant) -> Iterator[tuple[Loc, str, str]]:
    """What does not fit the rest of the file: where, what is wrong, and how to mend it."""
    if tenant.broadcasts.quiet_hours == "closed" and tenant.times is None:
        yield (
            ("broadcasts", "quiet_hours"),
            "needs business_hours, which this file does not give",
            'add business_hours, or write hours such as "21:00-08:00"',
        )
    for name, rule in tenant.broadcasts.follow_ups.items():
        for at, channel in enumerate(rule.channels):
            if channel not in tenant.channels:
                near = nearest(channel, tenant.channels)
                remedy = f"did you mean {near}?" if near else f"write one of {', '.join(tenant.channels)}"
                yield (
                    ("broadcasts", "follow_ups", name, "channels", at),
                    "is none of this tenant's channels",
                    remedy,
                )
