"""A new tenant's file, written from a few answers: commented, and good as it stands."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from config.business_hours import DAYS, block_of, days_of
from config.secrets import Missing, Secrets, variable_of
from config.settings import Settings
from config.shown import Lang
from config.tenant_model import TENANT_ID

SCHEMA = "tenant.schema.json"  # in CONFIG_DIR; editors find it by the first line of a file
LINE_NAMES, TELEGRAM_NAMES = ("LINE_SECRET", "LINE_TOKEN"), ("TELEGRAM_TOKEN",)
ALLOWED = "use 1 to 64 of a-z, 0-9, _ and -, beginning with a letter or digit"

_THAI_DAYS = ("จันทร์", "อังคาร", "พุธ", "พฤหัสบดี", "ศุกร์", "เสาร์", "อาทิตย์")
_ENGLISH_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class CannotWrite(Exception):
    """The file was not written; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What is known of a new shop. `hours`: such as 09:00-18:00; `closed`: days such as sun. `secrets` by the last part
    of their names (LINE_SECRET, LINE_TOKEN, TELEGRAM_TOKEN)."""

    id: str
    name: str = ""
    phone: str = ""
    language: str = "auto"
    hours: str = "09:00-18:00"
    closed: tuple[str, ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


def write_new(settings: Settings, answers: Answers) -> Path:
    """Writes the tenant's file, and its secrets, each into a file of its own; never over one that is there."""
    if not TENANT_ID.match(answers.id):
        raise CannotWrite(f"{answers.id[:80]!r} is no tenant id: {ALLOWED}")
    file = settings.config_dir / "tenants" / f"{answers.id}.yaml"
    if file.exists() or file.is_symlink():
        raise CannotWrite(f"{file} is there already and was not touched: choose another id, or edit that file")
    text = _written(settings, answers)
    try:
        for kind, value in answers.secrets.items():
            _keep(settings.config_dir / "secrets" / f"{variable_of(answers.id)}_{kind}", value)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except OSError as error:
        what = f"{file} can't be written ({error.strerror})"
        raise CannotWrite(f"{what}: let this user write to {file.parent}") from None
    return file


