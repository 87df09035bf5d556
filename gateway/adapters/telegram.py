"""Telegram, the receiving half: verifies a webhook and reads its update. The sending half is in `telegram_sender.py`.

Whatever Telegram may add, drop or rename, a person's words get through: only what is needed is read.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from typing import Any

from config.tenants import TelegramChannel, Tenant
from gateway import kinds
from gateway.adapters.base import Received
from gateway.adapters.parsing import Object, derived_id, integer, load_json, moment, obj, shorten, string, without
from gateway.adapters.telegram_content import addressed, content_of, forwarded_from, quoted, replied_to, spoken
from gateway.adapters.telegram_texts import texts
from gateway.errors import BadSignature
from gateway.messages import InboundMessage, Kind
from memory import keys
from memory.keys import MAIN

SECRET_HEADER = "x-telegram-bot-api-secret-token"

# The kinds of update that we ask Telegram for, and so the only ones that come.
UPDATES = (
    "message",
    "edited_message",
    "business_message",
    "edited_business_message",
    "deleted_business_messages",
    "business_connection",
    "callback_query",
    "my_chat_member",
)
_MESSAGES = {
    "message": False,
    "business_message": False,
    "edited_message": True,
    "edited_business_message": True,
}
_ANONYMOUS_ADMIN = 1087968824  # stands in `from` of an admin who writes as the group
_AS_CHANNEL = 136817688  # stands in `from` of a person who writes as a channel
_COMMAND = re.compile(r"/([A-Za-z0-9_]{1,32})(?:@([A-Za-z0-9_]{3,32}))?(?!\S)")
_HERE = ("member", "administrator", "restricted", "creator")
_GONE = ("left", "kicked")

Username = Callable[[Tenant, str], str | None]
"""A channel's bot's user name without `@`, where it is known already."""


def _unknown(_tenant: Tenant, _channel: str) -> str | None:
    return None


class TelegramReceiver:
    """Verifies and parses Telegram's webhooks, and reads the updates that a poller fetched."""

    platform = "telegram"

    def __init__(self, username_of: Username = _unknown) -> None:
        self._username_of = username_of

    def receive(self, tenant: Tenant, channel: str, body: bytes, headers: Mapping[str, str], now: float) -> Received:
        """As the Receiver says; `channel` is one of the tenant's Telegram channels. One without a webhook secret takes
        nothing: nobody could tell Telegram's updates from forged ones."""
        settings = tenant.channels[channel]
        held = settings.webhook_secret if isinstance(settings, TelegramChannel) else None
        secret, given = held.get_secret_value() if held is not None else "", headers.get(SECRET_HEADER)
        if not secret or not given:
            raise BadSignature("The secret token is missing.")
        if not hmac.compare_digest(secret.encode(), given.encode("utf-8", "replace")):
            raise BadSignature("The secret token is wrong.")
        return texts(body, tenant.id, channel, now) or self.read(tenant, channel, load_json(body), now)

    def read(self, tenant: Tenant, channel: str, update: object, now: float) -> Received:
        """What one update holds, already known to be Telegram's. Never raises."""
        if not isinstance(update, dict):
            return Received((), {"unknown": 1})
        read = _Reading(tenant, channel, update, now, self._username_of(tenant, channel)).read()
        return Received((), {read: 1}) if isinstance(read, str) else Received((read,))


