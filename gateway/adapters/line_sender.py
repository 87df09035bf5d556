"""LINE, the sending half. The receiving half is in `line.py`.

The SDK's HTTP client is loaded at the first call, in a thread. One client serves all tenants of a process, each call
with its channel's own token. The client obeys HTTP_PROXY, so a LINE_API_BASE on this machine needs NO_PROXY where a
proxy is set.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from config.settings import Settings
from config.tenants import LineChannel, Tenant
from gateway.adapters.base import Call, Sent
from gateway.adapters.line_bubbles import BUBBLES, bubbles_of, without_media
from gateway.adapters.line_outcome import fault_of, sent_ids
from gateway.adapters.line_tokens import LineTokens
from gateway.adapters.parsing import EMPTY, Object, integer, load_json, string
from gateway.errors import ChannelBroken, NotJson, SendAmbiguous, SendFault, SendRefused, SendRetry, TokenSpent
from gateway.messages import Answer, InboundMessage, QuickReply, Target
from gateway.rendering import truncate_graphemes
from processors.loading import in_part, loaded
from processors.posts import REDIRECTS, Posts, encoded, head_of

TOKEN_FRESH = 50.0  # seconds after receipt within which a reply token is used; LINE promises about a minute
MOST_QUICK_REPLIES, LONGEST_LABEL, LONGEST_QUICK_TEXT = 13, 20, 300  # graphemes
LOADING_SECONDS = 20  # of the loading sign, in steps of 5; our next message ends it

_MESSAGE = "/v2/bot/message/"
_SIGN = "loading"
_PATHS = {_SIGN: "/v2/bot/chat/loading/start"}  # of methods that are no message
_WEBHOOK = "/v2/bot/channel/webhook/endpoint"
_CONNECTIONS = 100
_HEADS = 1000  # channels' tokens and methods for which the head of a call is kept
_TIMEOUT = aiohttp.ClientTimeout(total=15, connect=5)
_SIGN_TIMEOUT = aiohttp.ClientTimeout(total=3)


class LineSender:
    """Sends by reply token while it is fresh, which costs nothing, else by push, which costs quota."""

    platform = "line"

    def __init__(self, settings: Settings, timeout: aiohttp.ClientTimeout = _TIMEOUT) -> None:
        self._host = settings.line_api_base
        self._timeout = timeout
        self._tokens = LineTokens(settings.line_api_base)
        self._starting = asyncio.Lock()
        self._sdk: Any = None
        self._client: Any = None
        self._posts: Posts | None = None  # None: there are proxies, which are the SDK's matter
        self._heads: dict[tuple[str, str], bytes] = {}  # of a call without a retry key, by method and access token

    async def warm(self) -> None:
        """Loads the SDK and opens the client, unless that is done already."""
        async with self._starting:
            if self._client is not None:
                return
            self._sdk = await loaded(_load_sdk)
            session = None
            if not _through_a_proxy(self._host):
                connector = aiohttp.TCPConnector(limit=_CONNECTIONS)
                session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
                self._posts = Posts(session, self._host)
            self._client = self._sdk.Client(self._host, _CONNECTIONS, session)

    def plan(self, tenant: Tenant, target: Target, answer: Answer, now: float) -> Sequence[Call]:
        """Five bubbles by reply token, the rest by push. What only a push could deliver is left out where the channel
        does not allow it."""
        bubbles = bubbles_of(tenant, (*answer.before, answer))
        batches = [bubbles[at : at + BUBBLES] for at in range(0, len(bubbles), BUBBLES)]
        fresh = target.reply_token is not None and now - target.token_received_at <= TOKEN_FRESH
        if not _channel(tenant, target.channel).allow_push:
            batches = batches[: 1 if fresh else 0]
        calls = []
        for number, batch in enumerate(batches):
            messages = list(batch)
            if number == len(batches) - 1 and (items := _quick_replies(answer.quick_replies)):
                messages[-1]["quickReply"] = {"items": items}
            if number == 0 and fresh:
                calls.append(Call("reply", {"replyToken": target.reply_token, "messages": messages}))
            else:
                calls.append(_push(target.chat_id, messages))
        return calls

    def hold(
        self, tenant: Tenant, target: Target, before: Sequence[Answer], said: str, button: QuickReply
    ) -> Call | None:
        """The reply that shows `before`, then `said` with a button that sends back its text. None: it is too much for
        one call."""
        bubbles = bubbles_of(tenant, before, BUBBLES - 1)
        if len(bubbles) >= BUBBLES:
            return None
        label = truncate_graphemes(button.label, LONGEST_LABEL)
        action = {"type": "postback", "label": label, "data": button.text, "displayText": button.label}
        template = {"type": "buttons", "text": said, "actions": [action]}
        messages = [*bubbles, {"type": "template", "altText": said, "template": template}]
        return Call("reply", {"replyToken": target.reply_token, "messages": messages})

    async def recipients(self, tenant: Tenant, target: Target) -> int:
        """How many people a push to this chat reaches: that is what it costs. 1 where LINE does not tell."""
        kind = {"C": "group", "R": "room"}.get(target.chat_id[:1])
        if kind is None:
            return 1
        with suppress(SendFault):
            path = f"/v2/bot/{kind}/{quote(target.chat_id, safe='')}/members/count"
            if found := await self._asked(tenant, target.channel, "members", "GET", path):
                return integer(found, "count") or 1
        return 1

    def send(self, tenant: Tenant, target: Target, call: Call) -> Coroutine[Any, Any, Sent]:
        """Makes a call of `plan` or `instead`. An answer that says no more than that it was taken is enough."""
        return self._first(tenant, target, call) if self._client is None else self._sent(tenant, target, call)

    async def _first(self, tenant: Tenant, target: Target, call: Call) -> Sent:
        await self.warm()
        return await self._sent(tenant, target, call)

    def _sent(self, tenant: Tenant, target: Target, call: Call) -> Coroutine[Any, Any, Sent]:
        send = self._by_sdk if self._posts is None else self._posted
        return self._with_token(tenant, target.channel, send, call)

    def instead(self, tenant: Tenant, target: Target, call: Call, error: Exception) -> Call | None:
        """A push in place of a reply whose token is spent. Only for a reply that was certainly never made before: else
        that earlier one may have spent the token, and the customer would read the answer twice. Or the same call with
        links in place of the pictures that LINE refused."""
        if isinstance(error, SendRefused):
            messages = without_media(call.body.get("messages", []), str(error))
            key = str(uuid.uuid4()) if call.key else None
            return Call(call.method, {**call.body, "messages": messages}, key) if messages else None
        if call.method != "reply" or not isinstance(error, TokenSpent):
            return None
        if not _channel(tenant, target.channel).allow_push:
            return None
        return _push(target.chat_id, call.body["messages"])

    async def token(self, tenant: Tenant, channel: str) -> str:
        """The access token that the channel speaks with just now. Raises SendFault."""
        return await self._tokens.of(_channel(tenant, channel))

    def watch(self, tenant: Tenant, target: Target) -> None:
        return None

    async def typing(self, tenant: Tenant, target: Target) -> None:
        """Shows the loading sign; only talks of two have one."""
        if target.group or not target.chat_id.startswith("U"):
            return
        with suppress(SendFault):
            sign = {"chatId": target.chat_id, "loadingSeconds": LOADING_SECONDS}
            await self.send(tenant, target, Call(_SIGN, sign))

    async def acknowledge(self, tenant: Tenant, message: InboundMessage) -> None:
        """LINE wants no word about a pressed button."""

    async def set_webhook(self, tenant: Tenant, channel: str, url: str) -> None:
        """Registers the webhook's address. Raises SendFault."""
        await self._asked(tenant, channel, "webhook", "PUT", _WEBHOOK, {"endpoint": url})

    async def webhook(self, tenant: Tenant, channel: str) -> tuple[str, bool] | None:
        """The registered address and whether "Use webhook" is on; None where none is registered. Raises SendFault."""
        try:
            found = await self._asked(tenant, channel, "webhook", "GET", _WEBHOOK)
        except SendRefused as error:
            if "answered 404" in str(error):
                return None
            raise
        endpoint = string(found, "endpoint", 10_000)
        return (endpoint, found.get("active") is True) if endpoint else None

    async def bot_id(self, tenant: Tenant, channel: str) -> str | None:
        """The bot's own user id, which webhooks name as their destination. Raises SendFault."""
        return string(await self._asked(tenant, channel, "info", "GET", "/v2/bot/info"), "userId")

    async def profile(self, tenant: Tenant, channel: str, user: str) -> str | None:
        """What a user calls themselves; None: LINE does not tell. Raises SendFault."""
        path = f"/v2/bot/profile/{quote(user, safe='')}"
        return string(await self._asked(tenant, channel, "profile", "GET", path), "displayName")

    async def member(self, tenant: Tenant, channel: str, group: str, user: str) -> str | None:
        """What a member of a group or room calls themselves; None: LINE does not tell. Raises SendFault."""
        kind = "group" if group.startswith("C") else "room"
        path = f"/v2/bot/{kind}/{quote(group, safe='')}/member/{quote(user, safe='')}"
        return string(await self._asked(tenant, channel, "profile", "GET", path), "displayName")

    async def quota(self, tenant: Tenant, channel: str) -> tuple[int | None, int] | None:
        """The month's pushes: how many there are (None: no limit) and how many are used. None where LINE's answer makes
        no sense. Raises SendFault."""
        allowed = await self._asked(tenant, channel, "quota", "GET", "/v2/bot/message/quota")
        spent = await self._asked(tenant, channel, "quota", "GET", "/v2/bot/message/quota/consumption")
        used = integer(spent, "totalUsage")
        return None if used is None or "type" not in allowed else (integer(allowed, "value"), used)

    async def test_webhook(self, tenant: Tenant, channel: str) -> str | None:
        """Has LINE call the registered address. None: it answered well; else LINE's reason. Raises SendFault."""
        found = await self._asked(tenant, channel, "webhook", "POST", "/v2/bot/channel/webhook/test", {})
        if not found:
            return "LINE gave no result"
        return None if found.get("success") is True else f"{string(found, 'reason')} ({string(found, 'detail')})"

    async def _asked(
        self,
        tenant: Tenant,
        channel: str,
        method: str,
        verb: str,
        path: str,
        body: dict[str, Any] | None = None,
    ) -> Object:
        """The object that LINE answers with, an empty one where it is none. Raises SendFault."""
        await self.warm()
        found: list[Object] = []
        if verb == "GET" and self._posts is not None:
            await self._with_token(tenant, channel, self._got, (method, path, found))
            return found[0] if found else EMPTY
        await self._made(*(tenant, channel, method, self._client.asked, verb, path, body), found=found)
        return found[0] if found else EMPTY

    async def _got(self, call: tuple[str, str, list[Object]], token: str) -> Sent:
        """As `_posted`. The object in the answer is put into the list."""
        method, path, found = call
        assert self._posts is not None
        head = head_of(f"{self._host}{path}", self._client.headers(f"Bearer {token}"), "GET")
        try:
            got = await self._posts.get(head, self._timeout)
        except TimeoutError as error:
            raise _unanswered(error) from None
        except aiohttp.ClientError:  # a kept connection that is gone, mostly: it asks again
            got = None
        if got is None or 300 <= got.status < 400:
            return await self._made_with(method, self._client.asked, "GET", path, token=token, found=found)
        said = got.body.decode("utf-8", "replace")
        if not 200 <= got.status < 300:
            return _outcome(method, got.status, said)
        with suppress(NotJson):
            if isinstance(data := load_json(said), dict):
                found.append(data)
        return Sent(sent_ids(said))

    async def _posted(self, call: Call, token: str) -> Sent:
        """Below the SDK's client, which costs as much as the call."""
        posts = self._posts
        assert posts is not None
        head = self._heads.get((call.method, token)) or self._head(call.method, token)
        if call.method == "push" and call.key:
            head += b"X-Line-Retry-Key: %b\r\n" % call.key.encode()
        try:
            posted = await posts.post(head, encoded(call.body), self._within(call.method))
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _unanswered(error) from None
        if posted.status in REDIRECTS:
            return await self._by_sdk(call, token)
        said = posted.body.decode("utf-8", "replace")
        return Sent(sent_ids(said)) if 200 <= posted.status < 300 else _outcome(call.method, posted.status, said)

    def _head(self, method: str, token: str) -> bytes:
        head = head_of(f"{self._host}{_path(method)}", self._client.headers(f"Bearer {token}"))
        if len(self._heads) >= _HEADS:
            self._heads.clear()
        self._heads[method, token] = head
        return head

    async def _by_sdk(self, call: Call, token: str) -> Sent:
        key = {"X-Line-Retry-Key": call.key} if call.method == "push" and call.key else {}
        return await self._made_with(
            *(call.method, self._client.asked, "POST", _path(call.method), call.body),
            token=token,
            _headers=key,
            _request_timeout=self._within(call.method),
        )

    def _within(self, method: str) -> aiohttp.ClientTimeout:
        return _SIGN_TIMEOUT if method == _SIGN else self._timeout

    async def close(self) -> None:
        if self._posts is not None:
            self._posts.close()
        if self._client is not None:
            await self._client.close()
            self._client = self._posts = None

    async def _made(
        self,
        tenant: Tenant,
        channel: str,
        method: str,
        call: Callable[..., Awaitable[Any]],
        *arguments: Any,
        found: list[Any] | None = None,
        **options: Any,
    ) -> Sent:
        """Makes one call of the SDK's and tells its errors as ours. What it returned is put into `found`."""
        made = partial(self._made_with, method, call, *arguments, found=found, **options)
        return await self._with_token(tenant, channel, lambda call, token: call(token=token), made)

    async def _with_token(
        self, tenant: Tenant, channel: str, make: Callable[[Any, str], Awaitable[Sent]], call: Any
    ) -> Sent:
        settings = _channel(tenant, channel)
        token = await self._tokens.of(settings)
        try:
            return await make(call, token)
        except ChannelBroken:
            if not self._tokens.refused(settings, token):
                raise
            token = await self._tokens.of(settings)
        return await make(call, token)

    async def _made_with(
        self,
        method: str,
        call: Callable[..., Awaitable[Any]],
        *arguments: Any,
        token: str,
        found: list[Any] | None = None,
        **options: Any,
    ) -> Sent:
        auth = {"type": "bearer", "in": "header", "key": "Authorization", "value": f"Bearer {token}"}
        options = {"_request_timeout": self._timeout, **options}
        calling = call(*arguments, _request_auth=auth, **options)
        try:
            answer = await calling
        except self._sdk.ApiException as error:
            said = error.body or ""
            return _outcome(method, error.status, said.decode("utf-8", "replace") if isinstance(said, bytes) else said)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _unanswered(error) from None
        if found is not None and answer.data is not None:
            found.append(answer.data)
        return Sent(sent_ids(answer.raw_data or ""))


