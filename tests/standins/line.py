"""LINE's Messaging API on loopback. Each rule names its section in the platform's documentation."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import uuid
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import parse_qs

import aiohttp
from aiohttp import web

from tests.standins.line_messages import Details, faults_of_messages
from tests.standins.server import Answer, Fault, Json, Recorded, StandIn

# LINE 1.3: 429 has two meanings, told apart only by text
RATE_LIMITED = "The API rate limit has been exceeded. Try again later."
MONTHLY_LIMIT = "You have reached your monthly limit."

_CHAT = re.compile(r"[UCR][0-9a-f]{32}")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def rate_limited(**more: Any) -> Fault:
    """LINE 1.3: 429 that passes."""
    return Fault(429, {"message": RATE_LIMITED}, **more)


def monthly_limit(**more: Any) -> Fault:
    """LINE 1.3: 429 that stays until the month is over; on push, as a reply costs nothing."""
    return Fault(429, {"message": MONTHLY_LIMIT}, **{"on": "/push", **more})


@dataclass(frozen=True, slots=True)
class LineChannel:
    """A channel the stand-in knows; `user_id` is the bot's own: a webhook's `destination`."""

    token: str = "line-token-1"
    secret: str = "line-secret-1"
    user_id: str = "U" + "b0" * 16
    channel_id: str = "1650000001"


@dataclass(frozen=True, slots=True)
class LineShown:
    """One message object that LINE took. `repeated`: a retry key's second sending, not on the screen again."""

    chat: str
    message: Mapping[str, Json]
    id: str
    via: str  # reply | push | multicast
    at: float
    channel: str  # the channel's id
    repeated: bool = False

    @property
    def text(self) -> str:
        return str(self.message.get("text", ""))


@dataclass(slots=True)
class LineContent:
    """What a customer sent. `preparing`: for how many calls the answer is 202 yet."""

    data: bytes = b""
    mime: str = "image/jpeg"
    preparing: int = 0
    gone: bool = False


@dataclass(slots=True)
class _Token:
    chat: str
    until: float
    channel: str | None
    spent: bool = False


@dataclass(slots=True)
class _Accepted:
    key: str
    request_id: str
    at: float
    sent: list[dict[str, str]] | None
    to: list[str]
    messages: list[dict[str, Json]]


