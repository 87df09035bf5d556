"""Tenants: the models of their files, and how they are found, loaded and kept up to date."""

from __future__ import annotations

from config.tenant_model import (
    LLM,
    Agent,
    Behaviour,
    Channel,
    Faq,
    LineChannel,
    Memory,
    Replies,
    Staff,
    TelegramChannel,
    Tenant,
    TerminalChannel,
    Understanding,
    WebChannel,
)
from config.texts import ReplyName, Text

__all__ = [
    "LLM",
    "Agent",
    "Behaviour",
    "Channel",
    "Faq",
    "LineChannel",
    "Memory",
    "Replies",
    "ReplyName",
    "Staff",
    "TelegramChannel",
    "Tenant",
    "TerminalChannel",
    "Text",
    "Understanding",
    "WebChannel",
]