def _path(method: str) -> str:
    return _PATHS.get(method) or f"{_MESSAGE}{method}"


def _load_sdk() -> Any:
    with in_part({"linebot": {}, "linebot.v3": {}, "linebot.v3.messaging": {}}):
        from gateway.adapters import line_api

    return line_api


def _through_a_proxy(url: str) -> bool:
    place = urlsplit(url)
    return place.scheme in getproxies() and not proxy_bypass(place.hostname or "")


def _unanswered(error: Exception) -> SendFault:
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return SendRetry(f"LINE can't be reached ({type(error).__name__}).")
    return SendAmbiguous(f"No answer from LINE ({type(error).__name__}).")


def _outcome(method: str, status: int, body: str) -> Sent:
    if status == 409 and method == "push":
        return Sent(sent_ids(body), repeated=True)
    raise fault_of(method, status, body)


def _channel(tenant: Tenant, name: str) -> LineChannel:
    channel = tenant.channels.get(name)
    if not isinstance(channel, LineChannel):
        raise ChannelBroken(f"The tenant {tenant.id} has no LINE channel {name} any more.")
    return channel


def _push(to: str, messages: list[dict[str, Any]]) -> Call:
    return Call("push", {"to": to, "messages": messages}, key=str(uuid.uuid4()))


def _quick_replies(replies: Sequence[QuickReply]) -> list[dict[str, Any]]:
    shown = []
    for reply in replies[:MOST_QUICK_REPLIES]:
        label = truncate_graphemes(reply.label.strip() or reply.text.strip(), LONGEST_LABEL)
        text = truncate_graphemes(reply.text.strip() or reply.label.strip(), LONGEST_QUICK_TEXT)
        if label:
            shown.append({"type": "action", "action": {"type": "message", "label": label, "text": text}})
    return shown
