"""Telegram, the sending half. The receiving half is in `telegram.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import aiohttp

from config.settings import Settings
from config.tenants import TelegramChannel, Tenant
from gateway.adapters.base import Call, Sent, Watch
from gateway.adapters.parsing import integer, string
from gateway.adapters.pictures import shown_in
from gateway.adapters.telegram_drafts import Drafts, MayPass
from gateway.adapters.telegram_loading import load_session
from gateway.adapters.telegram_media import as_text, calls_for
from gateway.errors import ChannelBroken, SendFault, SendRefused
from gateway.messages import Answer, InboundMessage, QuickReply, Target
from gateway.rendering import TelegramPiece, render_telegram_with_pictures, truncate_graphemes
from gateway.rendering.text import scrub
from processors.loading import loaded

if TYPE_CHECKING:
    from gateway.adapters.telegram_session import Bots

MOST_QUICK_REPLIES, LONGEST_LABEL = 20, 40  # graphemes
LONGEST_CALLBACK = 64  # bytes
BUTTONS_A_ROW = 2

_TIMEOUT = aiohttp.ClientTimeout(total=20, connect=5)
_SIGN_TIMEOUT = aiohttp.ClientTimeout(total=3)


class TelegramSender:
    """Sends for all bots of a process over one session; aiogram is loaded when the first of them is used."""

    platform = "telegram"

    def __init__(
        self, settings: Settings, timeout: aiohttp.ClientTimeout = _TIMEOUT, may_pass: MayPass | None = None
    ) -> None:
        """With `may_pass`, the inbox's, private chats see answers grow."""
        self._base = settings.telegram_api_base
        self._timeout = timeout
        self._drafts = Drafts(may_pass) if may_pass else None
        self._starting = asyncio.Lock()
        self._bots: Bots | None = None
        self._usernames: dict[str, str] = {}

    async def warm(self) -> Bots:
        """Loads aiogram, which takes a second, in a thread, and opens the session, unless that is done already."""
        async with self._starting:
            if self._bots is None:
                self._bots = (await loaded(load_session))(self._base)
            return self._bots

    def plan(self, tenant: Tenant, target: Target, answer: Answer, now: float) -> Sequence[Call]:
        """One call a piece; the buttons stand below the last, but below no sticker, which nothing may replace."""
        place = _place(target)
        calls: list[Call] = []
        for piece in (*render_telegram_with_pictures(answer.text, shown_in(tenant, answer)), *answer.media):
            if not isinstance(piece, TelegramPiece):
                calls += calls_for(piece, place)
                continue
            body = {**place, "text": piece.text, "link_preview_options": {"is_disabled": True}}
            if piece.entities:
                body["entities"] = list(piece.entities)
            calls.append(Call("sendMessage", body))
        if answer.quick_replies and calls and (markup := _buttons(answer.quick_replies)):
            bearers = [call for call in calls if call.method != "sendSticker"] or calls
            bearers[-1].body["reply_markup"] = markup
        return calls

    async def send(self, tenant: Tenant, target: Target, call: Call) -> Sent:
        """Makes a call of `plan` or `instead`."""
        token = _token(tenant, target.channel)
        bots = self._bots or await self.warm()
        result = await bots.call(token, call.method, call.body, self._timeout)
        message_id = integer(result, "message_id") if isinstance(result, dict) else None
        return Sent(() if message_id is None else (str(message_id),))

    def instead(self, tenant: Tenant, target: Target, call: Call, error: Exception) -> Call | None:
        """The same text without what Telegram refused in it: its styles, its topic or its buttons; or the link in
        place of a picture or file that it does not take."""
        if not isinstance(error, SendRefused):
            return None
        said = str(error).lower()
        if "thread not found" in said:
            refused = "message_thread_id"
        elif "entit" in said:
            refused = "entities"
        elif "button" in said or "keyboard" in said or "reply markup" in said:
            refused = "reply_markup"
        else:
            refused = ""
        if refused not in call.body:
            return as_text(call)
        return Call(call.method, {name: value for name, value in call.body.items() if name != refused})

    def watch(self, tenant: Tenant, target: Target) -> Watch | None:
        """Drafts, which Telegram has in private chats of a bot's own."""
        channel = tenant.channels.get(target.channel)
        private = not target.group and target.business_id is None and target.chat_id.isdigit()
        if self._drafts is None or not private or not isinstance(channel, TelegramChannel):
            return None

        async def show(body: dict[str, Any]) -> None:
            await self.call(tenant, target.channel, "sendMessageDraft", body, _SIGN_TIMEOUT)

        return self._drafts.watch(channel.bot_token.get_secret_value(), target, show)

    async def typing(self, tenant: Tenant, target: Target) -> None:
        """Shows "typing" for five seconds or until the next message."""
        with suppress(SendFault):
            arguments = {**_place(target), "action": "typing"}
            await self.call(tenant, target.channel, "sendChatAction", arguments, _SIGN_TIMEOUT)

    async def acknowledge(self, tenant: Tenant, message: InboundMessage) -> None:
        """Stops the spinner on the button that the customer pressed. Never raises; to be called at once."""
        if callback_id := string(message.extra, "callback_id"):
            with suppress(SendFault):
                arguments = {"callback_query_id": callback_id}
                await self.call(tenant, message.channel, "answerCallbackQuery", arguments, _SIGN_TIMEOUT)

    def token(self, tenant: Tenant, channel: str) -> str:
        """The bot's token. Raises ChannelBroken."""
        return _token(tenant, channel)

    async def username(self, tenant: Tenant, channel: str) -> str:
        """The bot's name without `@`, asked for once. Raises SendFault."""
        token = _token(tenant, channel)
        if token not in self._usernames:
            me = await self.call(tenant, channel, "getMe", {})
            self._usernames[token] = (string(me, "username") if isinstance(me, dict) else None) or ""
        return self._usernames[token]

    async def call(
        self,
        tenant: Tenant,
        channel: str,
        method: str,
        arguments: dict[str, Any],
        timeout: aiohttp.ClientTimeout | None = None,
    ) -> Any:
        """The result of any method of the Bot API, as Telegram sent it. Raises SendFault."""
        token = _token(tenant, channel)
        bots = self._bots or await self.warm()
        return await bots.call(token, method, arguments, timeout or self._timeout)

    async def close(self) -> None:
        if self._bots is not None:
            await self._bots.close()
            self._bots = None


