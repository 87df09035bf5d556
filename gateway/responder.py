"""What to answer: the shop's own answers where the match is sure, then the model, then rules."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial
from typing import Any
from zoneinfo import ZoneInfo

from msgspec import Struct, structs

from config.tenants import Agent, Attachment, Faq, Tenant
from gateway import prompt, riding, sources
from gateway.about_shop import about_shop, facts, price_too, priced
from gateway.adapters.base import Watch
from gateway.buttons import buttons_of, suggested_by
from gateway.described import asked
from gateway.fitting import Room
from gateway.guard import Guard, Guarded
from gateway.media import TOO_LARGE, UNREAD
from gateway.messages import MAX_TEXT, Answer, File, Image, InboundMessage, Kind, Media, Sticker, Tokens
from gateway.moment import Moment
from gateway.opening import depends_on_the_day, opening, opening_too
from gateway.per_tenant import PerTenant
from gateway.rendering import literal, shows
from gateway.scratch import Scratch
from gateway.standalone import Standalone, size_of
from gateway.texts import Tongue, fresh, text, wordings
from gateway.tools import CUT, Toolbox, converse
from memory.budget import budget
from memory.library.library import Found, Library, sure
from processors import rewrite
from processors.event_processor import EventProcessor
from processors.faq import LIKELY, FaqIndex, Match
from processors.language import detect
from processors.llm import Access, ChatModel, ChatRequest, LLMBadAnswer, LLMError
from processors.model_sizes import ModelSize
from processors.models import EventType, MemoryEvent
from processors.normalise import normalise
from processors.sought import Sought
from processors.tokens import counter

log = logging.getLogger(__name__)

SAME = 0.9  # a score from which the customer asked in the shop's own words
OWN_CASE, UNKNOWN = "own_case", "unknown"  # why staff are asked: they alone can look it up; it is written nowhere
_PASSAGES = 4  # of the shop's files in one prompt
_ASKING = (EventType.INQUIRY, EventType.SUPPORT)
_ABOUT: dict[Tongue, str] = {"th": "ข้อมูลร้าน", "en": "About the shop"}
_ONE_QUESTION = 100  # characters: a longer message wants something else as well
_NOT_ASKING = (EventType.COMPLAINT, EventType.TRANSACTION, EventType.FEEDBACK)
_LAST = 8  # lines of the bot in which a text is not said twice

_BY_TYPE = {
    EventType.COMPLAINT: "complaint",
    EventType.TRANSACTION: "transaction",
    EventType.REQUEST: "request",
    EventType.INFORMATION: "noted",
    EventType.FEEDBACK: "feedback",
}
_TOLD = (
    EventType.INFORMATION,
    EventType.TRANSACTION,
    EventType.GENERIC_EVENT,
)  # an order number, a phone number, a time
_IDLE = (EventType.GENERIC_EVENT, EventType.INFORMATION, EventType.FEEDBACK)  # "and the black one?" is taken for these
# Over the normalised text: something is asked …
_ASKS = Sought(
    r"\?|ไหม|มั้ย|หรอ|เหรอ|กี่|อะไร|ยังไง|เท่าไหร่|ที่ไหน|ตรงไหน|ไหนบ้าง|ถึงไหน|เมื่อไหร่|หรือยัง|ใช่ไหม|สรุป"
    r"|^(?:\W*(?:hi|hello|and|so|ok|then)\W+)*(?:what|when|where|which|who|how|do|does|did|is|are|can|could|will|would|may)\b"
)
# … about this customer's own order, booking or complaint, which no answer for everybody can know.
_OWN = Sought(
    r"ที่(?:แจ้ง|สั่ง|จอง|โอน|คุย|บอก|ฝาก)|เหมือนเดิม|เหมือนครั้ง|ถึงไหนแล้ว|ของ(?:เรา|ผม|หนู|ฉัน|ดิฉัน)|(?:จำ|เช็ค|เช็ก)\S{0,8}(?:เรา|ผม|หนู|ฉัน|ดิฉัน)"
    r"|(?:ทั้งหมด|รวม|ทั้งสอง|ทั้งคู่)\S{0,12}(?:เท่าไหร่|กี่บาท)|ได้คำตอบ"
    r"|\b(?:my|our) (?:order|table|booking|reservation|refund|money|delivery|parcel|package|account|payment|name)\b"
    r"|\bsame (?:order|again|as)\b|\b(?:for|of) (?:both|all)\b"
    r"|\bin total\b|\baltogether\b|\bdid you (?:look|check|get|find|receive|ask)\b"
)
_AND_THAT = Sought(
    r"^(?:แล้ว(?!แต่|ก็|กัน|เจอ|จะ)|ส่วน).*(?:ล่ะ|หล่ะ|ละ|อะ)(?:คะ|ค่ะ|ครับ|คับ)?\W*$"
)  # "and the mocha?", whatever it is taken for
_A_BOT = Sought(
    r"(?:เป็น|คุยกับ|คือ|ใช่|นี่)\S{0,6}?(?:บอท|บอต|หุ่นยนต์|เอไอ|ai|คนจริง|คนตอบ|คน(?=หรือ|รึ|ไหม|ใช่))\S{0,10}(?:ไหม|หรือ|หรอ|เหรอ|รึ|ปะ|ป่าว|\?)"
    r"|^(?:บอท|บอต|ai)(?:หรอ|เหรอ|ปะ|ป่าว|ใช่ไหม|ไหม|\?)"
    r"|\b(?:are|r) (?:you|u) (?:a |an )?(?:real|human|bot|robot|ai|machine|person)\b"
    r"|\b(?:is this|am i (?:talking|speaking|chatting) (?:to|with)) (?:a |an )?(?:real |actual )?"
    r"(?:bot|robot|human|person|machine|ai)\b"
)
_THANKS = Sought(r"ขอบคุณ|ขอบพระคุณ|ขอบใจ|\b(?:thanks?|thank you|thx|ty|cheers|kh?ob ?kh?un)\b")
_GREETS = Sought(r"สวัสดี|ดีค่ะ|ดีครับ|^\W*(?:hi|hello|hey|good (?:morning|afternoon|evening)|sawas?dee)\b")
_WAI = "🙏"  # greets first, and thanks later on
_DETAILS = ("times", "quantities", "phones", "order_ids", "amounts", "emails")
_WITHOUT_WORDS = {Kind.STICKER: "sticker", Kind.LOCATION: "location", Kind.CONTACT: "contact"}


class Question(Struct, frozen=True):
    """What is to be answered, and in which light."""

    tenant: Tenant
    agent: Agent
    messages: Sequence[InboundMessage]
    language: Tongue
    context: Mapping[str, Any]  # as get_context_for_llm gives it
    now: datetime  # aware
    session_id: str | None = None
    hurried: bool = False  # too many wait: no language model is asked
    images: Sequence[str] = ()  # data URIs, for an agent whose model can see
    tools: Toolbox | None = None
    standalone: str | None = None  # what a follow-up means in words that can be looked for
    watch: Watch | None = None  # sees the model's answer while it grows
    riding: bool = False  # the model also says what the message means
    files: Sequence[Found] = ()  # passages of the shop's files that fit

    @property
    def text(self) -> str:
        return "\n".join(map(asked, self.messages))

    @property
    def cut(self) -> bool:
        """Whether more was written than is kept of one message."""
        messages = self.messages
        return "cut" in messages[0].extra if len(messages) == 1 else any("cut" in one.extra for one in messages)

    @property
    def words(self) -> str:
        messages = self.messages
        return (messages[0].text if len(messages) == 1 else " ".join([one.text for one in messages])).strip()


def access_of(tenant: Tenant, agent: Agent) -> Access:
    kept = _accesses.get(tenant.id)
    if kept is None or kept[0] is not tenant:
        kept = _accesses[tenant.id] = (tenant, {})
    found = kept[1].get(id(agent))
    if found is None or found[0] is not agent:
        found = kept[1][id(agent)] = agent, _access_of(tenant, agent)
    return found[1]


_accesses: dict[str, tuple[Tenant, dict[int, tuple[Agent, Access]]]] = {}  # as PerTenant: asked for at every step


def _access_of(tenant: Tenant, agent: Agent) -> Access:
    key = tenant.llm.api_key
    return Access(
        api_key=key.get_secret_value() if key else None,
        base_url=tenant.llm.base_url,
        model=agent.model,
        fallback_models=tuple(tenant.llm.fallback_models),
        timeout=tenant.llm.timeout,
        tenant=tenant.id,
    )


def room_of(agent: Agent) -> Room:
    """What the agent's model reads at once."""
    return _room(size_of(agent))


