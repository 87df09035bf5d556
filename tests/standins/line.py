"""LINE's Messaging API on loopback. Each rule names its section in the platform's documentation."""

from __future__ import annotations

import hmac
import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import asdict
from urllib.parse import parse_qs

import aiohttp
from aiohttp import web

from tests.standins.line_model import (
    MONTHLY_LIMIT,
    RATE_LIMITED,
    LineChannel,
    LineContent,
    LineShown,
    failed,
    invalid,
    monthly_limit,
    rate_limited,
    sign,
)
from tests.standins.line_sending import LineSending
from tests.standins.model import Answer, Fault, Json, Recorded

__all__ = [
    "MONTHLY_LIMIT", "RATE_LIMITED", "LineChannel", "LineContent", "LineShown", "LineStandIn", "monthly_limit",
    "rate_limited", "sign",
]  # fmt: skip


class LineStandIn(LineSending):
    """api.line.me under `url`, api-data.line.me under `data_url`.

    With `known_tokens_only=False` any reply token not issued here works exactly once; one that is a chat's id and
    whatever follows a dot answers in that chat. `blocked` are people who blocked the bot, `foreign` ids that are not of
    this provider or groups it left, `quota` the month's pushes (None: no limit), `members` the size of groups,
    `limits` calls a second by endpoint.
    """

    name = "LINE"

    async def _listen(self, runner: web.AppRunner) -> None:
        await super()._listen(runner)
        self.data_port = await self._site(runner, self.data_port)

    @property
    def data_url(self) -> str:
        """The base address for customers' content."""
        return f"http://127.0.0.1:{self.data_port}"

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

    def redelivered(self, event: Mapping[str, Json]) -> dict[str, Json]:
        """The event as LINE sends it again: all the same but for the mark."""
        token = self._tokens[event["replyToken"]]
        # LINE 1.3: a redelivered event's token has a fresh minute unless already used or the event is >20 min old
        if not token.spent and self.clock() - event["timestamp"] / 1000 <= 20 * 60:
            self.commit(
                "token", token=event["replyToken"], chat=token.chat, until=self.clock() + 60, channel=token.channel
            )
        return {**event, "deliveryContext": {"isRedelivery": True}}

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

    def headers(self) -> dict[str, str]:
        # LINE 1.3: every response has x-line-request-id
        return {"x-line-request-id": str(uuid.uuid4())}

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
        return failed(
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
            return failed(429, RATE_LIMITED)
        # LINE 1.3: JSON body at most 2 MB
        if int(call.headers.get("content-length", 0)) > 2_000_000:
            return failed(413, "Payload Too Large")
        if call.method in ("POST", "PUT") and not isinstance(call.body, dict):
            return failed(400, "The request body could not be parsed as JSON")
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
                return Answer(body={}) if token else invalid("May not be empty", "markAsReadToken")
            case "GET", "/info":
                return Answer(body=self._info(channel))
            case "PUT", "/channel/webhook/endpoint":
                return self._set_endpoint(call, channel)
            case "GET", "/channel/webhook/endpoint":
                url = self.endpoints.get(channel.channel_id)
                return Answer(body={"endpoint": url, "active": True}) if url else failed(404, "Not found")
            case "POST", "/channel/webhook/test":
                return await self._test_endpoint(call, channel)
            case "GET", path:
                return self._profile(path)
        return failed(404, "Not found")

    def _too_fast(self, call: Recorded, channel: LineChannel) -> bool:
        # LINE 1.3: token buckets per channel, endpoint and method; here a count per second
        place = next(part for part in self.limits if part in call.path)
        if (second := int(self.clock())) != self._second:
            self._second = second
            self._rate.clear()
        bucket = (channel.channel_id, place or call.path)
        self._rate[bucket] += 1
        return self._rate[bucket] > self.limits[place]

    def _loading(self, call: Recorded) -> Answer:
        chat, seconds = call.body.get("chatId"), call.body.get("loadingSeconds", 20)
        # LINE 1.3: loading: 1:1 only, 5..60 in steps of 5, 202 {}
        if not isinstance(chat, str) or not re.fullmatch("U[0-9a-f]{32}", chat):
            return invalid("Must be a user ID", "chatId")
        if not isinstance(seconds, int) or not 5 <= seconds <= 60 or seconds % 5:
            return invalid("Must be a multiple of 5 between 5 and 60", "loadingSeconds")
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
        if (counted := re.fullmatch(r"/(?:group|room)/([CR]\w+)/members/count", path)) is not None:
            return Answer(body={"count": self.members.get(counted[1], 1)})
        found = re.fullmatch(r"/profile/(U\w+)|/(?:group|room)/[CR]\w+/member/(U\w+)", path)
        if found is None:
            return failed(404, "Not found")
        user = found[1] or found[2]
        # LINE 1.3: profiles: blocked -> 404; members of groups also when they are not friends
        if user in self.foreign or (found[1] and user in self.blocked):
            return failed(404, "Not found")
        return Answer(body={"userId": user, "displayName": f"LINE {user[1:5]}", **self.profiles.get(user, {})})

    def _content(self, call: Recorded) -> Answer:
        found = re.fullmatch(r"/v2/bot/message/([^/]+)/content(/transcoding)?", call.path)
        content = self.contents.get(found[1]) if found else None
        # LINE 1.2: content: 404 `not found`, 410 gone, 202 with no body while it is prepared
        if found is None or content is None:
            return failed(404, "not found")
        if content.gone:
            return failed(410, "The content is gone")
        if found[2]:
            if not content.mime.startswith(("audio/", "video/")):
                return failed(400, "Invalid message type")
            return Answer(body={"status": "processing" if content.preparing else "succeeded"})
        if content.preparing:
            content.preparing -= 1
            return Answer(202)
        return Answer(body=content.data, content_type=content.mime)

    def _set_endpoint(self, call: Recorded, channel: LineChannel) -> Answer:
        url = call.body.get("endpoint")
        # LINE 1.1: LINE calls https only
        if not isinstance(url, str) or not url.startswith("https://") or len(url) > 500:
            return failed(400, "Invalid webhook endpoint URL")
        self.commit("endpoint", channel=channel.channel_id, url=url)
        return Answer(body={})

    async def _test_endpoint(self, call: Recorded, channel: LineChannel) -> Answer:
        url = call.body.get("endpoint") or self.endpoints.get(channel.channel_id)
        if not url:
            return failed(404, "Not found")
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


def _tested(now: float, status: int, reason: str, detail: str) -> dict[str, Json]:
    when = str(int(now * 1000))
    return {"success": status == 200, "timestamp": when, "statusCode": status, "reason": reason, "detail": detail}
