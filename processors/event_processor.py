"""A message becomes an event: asked of the language model where there is one, else told by the local classifier
where that is installed, else by the rules."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from msgspec import Struct, structs

from config.vault import PLAIN, Safe
from processors import local
from processors.corrections import Followed
from processors.dates import days, times
from processors.language import detect
from processors.llm import Access, ChatModel, ChatRequest, LLMError
from processors.loading import loaded
from processors.models import EventType, MemoryEvent, known_event
from processors.normalise import SCANNED, normalise, safe
from processors.payload import specifics
from processors.products import Products
from processors.rules import Rules, Verdict, default_rules
from processors.rules.importance import score

if TYPE_CHECKING:
    from processors.local.classifier import Classifier
    from processors.local.vectors import Vectors
    from processors.openrouter import OpenRouter

log = logging.getLogger(__name__)

# What answers a question of ours, over the normalised text.
_ANSWER = re.compile(
    r"\W*(?:โอเค|โอเช|ตกลง|ได้|ใช่|ไม่|เอา|รับ|ตามนี้|ค่ะ|คะ|ครับ|คับ|อืม|อือ|เค|จ้า|จัด"
    r"|(?:yes|yeah|yep|no|nope|ok|okay|k|sure|fine|alright|right|correct|confirm|go|do|that|this)\b)"
)
# Over what we said last: something was asked, or is to be confirmed. Too often is no harm, too seldom an order lost.
_ASKED = re.compile(
    r"\?|ไหม|กี่|อะไร|ยังไง|เท่าไหร่|ไหน|เมื่อไหร่|หรือ|ยืนยัน|รบกวน|แจ้ง|บอก|เลือก|confirm|let (?:me|us) know|choose|please"
)
_SMALL = 30  # characters: a greeting any longer has something to say
SURE = 0.8  # a local confidence from which asking is not worth it; see benchmarks/understanding.py

_STORED = 4000  # characters of a message that an event keeps; the transcript has it whole
_CONTEXT_KEYS = ("platform", "state", "current_state", "last_intent", "current_topic", "preferred_language")
_RECENT = 4  # earlier messages that the model sees
_RECENT_CHARACTERS = 300

_DETAILS = ("topic", "item", "quantity", "amount", "when", "problem")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["event_type", "importance_score", "language", "reasoning", "details"],
    "properties": {
        "event_type": {"type": "string", "enum": [str(t) for t in EventType]},
        "importance_score": {"type": "number", "minimum": 0, "maximum": 1, "description": "0.0 to 1.0"},
        "language": {"type": "string", "enum": ["th", "en", "mixed"], "default": None},
        "reasoning": {"type": "string", "description": "one short sentence", "default": ""},
        "details": {
            "type": "object",
            "additionalProperties": False,
            "required": list(_DETAILS),
            "properties": {name: {"type": ["string", "null"]} for name in _DETAILS},
            "default": None,
        },
    },
}


class Understood(Struct, frozen=True):
    """What a message is, told without a language model. `confidence` is the share of such answers that are right."""

    event_type: EventType
    importance: float
    confidence: float
    classified_by: str  # `local` or `rules`
    verdict: Verdict
    corrected: bool = False  # the shop's own people said so of these words

    def stands(self, message: str, before: str = "") -> bool:
        """Need a language model not be asked? It must if what was said before decides: after a question of ours an "ok"
        may be an order. `before`: the bot's last line."""
        plain = normalise(message)
        chat = self.event_type is EventType.GENERIC_EVENT
        answers = _ANSWER.match(plain) and _ASKED.search(normalise(before))
        return self.confidence >= SURE and not answers and not (chat and len(plain) > _SMALL)


