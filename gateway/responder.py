"""What to answer: the shop's own answers where the match is sure, then the model, then rules."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from config.tenants import Agent, Tenant
from gateway import prompt
from gateway.messages import Answer, InboundMessage, Kind, QuickReply
from gateway.per_tenant import PerTenant
from gateway.texts import Tongue, text
from processors.event_processor import EventProcessor
from processors.faq import FaqIndex
from processors.language import detect
from processors.llm import Access, ChatModel, ChatRequest, LLMError
from processors.models import Band, EventType

log = logging.getLogger(__name__)

_BY_TYPE = {
    EventType.COMPLAINT: "complaint",
    EventType.TRANSACTION: "transaction",
    EventType.REQUEST: "transaction",
    EventType.INFORMATION: "noted",
    EventType.FEEDBACK: "feedback",
}
_DESCRIBED = {
    Kind.IMAGE: "[photo]",
    Kind.VIDEO: "[video]",
    Kind.AUDIO: "[voice message]",
    Kind.FILE: "[file]",
    Kind.LOCATION: "[location]",
    Kind.CONTACT: "[contact]",
    Kind.STICKER: "[sticker]",
    Kind.OTHER: "[message of a new kind]",
}
_WITHOUT_WORDS = {Kind.STICKER: "sticker", Kind.LOCATION: "location"}


def described(message: InboundMessage) -> str:
    """The message in words: its text, and what it is when it is more than text."""
    what = _DESCRIBED.get(message.kind)
    if what is None:
        return message.text
    if message.kind is Kind.STICKER and (keywords := message.extra.get("keywords")):
        what = f"[sticker: {', '.join(map(str, keywords[:5]))}]"
    return f"{what} {message.text}".strip()


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be answered, and in which light."""

    tenant: Tenant
    agent: Agent
    messages: Sequence[InboundMessage]
    language: Tongue
    context: Mapping[str, Any]  # as get_context_for_llm gives it
    now: datetime  # aware

    @property
    def text(self) -> str:
        return "\n".join(described(message) for message in self.messages)


def access_of(tenant: Tenant, agent: Agent) -> Access:
    key = tenant.llm.api_key
    return Access(
        api_key=key.get_secret_value() if key else None,
        base_url=tenant.llm.base_url,
        model=agent.model,
        fallback_models=tuple(tenant.llm.fallback_models),
        timeout=tenant.llm.timeout,
    )


def _asked_in(language: Tongue, questions: Sequence[str]) -> str:
    """The way of asking to show as a button: the first in the customer's language."""
    return next((question for question in questions if detect(question) == language), questions[0])


class Responder:
    """Shared by all tenants."""

    def __init__(self, model: ChatModel, processors: PerTenant[EventProcessor]) -> None:
        self._model = model
        self._processors = processors
        self._faq = PerTenant(
            lambda tenant: FaqIndex([(entry.questions, entry.answer.within("th")) for entry in tenant.faq])
        )

    async def answer(self, question: Question) -> Answer:
        """Never raises for a failing model: then rules answer."""
        tenant, language = question.tenant, question.language
        faq = self._faq.of(tenant)
        words = " ".join(message.text for message in question.messages).strip()
        match = faq.best(words) if words else None
        if match is not None and await self._needs_a_person(tenant, words):
            match = None
        if match is not None and match.sure:
            return Answer(tenant.faq[match.index].answer.within(language))
        access = access_of(tenant, question.agent)
        if access.api_key:
            try:
                return await self._ask(question, access, faq, words)
            except LLMError as error:
                log.warning(
                    "no answer from the model: %s",
                    type(error).__name__,
                    extra={"tenant": tenant.id, "model": access.model},
                )
        if match is not None:
            return Answer(tenant.faq[match.index].answer.within(language))
        return await self._by_rules(question, faq, words)

    async def _needs_a_person(self, tenant: Tenant, words: str) -> bool:
        """A complaint or an order that resembles a question is none: a canned answer would be worse than none."""
        event = await self._processors.of(tenant).analyze_message(words, ask=False)
        ordered = event.event_type is EventType.TRANSACTION and event.band is Band.CRITICAL
        return ordered or event.event_type is EventType.COMPLAINT

    async def _ask(self, question: Question, access: Access, faq: FaqIndex, words: str) -> Answer:
        tenant = question.tenant
        hits = faq.top(words, 3) if words else []
        messages = prompt.build(
            shop=tenant.name,
            instructions=question.agent.instructions or "",
            system_role=question.agent.system_role,
            language=question.language,
            now=question.now.astimezone(ZoneInfo(tenant.timezone)),
            context=question.context,
            knowledge=[
                (tenant.faq[h.index].questions[0], tenant.faq[h.index].answer.within(question.language)) for h in hits
            ],
            text=question.text,
        )
        request = ChatRequest(messages=messages, access=access, temperature=question.agent.temperature)
        completion = await self._model.complete(request)
        return Answer(completion.text, model=completion.model, provider=completion.provider)

    async def _by_rules(self, question: Question, faq: FaqIndex, words: str) -> Answer:
        tenant, language = question.tenant, question.language
        if not words:
            return Answer(text(_WITHOUT_WORDS.get(question.messages[-1].kind, "cannot_see"), language))
        event = await self._processors.of(tenant).analyze_message(words, ask=False)
        if event.event_type is EventType.GENERIC_EVENT:
            begun = bool(question.context.get("recent_messages"))
            return Answer(text("small_talk", language) if begun else tenant.reply("welcome", language))
        if name := _BY_TYPE.get(event.event_type):
            return Answer(text(name, language))
        near = [_asked_in(language, tenant.faq[hit.index].questions) for hit in faq.top(words, 3)]
        if near:
            buttons = tuple(QuickReply(q, q) for q in near)
            listed = "\n".join(f"- {q}" for q in near)
            return Answer(
                f"{tenant.reply('fallback', language)}\n\n{text('did_you_mean', language)}\n{listed}", buttons
            )
        return Answer(tenant.reply("fallback", language))
