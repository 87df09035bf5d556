"""Buttons below an answer. Pressing one sends its words, as if the customer had typed them."""

from __future__ import annotations

from collections.abc import Sequence

from config.tenants import Agent
from gateway.messages import QuickReply


def buttons_of(words: Sequence[str]) -> tuple[QuickReply, ...]:
    """Each platform shortens what a button shows; what it sends stays whole."""
    return tuple(QuickReply(one, one) for one in words)


def suggested_by(agent: Agent) -> tuple[QuickReply, ...]:
    """What a customer may begin with: shown with a welcome, and where the bot did not understand."""
    return buttons_of(agent.suggestions)
