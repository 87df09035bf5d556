"""What a person can tell the bot to do with a word that begins with `/`, on every platform, in Thai and English; the
language to answer in, and to be forgotten, also in plain words."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from zoneinfo import ZoneInfo

from config.tenants import Tenant
from gateway import mydata
from gateway.audit import AuditLog, Deed
from gateway.buttons import suggested_by
from gateway.command_words import DOES, listed, named
from gateway.messages import Answer, Kind
from gateway.moment import Done, Moment
from gateway.texts import Tongue, text
from memory.keys import ConversationRef
from memory.memory_manager import MemoryManager
from memory.models import ShortTermMemory
from processors.normalise import normalise
from processors.sought import Sought

_IN_LANGUAGE = re.compile(
    r"\b(?:reply|answer|write|speak|talk|respond|chat)\b(?: (?:in|me|us|to|with|only|back|please)){0,3}"
    r" (english|thai)\b"
    r"|(?:ตอบ|พูด|คุย|พิมพ์)\S{0,8}?(?:ภาษา|เป็น)\s?(?:ภาษา)?\s?(อังกฤษ|ไทย|english|thai|eng)"
)
_OTHERS = r"\s?(?:ของ)?(?:ทุกคน|ทุกๆคน|คนอื่น|ใคร|ลูกค้า|ทั้งร้าน|ร้าน|เพื่อน|แฟน|เขา)"
# Asked of what is kept of a person, not of an order or an address; whoever asks whether something was forgotten is not
# asking for it.
_BE_FORGOTTEN = Sought(
    rf"ลบ(?:ข้อมูล|ประวัติ)(?!การจอง|การสั่ง|ออเดอร์|ที่อยู่|{_OTHERS})"
    r"|ลืม(?:ทุกอย่าง|ทุกสิ่ง|ข้อมูล|เรื่อง)?(?:ของ|ที่)?(?:เรา|ผม|หนู|ฉัน|ดิฉัน)?(?:เคย)?(?:คุย|บอก)\S{0,12}(?:เลย|ไป|ซะ|ที|ด้วย)"
    rf"|ลืม(?:ข้อมูล|ทุกอย่าง)(?!{_OTHERS})"
    r"|อย่า(?:จำ|เก็บ)(?:ข้อมูล|เรื่อง)?(?:ของ)?(?:เรา|ผม|หนู|ฉัน|ดิฉัน)"
    r"|\b(?:delete|erase|wipe|remove) (?:all )?(?:of )?(?:my|our) (?:personal )?"
    r"(?:data|information|info|chats?|history|records?)\b"
    r"|\bforget (?:about )?me\b(?!\W?nots?\b)|\bforget (?:about )?everything\b"
    r"(?= you know about me|(?: about me)?(?:,? please)?\W*$| i(?:'ve| have)? (?:told|said|wrote|written))"
)
_NOT_THAT = Sought(r"\?|ไหม|หรอ|เหรอ|หรือยัง|แล้วหรือ|อย่าลบ|อย่าลืม|อย่าเพิ่ง|ไม่ต้อง|\b(?:don't|dont|do not|never|did you|why)\b")
_LONGEST_WISH = 80  # characters: a longer message wants something else as well


Forget = Callable[[str, str], Awaitable[object]]  # a person, by tenant and user


class Commands:
    """Running a command again has the same effect: a turn may be tried twice."""

    def __init__(self, manager: MemoryManager, forget: Forget | None = None, audit: AuditLog | None = None) -> None:
        self._manager = manager
        self._audit = audit
        self._forget_person = forget or manager.forget

    async def settle(self, moment: Moment) -> Done | None:
        tenant, ref, message, language = moment.tenant, moment.ref, moment.last, moment.language
        if message.kind not in (Kind.TEXT, Kind.POSTBACK):  # a button may hold a command
            return None
        if not message.text.startswith("/"):
            # One of several messages is no command: the others want an answer too.
            return self._wish(moment) if len(moment.messages) == 1 else None
        argument = message.text.partition(" ")[2].strip().lower()
        match named(tenant, message.text):
            case "start":
                return Done(Answer(tenant.reply("welcome", language), suggested_by(moment.agent)), silent=False)
            case "help":
                return Done(Answer(_help(tenant, language)))
            case "reset":
                return Done(Answer(text("reset", language)), _reset, forgets_talk=True)
            case "language":
                return self._language(argument, language) or Done(
                    Answer(text("language_usage", language, word=tenant.command("language")))
                )
            case "mydata" | "forget" if message.group:
                return Done(Answer(text("only_private", language)))  # it is the member's own, and nobody else's
            case "mydata":
                self._note(ref, "export", "/mydata")
                return await self._mydata(tenant, ref, language)
            case "forget":
                return await self._forget(tenant, ref, argument, language)
            case _:
                return Done(Answer(_unknown(tenant, language)))

    def _note(self, ref: ConversationRef, did: Deed, by: str) -> None:
        if self._audit is not None:
            self._audit.note(ref.tenant, self._manager.now(), "customer", did, by, user=ref.user)

    def _language(self, argument: str, language: Tongue) -> Done | None:
        if argument in ("th", "thai", "ไทย", "ภาษาไทย"):
            return Done(Answer(text("language", "th")), lambda session: _set(session, "language", "th"))
        if argument in ("en", "eng", "english", "อังกฤษ", "ภาษาอังกฤษ"):
            return Done(Answer(text("language", "en")), lambda session: _set(session, "language", "en"))
        if argument == "auto":
            return Done(Answer(text("language_auto", language)), lambda session: _set(session, "language", None))
        return None

    def _wish(self, moment: Moment) -> Done | None:
        said, language = moment.last.text, moment.language
        if len(said) > _LONGEST_WISH:
            return None
        plain, word = normalise(said), moment.tenant.command("forget")
        if word and _BE_FORGOTTEN.search(plain) and not _NOT_THAT.search(plain):
            group = moment.last.group
            return Done(Answer(text("only_private", language) if group else text("forget_ask", language, word=word)))
        found = _IN_LANGUAGE.search(plain)
        if found is None:
            return None
        done = self._language(found[1] or found[2], language)
        return Done(done.answer, done.change, silent=False) if done else None

    async def _mydata(self, tenant: Tenant, ref: ConversationRef, language: Tongue) -> Done:
        known = await self._manager.longterm.load(ref.tenant, ref.user)
        return Done(Answer(mydata.told(known, language, ZoneInfo(tenant.timezone), tenant.command("forget"))))

    async def _forget(self, tenant: Tenant, ref: ConversationRef, argument: str, language: Tongue) -> Done:
        if argument not in ("yes", "ใช่", "ยืนยัน"):
            return Done(Answer(text("forget_ask", language, word=tenant.command("forget"))))
        await self._forget_person(ref.tenant, ref.user)
        self._note(ref, "delete", "/forget")
        return Done(Answer(text("forgotten", language)), _blank)


def _help(tenant: Tenant, language: Tongue) -> str:
    lines = [f"- /{word} {DOES[name][language]}" for word, name in listed(tenant) if name not in ("start", "help")]
    commands = "\n".join([text("help_commands", language), *lines]) if lines else ""
    return "\n\n".join(filter(None, [text("help", language), commands]))


def _unknown(tenant: Tenant, language: Tongue) -> str:
    word = tenant.command("help")
    hint = text("see_help", language, word=word) if word else ""
    return f"{text('unknown_command', language)} {hint}".strip()


def _set(session: ShortTermMemory, name: str, value: str | None) -> ShortTermMemory:
    variables = {**session.variables, name: value}
    if value is None:
        del variables[name]
    return session.model_copy(update={"variables": variables})


def _reset(session: ShortTermMemory) -> ShortTermMemory:
    """The conversation begins afresh; what is known of the person stays."""
    return session.model_copy(update={"history": [], "carried": [], "last_intent": None})


def _blank(session: ShortTermMemory) -> ShortTermMemory:
    return _reset(session).model_copy(update={"summary": "", "variables": {}, "state": "awaiting_input"})
