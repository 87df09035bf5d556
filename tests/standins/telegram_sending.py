"""How Telegram takes messages. Each rule names its section in the platform's documentation."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.standins.model import Json, utf16
from tests.standins.server import StandIn
from tests.standins.telegram_model import ACTIONS, Bot, TelegramShown, chat_of, checked_markup, user_of
from tests.standins.telegram_text import Refused, parsed


class TelegramSending(StandIn):
    """The part of Telegram that has messages to show, and its state."""

    def __init__(
        self,
        tokens: Sequence[str] = ("1000001:first-test-bot",),
        *,
        names: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(**more)
        self.tokens = tuple(tokens)
        self.names = dict(names or {})
        self.refuses: dict[str, str] = {}
        self.unknown: set[str] = set()
        self.migrated: dict[str, str] = {}
        self.threads: dict[str, set[int]] = {}
        self.files: dict[str, bytes] = {}
        self.expired: set[str] = set()
        self.unfetchable: set[str] = set()
        self.lacks: set[str] = set()
        self.per_chat: tuple[int, float] | None = None
        self.per_bot: tuple[int, float] | None = None
        self._forget()

    def _forget(self) -> None:
        self.bots = {
            token: Bot(token, number := int(token.partition(":")[0]), self.names.get(token, f"bot{number}_bot"))
            for token in self.tokens
        }
        self.shown: list[TelegramShown] = []
        self.drafts: list[dict[str, Json]] = []
        self._last_id = 4000
        self._sends: dict[str, deque[float]] = defaultdict(deque)

    @property
    def delivered(self) -> dict[str, list[TelegramShown]]:
        """What each chat has on its screen, in order. Telegram has no retry key: what came twice shows twice."""
        chats: dict[str, list[TelegramShown]] = defaultdict(list)
        for one in self.shown:
            chats[one.chat].append(one)
        return dict(chats)

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

    def _target(self, bot: Bot, given: dict[str, Json]) -> str:
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

    def _sendmessage(self, bot: Bot, given: dict[str, Json]) -> Json:
        chat = self._target(bot, given)
        text, entities = parsed(given.get("text"), given.get("parse_mode"), given.get("entities"), 4096)
        # Telegram 2.2: message text is empty
        if not text.strip():
            raise Refused("Bad Request: message text is empty")
        return self._show(bot, chat, text, entities, given, "sendMessage")

    def _sendphoto(self, bot: Bot, given: dict[str, Json]) -> Json:
        return self._send_file(bot, given, "photo")

    def _senddocument(self, bot: Bot, given: dict[str, Json]) -> Json:
        return self._send_file(bot, given, "document")

    def _sendsticker(self, bot: Bot, given: dict[str, Json]) -> Json:
        chat = self._target(bot, given)
        sticker = self._given_file(given, "sticker")
        message = self._show(bot, chat, "", [], given, "sendSticker", sticker)
        del message["text"]
        return {**message, "sticker": {"file_id": sticker, "file_unique_id": "s", "type": "regular"}}

    def _given_file(self, given: dict[str, Json], kind: str) -> str | None:
        """The address or file_id of what is to be shown; None: it was uploaded."""
        sent = given.get(kind)
        if isinstance(sent, str) and sent.startswith("attach://"):
            sent = given.get(sent.removeprefix("attach://"))
        if not sent:
            raise Refused(f"Bad Request: there is no {kind} in the request")
        # Telegram 2.2: upload at most 50 MB
        if isinstance(sent, dict):
            if sent["size"] > 50 * 2**20:
                raise Refused("Request Entity Too Large", 413)
            return None
        # Telegram 2.2: a file is given as its file_id, as an http(s) address that Telegram fetches, or uploaded
        if not re.fullmatch(r"[\w-]+|https?://[^\s/]+\.\S+", sent):
            raise Refused("Bad Request: wrong file identifier/HTTP URL specified")
        if sent in self.unfetchable:
            raise Refused("Bad Request: failed to get HTTP URL content")
        return str(sent)

    def _send_file(self, bot: Bot, given: dict[str, Json], kind: str) -> Json:
        chat = self._target(bot, given)
        sent = self._given_file(given, kind)
        # Telegram 2.2: fetched from an address, a document is PDF or ZIP
        if kind == "document" and sent and "://" in sent and not re.search(r"\.(pdf|zip|gif)\Z", sent.lower()):
            raise Refused("Bad Request: wrong type of the web page content")
        caption, entities = parsed(
            given.get("caption"), given.get("parse_mode"), given.get("caption_entities"), 1024, "message caption"
        )
        message = self._show(bot, chat, caption, entities, given, f"send{kind.title()}", sent)
        held = {"file_id": f"file-{message['message_id']}", "file_unique_id": f"u{message['message_id']}"}
        message[kind] = [{**held, "width": 90, "height": 90}] if kind == "photo" else held
        del message["text"]
        if caption:
            message["caption"] = caption
        if "entities" in message:
            message["caption_entities"] = message.pop("entities")
        return message

    def _show(
        self,
        bot: Bot,
        chat: str,
        text: str,
        entities: list[Json],
        given: dict[str, Json],
        method: str,
        media: str | None = None,
    ) -> dict[str, Json]:
        markup = checked_markup(given.get("reply_markup"))
        reply = given.get("reply_parameters")
        # Telegram 2.2: message to be replied not found, unless allow_sending_without_reply
        if reply and not reply.get("allow_sending_without_reply") and int(reply["message_id"]) > self._last_id:
            raise Refused("Bad Request: message to be replied not found")
        thread = given.get("message_thread_id")
        self.commit(
            "shown", chat=chat, text=text, message_id=self._last_id + 1, at=self.clock(), bot=bot.id, method=method,
            entities=entities, markup=markup, thread_id=int(thread) if thread is not None else None,
            media=media,
        )  # fmt: skip
        return self._message(bot, self.shown[-1])

    def _message(self, bot: Bot, shown: TelegramShown) -> dict[str, Json]:
        message: dict[str, Json] = {
            "message_id": shown.message_id,
            "from": user_of(bot),
            "chat": chat_of(shown.chat),
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

    def _editmessagetext(self, bot: Bot, given: dict[str, Json]) -> Json:
        chat = self._target(bot, given)
        text, entities = parsed(given.get("text"), given.get("parse_mode"), given.get("entities"), 4096)
        if not text.strip():
            raise Refused("Bad Request: message text is empty")
        markup = checked_markup(given.get("reply_markup"))
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

    def _sendchataction(self, bot: Bot, given: dict[str, Json]) -> Json:
        self._target(bot, given)
        if given.get("action") not in ACTIONS:
            raise Refused("Bad Request: wrong parameter action in request")
        return True

    def _sendmessagedraft(self, bot: Bot, given: dict[str, Json]) -> Json:
        chat = self._target(bot, given)
        # Telegram 2.2: sendMessageDraft: private chats only, draft_id != 0, text 0-4096
        if not chat.isdigit():
            raise Refused("Bad Request: the method is available only in private chats")
        if int(given.get("draft_id") or 0) == 0:
            raise Refused("Bad Request: draft_id must be non-zero")
        # Telegram 2.2: a draft goes to a chat and topic; business chats and replies are no arguments of the method
        strange = set(given) - {
            "chat_id", "message_thread_id", "draft_id", "text", "parse_mode", "entities", "can_stop", "keep_on_stop",
        }  # fmt: skip
        if strange:
            raise Refused(f"Bad Request: {sorted(strange)[0]} is not supported for drafts")
        text, entities = parsed(given.get("text"), given.get("parse_mode"), given.get("entities"), 4096)
        draft = {"chat": chat, "draft_id": int(given["draft_id"]), "text": text, "entities": entities}
        self.drafts.append({**draft, "at": self.clock(), "after": len(self.delivered.get(chat, ()))})
        return True

    def draft_on_screen(self, chat: str) -> str | None:
        """What a chat shows below its last message."""
        # Telegram 2.2: a draft is a preview of 30 s that goes when a message comes
        mine = [one for one in self.drafts if one["chat"] == chat][-1:]
        there = [one for one in mine if one["after"] == len(self.delivered.get(chat, ()))]
        return there[0]["text"] if there and self.clock() - there[0]["at"] < 30 else None

    def _answercallbackquery(self, bot: Bot, given: dict[str, Json]) -> Json:
        query = str(given.get("callback_query_id", ""))
        # Telegram 2.2: late -> 400 query is too old
        if not query or query in self.expired:
            raise Refused("Bad Request: query is too old and response timeout expired or query ID is invalid")
        if utf16(str(given.get("text", ""))) > 200:
            raise Refused("Bad Request: MESSAGE_TOO_LONG")
        return True
