"""The kinds of value that a tenant's file holds, each with its check and, for a wrong one, its remedy."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Annotated, Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import AfterValidator, BeforeValidator, GetJsonSchemaHandler, SecretStr, StringConstraints
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from config.addresses import is_host, public_host
from config.business_hours import mistake
from config.settings import web_address


def _secret(value: SecretStr) -> SecretStr:
    # A secret travels in a header or a URL. What is likely to have happened is told first.
    text = value.get_secret_value()
    if re.fullmatch(r"\$[A-Za-z_]\w*|\{+[A-Za-z_]\w*\}+", text):
        raise mistake("is a variable's name without `${` and `}` around it", "write ${NAME}")
    if re.match(r"(?i)bearer\s", text):
        raise mistake("begins with the word Bearer", "paste the value alone, without that word")
    if text != text.strip() and re.fullmatch(r"[!-~]+", text.strip()):
        remedy = "remove it where the value is kept: in .env, in its file, or in the Kubernetes secret (echo -n)"
        raise mistake("ends or begins with a space or a line break", remedy)
    if not re.fullmatch(r"[!-~]+", text):
        raise mistake("holds white space or characters outside ASCII, or is empty", "paste the value alone")
    return value


_TELEGRAM = re.compile(r"[0-9]{6,12}:[A-Za-z0-9_-]{30,}")
_LINE_TOKEN = re.compile(r"[A-Za-z0-9+/]{120,}={0,2}")
_LINE_SECRET = re.compile(r"[0-9a-f]{32}")


def _line_secret(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if _TELEGRAM.fullmatch(text):
        raise mistake("is a Telegram bot's token", "copy LINE's channel secret: Developers Console, Basic settings")
    if _LINE_TOKEN.fullmatch(text):
        what, remedy = "is a channel access token, not the channel secret", "swap the two, or copy the channel secret"
        raise mistake(what, f"{remedy}: Developers Console, Basic settings")
    return value


def _line_token(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if _TELEGRAM.fullmatch(text):
        remedy = "copy LINE's long-lived channel access token: Developers Console, Messaging API"
        raise mistake("is a Telegram bot's token", remedy)
    if _LINE_SECRET.fullmatch(text):
        what, remedy = "is the channel secret, not an access token", "swap the two, or issue a channel access token"
        raise mistake(what, f"{remedy}: Developers Console, Messaging API")
    return value


def _bot_token(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if _LINE_TOKEN.fullmatch(text) or _LINE_SECRET.fullmatch(text):
        raise mistake("is a key of LINE, not a Telegram bot's token", "copy the token from @BotFather: 123456:ABC…")
    return value


def _address(value: str) -> str:
    try:
        return web_address(value)
    except ValueError:
        raise mistake("is not an http(s) address", "write an address such as https://openrouter.ai/api/v1") from None


def _origin(value: str) -> str:
    address = _address(value)
    if address.count("/") != 2:
        raise mistake("is not an origin", "write scheme and host alone, such as https://www.example.com")
    return address


def _zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        near = get_close_matches(value, sorted(available_timezones()), 1, 0.6)
        raise mistake(
            "is not a time zone", f"did you mean {near[0]}?" if near else "write a name such as Asia/Bangkok"
        ) from None
    return value


def _hash(value: str) -> str:
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", value):
        raise mistake(
            "is not the SHA-256 of a key", "write sha256: and 64 hex digits; `printf %s KEY | sha256sum` prints them"
        )
    return value


def _webhook_secret(value: SecretStr) -> SecretStr:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,256}", value.get_secret_value()):
        raise mistake("is not a secret that Telegram takes", "use 1 to 256 of A-Z, a-z, 0-9, _ and -")
    return value


def _command_word(value: object) -> object:
    if not isinstance(value, bool) and not (isinstance(value, str) and re.fullmatch(r"[a-z0-9_]{1,32}", value)):
        raise mistake("is not a command's name", "use 1 to 32 of a-z, 0-9 and _; or false to switch the command off")
    return value


def _user_id(value: str) -> str:
    if not re.fullmatch(r"(line|telegram|web|terminal):\S+", value):
        raise mistake("is not a user's id", "write it with its platform, such as line:U… or telegram:12345")
    return value


def _public_address(value: str) -> str:
    if public_host(value) is None:
        raise mistake(
            "is not an https address that anybody can open",
            "write one such as https://www.example.com/menu.jpg, of at most 2000 characters, as a browser copies it",
        )
    return value


def _host(value: str) -> str:
    if not is_host(value.lower()):
        raise mistake("is not a host's name", "write the name alone, such as images.example.com")
    return value.lower()


def _sticker_number(value: str) -> str:
    if not re.fullmatch(r"[0-9]{1,20}", value):
        raise mistake("is not a sticker's number", 'write digits, such as "446"; LINE lists those that bots may send')
    return value


Secret = Annotated[SecretStr, AfterValidator(_secret)]
LineSecret = Annotated[Secret, AfterValidator(_line_secret)]
LineToken = Annotated[Secret, AfterValidator(_line_token)]
BotToken = Annotated[Secret, AfterValidator(_bot_token)]
Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Address = Annotated[str, AfterValidator(_address)]


# The text of a number in a file is kept as it is: chat and channel ids look like numbers.
class _OneOrMany(BeforeValidator):
    """A single text is a list of one."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string"}, handler(core)]}


_Number = BeforeValidator(lambda value: str(value) if type(value) is int else value, json_schema_input_type=str | int)
Identifier = Annotated[str, _Number, StringConstraints(min_length=1)]
PublicAddress = Annotated[str, AfterValidator(_public_address)]
HostName = Annotated[str, AfterValidator(_host)]
StickerNumber = Annotated[Identifier, AfterValidator(_sticker_number)]
EventName = Literal[
    "INQUIRY", "FEEDBACK", "REQUEST", "COMPLAINT", "TRANSACTION", "SUPPORT", "INFORMATION", "GENERIC_EVENT"
]
CommandName = Literal["start", "help", "reset", "language", "mydata", "forget", "link", "rate", "human", "bot"]
COMMANDS: tuple[CommandName, ...] = get_args(CommandName)
CommandWord = Annotated[str | bool, BeforeValidator(_command_word)]
UserId = Annotated[str, AfterValidator(_user_id)]
WebhookSecret = Annotated[SecretStr, AfterValidator(_webhook_secret)]
Origin = Annotated[str, AfterValidator(_origin)]
Zone = Annotated[str, AfterValidator(_zone)]
KeyHash = Annotated[str, AfterValidator(_hash)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
OneOrMany = _OneOrMany(lambda value: [value] if isinstance(value, str) else value)
