"""The Telegram Bot API on loopback. Each rule names its section in the platform's documentation."""

from __future__ import annotations

import asyncio
import json
import re
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from email import message_from_bytes
from email.policy import HTTP
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import aiohttp
from aiohttp import web

from tests.standins.server import Answer, Fault, Json, Recorded, StandIn, utf16
from tests.standins.telegram_text import Refused, parsed

# Telegram 2.2: 403, by kind
BLOCKED = "Forbidden: bot was blocked by the user"
DEACTIVATED = "Forbidden: user is deactivated"
KICKED = "Forbidden: bot was kicked from the supergroup chat"
NOT_A_MEMBER = "Forbidden: bot is not a member of the supergroup chat"

ACTIONS = {
    "typing", "upload_photo", "record_video", "upload_video", "record_voice", "upload_voice", "upload_document",
    "choose_sticker", "find_location", "record_video_note", "upload_video_note",
}  # fmt: skip


def too_many(retry_after: int = 1, *, parameters: bool = True, **more: Any) -> Fault:
    """Telegram 2.2: 429 with description, `parameters.retry_after` and a Retry-After header; or without parameters."""
    body = {"ok": False, "error_code": 429, "description": f"Too Many Requests: retry after {retry_after}"}
    if parameters:
        body["parameters"] = {"retry_after": retry_after}
    return Fault(429, body, {"Retry-After": str(retry_after)}, **more)


def refusal(code: int, description: str, **more: Any) -> Fault:
    """Any other `ok: false`."""
    return Fault(code, {"ok": False, "error_code": code, "description": description}, **more)


def bad_gateway(**more: Any) -> Fault:
    """Telegram 2.3: a 502 that is not JSON."""
    return Fault(502, "<html><head><title>502 Bad Gateway</title></head></html>", **more)


@dataclass(frozen=True, slots=True)
class TelegramShown:
    """A message of a bot on a chat's screen; `text` as it reads after edits."""

    chat: str
    text: str
    message_id: int
    at: float
    bot: int
    method: str
    entities: tuple[Mapping[str, Json], ...] = ()
    markup: Json = None
    thread_id: int | None = None
    edits: int = 0


@dataclass(slots=True)
class _Bot:
    token: str
    id: int
    username: str
    webhook: dict[str, Json] = field(default_factory=lambda: {"url": ""})
    commands: list[Json] = field(default_factory=list)
    updates: deque[dict[str, Json]] = field(default_factory=deque)
    allowed: list[str] = field(default_factory=list)
    poller: asyncio.Event | None = None
    last_update: int = 310_000_000