def _token(tenant: Tenant, name: str) -> str:
    channel = tenant.channels.get(name)
    if not isinstance(channel, TelegramChannel):
        raise ChannelBroken(f"The tenant {tenant.id} has no Telegram channel {name} any more.")
    return channel.bot_token.get_secret_value()


def _place(target: Target) -> dict[str, Any]:
    place: dict[str, Any] = {"chat_id": target.chat_id}
    if target.thread_id is not None:
        place["message_thread_id"] = int(target.thread_id)
    if target.business_id is not None:
        place["business_connection_id"] = target.business_id
    return place


def _buttons(replies: Sequence[QuickReply]) -> dict[str, Any] | None:
    """Buttons below the message; on the keyboard where one of the texts is too long for that."""
    stripped = [(scrub(reply.label).strip(), scrub(reply.text).strip()) for reply in replies]
    named = [(label or text, text or label) for label, text in stripped if label or text][:MOST_QUICK_REPLIES]
    if not named:
        return None
    if all(len(text.encode()) <= LONGEST_CALLBACK for _, text in named):
        inline = [{"text": truncate_graphemes(label, LONGEST_LABEL), "callback_data": text} for label, text in named]
        return {"inline_keyboard": _rows(inline)}
    # A key sends what stands on it, so it bears the text and not the label.
    keys = [{"text": text} for _, text in named]
    return {"keyboard": _rows(keys), "one_time_keyboard": True, "resize_keyboard": True}


def _rows(buttons: list[dict[str, str]]) -> list[list[dict[str, str]]]:
    return [buttons[at : at + BUTTONS_A_ROW] for at in range(0, len(buttons), BUTTONS_A_ROW)]