class EventProcessor:
    """Classifies and scores messages. With a key (its own or `access`'s) it asks the language model and holds what
    comes back to the schema; without one, or when that fails, the local classifier decides where the extra `local` is
    installed, and the Thai and English rules where it is not.

    `keywords` add to the rules and go before the classifier. `llm` replaces the OpenRouter client that is otherwise
    made from the arguments; `classifier` gives the local classifier, or None for the rules alone. `timezone`: where
    "tomorrow at three" is said. `products`: the shop's goods, each by its names.
    `own` is the tenant's folder of corrections (see `processors.corrections`), read through `safe`.
    `on_understood` hears how each message that gets an event id was classified: `llm`, `local` or `rules`.
    """

    def __init__(
        self,
        api_key: str | None = None,
        model: str = "openai/gpt-4o-mini",
        base_url: str = "https://openrouter.ai/api/v1",
        *,
        llm: ChatModel | None = None,
        keywords: Mapping[EventType, Sequence[str]] | None = None,
        timeout: float = 30.0,
        classifier: Callable[[], Classifier | None] | None = None,
        timezone: str = "Asia/Bangkok",
        products: Sequence[Sequence[str]] = (),
        own: Path | None = None,
        safe: Safe | None = None,
        on_understood: Callable[[str], None] | None = None,
    ) -> None:
        self._access = Access(api_key=api_key or None, base_url=base_url, model=model, timeout=timeout)
        self._llm = llm
        self._own: OpenRouter | None = None
        self._keywords = keywords
        self._classifier = classifier
        self._zone = ZoneInfo(timezone)
        self._products = Products(products)
        self._corrected = Followed(own, safe=safe or PLAIN.of("")) if own else None
        self._own_classifier: tuple[int, Classifier | None] = (0, None)  # with the version of the folder
        self._on_understood = on_understood
        self._loaded: Classifier | None = None
        self._looked = False

    @cached_property
    def _rules(self) -> Rules:
        """Made when they are first asked, which the HTTP side never does: they take a tenth of a second and 4 MB."""
        return Rules(self._keywords) if self._keywords else default_rules()

    async def analyze_message(
        self,
        message: str,
        context: Mapping[str, Any] | None = None,
        *,
        event_id: str | None = None,
        timestamp: datetime | None = None,
        access: Access | None = None,
        ask: bool = True,
        trusted: Collection[EventType] = (),
        told: Awaitable[tuple[str, float] | None] | None = None,
    ) -> MemoryEvent:
        """The event of any text; never raises for one, but ValueError for what is none. `context` is what
        `get_context_for_llm` gives, or any mapping; `access` goes before the constructor's; `ask=False` keeps to what
        is known here. Of the types in `trusted` the local answer stands where it is confident (SURE), and no call is
        made; nor where `told` gives what somebody's model said of it, type and importance."""
        if not isinstance(message, str):
            raise ValueError(f"message must be a text, not {message!r:.40}")
        context = context or {}
        access = access or self._access
        timestamp = timestamp or datetime.now(UTC)
        found = specifics(message)
        # "12/3" before a road is a house, no day of March.
        if named := days(message.replace(found.get("address", "\n"), " "), timestamp.astimezone(self._zone)):
            found["days"] = [day.isoformat() for day in named]
        if clock := times(message):
            found["clock"] = clock
        if goods := self._products.found(message):
            found["products"] = goods
        language = detect(message)
        here = await self.understand(message)
        event_type, importance, rule = here.event_type, here.importance, here.verdict.rule
        payload: dict[str, Any] = {
            "original_message": safe(message[:_STORED]),
            "language": language or _previous_language(context) or "mixed",
            "context": {key: said for key in _CONTEXT_KEYS if (said := context.get(key)) is not None and _small(said)},
            "reasoning": f"rule: {rule}" if here.classified_by == "rules" else "local classifier",
            "classified_by": here.classified_by,
            "confidence": here.confidence,
            "rule": rule,
            **found,
        }
        asking = ask and access.api_key and message.strip() and not here.corrected
        asking = asking and not (event_type in trusted and here.stands(message, _last_of_bot(context)))
        if asking and told is not None and (said := await told) is not None:
            event_type, importance = EventType(said[0]), round(said[1], 3)
            payload |= {"classified_by": "llm", "reasoning": "told with the answer"}
            del payload["rule"], payload["confidence"]
        elif asking:
            try:
                answer = await self._ask(message, context, access)
            except LLMError as error:
                payload["llm_error"] = type(error).__name__
            else:
                event_type, importance = EventType(answer["event_type"]), round(float(answer["importance_score"]), 3)
                payload |= {"classified_by": "llm", "reasoning": safe(answer.get("reasoning") or "")[:500]}
                del payload["rule"], payload["confidence"]
                if language is None and answer.get("language"):
                    payload["language"] = answer["language"]
                details = {k: safe(v)[:300] for k, v in (answer.get("details") or {}).items() if v}
                if details:
                    payload["details"] = details
        if event_id is not None and self._on_understood is not None:
            self._on_understood(payload["classified_by"])
        if not asking:
            return known_event(event_type, payload, importance, timestamp, event_id)
        return MemoryEvent(
            event_type=event_type,
            payload=payload,
            importance_score=importance,
            timestamp=timestamp,
            event_id=event_id,
        )

    async def stands(self, message: str, context: Mapping[str, Any] | None = None) -> EventType | None:
        """The type that is known here without a language model, where it is sure enough."""
        here = await self.understand(message)
        sure = here.corrected or here.stands(message, _last_of_bot(context or {}))
        return here.event_type if sure else None

    def classify(self, message: str) -> Verdict:
        """What the rules alone say, at once."""
        return self._rules.classify(message)

    async def understand(self, message: str) -> Understood:
        """What can be told without a language model."""
        verdict = self._rules.classify(message)
        if self._corrected is not None and (said := self._corrected.of(message)) is not None:
            kind = said.event_type
            importance = score(kind, verdict.found) if said.importance is None else said.importance
            return Understood(
                kind, importance, 1.0, "rules", structs.replace(verdict, event_type=kind, strongest="corrected"), True
            )
        if not verdict.own and message.strip() and (classifier := await self._local()) is not None:
            guess = classifier.guess(message)
            return Understood(guess.event_type, guess.importance, guess.confidence, "local", verdict)
        return Understood(verdict.event_type, verdict.importance, verdict.confidence, "rules", verdict)

    async def ready(self) -> None:
        """Has the local classifier loaded, where one is installed."""
        await self._local()

    @property
    def vectors(self) -> Vectors | None:
        """The sentence vectors, once they are loaded: after the first message."""
        return self._loaded.vectors if self._loaded else None

    async def _local(self) -> Classifier | None:
        if not self._looked:
            # The first time it is read from disk, which takes a second.
            self._loaded = await loaded(self._classifier or local.shared)
            self._looked = True
        if self._loaded is None or self._corrected is None:
            return self._loaded
        self._corrected.look()
        version, found = self._own_classifier
        if version != self._corrected.version:
            version = self._corrected.version
            found = await asyncio.to_thread(_own, self._corrected.folder, self._loaded)
            self._own_classifier = version, found
        return found or self._loaded

    async def close(self) -> None:
        """Closes the client that was made here; one that was passed in is its owner's."""
        if self._own is not None:
            await self._own.close()

    async def _ask(self, message: str, context: Mapping[str, Any], access: Access) -> dict[str, Any]:
        if self._llm is None:
            from processors.openrouter import OpenRouter

            self._llm = self._own = OpenRouter()
        told: dict[str, Any] = {"message": _head(message)}
        if recent := _recent(context):
            told["earlier_messages"] = recent
        request = ChatRequest(
            messages=[
                {"role": "system", "content": _prompt()},
                {"role": "user", "content": json.dumps(told, ensure_ascii=False)},
            ],
            access=replace(access, purpose="classify"),
            schema=SCHEMA,
            max_tokens=400,
            temperature=0.0,
        )
        completion = await self._llm.complete(request)
        if completion.data is None:
            raise LLMError("the language model's client gave no structured answer")
        return completion.data