class TelegramStandIn(StandIn):
    """api.telegram.org under `url`.

    `refuses` maps a chat to what sends to it meet (BLOCKED, …), `unknown` are chats that don't exist, `migrated` maps
    old group ids to new ones, `threads` the topics of a chat (absent: any), `per_chat` and `per_bot` are (calls,
    seconds) windows or None, `files` holds what getFile finds, `expired` callback queries that are too old.
    """

    name = "Telegram"

    def __init__(self, tokens: Sequence[str] = ("1000001:first-test-bot",), **more: Any) -> None:
        super().__init__(**more)
        self.tokens = tuple(tokens)
        self.refuses: dict[str, str] = {}
        self.unknown: set[str] = set()
        self.migrated: dict[str, str] = {}
        self.threads: dict[str, set[int]] = {}
        self.files: dict[str, bytes] = {}
        self.expired: set[str] = set()
        self.per_chat: tuple[int, float] | None = None
        self.per_bot: tuple[int, float] | None = None
        self._forget()

    def _forget(self) -> None:
        self.bots = {
            token: _Bot(token, int(token.partition(":")[0]), f"bot{token.partition(':')[0]}_bot")
            for token in self.tokens
        }
        self.shown: list[TelegramShown] = []
        self.drafts: list[dict[str, Json]] = []
        self._last_id = 4000
        self._sends: dict[str, deque[float]] = defaultdict(deque)

    # --- what tests ask and say

    @property
    def delivered(self) -> dict[str, list[TelegramShown]]:
        """What each chat has on its screen, in order. Telegram has no retry key: what came twice shows twice."""
        chats: dict[str, list[TelegramShown]] = defaultdict(list)
        for one in self.shown:
            chats[one.chat].append(one)
        return dict(chats)

    def text_update(
        self, chat: int, text: str, *, user: int | None = None, token: str | None = None
    ) -> dict[str, Json]:
        """A message update as Telegram sends it, with the bot's next update_id."""
        bot = self.bots[token or self.tokens[0]]
        bot.last_update += 1
        sender = {"id": user or chat, "is_bot": False, "first_name": "Test", "language_code": "th"}
        return {
            "update_id": bot.last_update,
            "message": {
                "message_id": self._new_id(),
                "from": sender,
                "chat": _chat(str(chat)),
                "date": int(self.clock()),
                "text": text,
            },
        }

    def push_update(self, update: Mapping[str, Json], token: str | None = None) -> None:
        """Queues an update for getUpdates."""
        self.commit("update", token=token or self.tokens[0], update=dict(update))

    async def deliver(self, url: str, update: Mapping[str, Json], secret: str) -> int:
        """Posts an update to a webhook; the status of its answer."""
        # Telegram 2.1: JSON ASCII-escaped, the secret in its header
        headers = {"Content-Type": "application/json", "X-Telegram-Bot-Api-Secret-Token": secret}
        body = json.dumps(update).encode()
        async with aiohttp.ClientSession() as client, client.post(url, data=body, headers=headers) as answer:
            return answer.status

    def reset(self) -> None:
        super().reset()
        self._forget()

    def script(self, orders: dict[str, Json]) -> dict[str, Json]:
        """`updates` [{update, token?}] for getUpdates, and `refuses`, `migrated`, `unknown`, `per_chat`, `per_bot`."""
        for order in orders.get("updates", ()):
            self.push_update(**order)
        self.refuses |= orders.get("refuses", {})
        self.migrated |= orders.get("migrated", {})
        self.unknown |= set(orders.get("unknown", ()))
        for name in ("per_chat", "per_bot"):
            if name in orders:
                setattr(self, name, tuple(orders[name]) if orders[name] else None)
        return {}

    def state(self) -> dict[str, Json]:
        return {
            "delivered": {chat: [asdict(one) for one in shown] for chat, shown in self.delivered.items()},
            "drafts": self.drafts,
        }

    # --- state

    def apply(self, change: str, data: dict[str, Json]) -> None:
        match change:
            case "shown":
                self.shown.append(TelegramShown(**{**data, "entities": tuple(data["entities"])}))
                self._last_id = max(self._last_id, data["message_id"])
            case "edited":
                place = data["place"]
                old = self.shown[place]
                new = {"text": data["text"], "entities": tuple(data["entities"]), "markup": data["markup"]}
                self.shown[place] = replace(old, **new, edits=old.edits + 1)
            case "update":
                bot = self.bots[data["token"]]
                bot.updates.append(data["update"])
                bot.last_update = max(bot.last_update, data["update"]["update_id"])
                if bot.poller is not None:
                    bot.poller.set()
            case "seen":
                bot = self.bots[data["token"]]
                while bot.updates and bot.updates[0]["update_id"] < data["offset"]:
                    bot.updates.popleft()
            case "webhook":
                bot = self.bots[data["token"]]
                bot.webhook, bot.allowed = data["webhook"], data["allowed"]
            case _:
                raise ValueError(change)

    def _new_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def read_body(self, raw: bytes, content_type: str) -> Json:
        # Telegram 2.2: JSON, urlencoded or multipart
        if content_type.startswith("application/x-www-form-urlencoded"):
            return dict(parse_qsl(raw.decode("utf-8", "replace"), keep_blank_values=True))
        if content_type.startswith("multipart/form-data"):
            return _multipart(raw, content_type)
        return super().read_body(raw, content_type)

    # --- answers

    def _bot(self, call: Recorded) -> _Bot | None:
        found = re.match(r"/(?:file/)?bot([^/]+)/", call.path)
        return self.bots.get(found[1]) if found else None

    def refused(self, call: Recorded) -> Answer | None:
        # Telegram 2.2: 401 Unauthorized; 404 Not Found where the path names no bot at all
        if self._bot(call) is not None:
            return None
        code, word = (401, "Unauthorized") if re.match(r"/(file/)?bot\d+:", call.path) else (404, "Not Found")
        return _no(Refused(word, code))

    async def handle(self, call: Recorded, request: web.Request, fault: Fault) -> Answer:
        bot = self._bot(call)
        assert bot is not None
        if call.path.startswith("/file/"):
            data = self.files.get(call.path.rpartition("/")[2])
            return _no(Refused("Not Found", 404)) if data is None else Answer(body=data, content_type="image/jpeg")
        given: dict[str, Json] = {**call.query, **(call.body if isinstance(call.body, dict) else {})}
        method = call.path.rpartition("/")[2].lower()
        do = getattr(self, f"_{method}", None) if method in METHODS else None
        if do is None:
            return _no(Refused("Not Found", 404))
        try:
            result = do(bot, _unfolded(given))
            if asyncio.iscoroutine(result):
                result = await result
        except Refused as error:
            return _no(error)
        return Answer(body={"ok": True, "result": result})

    # --- sending

    def _target(self, bot: _Bot, given: dict[str, Json]) -> str:
        chat = str(given.get("chat_id", ""))
        if not re.fullmatch(r"-?\d{1,19}|@\w{3,32}", chat):
            raise Refused("Bad Request: chat_id is empty" if not chat else "Bad Request: chat not found")
        self._pace(f"{bot.id}:{chat}", self.per_chat)
        self._pace(str(bot.id), self.per_bot)
        # Telegram 2.1: a group that became a supergroup: 400 with parameters.migrate_to_chat_id
        if chat in self.migrated:
            raise Refused(
                "Bad Request: group chat was upgraded to a supergroup chat",
                parameters={"migrate_to_chat_id": int(self.migrated[chat])},
            )
        if chat in self.unknown:
            raise Refused("Bad Request: chat not found")
        # Telegram 2.2: 403: blocked, deactivated, kicked, not a member
        if chat in self.refuses:
            raise Refused(self.refuses[chat], 403)
        thread = given.get("message_thread_id")
        # Telegram 2.2: 400 message thread not found
        if thread is not None and chat in self.threads and int(thread) not in self.threads[chat]:
            raise Refused("Bad Request: message thread not found")
        return chat

    def _pace(self, bucket: str, limit: tuple[int, float] | None) -> None:
        # Telegram 2.2: rates, per chat and per bot, over all calls to a chat; a sliding window
        if limit is None:
            return
        count, seconds = limit
        now, sends = self.clock(), self._sends[bucket]
        while sends and sends[0] <= now - seconds:
            sends.popleft()
        if len(sends) >= count:
            wait = max(1, round(sends[0] + seconds - now + 0.5))
            raise Refused(f"Too Many Requests: retry after {wait}", 429, {"retry_after": wait})
        sends.append(now)

    def _sendmessage(self, bot: _Bot, given: dict[str, Json]) -> Json:
        chat = self._target(bot, given)
        text, entities = parsed(given.get("text"), given.get("parse_mode"), given.get("entities"), 4096)
        # Telegram 2.2: message text is empty
        if not text.strip():
            raise Refused("Bad Request: message text is empty")
        return self._show(bot, chat, text, entities, given, "sendMessage")

    def _sendphoto(self, bot: _Bot, given: dict[str, Json]) -> Json:
        return self._send_file(bot, given, "photo")

    def _senddocument(self, bot: _Bot, given: dict[str, Json]) -> Json:
        return self._send_file(bot, given, "document")

    def _send_file(self, bot: _Bot, given: dict[str, Json], kind: str) -> Json:
        chat = self._target(bot, given)
        sent = given.get(kind)
        if isinstance(sent, str) and sent.startswith("attach://"):
            sent = given.get(sent.removeprefix("attach://"))
        if not sent:
            raise Refused(f"Bad Request: there is no {kind} in the request")
        # Telegram 2.2: upload at most 50 MB
        if isinstance(sent, dict) and sent["size"] > 50 * 2**20:
            raise Refused("Request Entity Too Large", 413)
        caption, entities = parsed(
            given.get("caption"), given.get("parse_mode"), given.get("caption_entities"), 1024, "message caption"
        )
        message = self._show(bot, chat, caption, entities, given, f"send{kind.title()}")
        held = {"file_id": f"file-{message['message_id']}", "file_unique_id": f"u{message['message_id']}"}
        message[kind] = [{**held, "width": 90, "height": 90}] if kind == "photo" else held
        del message["text"]
        return message

    def _show(
        self, bot: _Bot, chat: str, text: str, entities: list[Json], given: dict[str, Json], method: str
    ) -> dict[str, Json]:
        markup = _markup(given.get("reply_markup"))
        reply = given.get("reply_parameters")
        # Telegram 2.2: message to be replied not found, unless allow_sending_without_reply
        if reply and not reply.get("allow_sending_without_reply") and int(reply["message_id"]) > self._last_id:
            raise Refused("Bad Request: message to be replied not found")
        thread = given.get("message_thread_id")
        self.commit(
            "shown", chat=chat, text=text, message_id=self._last_id + 1, at=self.clock(), bot=bot.id, method=method,
            entities=entities, markup=markup, thread_id=int(thread) if thread is not None else None,
        )  # fmt: skip
        return self._message(bot, self.shown[-1])

    def _message(self, bot: _Bot, shown: TelegramShown) -> dict[str, Json]:
        message: dict[str, Json] = {
            "message_id": shown.message_id,
            "from": _user(bot),
            "chat": _chat(shown.chat),
            "date": int(shown.at),
            "text": shown.text,
        }
        if shown.entities:
            message["entities"] = list(shown.entities)
        if shown.thread_id is not None:
            message["message_thread_id"] = shown.thread_id
        if shown.markup and "inline_keyboard" in shown.markup:
            message["reply_markup"] = shown.markup
        return message

    def _editmessagetext(self, bot: _Bot, given: dict[str, Json]) -> Json:
        chat = self._target(bot, given)
        text, entities = parsed(given.get("text"), given.get("parse_mode"), given.get("entities"), 4096)
        if not text.strip():
            raise Refused("Bad Request: message text is empty")
        markup = _markup(given.get("reply_markup"))
        wanted = (chat, int(given.get("message_id", 0)), bot.id)
        places = [at for at, one in enumerate(self.shown) if (one.chat, one.message_id, one.bot) == wanted]
        if not places:
            raise Refused("Bad Request: message to edit not found")
        place, old = places[0], self.shown[places[0]]
        # Telegram 2.2: same content -> 400 `message is not modified...`
        if (old.text, list(old.entities), old.markup) == (text, entities, markup):
            raise Refused(
                "Bad Request: message is not modified: specified new message content and reply markup are exactly the "
                "same as a current content and reply markup of the message"
            )
        self.commit("edited", place=place, text=text, entities=entities, markup=markup)
        return {**self._message(bot, self.shown[place]), "edit_date": int(self.clock())}

    def _sendchataction(self, bot: _Bot, given: dict[str, Json]) -> Json:
        self._target(bot, given)
        if given.get("action") not in ACTIONS:
            raise Refused("Bad Request: wrong parameter action in request")
        return True

    def _sendmessagedraft(self, bot: _Bot, given: dict[str, Json]) -> Json:
        chat = self._target(bot, given)
        # Telegram 2.2: sendMessageDraft: private chats only, draft_id != 0, text 0-4096
        if not chat.isdigit():
            raise Refused("Bad Request: the method is available only in private chats")
        if int(given.get("draft_id") or 0) == 0:
            raise Refused("Bad Request: draft_id must be non-zero")
        text, _ = parsed(given.get("text"), given.get("parse_mode"), given.get("entities"), 4096)
        self.drafts.append({"chat": chat, "draft_id": int(given["draft_id"]), "text": text, "at": self.clock()})
        return True

    def _answercallbackquery(self, bot: _Bot, given: dict[str, Json]) -> Json:
        query = str(given.get("callback_query_id", ""))
        # Telegram 2.2: late -> 400 query is too old
        if not query or query in self.expired:
            raise Refused("Bad Request: query is too old and response timeout expired or query ID is invalid")
        if utf16(str(given.get("text", ""))) > 200:
            raise Refused("Bad Request: MESSAGE_TOO_LONG")
        return True

    # --- receiving

    async def _getupdates(self, bot: _Bot, given: dict[str, Json]) -> Json:
        # Telegram 2.1: getUpdates with a webhook set -> 409; of two pollers the older one gets 409
        if bot.webhook["url"]:
            raise Refused(
                "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the "
                "webhook first",
                409,
            )
        offset, timeout = int(given.get("offset") or 0), float(given.get("timeout") or 0)
        if "allowed_updates" in given:
            bot.allowed = list(given["allowed_updates"])
        if offset > 0:
            self.commit("seen", token=bot.token, offset=offset)
        if bot.poller is not None:
            bot.poller.set()
        mine = bot.poller = asyncio.Event()
        if not bot.updates and timeout:
            try:
                async with asyncio.timeout(min(timeout, 50)):
                    await mine.wait()
            except TimeoutError:
                pass
        if bot.poller is not mine:
            raise Refused(
                "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running", 409
            )
        bot.poller = None
        waiting = list(bot.updates)
        if offset < 0:
            waiting = waiting[offset:]
        return waiting[: int(given.get("limit") or 100)]

    def _setwebhook(self, bot: _Bot, given: dict[str, Json]) -> Json:
        url = str(given.get("url", ""))
        if url:
            parts = urlsplit(url)
            # Telegram 2.1: TLS, ports 443/80/88/8443
            if parts.scheme != "https" or not parts.hostname:
                raise Refused("Bad Request: bad webhook: An HTTPS URL must be provided for webhook")
            if (parts.port or 443) not in (443, 80, 88, 8443):
                raise Refused("Bad Request: bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443")
        # Telegram 2.1: secret_token 1-256 of A-Za-z0-9_-
        secret = given.get("secret_token")
        if secret is not None and not re.fullmatch(r"[A-Za-z0-9_-]{1,256}", str(secret)):
            raise Refused("Bad Request: secret token contains unallowed characters")
        connections = int(given.get("max_connections") or 40)
        if not 1 <= connections <= 100:
            raise Refused("Bad Request: max_connections must be between 1 and 100")
        # Telegram 2.1: allowed_updates omitted keeps the previous list
        allowed = list(given["allowed_updates"]) if "allowed_updates" in given else bot.allowed
        if given.get("drop_pending_updates"):
            bot.updates.clear()
        webhook = {"url": url, "secret_token": secret, "max_connections": connections}
        self.commit("webhook", token=bot.token, webhook=webhook, allowed=allowed)
        return True

    def _deletewebhook(self, bot: _Bot, given: dict[str, Json]) -> Json:
        return self._setwebhook(bot, {"drop_pending_updates": given.get("drop_pending_updates")})

    def _getwebhookinfo(self, bot: _Bot, given: dict[str, Json]) -> Json:
        shown = {"url": bot.webhook["url"], "has_custom_certificate": False, "pending_update_count": len(bot.updates)}
        if bot.webhook["url"]:
            shown |= {"max_connections": bot.webhook["max_connections"], "ip_address": "203.0.113.9"}
        if bot.allowed:
            shown["allowed_updates"] = bot.allowed
        return shown

    def _getme(self, bot: _Bot, given: dict[str, Json]) -> Json:
        flags = ("can_join_groups", "supports_inline_queries", "can_connect_to_business", "has_main_web_app")
        return {**_user(bot), "can_read_all_group_messages": False, **dict.fromkeys(flags, True)}

    def _setmycommands(self, bot: _Bot, given: dict[str, Json]) -> Json:
        commands = given.get("commands") or []
        # Telegram 2.1: commands: <=100, name 1-32 [a-z0-9_]
        if len(commands) > 100:
            raise Refused("Bad Request: BOT_COMMANDS_TOO_MUCH")
        for command in commands:
            if not re.fullmatch(r"[a-z0-9_]{1,32}", str(command.get("command", ""))):
                raise Refused("Bad Request: BOT_COMMAND_INVALID")
            if not 1 <= utf16(str(command.get("description", ""))) <= 256:
                raise Refused("Bad Request: BOT_COMMAND_DESCRIPTION_INVALID")
        bot.commands = commands
        return True

    def _getmycommands(self, bot: _Bot, given: dict[str, Json]) -> Json:
        return bot.commands

    def _getfile(self, bot: _Bot, given: dict[str, Json]) -> Json:
        name = str(given.get("file_id", ""))
        if name not in self.files:
            raise Refused("Bad Request: wrong file_id or the file is temporarily unavailable")
        size = len(self.files[name])
        # Telegram 2.2: getFile <=20 MB
        if size > 20 * 2**20:
            raise Refused("Bad Request: file is too big")
        return {"file_id": name, "file_unique_id": f"u{name}", "file_size": size, "file_path": f"photos/{name}"}