@lru_cache(maxsize=64)
def _room(size: ModelSize) -> Room:
    return Room(budget(size), counter(size.tokens))


def _asked_in(language: Tongue, questions: Sequence[str]) -> str:
    """The way of asking to show as a button: the first in the customer's language."""
    return next((question for question in questions if detect(question) == language), questions[0])


class Responder:
    """Shared by all tenants."""

    def __init__(self, model: ChatModel, processors: PerTenant[EventProcessor], library: Library | None = None) -> None:
        self._library = library
        self._model = model
        self._processors = processors
        self._scratch = Scratch()
        self._guards = PerTenant(Guard)
        self._priced = PerTenant(priced)
        self._facts = PerTenant(lambda tenant: {tongue: facts(tenant, tongue) for tongue in _ABOUT})
        self._standalone = Standalone(model)
        self._faq = PerTenant(
            lambda tenant: FaqIndex(
                [(entry.questions, f"{entry.answer.th or ''} {entry.answer.en or ''}") for entry in tenant.faq],
                lambda: processors.of(tenant).vectors,
            )
        )

    def knows(self, tenant: Tenant, words: str) -> bool:
        """Whether the shop has an answer of its own that surely fits."""
        match = self._faq.of(tenant).best(words)
        return match is not None and match.sure

    def fitting(self, tenant: Tenant, words: str) -> tuple[Match | None, list[Match]]:
        """The shop's answer that may be sent, and those that would be offered."""
        faq = self._faq.of(tenant)
        return faq.best(words), faq.top(words, 3)

    def standalone(self, moment: Moment, words: str) -> Coroutine[Any, Any, str]:
        """What the message means without the ones before it; see `gateway.standalone`."""
        session, access = moment.session, access_of(moment.tenant, moment.agent)
        history = [*session.carried, *session.history]
        return self._standalone.of(moment.agent, access, words, history, hurried=moment.hurried)

    async def meant(self, question: Question) -> MemoryEvent:
        """What the message is by what is known here."""
        return await self._processors.of(question.tenant).analyze_message(question.words, ask=False)

    async def own(self, question: Question) -> tuple[Answer | None, Match | None]:
        """The shop's own answer where it surely fits, and what fits at all."""
        tenant, language, words = question.tenant, question.language, question.words
        if tenant.faq:
            await self._processors.of(tenant).ready()
        match = self._faq.of(tenant).best(words) if words and tenant.faq else None
        told = opening(tenant, words, question.now, language)
        of_shop = None
        if (tenant.shop or tenant.prices) and len(words) <= _ONE_QUESTION:
            of_shop = about_shop(tenant, self._priced.of(tenant), words, language)
        if match is None and told is None and of_shop is None:
            return None, None  # as for most messages: nobody needs to know what it is before the model is asked
        event = await self.meant(question)
        if match is not None and not for_everybody(event, match, words):
            match = None
        if event.event_type is EventType.COMPLAINT:
            told = None
        # The hours of the day that is asked about go before general ones, unless the shop answers the very question.
        by_day = told is not None and depends_on_the_day(tenant, words, question.now)
        if match is not None and match.sure and (match.certainty == 1 or not by_day):
            return _canned(tenant.faq[match.index], language), match
        if told is not None:
            return Answer(told), match
        if of_shop and event.event_type not in _NOT_ASKING:
            return Answer(of_shop, by_shop=True), match
        return None, match

    async def answer(self, question: Question) -> Answer:
        """Never raises for a failing model: then rules answer."""
        tenant = question.tenant
        own, match = await self.own(question)
        if own is not None:
            return own
        words = question.words
        if files := await self.files(tenant, question.standalone or words, words):
            question = structs.replace(question, files=files)
        access = access_of(tenant, question.agent)
        if access.api_key and not question.hurried:
            try:
                return await self._ask(question, access)
            except LLMError as error:
                log.warning(
                    "no answer from the model: %s",
                    type(error).__name__,
                    extra={"tenant": tenant.id, "model": access.model},
                )
        event, faq = await self.meant(question), self._faq.of(tenant)
        if question.standalone and (meant := self._meant(question, event, faq)):
            return meant
        plain = normalise(words)
        asks = (event.event_type in _ASKING or _AND_THAT.search(plain)) and not _OWN.search(plain)
        if asks and (passage := sure(question.files)):
            return Answer(sources.quoted(passage, question.language), by_shop=True)
        if match is not None and match.certainty >= LIKELY:
            return _likely(tenant.faq[match.index], question.language)
        return self._by_rules(question, event, faq, words)

    async def files(self, tenant: Tenant, words: str, said: str = "") -> Sequence[Found]:
        """The passages of the shop's files that may answer; `said`: see `Library.find`."""
        if self._library is None or not words:
            return ()
        return await self._library.find(tenant.id, words, _PASSAGES, said=said)

    def _meant(self, question: Question, event: MemoryEvent, faq: FaqIndex) -> Answer | None:
        """The shop's answer to what a follow-up means, if it is sure and not what was just said."""
        if _OWN.search(normalise(question.text)):
            return None
        meant, tenant, language = question.standalone or "", question.tenant, question.language
        match = faq.best(meant)
        before = rewrite.before(question.context.get("recent_messages") or ())
        if told := opening_too(tenant, question.words, before, question.now, language):
            return Answer(told)
        if told := price_too(tenant, self._priced.of(tenant), question.words, before, language):
            return Answer(told, by_shop=True)
        if told := opening(tenant, meant, question.now, language):
            answer = Answer(told)
        elif match is None or not match.sure or not for_everybody(event, match, meant):
            return None
        else:
            answer = _canned(tenant.faq[match.index], language)
        said = [line["message"] for line in question.context.get("recent_messages") or () if line["role"] == "bot"]
        return None if answer.text in said[-_LAST:] else answer

    def told(self, question: Question, room: Room | None, own: str | None = None) -> list[dict[str, Any]]:
        """The messages that the model is sent; without `room` nothing is cut. `own`: the customer's words as far as
        there is room for them, where that is known."""
        tenant, language = question.tenant, question.language
        if own is None:
            own = room.own(question.text) if room else question.text
        words = question.words if tenant.faq else ""
        hits = self._faq.of(tenant).top(question.standalone or words, 3) if words else []
        of_shop = self._facts.of(tenant)[language]
        return prompt.build(
            shop=tenant.name,
            instructions=question.agent.instructions or "",
            system_role=question.agent.system_role,
            language=language,
            now=question.now.astimezone(ZoneInfo(tenant.timezone)),
            context=question.context,
            knowledge=[
                (_asked_in(language, tenant.faq[hit.index].questions), _told(tenant.faq[hit.index], language))
                for hit in hits
            ]
            + ([(_ABOUT[language], of_shop)] if of_shop else []),
            text=own,
            files=sources.told(question.files, language),
            images=question.images,
            room=room,
            ending=riding.ASK if question.riding else "",
        )

    async def _ask(self, question: Question, access: Access) -> Answer:
        room, whole = room_of(question.agent), question.text
        own = room.own(whole)
        request = ChatRequest(
            messages=self.told(question, room, own),
            access=access,
            max_tokens=question.agent.max_answer_tokens,
            temperature=question.agent.temperature,
            session_id=question.session_id,  # the same provider again, which has the beginning in its cache
        )
        checked = self._checked(question)
        watch = Guarded(riding.Unseen(question.watch), checked) if question.watch else None
        completion, actions = await converse(
            *(self._model, request, question.tools, question.agent.max_tool_rounds, watch, self._scratch)
        )
        told, ridden = riding.split(completion.text) if question.riding else (completion.text, None)
        told, asks = riding.asks_staff(told)
        if asks and not told:
            told = question.tenant.reply("unanswered", question.language)
        if ridden and not told:
            raise LLMBadAnswer("the language model said nothing to the customer")
        may = checked(told)
        if may is None:
            log.warning("an answer gave away what the model was told to be", extra={"tenant": question.tenant.id})
        told = may if may and may.strip() else question.tenant.reply("fallback", question.language)
        if not shows(told):
            raise LLMBadAnswer("the language model said nothing that can be seen")
        read = min(len(own), MAX_TEXT)
        cut = f"{text('cut', question.language, count=read)}\n\n" if own != whole or question.cut else ""
        return Answer(
            cut + sources.cited(told, question.files, question.language),
            for_staff=UNKNOWN if asks else "",
            nearest=self._nearest(question) if asks else "",
            model=completion.model,
            provider=completion.provider,
            actions=tuple(actions),
            cut=completion.finish_reason == CUT,
            tokens=Tokens(completion.usage.prompt_tokens, completion.usage.completion_tokens),
            ridden=ridden,
        )

    def _checked(self, question: Question) -> Callable[[str], str | None]:
        """What of an answer may be said to this customer."""
        context = question.context

        def shop() -> list[str]:
            kept = [*(context.get("procedures") or ()), *(context.get("shop_facts") or ())]
            return [*map(str, kept), *(one.passage.text for one in question.files)]

        def customer() -> list[str]:
            said = [str(line["message"]) for line in context.get("recent_messages") or () if line["role"] == "user"]
            return [question.text, *said, str(context.get("user_attributes") or "")]

        return partial(self._guards.of(question.tenant).checked, shop=shop, customer=customer)

    def _by_rules(self, question: Question, event: MemoryEvent, faq: FaqIndex, words: str) -> Answer:
        """What can be said honestly without knowing more: nothing here confirms an order or promises a time."""
        language = question.language
        earlier = question.context.get("recent_messages") or ()
        said = [line["message"] for line in earlier if line["role"] == "bot"][-_LAST:]
        if not words:
            if any(message.extra.get(UNREAD) == TOO_LARGE for message in question.messages):
                return Answer(text("too_large", language))
            return self._wordless(question, said)
        plain = normalise(words)
        kind = event.event_type
        if _A_BOT.search(plain) and kind is not EventType.COMPLAINT:
            return Answer(text("a_bot", language))
        if all("forwarded" in message.extra for message in question.messages if message.text):
            return self._unknown(question, faq, words)  # somebody else's name, order or complaint: nothing is noted
        if kind in _TOLD and any(map(str.isdigit, plain)) and said and said[-1] in wordings("complaint", language):
            return Answer(fresh("details", language, said))
        if kind in _IDLE and question.standalone and _AND_THAT.search(plain):
            return self._unknown(question, faq, words)
        if kind is EventType.GENERIC_EVENT:
            return self._small_talk(question, event, plain, said)
        if (name := event.payload.get("name")) and not _details(event):
            apart = " " if language == "th" and name.isascii() else ""  # คุณพลอย, but คุณ Beam
            return Answer(text("met", language).format(name=apart + name))
        if _OWN.search(plain) and _ASKS.search(plain) and kind not in (EventType.COMPLAINT, EventType.TRANSACTION):
            return Answer(fresh("own_case", language, said), for_staff=OWN_CASE)
        if name := _BY_TYPE.get(kind):
            return Answer(fresh(name, language, said))
        return self._unknown(question, faq, words)

    def _unknown(self, question: Question, faq: FaqIndex, words: str) -> Answer:
        tenant, language = question.tenant, question.language
        near = [_asked_in(language, tenant.faq[hit.index].questions) for hit in faq.top(words, 3)]
        if near:
            listed = "\n".join(f"- {q}" for q in near)
            return Answer(f"{text('did_you_mean', language)}\n{listed}", buttons_of(near))
        return Answer(
            tenant.reply("unanswered", language),
            suggested_by(question.agent),
            for_staff=UNKNOWN,
            nearest=self._nearest(question),
        )

    def _nearest(self, question: Question) -> str:
        found = self._faq.of(question.tenant).top(question.standalone or question.text, 1)
        return _asked_in(question.language, question.tenant.faq[found[0].index].questions) if found else ""

    def _wordless(self, question: Question, said: Sequence[str]) -> Answer:
        last, language = question.messages[-1], question.language
        if last.kind is Kind.STICKER:
            meant = normalise(" ".join(map(str, last.extra.get("keywords", ()))))
            if not said and (_GREETS.search(meant) or _WAI in meant):
                return Answer(question.tenant.reply("welcome", language), suggested_by(question.agent))
            if _THANKS.search(meant) or _WAI in meant:
                return Answer(fresh("thanks", language, said))
        return Answer(fresh(_WITHOUT_WORDS.get(last.kind, "cannot_see"), language, said))

    def _small_talk(self, question: Question, event: MemoryEvent, plain: str, said: Sequence[str]) -> Answer:
        language = question.language
        if _THANKS.search(plain):
            return Answer(fresh("thanks", language, said))
        if _details(event):
            return Answer(fresh("noted", language, said))
        if not question.context.get("recent_messages"):
            return Answer(question.tenant.reply("welcome", language), suggested_by(question.agent))
        if _GREETS.search(plain) and prompt.paused(question.context["recent_messages"], question.now):
            return Answer(text("back", language))
        return Answer(fresh("small_talk", language, said))