def _own(folder: Path, base: Classifier) -> Classifier | None:
    from processors.local import own

    try:
        return own.read(folder, base)
    except (OSError, ValueError) as error:
        log.warning("the tenant's own classifier is left aside: %s", error, extra={"tenant": folder.name})
        return None


def _head(message: str) -> str:
    message = safe(message)
    return message if len(message) <= SCANNED else message[:SCANNED] + " […]"


def _recent(context: Mapping[str, Any]) -> list[dict[str, str]]:
    messages = context.get("recent_messages")
    if not isinstance(messages, list | tuple):
        return []
    return [
        {"role": str(m.get("role", "")), "message": safe(str(m.get("message", "")))[:_RECENT_CHARACTERS]}
        for m in messages[-_RECENT:]
        if isinstance(m, Mapping)
    ]


def _last_of_bot(context: Mapping[str, Any]) -> str:
    recent = context.get("recent_messages")
    for line in reversed(recent[-_RECENT:]) if isinstance(recent, list | tuple) else ():
        if isinstance(line, Mapping) and str(line.get("role", "")) != "user":
            return safe(str(line.get("message", "")))[:_RECENT_CHARACTERS]
    return ""


def _previous_language(context: Mapping[str, Any]) -> str | None:
    for key in ("session_variables", "user_attributes", "variables"):
        inner = context.get(key)
        if isinstance(inner, Mapping) and inner.get("preferred_language") in ("th", "en"):
            return str(inner["preferred_language"])
    return context["preferred_language"] if context.get("preferred_language") in ("th", "en") else None


def _small(value: Any) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and 0 < len(value) <= 200)


@cache
def _prompt() -> str:
    return (Path(__file__).parent / "prompts" / "classify.txt").read_text(encoding="utf-8").strip()
