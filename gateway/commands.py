"""What a person can tell the bot to do with a word that begins with `/`, on every platform, in Thai and English."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from config.tenants import Tenant
from gateway.messages import Answer, InboundMessage, Kind
from gateway.texts import Tongue, text
from memory.keys import ConversationRef
from memory.memory_manager import MemoryManager
from memory.models import ShortTermMemory

Change = Callable[[ShortTermMemory], ShortTermMemory]

ALIASES = {
    "เริ่ม": "start",
    "ช่วยเหลือ": "help",
    "เริ่มใหม่": "reset",
    "ภาษา": "language",
    "ข้อมูลของฉัน": "mydata",
    "ลืม": "forget",
}


def unchanged(session: ShortTermMemory) -> ShortTermMemory:
    return session


@dataclass(frozen=True, slots=True)
class Done:
    """A command's answer and what it does to the session. `silent`: neither it nor its answer goes into the history.
    `forgets_talk`: what was said before is not given back to later sessions."""

    answer: Answer
    change: Change = unchanged
    silent: bool = True
    forgets_talk: bool = False


class Commands:
    """Running a command again has the same effect: a turn may be tried twice."""

    def __init__(self, manager: MemoryManager) -> None:
        self._manager = manager

    async def run(
        self, tenant: Tenant, ref: ConversationRef, message: InboundMessage, session: ShortTermMemory, language: Tongue
    ) -> Done | None:
        """None: the message is no command."""
        if message.kind is not Kind.TEXT or not message.text.startswith("/"):
            return None
        word, _, rest = message.text[1:].partition(" ")
        name, argument = ALIASES.get(word, word.lower()), rest.strip().lower()
        if name == "start":
            return Done(Answer(tenant.reply("welcome", language)), silent=False)
        if name == "help":
            return Done(Answer(text("help", language)))
        if name == "reset":
            return Done(Answer(text("reset", language)), _reset, forgets_talk=True)
        if name == "language":
            return self._language(argument, language)
        if name == "mydata":
            return await self._mydata(ref, language)
        if name == "forget":
            return await self._forget(ref, argument, language)
        return Done(Answer(text("unknown_command", language)))

    def _language(self, argument: str, language: Tongue) -> Done:
        if argument in ("th", "thai", "ไทย", "ภาษาไทย"):
            return Done(Answer(text("language", "th")), lambda session: _set(session, "language", "th"))
        if argument in ("en", "english", "อังกฤษ", "ภาษาอังกฤษ"):
            return Done(Answer(text("language", "en")), lambda session: _set(session, "language", "en"))
        if argument == "auto":
            return Done(Answer(text("language_auto", language)), lambda session: _set(session, "language", None))
        return Done(Answer(text("language_usage", language)))

    async def _mydata(self, ref: ConversationRef, language: Tongue) -> Done:
        known = await self._manager.longterm.load(ref.tenant, ref.user)
        if known is None or not (known.attributes or known.events or known.history_summary):
            return Done(Answer(text("nothing_known", language)))
        lines = [f"- {key}: {value}" for key, value in sorted(known.attributes.items())]
        if known.history_summary:
            lines.append(f"- {known.history_summary}")
        lines += [f"- {e.timestamp:%Y-%m-%d} {e.payload.get('original_message', '')}"[:200] for e in known.events[-10:]]
        return Done(Answer("\n".join([text("known", language), "", *lines])))

    async def _forget(self, ref: ConversationRef, argument: str, language: Tongue) -> Done:
        if argument not in ("yes", "ใช่", "ยืนยัน"):
            return Done(Answer(text("forget_ask", language)))
        await self._manager.forget(ref.tenant, ref.user)
        return Done(Answer(text("forgotten", language)), _blank)


def _set(session: ShortTermMemory, name: str, value: str | None) -> ShortTermMemory:
    variables = {**session.variables, name: value}
    if value is None:
        del variables[name]
    return session.model_copy(update={"variables": variables})


def _reset(session: ShortTermMemory) -> ShortTermMemory:
    """The conversation begins afresh; what is known of the person stays."""
    return session.model_copy(update={"history": [], "carried": [], "last_intent": None})


def _blank(session: ShortTermMemory) -> ShortTermMemory:
    return _reset(session).model_copy(update={"summary": "", "variables": {}})