class LineStandIn(StandIn):
    """api.line.me under `url`, api-data.line.me under `data_url`.

    With `known_tokens_only=False` any reply token not issued here works exactly once; one that is a chat's id and
    whatever follows a dot answers in that chat. `blocked` are people who blocked the bot, `foreign` ids that are not of
    this provider or groups it left, `quota` the month's pushes (None: no limit), `members` the size of groups,
    `limits` calls a second by endpoint.
    """

    name = "LINE"

    def __init__(
        self,
        channels: Sequence[LineChannel] = (LineChannel(),),
        *,
        known_tokens_only: bool = True,
        data_port: int = 0,
        **more: Any,
    ) -> None:
        super().__init__(**more)
        self.channels = {channel.token: channel for channel in channels}
        self.known_tokens_only = known_tokens_only
        self.data_port = data_port
        self.blocked: set[str] = set()
        self.foreign: set[str] = set()
        self.members: dict[str, int] = {}
        self.profiles: dict[str, dict[str, str]] = {}
        self.contents: dict[str, LineContent] = {}
        # LINE 1.3: loading 100/s, multicast 200/s, the rest 2000/s
        self.limits = {"/chat/loading/start": 100, "/message/multicast": 200, "": 2000}
        self._forget()

    def _forget(self) -> None:
        self.quota: int | None = None
        self.used = 0
        self.endpoints: dict[str, str] = {}
        self.shown: list[LineShown] = []
        self._tokens: dict[str, _Token] = {}
        self._accepted: dict[str, _Accepted] = {}
        self._stateless: dict[str, tuple[LineChannel, float]] = {}
        self._rate: Counter[tuple[str, str, int]] = Counter()
        self._last_id = 600_000_000_000_000_000

    async def _listen(self, runner: web.AppRunner) -> None:
        await super()._listen(runner)
        self.data_port = await self._site(runner, self.data_port)

    @property
    def data_url(self) -> str:
        """The base address for customers' content."""
        return f"http://127.0.0.1:{self.data_port}"

    # --- what tests ask and say

    @property
    def delivered(self) -> dict[str, list[LineShown]]:
        """What each chat has on its screen, in order."""
        return self._by_chat([one for one in self.shown if not one.repeated])

    @property
    def raw(self) -> dict[str, list[LineShown]]:
        """The same with every sending that only the retry key kept from showing twice."""
        return self._by_chat(self.shown)

    @staticmethod
    def _by_chat(shown: list[LineShown]) -> dict[str, list[LineShown]]:
        chats: dict[str, list[LineShown]] = defaultdict(list)
        for one in shown:
            chats[one.chat].append(one)
        return dict(chats)

    def issue_token(
        self, chat: str, *, life: float = 60.0, token: str | None = None, channel: LineChannel | None = None
    ) -> str:
        """A reply token for `chat`, good once and for `life` seconds; bound to `channel` when one is given."""
        token = token or uuid.uuid4().hex
        bound = channel.channel_id if channel else None
        self.commit("token", token=token, chat=chat, until=self.clock() + life, channel=bound)
        return token

    def text_event(self, user: str, text: str, *, life: float = 60.0, group: str | None = None) -> dict[str, Json]:
        """A message event as LINE sends it, with a fresh event id and an issued reply token."""
        source = {"type": "group", "groupId": group, "userId": user} if group else {"type": "user", "userId": user}
        return {
            "type": "message",
            "mode": "active",
            "timestamp": int(self.clock() * 1000),
            "source": source,
            "webhookEventId": uuid.uuid4().hex[:26].upper(),
            "deliveryContext": {"isRedelivery": False},
            "replyToken": self.issue_token(group or user, life=life),
            "message": {"type": "text", "id": self._new_id(), "quoteToken": uuid.uuid4().hex, "text": text},
        }

    async def deliver(self, url: str, *events: Mapping[str, Json], channel: LineChannel | None = None) -> int:
        """Posts signed events to a webhook; the status of its answer."""
        channel = channel or next(iter(self.channels.values()))
        body = json.dumps({"destination": channel.user_id, "events": events}, ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json; charset=utf-8", "x-line-signature": sign(channel.secret, body)}
        async with aiohttp.ClientSession() as client, client.post(url, data=body, headers=headers) as answer:
            return answer.status

    def reset(self) -> None:
        super().reset()
        self._forget()

    def script(self, orders: dict[str, Json]) -> dict[str, Json]:
        """`tokens` [{chat, life?, token?}], and the settings `quota`, `blocked`, `foreign`, `members`."""
        self.quota = orders.get("quota", self.quota)
        self.blocked |= set(orders.get("blocked", ()))
        self.foreign |= set(orders.get("foreign", ()))
        self.members |= orders.get("members", {})
        return {"tokens": [self.issue_token(**order) for order in orders.get("tokens", ())]}

    def state(self) -> dict[str, Json]:
        return {
            "delivered": {chat: [asdict(one) for one in shown] for chat, shown in self.delivered.items()},
            "raw": {chat: [asdict(one) for one in shown] for chat, shown in self.raw.items()},
            "used": self.used,
        }

    # --- state

    def apply(self, change: str, data: dict[str, Json]) -> None:
        match change:
            case "token":
                self._tokens[data["token"]] = _Token(data["chat"], data["until"], data["channel"])
            case "spent":
                token = self._tokens.setdefault(data["token"], _Token(data["chat"], 0, None))
                token.spent = True
            case "accepted":
                self._accepted[data["key"]] = _Accepted(**data)
            case "shown":
                self.shown.append(LineShown(**data))
                self._last_id = max(self._last_id, int(data["id"]))
            case "used":
                self.used += data["count"]
            case "endpoint":
                self.endpoints[data["channel"]] = data["url"]
            case _:
                raise ValueError(change)

    def headers(self) -> dict[str, str]:
        # LINE 1.3: every response has x-line-request-id
        return {"x-line-request-id": str(uuid.uuid4())}

    def _new_id(self) -> str:
        self._last_id += 1
        return str(self._last_id)

    # --- answers

    def _channel(self, call: Recorded) -> LineChannel | None:
        kind, _, token = call.headers.get("authorization", "").partition(" ")
        if kind != "Bearer":
            return None
        stateless, until = self._stateless.get(token, (None, 0.0))
        return stateless if stateless and until > self.clock() else self.channels.get(token)

    def refused(self, call: Recorded) -> Answer | None:
        # LINE 1.3: 401 `Authentication failed ...`
        if call.path == "/oauth2/v3/token" or self._channel(call) is not None:
            return None
        sent = "authorization" in call.headers
        reason = " due to the following reason: invalid token" if sent else ""
        return _error(
            401, f"Authentication failed{reason}. Confirm that the access token in the authorization header is valid."
        )

    async def handle(self, call: Recorded, request: web.Request, fault: Fault) -> Answer:
        if call.path == "/oauth2/v3/token":
            return self._stateless_token(call)
        channel = self._channel(call)
        assert channel is not None
        at_data = request.transport is not None and request.transport.get_extra_info("sockname")[1] == self.data_port
        if at_data:
            return self._content(call)
        if self._too_fast(call, channel):
            return _error(429, RATE_LIMITED)
        # LINE 1.3: JSON body at most 2 MB
        if int(call.headers.get("content-length", 0)) > 2_000_000:
            return _error(413, "Payload Too Large")
        if call.method in ("POST", "PUT") and not isinstance(call.body, dict):
            return _error(400, "The request body could not be parsed as JSON")
        match call.method, call.path.removeprefix("/v2/bot"):
            case "POST", "/message/reply":
                return self._reply(call, channel)
            case "POST", "/message/push":
                return self._push(call, channel)
            case "POST", "/message/multicast":
                return self._multicast(call, channel)
            case "GET", "/message/quota":
                limited = self.quota is not None
                return Answer(body={"type": "limited", "value": self.quota} if limited else {"type": "none"})
            case "GET", "/message/quota/consumption":
                return Answer(body={"totalUsage": self.used})
            case "POST", "/chat/loading/start":
                return self._loading(call)
            case "POST", "/chat/markAsRead":
                token = call.body.get("markAsReadToken")
                return Answer(body={}) if token else _invalid("May not be empty", "markAsReadToken")
            case "GET", "/info":
                return Answer(body=self._info(channel))
            case "PUT", "/channel/webhook/endpoint":
                return self._set_endpoint(call, channel)
            case "GET", "/channel/webhook/endpoint":
                url = self.endpoints.get(channel.channel_id)
                return Answer(body={"endpoint": url, "active": True}) if url else _error(404, "Not found")
            case "POST", "/channel/webhook/test":
                return await self._test_endpoint(call, channel)
            case "GET", path:
                return self._profile(path)
        return _error(404, "Not found")

    def _too_fast(self, call: Recorded, channel: LineChannel) -> bool:
        # LINE 1.3: token buckets per channel, endpoint and method; here a count per second
        place = next(part for part in self.limits if part in call.path)
        bucket = (channel.channel_id, place or call.path, int(self.clock()))
        self._rate[bucket] += 1
        return self._rate[bucket] > self.limits[place]

    def _reply(self, call: Recorded, channel: LineChannel) -> Answer:
        # LINE 1.3: the retry key is rejected on reply with 400 (its wording is not documented)
        if "x-line-retry-key" in call.headers:
            return _error(400, "The X-Line-Retry-Key header is not supported by this endpoint")
        if details := faults_of_messages(call.body.get("messages")):
            return _refuse(details)
        token = call.body.get("replyToken")
        known = self._tokens.get(token)
        if known is None and (self.known_tokens_only or not isinstance(token, str) or not token):
            return _error(400, "Invalid reply token")
        if known is None:
            chat, dot, _ = token.partition(".")
            known = _Token(chat if dot else "", self.clock() + 60, None)
        # LINE 1.3: reply token: once, within about a minute; of this channel
        foreign = known.channel not in (None, channel.channel_id)
        if known.spent or foreign or known.until < self.clock():
            return _error(400, "Invalid reply token")
        self.commit("spent", token=token, chat=known.chat)
        # LINE 1.3: a reply does not count to the quota
        return Answer(body={"sentMessages": self._show([known.chat], call, "reply", channel)})

    def _push(self, call: Recorded, channel: LineChannel) -> Answer:
        to = call.body.get("to")
        if not isinstance(to, str) or not _CHAT.fullmatch(to):
            return _error(400, "The property, 'to', in the request body is invalid (line: -, column: -)")
        return self._send_billed(call, channel, [to], "push")

    def _multicast(self, call: Recorded, channel: LineChannel) -> Answer:
        to = call.body.get("to")
        # LINE 1.3: multicast: 1-500 userIds, no groups
        if not isinstance(to, list) or not 1 <= len(to) <= 500:
            return _invalid("Size must be between 1 and 500", "to")
        if not all(isinstance(one, str) and _CHAT.fullmatch(one) and one[0] == "U" for one in to):
            return _error(400, "The property, 'to', in the request body is invalid (line: -, column: -)")
        return self._send_billed(call, channel, to, "multicast")

    def _send_billed(self, call: Recorded, channel: LineChannel, to: list[str], via: str) -> Answer:
        key = call.headers.get("x-line-retry-key")
        # LINE 1.3: X-Line-Retry-Key is a UUID
        if key is not None and not _UUID.fullmatch(key):
            return _error(400, "The X-Line-Retry-Key header must be a UUID")
        if details := faults_of_messages(call.body.get("messages")):
            return _refuse(details)
        accepted = self._accepted.get(f"{channel.channel_id}:{key}") if key else None
        # LINE 1.3: already accepted -> 409; a key lives 24 h
        if accepted is not None and self.clock() - accepted.at < 24 * 3600:
            return self._again(accepted, channel, via)
        # LINE 1.3: foreign id, or a group the bot left -> 400
        if via == "push" and to[0] in self.foreign:
            return _error(400, "Failed to send messages")
        # LINE 1.3: the quota counts recipients, not objects; who can't be reached costs nothing
        reached = [one for one in to if one not in self.blocked | self.foreign]
        cost = sum(self.members.get(one, 1) for one in reached)
        if self.quota is not None and self.used + cost > self.quota:
            return _error(429, MONTHLY_LIMIT)
        # LINE 1.3: push to a blocker returns 200 but is not delivered
        sent = self._show(reached, call, via, channel)
        self.commit("used", count=cost)
        if via == "push" and not sent:
            sent = [{"id": self._new_id()} for _ in call.body["messages"]]
        if key:
            self.commit(
                "accepted", key=f"{channel.channel_id}:{key}", request_id=str(uuid.uuid4()), at=self.clock(),
                sent=sent if via == "push" else None, to=reached, messages=call.body["messages"],
            )  # fmt: skip
        return Answer(body={"sentMessages": sent} if via == "push" else {})

    def _again(self, accepted: _Accepted, channel: LineChannel, via: str) -> Answer:
        ids = [one["id"] for one in accepted.sent or ()] or ["0"] * len(accepted.messages)
        for chat in accepted.to:
            for message, number in zip(accepted.messages, ids, strict=True):
                self.commit(
                    "shown", chat=chat, message=message, id=number, via=via, at=self.clock(),
                    channel=channel.channel_id, repeated=True,
                )  # fmt: skip
        body: dict[str, Json] = {"message": "The retry key is already accepted"}
        if accepted.sent is not None:
            body["sentMessages"] = accepted.sent
        return Answer(409, body, {"x-line-accepted-request-id": accepted.request_id})

    def _show(self, chats: list[str], call: Recorded, via: str, channel: LineChannel) -> list[dict[str, str]]:
        sent: list[dict[str, str]] = []
        for chat in chats:
            for message in call.body["messages"]:
                number = self._new_id()
                self.commit(
                    "shown", chat=chat, message=message, id=number, via=via, at=self.clock(), channel=channel.channel_id
                )
                # LINE 1.2: only some kinds can be quoted
                quotable = message["type"] in ("text", "textV2", "sticker", "image", "video", "template", "flex")
                sent.append({"id": number, **({"quoteToken": f"q{number}"} if quotable else {})})
        return sent

    def _loading(self, call: Recorded) -> Answer:
        chat, seconds = call.body.get("chatId"), call.body.get("loadingSeconds", 20)
        # LINE 1.3: loading: 1:1 only, 5..60 in steps of 5, 202 {}
        if not isinstance(chat, str) or not re.fullmatch("U[0-9a-f]{32}", chat):
            return _invalid("Must be a user ID", "chatId")
        if not isinstance(seconds, int) or not 5 <= seconds <= 60 or seconds % 5:
            return _invalid("Must be a multiple of 5 between 5 and 60", "loadingSeconds")
        return Answer(202, {})

    @staticmethod
    def _info(channel: LineChannel) -> dict[str, str]:
        # LINE 1.1: `destination` is the bot's user id, which /info gives
        return {
            "userId": channel.user_id,
            "basicId": f"@{channel.channel_id}",
            "displayName": f"channel {channel.channel_id}",
            "chatMode": "bot",
            "markAsReadMode": "auto",
        }

    def _profile(self, path: str) -> Answer:
        found = re.fullmatch(r"/profile/(U\w+)|/(?:group|room)/[CR]\w+/member/(U\w+)", path)
        if found is None:
            return _error(404, "Not found")
        user = found[1] or found[2]
        # LINE 1.3: profiles: blocked -> 404; members of groups also when they are not friends
        if user in self.foreign or (found[1] and user in self.blocked):
            return _error(404, "Not found")
        return Answer(body={"userId": user, "displayName": f"LINE {user[1:5]}", **self.profiles.get(user, {})})

    def _content(self, call: Recorded) -> Answer:
        found = re.fullmatch(r"/v2/bot/message/([^/]+)/content(/transcoding)?", call.path)
        content = self.contents.get(found[1]) if found else None
        # LINE 1.2: content: 404 `not found`, 410 gone, 202 with no body while it is prepared
        if found is None or content is None:
            return _error(404, "not found")
        if content.gone:
            return _error(410, "The content is gone")
        if found[2]:
            if not content.mime.startswith(("audio/", "video/")):
                return _error(400, "Invalid message type")
            return Answer(body={"status": "processing" if content.preparing else "succeeded"})
        if content.preparing:
            content.preparing -= 1
            return Answer(202)
        return Answer(body=content.data, content_type=content.mime)

    def _set_endpoint(self, call: Recorded, channel: LineChannel) -> Answer:
        url = call.body.get("endpoint")
        # LINE 1.1: LINE calls https only
        if not isinstance(url, str) or not url.startswith("https://") or len(url) > 500:
            return _error(400, "Invalid webhook endpoint URL")
        self.commit("endpoint", channel=channel.channel_id, url=url)
        return Answer(body={})

    async def _test_endpoint(self, call: Recorded, channel: LineChannel) -> Answer:
        url = call.body.get("endpoint") or self.endpoints.get(channel.channel_id)
        if not url:
            return _error(404, "Not found")
        # LINE 1.1: the test sends signed `events: []`
        try:
            status = await self.deliver(url, channel=channel)
        except aiohttp.ClientError as error:
            return Answer(body=_tested(self.clock(), 0, "COULD_NOT_CONNECT", str(error)))
        reason = "OK" if status == 200 else "ERROR_STATUS_CODE"
        return Answer(body=_tested(self.clock(), status, reason, str(status)))

    def _stateless_token(self, call: Recorded) -> Answer:
        # LINE 1.3: stateless: form grant_type, client_id, client_secret; 900 s
        form = {name: values[0] for name, values in parse_qs(str(call.body)).items()}
        for channel in self.channels.values():
            secret = hmac.compare_digest(channel.secret.encode(), form.get("client_secret", "").encode())
            if form.get("client_id") == channel.channel_id and secret:
                if form.get("grant_type") != "client_credentials":
                    break
                token = f"stateless-{uuid.uuid4().hex}"
                self._stateless[token] = (channel, self.clock() + 900)
                return Answer(body={"token_type": "Bearer", "access_token": token, "expires_in": 900})
        return Answer(400, {"error": "invalid_request", "error_description": "invalid client or grant"})


def sign(secret: str, body: bytes) -> str:
    """LINE 1.1: base64 of HMAC-SHA256 over the raw body."""
    return base64.b64encode(hmac.new(secret.encode(), body, hashlib.sha256).digest()).decode()


def _tested(now: float, status: int, reason: str, detail: str) -> dict[str, Json]:
    when = str(int(now * 1000))
    return {"success": status == 200, "timestamp": when, "statusCode": status, "reason": reason, "detail": detail}


def _error(status: int, message: str) -> Answer:
    return Answer(status, {"message": message})


def _refuse(details: Details) -> Answer:
    # LINE 1.3: errors: {"message", "details":[{"message","property"}]?}
    return Answer(400, {"message": f"The request body has {len(details)} error(s)", "details": details})


def _invalid(message: str, where: str) -> Answer:
    return _refuse([{"message": message, "property": where}])