METHODS = {
    "sendmessage", "sendphoto", "senddocument", "editmessagetext", "sendchataction", "sendmessagedraft",
    "answercallbackquery", "getupdates", "setwebhook", "deletewebhook", "getwebhookinfo", "getme", "setmycommands",
    "getmycommands", "getfile",
}  # fmt: skip

# Telegram 2.3: in forms nested objects come as JSON strings, booleans as true|false
_NESTED = {
    "reply_markup", "reply_parameters", "entities", "caption_entities", "link_preview_options", "commands",
    "allowed_updates", "scope", "ephemeral_message_parameters",
}  # fmt: skip
_BOOLEANS = {
    "drop_pending_updates",
    "disable_notification",
    "protect_content",
    "show_alert",
    "can_stop",
    "keep_on_stop",
}


def _unfolded(given: dict[str, Json]) -> dict[str, Json]:
    made: dict[str, Json] = {}
    for name, value in given.items():
        if name in _NESTED and isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                raise Refused(f"Bad Request: can't parse {name.replace('_', ' ')} JSON object") from None
        elif name in _BOOLEANS and isinstance(value, str):
            value = value.lower() in ("true", "1", "yes")
        made[name] = value
    return made


def _markup(markup: Json) -> Json:
    if not markup:
        return None
    if not isinstance(markup, dict):
        raise Refused("Bad Request: object expected as reply markup")
    for row in markup.get("inline_keyboard", ()):
        for button in row:
            if not button.get("text"):
                raise Refused(
                    "Bad Request: can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"
                )
            # Telegram 2.2: callback_data 1-64 bytes
            if "callback_data" in button and not 1 <= len(button["callback_data"].encode()) <= 64:
                raise Refused("Bad Request: BUTTON_DATA_INVALID")
    return markup


