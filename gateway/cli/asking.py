"""The questions of `chat-chat tenants new`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click
from pydantic_core import PydanticCustomError

from config.business_hours import block_of, days_of
from config.in_thai import thai
from config.new_tenant import ALLOWED, LINE_NAMES, TELEGRAM_NAMES, Answers
from config.settings import Settings
from config.shown import Lang
from config.tenant_model import TENANT_ID
from gateway.cli.common import Failed

_QUESTIONS: dict[str, tuple[str, str]] = {
    "id": (
        "รหัสร้าน ใช้ a-z 0-9 และ - (เป็นชื่อไฟล์และอยู่ในที่อยู่เว็บฮุค)",
        "The shop's id: a-z, 0-9 and - (its file's name, and part of addresses)",
    ),
    "name": ("ชื่อร้านที่ลูกค้าเห็น", "The shop's name, as customers see it"),
    "phone": ("เบอร์โทรร้าน (กด Enter ถ้าไม่มี)", "Telephone (Enter: none)"),
    "hours": ("เปิดกี่โมงถึงกี่โมง", "Open from and to"),
    "closed": (
        "วันหยุดประจำ เช่น sun หรือ sat,sun (กด Enter ถ้าเปิดทุกวัน)",
        "Closed on, such as sun or sat,sun (Enter: open every day)",
    ),
    "line": ("ใช้ LINE ไหม", "Is the shop on LINE?"),
    "LINE_SECRET": (
        "Channel secret ของ LINE (จะไม่แสดงบนจอ กด Enter ถ้ายังไม่มี)",
        "LINE's channel secret (not shown; Enter: later)",
    ),
    "LINE_TOKEN": (
        "Channel access token ของ LINE (จะไม่แสดงบนจอ กด Enter ถ้ายังไม่มี)",
        "LINE's channel access token (not shown; Enter: later)",
    ),
    "telegram": ("ใช้ Telegram ไหม", "Is the shop on Telegram?"),
    "TELEGRAM_TOKEN": (
        "โทเคนบอตจาก @BotFather (จะไม่แสดงบนจอ กด Enter ถ้ายังไม่มี)",
        "The bot's token from @BotFather (not shown; Enter: later)",
    ),
}


def asked(
    settings: Settings, tenant_id: str | None, given: Mapping[str, Any], lang: Lang, interactive: bool
) -> Answers:
    """What was given, and what is asked of the rest on a terminal. Raises Failed for a value that can't be used."""

    def ask(name: str, check: Callable[[str], object] = str, default: str = "", hide: bool = False) -> str:
        def convert(value: str) -> str:
            try:
                check(value)
            except (ValueError, PydanticCustomError) as error:
                raise click.BadParameter(_said(error, lang)) from error
            return value

        words = _QUESTIONS[name][0 if lang == "th" else 1]
        shown = default if default and not hide else False
        return str(click.prompt(words, default=default, value_proc=convert, hide_input=hide, show_default=bool(shown)))

    def free(value: str) -> None:
        if not TENANT_ID.match(value):
            raise ValueError(thai(ALLOWED) if lang == "th" else ALLOWED)
        if (settings.config_dir / "tenants" / f"{value}.yaml").exists():
            raise ValueError("มีร้านนี้อยู่แล้ว" if lang == "th" else "there is such a shop already")

    if tenant_id is None:
        if not interactive:
            raise click.UsageError("give the shop's id: chat-chat tenants new my-shop")
        tenant_id = ask("id", free, "my-shop")
    values = {name: value for name, value in given.items() if value}
    for name, check in (("hours", block_of), ("closed", _check_days)):
        try:
            if name in values:
                check(values[name])
        except PydanticCustomError as error:
            raise Failed(f"--{name}: {_said(error, lang)}") from error
    secrets: dict[str, str] = {}
    if interactive and not values:
        values["name"] = ask("name", default=tenant_id)
        values["phone"] = ask("phone")
        values["hours"] = ask("hours", block_of, "09:00-18:00")
        values["closed"] = tuple(part for part in (ask("closed", _check_days),) if part)
        for platform, names in (("line", LINE_NAMES), ("telegram", TELEGRAM_NAMES)):
            if click.confirm(_QUESTIONS[platform][0 if lang == "th" else 1], default=False):
                secrets |= {one: value for one in names if (value := ask(one, hide=True).strip())}
    return Answers(tenant_id, **values, secrets=secrets)


def _check_days(days: str | tuple[str, ...]) -> None:
    for one in (days,) if isinstance(days, str) else days:
        if one:
            days_of(one)


def _said(error: Exception, lang: Lang) -> str:
    if not isinstance(error, PydanticCustomError):
        return str(error)
    told = error.context or {}
    what, remedy = told.get("what", ""), told.get("remedy", "")
    return f"{thai(what)} — {thai(remedy)}" if lang == "th" else f"{what} — {remedy}"
