"""Which of a shop's agents answers: by channel, hours or keyword, or as a small model says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import ConfigDict, model_validator

from config.business_hours import mistake
from config.documented import Documented
from config.field_types import OneOrMany, Words
from config.mistakes import Loc, nearest

if TYPE_CHECKING:
    from config.tenant_model import Tenant

_DEFAULT = ("default", "general")


class _Model(Documented):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Rule(_Model):
    """Who answers where all of this holds. With keywords the conversation stays with them afterwards."""

    agent: Words
    channels: Annotated[tuple[Words, ...], OneOrMany] = ()
    """The customer writes on one of these."""
    hours: Literal["open", "closed"] | None = None
    """By business_hours and holidays."""
    keywords: Annotated[tuple[Words, ...], OneOrMany] = ()
    """One of these is in the message, in Thai or English."""

    @model_validator(mode="after")
    def _some(self) -> Rule:
        if not (self.channels or self.hours or self.keywords):
            raise mistake("holds always", "add channels, hours or keywords; who answers otherwise is the agent default")
        return self


class Routing(_Model):
    """The first rule that holds decides; else the agent that has the conversation, whom a model names, or default."""

    rules: tuple[Rule, ...] = ()
    ask: Literal["never", "first", "always"] = "never"
    """Whether a model says who answers what no rule decides: once a conversation, or with each message. It knows the
    agents by their `about`."""
    model: Words | None = None
    """The one that is asked; the agent default's if left out."""


def unknown(tenant: Tenant) -> Iterator[tuple[Loc, str, str]]:
    """What does not fit the rest of the file: where, what is wrong, and how to mend it."""
    routing = tenant.routing
    if routing is None:
        return
    for index, rule in enumerate(routing.rules):
        loc: Loc = ("routing", "rules", index)
        if tenant.agent(rule.agent) is None:
            yield (*loc, "agent"), "is none of this tenant's agents", _pick(rule.agent, list(tenant.agents))
        for at, channel in enumerate(rule.channels):
            if channel not in tenant.channels:
                yield (*loc, "channels", at), "is none of this tenant's channels", _pick(channel, list(tenant.channels))
    if routing.ask != "never" and sum(bool(agent.about) for agent in tenant.agents.values()) < 2:
        yield (
            ("routing", "ask"),
            "needs two agents that can be told apart",
            "give each agent an `about`: what it is for",
        )


def _pick(word: str, words: list[str]) -> str:
    near = nearest(word, words)
    return f"did you mean {near}?" if near else f"write one of {', '.join(words)}"
