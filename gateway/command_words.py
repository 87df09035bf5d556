"""The commands by name: a shop's own words for them, Thai ones that work beside these, and what each does."""

from __future__ import annotations

from config.field_types import COMMANDS, CommandName
from config.tenants import Tenant
from gateway.texts import Tongue

_THAI: dict[str, CommandName] = {
    "เริ่ม": "start",
    "ช่วยเหลือ": "help",
    "เริ่มใหม่": "reset",
    "ภาษา": "language",
    "ข้อมูลของฉัน": "mydata",
    "ลืม": "forget",
    "เชื่อมต่อ": "link",
    "เชื่อม": "link",
    "ให้คะแนน": "rate",
    "พนักงาน": "human",
    "บอต": "bot",
    "บอท": "bot",
}
# Shown in the help and, on Telegram, in the menu.
DOES: dict[CommandName, dict[Tongue, str]] = {
    "start": {"th": "เริ่มคุยกัน", "en": "start chatting"},
    "help": {"th": "ดูวิธีใช้และคำสั่งทั้งหมด", "en": "show what I can do"},
    "reset": {"th": "เริ่มคุยใหม่", "en": "start the conversation afresh"},
    "language": {"th": "เลือกภาษา พิมพ์ th หรือ en ต่อท้าย", "en": "choose the language: th or en"},
    "mydata": {"th": "ดูข้อมูลที่เราจำไว้", "en": "show what we remember"},
    "forget": {"th": "ให้เราลืมข้อมูลทั้งหมด", "en": "make us forget everything"},
    "link": {"th": "เชื่อมแชตนี้กับอีกช่องทาง", "en": "link this chat with another app"},
    "rate": {"th": "บอกว่าคุยกันแล้วเป็นอย่างไร", "en": "say how this chat went"},
    "human": {"th": "คุยกับพนักงาน", "en": "talk to a person"},
    "bot": {"th": "กลับมาคุยกับบอต", "en": "go back to the bot"},
}
_WITH_STAFF: tuple[CommandName, ...] = ("human", "bot")


def named(tenant: Tenant, text: str) -> CommandName | None:
    """The command that a text beginning with `/` gives; None: this shop has no such command."""
    typed = text[1:].partition(" ")[0].strip()
    thai = _THAI.get(typed)
    if thai is not None:
        return thai if tenant.command(thai) else None
    return next((name for name in COMMANDS if tenant.command(name) == typed.lower()), None)


def listed(tenant: Tenant) -> list[tuple[str, CommandName]]:
    """What customers are shown: the shop's word for each command that does something here."""
    hidden = () if tenant.staff else _WITH_STAFF
    if len({channel.platform for channel in tenant.channels.values()}) < 2:
        hidden = (*hidden, "link")
    if not tenant.behaviour.ask_rating:
        hidden = (*hidden, "rate")
    shown = [(tenant.command(name), name) for name in COMMANDS if name not in hidden]
    return [(word, name) for word, name in shown if word is not None]