def _details(event: MemoryEvent) -> bool:
    """Whether the message holds something to be noted down. A day alone is none: "hot today" is small talk."""
    return any(event.payload.get(name) for name in _DETAILS)


def _canned(entry: Faq, language: Tongue) -> Answer:
    media = tuple(map(_attached, entry.media))
    return Answer(entry.answer.within(language), buttons_of(entry.buttons), media=media, by_shop=True)


def _likely(entry: Faq, language: Tongue) -> Answer:
    """Not sure: the question that it answers stands above it."""
    answer = _canned(entry, language)
    asked = literal(_asked_in(language, entry.questions))
    return structs.replace(answer, text=f"{text('if_you_mean', language, question=asked)}\n{answer.text}")


def _told(entry: Faq, language: Tongue) -> str:
    """The shop's answer as a model is told it: with its pictures, which it may show, and files, which it may link."""
    lines = [entry.answer.within(language)]
    for one in map(_attached, entry.media):
        if isinstance(one, Image):
            lines.append(f"Picture to show: ![{literal(one.alt)}]({one.url})")
        elif isinstance(one, File):
            lines.append(f"File to link: [{literal(one.name or one.url)}]({one.url})")
    return "\n".join(lines)


def _attached(one: Attachment) -> Media:
    if one.image:
        return Image(one.image, one.name or "")
    if one.file:
        return File(one.file, one.name or "")
    assert one.sticker is not None  # an attachment is one of the three
    return Sticker(one.sticker.package, one.sticker.id, one.sticker.telegram)


def for_everybody(event: MemoryEvent, match: Match, words: str) -> bool:
    """Whether the shop's answer can be meant: it answers who asks, not who tells, orders or complains."""
    if event.event_type is EventType.COMPLAINT:
        return False
    plain = normalise(words)
    if match.certainty == 1:
        return True
    if match.score >= SAME:  # "I've paid" has the words of "how can I pay?", and asks nothing
        return event.event_type is not EventType.TRANSACTION or bool(_ASKS.search(plain))
    if _OWN.search(plain):
        return False
    if event.event_type in (EventType.REQUEST, EventType.TRANSACTION):
        # "I'd like a table" asks how that is done here; with a day and a number it is the thing itself.
        return event.event_type is EventType.REQUEST and not (_details(event) or event.payload.get("dates"))
    return event.event_type not in (EventType.INFORMATION, EventType.FEEDBACK) or bool(_ASKS.search(plain))