class _Reading:
    """One update being read."""

    def __init__(self, tenant: Tenant, channel: str, update: Object, now: float, username: str | None) -> None:
        settings = tenant.channels[channel]
        token = settings.bot_token.get_secret_value() if isinstance(settings, TelegramChannel) else ""
        bot_id = token.partition(":")[0]
        self.tenant, self.channel, self.update, self.now, self.username = tenant.id, channel, update, now, username
        self.bot_id = int(bot_id) if bot_id.isascii() and bot_id.isdigit() else None

    def read(self) -> InboundMessage | str:
        """The message, or the name under which the update is counted and passed over."""
        for name, edited in _MESSAGES.items():
            if message := obj(self.update, name):
                return self._message(message, edited)
        if callback := obj(self.update, "callback_query"):
            return self._callback(callback)
        if change := obj(self.update, "my_chat_member"):
            return self._membership(change)
        if deleted := obj(self.update, "deleted_business_messages"):
            return self._deleted(deleted)
        return next((name for name in kinds.TELEGRAM_COUNTED if name in self.update), "unknown")

    def _message(self, message: Object, edited: bool) -> InboundMessage | str:
        chat = _chat(message)
        if chat is None:
            return "no_chat"
        chat_id, group = chat
        person = _person(message, group)
        if isinstance(person, str):
            return person
        business_id = string(message, "business_connection_id")
        if business_id and integer(obj(message, "from"), "id") not in (chat_id, None):
            return "business_owner"  # the owner's own words to the customer
        content = content_of(message)
        if isinstance(content, str):
            return content
        kind, raw, entities, extra = content
        if edited and not raw:
            return "edited_without_text"  # a live location that moves, a changed photo
        text, mentioned = raw, True
        if group:
            places, mentioned = addressed(message, raw, entities, self.bot_id, self.username)
            text = without(raw, places) if places else raw
        if command := _COMMAND.match(text):
            if not self._ours(command[2]):
                return "other_bots_command"
            mentioned = True
            text = f"/{command[1]}{text[command.end() :]}"
            if command[1] == "start" and not group and not edited:
                kind = Kind.FOLLOW
                if payload := text[len("/start") :].strip():
                    extra["start"] = payload[:64]
        if quote := quoted(message):
            extra["quoted_text"] = quote
        if replied := replied_to(message):
            extra["quoted_message_id"] = replied
        if (origin := forwarded_from(message)) is not None:
            extra["forwarded"] = origin
        if edited:
            extra["kind"], kind = str(kind), Kind.EDITED
        sent_at = moment(message, "edit_date" if edited else "date", 1, self.now)
        return self._made(*chat, kind, text, person, message, sent_at=sent_at, extra=extra, mentioned=mentioned)

    def _callback(self, callback: Object) -> InboundMessage | str:
        message = obj(callback, "message")
        chat = _chat(message)
        if chat is None:
            return "callback_without_chat"  # a button below an inline message, which we never send
        extra: dict[str, Any] = {}
        if callback_id := string(callback, "id"):
            extra["callback_id"] = callback_id
        data = string(callback, "data") or ""
        person = _person(callback, chat[1])
        if isinstance(person, str):
            return person
        return self._made(*chat, Kind.POSTBACK, data, person, message, sent_at=self.now, extra=extra)

    def _membership(self, change: Object) -> InboundMessage | str:
        chat = _chat(change)
        if chat is None:
            return "no_chat"
        before = obj(change, "old_chat_member").get("status")
        after = obj(change, "new_chat_member").get("status")
        extra: dict[str, Any] = {}
        if after in _GONE:
            kind = Kind.UNFOLLOW
        elif after in _HERE and before not in _HERE:
            kind = Kind.FOLLOW
            if not chat[1]:
                extra["unblocked"] = True  # "/start" may come right after it
        else:
            return "my_chat_member"
        person = _person(change, chat[1])
        if isinstance(person, str):
            return person
        sent_at = moment(change, "date", 1, self.now)
        return self._made(*chat, kind, "", person, {}, sent_at=sent_at, extra=extra)

    def _deleted(self, deleted: Object) -> InboundMessage | str:
        """Messages that were deleted in a business account's chat."""
        chat = _chat(deleted)
        ids = deleted.get("message_ids")
        gone = [str(one) for one in ids if type(one) is int] if isinstance(ids, list) else []
        if chat is None or not gone:
            return "no_chat"
        nobody = (None, None, None)
        return self._made(*chat, Kind.UNSEND, "", nobody, deleted, sent_at=self.now, extra={"message_ids": gone})

    def _ours(self, username: str | None) -> bool:
        """Is a command meant for us? While our own name is unknown, Telegram's word for it has to do: by default it
        hands us only our own."""
        return username is None or self.username is None or username.lower() == self.username.lower()

    def _made(
        self,
        chat_id: int,
        group: bool,
        kind: Kind,
        text: str,
        person: tuple[str | None, str | None, str | None],
        message: Object,
        *,
        sent_at: float,
        extra: dict[str, Any],
        mentioned: bool = True,
    ) -> InboundMessage:
        update_id = integer(self.update, "update_id")
        message_id = integer(message, "message_id")
        thread_id = integer(message, "message_thread_id") if message.get("is_topic_message") is True else None
        sender_id, sender_name, language_code = person
        business_id = string(message, "business_connection_id")
        # What is said in a topic, or to a business whose messages the bot answers, is a talk of its own.
        if business_id is not None:
            talk = f"business-{_plain(business_id)}"
        else:
            talk = f"topic-{thread_id}" if group and thread_id is not None else MAIN
        return InboundMessage(
            tenant=self.tenant,
            channel=self.channel,
            platform="telegram",
            event_id=derived_id(self.update) if update_id is None else str(update_id),
            user_id=f"telegram:group:{chat_id}" if group else f"telegram:{chat_id}",
            chat_id=str(chat_id),
            kind=kind,
            text=shorten(text, extra),
            sender_id=sender_id if group else None,
            sender_name=sender_name,
            language_code=language_code,
            message_id=None if message_id is None else str(message_id),
            sent_at=sent_at,
            received_at=self.now,
            thread_id=None if thread_id is None else str(thread_id),
            business_id=business_id,
            mentioned=mentioned,
            extra=extra,
            conversation_id=talk,
        )


def _plain(connection: str) -> str:
    """A business connection's id as part of a conversation's id."""
    fits = keys.CONVERSATION_ID.fullmatch(connection) is not None and len(connection) <= 64
    return connection if fits else hashlib.sha256(connection.encode("utf-8", "replace")).hexdigest()[:32]


def _chat(parent: Object) -> tuple[int, bool] | None:
    """The chat's id and whether it is a group; None for channels and where there is none."""
    chat = obj(parent, "chat")
    chat_id = integer(chat, "id")
    if not chat_id or chat.get("type") == "channel":
        return None
    return chat_id, chat_id < 0


def _person(parent: Object, group: bool) -> tuple[str | None, str | None, str | None] | str:
    """The writer's canonical id, name and language, or the name under which a writer who is no person is counted."""
    sender = obj(parent, "from")
    sender_id = integer(sender, "id")
    if parent.get("is_automatic_forward") is True:
        return "automatic_forward"
    if group and sender_id in (_ANONYMOUS_ADMIN, _AS_CHANNEL):
        author = obj(parent, "sender_chat")
        channel_id = integer(author, "id") if sender_id == _AS_CHANNEL else None
        name = string(parent, "author_signature") or string(author, "title")
        return f"telegram:{channel_id}" if channel_id else None, name and spoken(name), None
    if sender.get("is_bot") is True or "sender_business_bot" in parent:
        return "bot"  # two bots that answer each other never stop
    name = " ".join(filter(None, (string(sender, "first_name"), string(sender, "last_name"))))
    return f"telegram:{sender_id}" if sender_id else None, spoken(name) or None, string(sender, "language_code", 35)
