"""What people get wrong in a tenant's file, each with what `chat-chat tenants check` prints for it.

A message is good if somebody who keeps a shop can act on it: it names the place, says what is wrong there, and what to
do. Nothing of a secret is ever shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from config.settings import Settings
from config.shown import hidden, language_of
from config.tenant_commands import check_tenants

LINE_TOKEN = "Zm9yYmlkZGVu" * 14 + "a1b="
LINE_SECRET = "0123456789abcdef" * 2
BOT_TOKEN = "123456789:AAinventedinventedinventedinvent"
SECRETS = {"LINE_SECRET": LINE_SECRET, "LINE_TOKEN": LINE_TOKEN, "BOT_TOKEN": BOT_TOKEN}

LINE = "channels:\n  line-main:\n    platform: line\n    channel_secret: ${LINE_SECRET}\n"
LINE += "    channel_access_token: ${LINE_TOKEN}\n"
BOT = "channels:\n  bot:\n    platform: telegram\n    mode: polling\n    bot_token: ${BOT_TOKEN}\n"
SHOP = "name: ร้านกาแฟ\n" + LINE


@dataclass(frozen=True)
class Case:
    """A file, and the first lines that are printed for it: what is wrong with its remedy, the line, the caret."""

    file: str | bytes
    told: str
    line: str = ""
    caret: str = ""
    secrets: dict[str, str] = field(default_factory=dict)
    thai: str = ""  # what the Thai message has to hold
    more: tuple[str, ...] = ()  # mistakes beyond the first, which are told as well


CASES = {
    "1 a line that is indented wrongly": Case(
        SHOP + "memory:\n    sm_ttl: 60\n  max_turns: 5\n",
        "9:3: max_turns: is indented by 2 spaces, which fits nothing above it — indent it by 0 or 4 spaces",
        "    9 |   max_turns: 5",
        "      |   ^",
        thai="เว้นหน้าบรรทัด 0 หรือ 4 ช่อง",
    ),
    "2 a tab": Case(
        SHOP + "memory:\n\tsm_ttl: 60\n\tmax_turns: ten\n",
        "8:1: sm_ttl: is indented with a tab — indent with spaces: YAML takes no tabs there",
        "    8 | →sm_ttl: 60",
        "      | ^",
        thai="เว้นหน้าบรรทัดด้วยแท็บ",
        more=("9:1: max_turns: is indented with a tab", "9:14: memory.max_turns: should be a whole number"),
    ),
    "3 a field that is misspelt": Case(
        SHOP + "repplies: {welcome: สวัสดีค่ะ}\n",
        "7:1: repplies: is not a known field — did you mean replies?",
        "    7 | repplies: {welcome: สวัสดีค่ะ}",
        "      | ^",
        thai="หมายถึง replies หรือไม่",
    ),
    "4 a secret that is not there": Case(
        SHOP.replace("LINE_TOKEN", "LINE_TOKEM"),
        "6:27: channels.line-main.channel_access_token: tenant shop needs the variable LINE_TOKEM, which is not set — "
        "set LINE_TOKEM in the environment, or write it to CONFIG/secrets/LINE_TOKEM",
        "    6 |     channel_access_token: ${LINE_TOKEM}",
        "      |                           ^",
        thai="ต้องใช้ตัวแปร LINE_TOKEM แต่ยังไม่ได้ตั้งค่า",
    ),
    "5 the token of the other platform": Case(
        SHOP,
        "6:27: channels.line-main.channel_access_token: is a Telegram bot's token — "
        "copy LINE's long-lived channel access token: Developers Console, Messaging API",
        "    6 |     channel_access_token: ${LINE_TOKEN}",
        "      |                           ^",
        secrets={"LINE_TOKEN": BOT_TOKEN},
        thai="เป็นโทเคนของบอต Telegram",
    ),
    "6 LINE's token for Telegram": Case(
        "name: x\n" + BOT,
        "6:16: channels.bot.bot_token: is a key of LINE, not a Telegram bot's token — "
        "copy the token from @BotFather: 123456:ABC…",
        "    6 |     bot_token: ${BOT_TOKEN}",
        "      |                ^",
        secrets={"BOT_TOKEN": LINE_TOKEN},
        thai="เป็นรหัสของ LINE",
    ),
    "7 LINE's secret and token swapped": Case(
        SHOP,
        "5:21: channels.line-main.channel_secret: is a channel access token, not the channel secret — "
        "swap the two, or copy the channel secret: Developers Console, Basic settings",
        "    5 |     channel_secret: ${LINE_SECRET}",
        "      |                     ^",
        secrets={"LINE_SECRET": LINE_TOKEN, "LINE_TOKEN": LINE_SECRET},
        thai="สลับสองค่านี้",
        more=("6:27: channels.line-main.channel_access_token: is the channel secret, not an access token",),
    ),
    "8 a secret with a line break at its end": Case(
        SHOP,
        "5:21: channels.line-main.channel_secret: ends or begins with a space or a line break — "
        "remove it where the value is kept: in .env, in its file, or in the Kubernetes secret (echo -n)",
        "    5 |     channel_secret: ${LINE_SECRET}",
        "      |                     ^",
        secrets={"LINE_SECRET": LINE_SECRET + "\n"},
        thai="ขึ้นบรรทัดใหม่ติดมา",
    ),
    "9 curly quotes": Case(
        SHOP.replace("name: ร้านกาแฟ", "name: “ร้านกาแฟ”"),
        "1:7: name: stands in curly quotes, which YAML takes for letters — "
        'type straight ones ("), or put straight ones around them if customers should see them',
        "    1 | name: “ร้านกาแฟ”",
        "      |       ^",
        thai="เครื่องหมายคำพูดแบบโค้ง",
    ),
    "10 a field that stands twice": Case(
        SHOP + "language: th\nlanguage: en\n",
        "8:1: language: stands twice, first in line 7 — keep one of the two",
        "    8 | language: en",
        "      | ^",
        thai="เขียนซ้ำสองครั้ง ครั้งแรกอยู่บรรทัดที่ 7",
    ),
    "11 hours as they are spoken": Case(
        SHOP + 'business_hours: {จันทร์-ศุกร์: ["9-18"]}\n',
        "7:18: business_hours.จันทร์-ศุกร์: is not a day or a range of days — "
        "write mon, tue, wed, thu, fri, sat, sun: did you mean mon-fri?",
        '    7 | business_hours: {จันทร์-ศุกร์: ["9-18"]}',
        "      |                  ^",
        thai="หมายถึง mon-fri หรือไม่",
        more=("7:33: business_hours.จันทร์-ศุกร์[0]: is not a block of hours",),
    ),
    "12 hours that overlap": Case(
        SHOP + 'business_hours: {sat: ["09:00-12:00", "11:00-13:00"]}\n',
        "7:17: business_hours: the blocks of sat overlap — let each block end before the next begins",
        '    7 | business_hours: {sat: ["09:00-12:00", "11:00-13:00"]}',
        "      |                 ^",
        thai="ช่วงเวลาของวัน sat ทับกัน",
    ),
    "13 a word under two kinds": Case(
        SHOP + "keywords:\n  COMPLAINT: [พัง, รอนาน]\n  REQUEST: [ขอเบิก, รอนาน]\n",
        "9:21: keywords.REQUEST[1]: stands under COMPLAINT too — keep it under one of them",
        "    9 |   REQUEST: [ขอเบิก, รอนาน]",
        "      |                    ^",
        thai="คำนี้อยู่ใต้ COMPLAINT ด้วย",
    ),
    "14 a colon inside a text": Case(
        SHOP + "replies:\n  welcome: เปิดทุกวัน: 9 โมงถึง 6 โมง\n",
        "8:22: welcome: has a colon inside a text — put the whole text in quotes",
        "    8 |   welcome: เปิดทุกวัน: 9 โมงถึง 6 โมง",
        "      |                   ^",
        thai="มีเครื่องหมาย : อยู่ในข้อความ",
    ),
    "15 no space after the colon": Case(
        "name:ร้านกาแฟ\n" + LINE,
        "1:5: name: has no space after the colon — write `name: …`",
        "    1 | name:ร้านกาแฟ",
        "      |     ^",
        thai="ไม่มีเว้นวรรคหลังเครื่องหมาย :",
    ),
    "16 quotes that are not closed": Case(
        SHOP + 'replies:\n  welcome: "สวัสดีค่ะ\n',
        "8:12: welcome: has a quote that is never closed — close the quotes",
        '    8 |   welcome: "สวัสดีค่ะ',
        "      |            ^",
        thai="ไม่ได้ปิด",
    ),
    "17 a LINE id without quotes": Case(
        SHOP + "faq:\n  - questions: [ไลน์ร้าน]\n    answer: @baansuan\n",
        "9:13: answer: begins with a character that YAML keeps for itself — "
        "put a value that begins with @, %, *, & or ` in quotes",
        "    9 |     answer: @baansuan",
        "      |             ^",
        thai="ขึ้นต้นด้วยเครื่องหมายที่ใช้ขึ้นต้นไม่ได้",
    ),
    "18 another encoding than UTF-8": Case(
        "name: ร้านกาแฟ\n".encode("cp874") + LINE.encode(),
        "1:7: (file): is not UTF-8 text — save the file as UTF-8 in the editor",
        thai="ไม่ได้บันทึกเป็น UTF-8",
    ),
    "19 Notepad's Unicode": Case(
        SHOP.encode("utf-16"),
        "1:1: (file): is saved as UTF-16 (Windows calls it Unicode) — save the file as UTF-8 in the editor",
        thai="บันทึกเป็น UTF-16",
    ),
    "20 spaces that were copied from a web page": Case(
        "name: x\nchannels:\n\u00a0\u00a0web: {platform: web}\n",
        "3:1: web: has an invisible character before or in its name — delete it and type plain spaces",
        "    3 | ␣␣web: {platform: web}",
        "      | ^",
        thai="มีอักขระที่มองไม่เห็น",
    ),
    "21 a variable's name without braces": Case(
        SHOP.replace("${LINE_SECRET}", "$LINE_SECRET"),
        "5:21: channels.line-main.channel_secret: is a variable's name without `${` and `}` around it — write ${NAME}",
        thai="เขียนเป็น ${ชื่อตัวแปร}",
    ),
    "22 a word in another language": Case(
        SHOP + "language: ไทย\ntimezone: Bangkok\n",
        "7:11: language: is none of th, en, auto — did you mean th?",
        "    7 | language: ไทย",
        "      |           ^",
        thai="หมายถึง th หรือไม่",
        more=("8:11: timezone: is not a time zone — did you mean Asia/Bangkok?",),
    ),
    "23 a section that stands beside its name": Case(
        "name: x\nchannels:\n  web:\n  platform: web\n",
        "3:3: channels.web: has no platform — add platform: line, telegram, web, terminal (one of them)",
        "    3 |   web:",
        "      |   ^",
        thai="ไม่ได้บอกว่าเป็นแพลตฟอร์มใด",
        more=("4:13: channels.platform: stands where a name should — indent it further in",),
    ),
    "24 a staff chat on a channel that is not there": Case(
        SHOP + "staff: {channel: line-mian, chat: C1}\n",
        "7:18: staff.channel: is none of this tenant's channels — did you mean line-main?",
        "    7 | staff: {channel: line-mian, chat: C1}",
        "      |                  ^",
        thai="ไม่ใช่ชื่อช่องทางของร้านนี้",
    ),
    "25 a bracket that is not closed": Case(
        SHOP + "faq:\n  - questions: [เปิดกี่โมง\n    answer: 9 โมงค่ะ\n",
        "8:16: questions: has a bracket that is not closed, or a comma missing inside — "
        "separate what stands inside by commas, and close each [ with ] and each { with }",
        "    8 |   - questions: [เปิดกี่โมง",
        "      |                ^",
        thai="วงเล็บไม่ได้ปิด",
    ),
    "26 a follow-up as one would think of it": Case(
        SHOP + "broadcasts:\n  quiet_hours: night\n  follow_ups:\n    again:\n      after: ORDER\n      days: 0\n"
        "      mesage: x\n",
        "8:16: broadcasts.quiet_hours: is not a span of hours — "
        'write "21:00-08:00", closed (outside business_hours) or false',
        "    8 |   quiet_hours: night",
        "      |                ^",
        thai='เขียน "21:00-08:00" หรือ closed (เมื่อร้านปิด)',
        more=(
            "11:14: broadcasts.follow_ups.again.after: is none of INQUIRY, FEEDBACK, REQUEST, COMPLAINT, TRANSACTION, "
            "SUPPORT, INFORMATION, GENERIC_EVENT — did you mean TRANSACTION?",
            "12:13: broadcasts.follow_ups.again.days: is out of range — write at least 1",
            "13:7: broadcasts.follow_ups.again.mesage: is not a known field — did you mean message?",
        ),
    ),
    "27 a follow-up that names what is not there": Case(
        SHOP
        + "broadcasts:\n  quiet_hours: closed\n  follow_ups:\n    again:\n      days: 3\n      channels: line-mian\n"
        "      message: คุณ{{user.nam}}\n",
        "8:16: broadcasts.quiet_hours: needs business_hours, which this file does not give — "
        'add business_hours, or write hours such as "21:00-08:00"',
        "    8 |   quiet_hours: closed",
        "      |                ^",
        thai="ต้องใช้ business_hours แต่ไฟล์นี้ไม่ได้เขียนไว้",
        more=(
            "12:7: broadcasts.follow_ups.again.channels[0]: is none of this tenant's channels",
            "13:16: broadcasts.follow_ups.again.message: has a variable that is not known — did you mean {{user",
        ),
    ),
}


def printed(folder: Path, case: Case, lang: str) -> list[str]:
    file = folder / "tenants" / "shop.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(case.file if isinstance(case.file, bytes) else case.file.encode())
    outcome = check_tenants(Settings(config_dir=folder, variables=SECRETS | case.secrets), lang=lang)  # type: ignore[arg-type]
    assert outcome.code == 1
    text = outcome.text.replace(f"{file}:", "").replace(str(folder), "CONFIG")
    for secret in (SECRETS | case.secrets).values():
        assert secret.strip() not in text
    return text.splitlines()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_is_told_with_its_place_and_remedy(tmp_path: Path, case: Case) -> None:
    lines = printed(tmp_path, case, "en")
    assert lines[0] == case.told
    if case.line:
        assert lines[1:3] == [case.line, case.caret]
    told = [line for line in lines if re.match(r"\d+:\d+: ", line)]
    assert len(told) == 1 + len(case.more)
    assert [line[: len(more)] for line, more in zip(told[1:], case.more, strict=True)] == list(case.more)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_is_told_in_thai(tmp_path: Path, case: Case) -> None:
    english, thai = printed(tmp_path, case, "en"), printed(tmp_path, case, "th")
    assert case.thai in thai[0]
    assert thai[0].split(": ")[0] == english[0].split(": ")[0]
    place = r"\d+:\d+: \S+: "
    for line in thai:
        if re.match(place, line):
            what, remedy = re.sub(place, "", line).split(" — ")
            assert re.search("[ก-๛]", what)
            assert re.search("[ก-๛]", remedy)


@pytest.mark.parametrize(
    "written",
    [b"\xef\xbb\xbf" + SHOP.encode(), SHOP.replace("\n", "\r\n").encode(), b"\xef\xbb\xbf" * 2 + SHOP.encode()],
    ids=["a byte order mark", "Windows line ends", "two byte order marks"],
)
def test_what_windows_editors_add_is_no_mistake(tmp_path: Path, written: bytes) -> None:
    file = tmp_path / "tenants" / "shop.yaml"
    file.parent.mkdir()
    file.write_bytes(written)
    assert check_tenants(Settings(config_dir=tmp_path, variables=SECRETS)) == (f"{file}: ok", 0)


def test_two_shops_on_one_token_are_told_where(tmp_path: Path) -> None:
    folder = tmp_path / "tenants"
    folder.mkdir()
    for name in ("alpha", "beta"):
        (folder / f"{name}.yaml").write_text(SHOP, encoding="utf-8")
    outcome = check_tenants(Settings(config_dir=tmp_path, variables=SECRETS))
    assert outcome.text.splitlines() == [
        f"{folder}/alpha.yaml: ok",
        f"{folder}/beta.yaml:3:3: channels.line-main: has the same token as channel line-main of tenant alpha — "
        "give each tenant its own channel, or remove it from one of the two",
        "    3 |   line-main:",
        "      |   ^",
        "1 mistake in 1 of 2 files",
    ]


def test_a_file_with_a_wrong_name_is_told_the_right_one(tmp_path: Path) -> None:
    folder = tmp_path / "tenants"
    folder.mkdir()
    (folder / "My Shop.yaml").write_text(SHOP, encoding="utf-8")
    (folder / "other.yml").write_text(SHOP, encoding="utf-8")
    lines = check_tenants(Settings(config_dir=tmp_path, variables=SECRETS)).text.splitlines()
    told = [line for line in lines if "(file)" in line]
    assert "rename it to my-shop.yaml" in told[0]
    assert told[1].endswith("other.yml:1:1: (file): does not end in .yaml — rename it to other.yaml")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("channel_secret: abcdef # mine", "channel_secret: •••••••••••••"),
        ("a: {bot_token: 12:ab, mode: polling}", "a: {bot_token: •••••, mode: polling}"),
        ("token: ${NAME}", "token: ${NAME}"),
        ("chanel_acces: " + BOT_TOKEN, "chanel_acces: " + "•" * len(BOT_TOKEN)),
        ("base_url: https://openrouter.ai/api/v1", "base_url: https://openrouter.ai/api/v1"),
        ("name: ร้านกาแฟบ้านสวนริมแม่น้ำเจ้าพระยา", "name: ร้านกาแฟบ้านสวนริมแม่น้ำเจ้าพระยา"),
    ],
)
def test_no_secret_is_shown_with_its_line(line: str, shown: str) -> None:
    assert hidden(line) == shown
    assert len(hidden(line)) == len(line)


def test_the_terminals_language_is_the_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [language_of(env) for env in ({"LANG": "th_TH.UTF-8"}, {"LC_ALL": "C", "LANG": "th_TH"}, {})] == [
        "th",
        "en",
        "en",
    ]
