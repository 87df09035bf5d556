"""The Telegram Bot API on loopback. Each rule names its section in the platform's documentation."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from urllib.parse import parse_qsl, urlsplit

import aiohttp
from aiohttp import web

from tests.standins.model import Answer, Fault, Json, Recorded, utf16
from tests.standins.telegram_model import (
    BLOCKED,
    DEACTIVATED,
    KICKED,
    NOT_A_MEMBER,
    Bot,
    TelegramShown,
    bad_gateway,
    chat_of,
    multipart,
    refusal,
    refusal_of,
    too_many,
    unfolded,
    user_of,
)
from tests.standins.telegram_sending import TelegramSending
from tests.standins.telegram_text import Refused

__all__ = [
    "BLOCKED", "DEACTIVATED", "KICKED", "METHODS", "NOT_A_MEMBER", "TelegramShown", "TelegramStandIn", "bad_gateway",
    "refusal", "too_many",
]  # fmt: skip

METHODS = {
    "sendmessage", "sendphoto", "senddocument", "sendsticker", "editmessagetext", "sendchataction", "sendmessagedraft",
    "answercallbackquery", "getupdates", "setwebhook", "deletewebhook", "getwebhookinfo", "getme", "setmycommands",
    "getmycommands", "getfile",
}  # fmt: skip


class TelegramStandIn(TelegramSending):
    """api.telegram.org under `url`.

    `refuses` maps a chat to what sends to it meet (BLOCKED, …), `unknown` are chats that don't exist, `migrated` maps
    old group ids to new ones, `threads` the topics of a chat (absent: any), `per_chat` and `per_bot` are (calls,
    seconds) windows or None, `files` holds what getFile finds, `expired` callback queries that are too old,
    `unfetchable` addresses where Telegram finds no picture or file, `lacks` methods (in lower case) that an older
    server does not know.
    """

    name = "Telegram"

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
                "chat": chat_of(str(chat)),
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
        """`updates` [{update, token?}] for getUpdates, and `refuses`, `migrated`, `unknown`, `lacks`, `per_chat`,
        `per_bot`."""
        for order in orders.get("updates", ()):
            self.push_update(**order)
        self.refuses |= orders.get("refuses", {})
        self.migrated |= orders.get("migrated", {})
        self.unknown |= set(orders.get("unknown", ()))
        self.lacks |= set(orders.get("lacks", ()))
        for name in ("per_chat", "per_bot"):
            if name in orders:
                setattr(self, name, tuple(orders[name]) if orders[name] else None)
        return {}

    def state(self) -> dict[str, Json]:
        return {
            "delivered": {chat: [asdict(one) for one in shown] for chat, shown in self.delivered.items()},
            "drafts": self.drafts,
        }

    def read_body(self, raw: bytes, content_type: str) -> Json:
        # Telegram 2.2: JSON, urlencoded or multipart
        if content_type.startswith("application/x-www-form-urlencoded"):
            return dict(parse_qsl(raw.decode("utf-8", "replace"), keep_blank_values=True))
        if content_type.startswith("multipart/form-data"):
            return multipart(raw, content_type)
        return super().read_body(raw, content_type)

    def _bot(self, call: Recorded) -> Bot | None:
        found = re.match(r"/(?:file/)?bot([^/]+)/", call.path)
        return self.bots.get(found[1]) if found else None

    def refused(self, call: Recorded) -> Answer | None:
        # Telegram 2.2: 401 Unauthorized; 404 Not Found where the path names no bot at all
        if self._bot(call) is not None:
            return None
        code, word = (401, "Unauthorized") if re.match(r"/(file/)?bot\d+:", call.path) else (404, "Not Found")
        return refusal_of(Refused(word, code))

    async def handle(self, call: Recorded, request: web.Request, fault: Fault) -> Answer:
        bot = self._bot(call)
        assert bot is not None
        if call.path.startswith("/file/"):
            data = self.files.get(call.path.rpartition("/")[2])
            return (
                refusal_of(Refused("Not Found", 404)) if data is None else Answer(body=data, content_type="image/jpeg")
            )
        given: dict[str, Json] = {**call.query, **(call.body if isinstance(call.body, dict) else {})}
        method = call.path.rpartition("/")[2].lower()
        do = getattr(self, f"_{method}", None) if method in METHODS - self.lacks else None
        if do is None:
            return refusal_of(Refused("Not Found", 404))
        try:
            result = do(bot, unfolded(given))
            if asyncio.iscoroutine(result):
                result = await result
        except Refused as error:
            return refusal_of(error)
        return Answer(body={"ok": True, "result": result})

    async def _getupdates(self, bot: Bot, given: dict[str, Json]) -> Json:
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

    def _setwebhook(self, bot: Bot, given: dict[str, Json]) -> Json:
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

    def _deletewebhook(self, bot: Bot, given: dict[str, Json]) -> Json:
        return self._setwebhook(bot, {"drop_pending_updates": given.get("drop_pending_updates")})

    def _getwebhookinfo(self, bot: Bot, given: dict[str, Json]) -> Json:
        shown = {"url": bot.webhook["url"], "has_custom_certificate": False, "pending_update_count": len(bot.updates)}
        if bot.webhook["url"]:
            shown |= {"max_connections": bot.webhook["max_connections"], "ip_address": "203.0.113.9"}
        if bot.allowed:
            shown["allowed_updates"] = bot.allowed
        return shown

    def _getme(self, bot: Bot, given: dict[str, Json]) -> Json:
        flags = ("can_join_groups", "supports_inline_queries", "can_connect_to_business", "has_main_web_app")
        return {**user_of(bot), "can_read_all_group_messages": False, **dict.fromkeys(flags, True)}

    def _setmycommands(self, bot: Bot, given: dict[str, Json]) -> Json:
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

    def _getmycommands(self, bot: Bot, given: dict[str, Json]) -> Json:
        return bot.commands

    def _getfile(self, bot: Bot, given: dict[str, Json]) -> Json:
        name = str(given.get("file_id", ""))
        if name not in self.files:
            raise Refused("Bad Request: wrong file_id or the file is temporarily unavailable")
        size = len(self.files[name])
        # Telegram 2.2: getFile <=20 MB
        if size > 20 * 2**20:
            raise Refused("Bad Request: file is too big")
        return {"file_id": name, "file_unique_id": f"u{name}", "file_size": size, "file_path": f"photos/{name}"}