def _keep(path: Path, value: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.exists():
        raise CannotWrite(f"{path} is there already and was not touched: remove it, or leave the secret out")
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
        opened.write(value.strip() + "\n")


def _written(settings: Settings, answers: Answers) -> str:
    known = Secrets(settings, answers.id)

    def have(names: Sequence[str]) -> bool:
        for name in names:
            if name not in answers.secrets:
                try:
                    known.fill(f"${{*_{name}}}")
                except Missing:
                    return False
        return True

    variable = variable_of(answers.id)
    channels = _LINE.format(variable=variable).splitlines()
    bots = _TELEGRAM.format(variable=variable).splitlines()
    return _FILE.format(
        schema=f"../{SCHEMA}",
        id=answers.id,
        name=_quoted(answers.name or answers.id),
        language=answers.language,
        line="\n".join(channels if have(LINE_NAMES) else _commented(channels)),
        telegram="\n".join(bots if have(TELEGRAM_NAMES) else _commented(bots)),
        faq=_faq(answers),
        hours="\n".join(f"  {days}: [{_quoted(answers.hours)}]" for days in _rows(answers.closed)),
    )


def _commented(lines: Sequence[str]) -> list[str]:
    return [line if line.lstrip().startswith("#") else f"  # {line[2:]}" for line in lines]


def _quoted(text: str) -> str:
    return json.dumps(" ".join(text.split()), ensure_ascii=False)


def _rows(closed: Sequence[str]) -> list[str]:
    """The days of the week that are not closed, as spans."""
    shut = {day for one in closed for day in days_of(one)}
    rows: list[list[int]] = []
    for day in range(7):
        if day in shut:
            continue
        if rows and rows[-1][-1] == day - 1:
            rows[-1].append(day)
        else:
            rows.append([day])
    return [DAYS[row[0]] if len(row) == 1 else f"{DAYS[row[0]]}-{DAYS[row[-1]]}" for row in rows]


def _faq(answers: Answers) -> str:
    block_of(answers.hours)
    begin, end = (part.strip() for part in answers.hours.split("-"))
    shut = sorted({day for one in answers.closed for day in days_of(one)})
    thai = f"เปิด{'ทุกวัน' if not shut else ''} {begin}–{end} น."
    english = f"open {'every day ' if not shut else ''}from {begin} to {end}"
    if shut:
        thai += f" หยุดวัน{'และวัน'.join(_THAI_DAYS[day] for day in shut)}"
        english += f", closed on {' and '.join(_ENGLISH_DAYS[day] for day in shut)}"
    thai += " " * thai.endswith(".")
    entries = [_entry(("ร้านเปิดกี่โมง", "เปิดวันไหนบ้าง", "What time do you open?"), f"ร้าน{thai}ค่ะ", f"We're {english}.")]
    if answers.phone:
        asked = ("ขอเบอร์โทรร้าน", "โทรได้ที่เบอร์อะไร", "What's your phone number?")
        entries.append(_entry(asked, f"โทร {answers.phone} ได้เลยค่ะ", f"Call us at {answers.phone}."))
    return "\n".join(entries)


def _entry(questions: Sequence[str], thai: str, english: str) -> str:
    asked = ", ".join(one if one.isalnum() or "ก" <= one[0] <= "๛" else _quoted(one) for one in questions)
    return f"  - questions: [{asked}]\n    answer:\n      th: {_quoted(thai)}\n      en: {_quoted(english)}"


def next_steps(file: Path, answers: Answers, lang: Lang) -> str:
    name = answers.id
    # As it was called: from a clone it is .venv/bin/chat-chat, which is on nobody's PATH.
    program = "chat-chat" if shutil.which("chat-chat") or not sys.argv[0].endswith("/chat-chat") else sys.argv[0]
    if lang == "th":
        return (
            f"เขียนไฟล์ {file} แล้ว ใช้ได้ทันที ลองคุยดู:\n  {program} chat --tenant {name}\n"
            f"แก้ไฟล์ได้ทุกเมื่อ มีผลใน 5 วินาที ตรวจด้วย:\n  {program} tenants check {quote(str(file))} --lang th"
        )
    return (
        f"wrote {file}; it works as it is:\n  {program} chat --tenant {name}\n"
        f"Edit it whenever you like, a change counts within 5 seconds; what is wrong in it says:\n"
        f"  {program} tenants check {quote(str(file))}"
    )


_LINE = """\
  line-main:
    platform: line
    channel_secret: ${{{variable}_LINE_SECRET}} # LINE Developers Console, Basic settings
    channel_access_token: ${{{variable}_LINE_TOKEN}} # the same place, Messaging API, long-lived"""

_TELEGRAM = """\
  telegram-main:
    platform: telegram
    bot_token: ${{{variable}_TELEGRAM_TOKEN}} # from @BotFather
    mode: polling # needs no public address"""

_FILE = """\
# yaml-language-server: $schema={schema}
#
# {id}: a change takes effect within 5 seconds; `chat-chat tenants check` tells what is wrong in it.
# config/examples/full.yaml shows everything that can stand here, config/examples/ has whole shops to copy from.
name: {name} # shown to people
timezone: Asia/Bangkok
language: {language} # th, en, or auto: the customer's

# A channel that is commented out (#) waits for its secrets: put them into config/secrets/NAME, one file each, or into
# .env as NAME=value, then take the # away.
channels:
  web:
    platform: web # the web chat needs no account

{line}

{telegram}

agents:
  default:
    # Who the bot is, how it speaks, and what it must not promise. It counts once there is a language model
    # (OPENROUTER_API_KEY, or llm.api_key here); the questions below are answered without one.
    instructions: |
      คุณเป็นพนักงานตอบแชตของร้าน พูดสุภาพ ลงท้ายด้วยค่ะ/คะ ตอบสั้นและตรงคำถาม
      ถ้าไม่แน่ใจให้บอกว่าขอเช็กกับทางร้านก่อน อย่าเดาราคาหรือเวลา
      Answer in the customer's language.

# Answered word for word: add what your customers ask most, in their own words.
faq:
{faq}

# Days that are left out are closed.
business_hours:
{hours}
"""