def _multipart(raw: bytes, content_type: str) -> dict[str, Json]:
    form = message_from_bytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + raw, policy=HTTP)
    made: dict[str, Json] = {}
    for part in form.iter_parts():
        name = part.get_param("name", header="content-disposition")
        data = bytes(part.get_payload(decode=True) or b"")
        file = part.get_filename()
        made[str(name)] = {"filename": file, "size": len(data)} if file else data.decode()
    return made


def _user(bot: _Bot) -> dict[str, Json]:
    return {"id": bot.id, "is_bot": True, "first_name": f"Bot {bot.id}", "username": bot.username}


def _chat(chat: str) -> dict[str, Json]:
    if chat.startswith("-"):
        kind = "supergroup" if chat.startswith("-100") else "group"
        return {"id": int(chat), "type": kind, "title": f"Group {chat}"}
    if chat.startswith("@"):
        return {"id": -1009999999999, "type": "channel", "title": chat, "username": chat[1:]}
    return {"id": int(chat), "type": "private", "first_name": "Test"}


def _no(error: Refused) -> Answer:
    body: dict[str, Json] = {"ok": False, "error_code": error.code, "description": error.description}
    headers = {}
    if error.parameters:
        body["parameters"] = error.parameters
        if "retry_after" in error.parameters:
            headers["Retry-After"] = str(error.parameters["retry_after"])
    return Answer(error.code, body, headers)
