"""How LINE takes messages. Each rule names its section in the platform's documentation."""

from __future__ import annotations

import re
import uuid
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from tests.standins.line_messages import faults_of_messages
from tests.standins.line_model import (
    MONTHLY_LIMIT,
    Accepted,
    LineChannel,
    LineContent,
    LineShown,
    Token,
    failed,
    invalid,
    refuse,
)
from tests.standins.model import Answer, Json, Recorded
from tests.standins.server import StandIn

_CHAT = re.compile(r"[UCR][0-9a-f]{32}")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class LineSending(StandIn):
    """The part of LINE that has messages to show, and its state."""

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
        self._tokens: dict[str, Token] = {}
        self._accepted: dict[str, Accepted] = {}
        self._stateless: dict[str, tuple[LineChannel, float]] = {}
        self._rate: Counter[tuple[str, str]] = Counter()
        self._second = 0
        self._last_id = 600_000_000_000_000_000

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

    def apply(self, change: str, data: dict[str, Json]) -> None:
        match change:
            case "token":
                self._tokens[data["token"]] = Token(data["chat"], data["until"], data["channel"])
            case "spent":
                token = self._tokens.setdefault(data["token"], Token(data["chat"], 0, None))
                token.spent = True
            case "accepted":
                self._accepted[data["key"]] = Accepted(**data)
            case "shown":
                self.shown.append(LineShown(**data))
                self._last_id = max(self._last_id, int(data["id"]))
            case "used":
                self.used += data["count"]
            case "endpoint":
                self.endpoints[data["channel"]] = data["url"]
            case _:
                raise ValueError(change)

    def _new_id(self) -> str:
        self._last_id += 1
        return str(self._last_id)

    def _reply(self, call: Recorded, channel: LineChannel) -> Answer:
        # LINE 1.3: the retry key is rejected on reply with 400 (its wording is not documented)
        if "x-line-retry-key" in call.headers:
            return failed(400, "The X-Line-Retry-Key header is not supported by this endpoint")
        if details := faults_of_messages(call.body.get("messages")):
            return refuse(details)
        token = call.body.get("replyToken")
        known = self._tokens.get(token)
        if known is None and (self.known_tokens_only or not isinstance(token, str) or not token):
            return failed(400, "Invalid reply token")
        if known is None:
            chat, dot, _ = token.partition(".")
            known = Token(chat if dot else "", self.clock() + 60, None)
        # LINE 1.3: reply token: once, within about a minute; of this channel
        foreign = known.channel not in (None, channel.channel_id)
        if known.spent or foreign or known.until < self.clock():
            return failed(400, "Invalid reply token")
        self.commit("spent", token=token, chat=known.chat)
        # LINE 1.3: a reply does not count to the quota
        return Answer(body={"sentMessages": self._show([known.chat], call, "reply", channel)})

    def _push(self, call: Recorded, channel: LineChannel) -> Answer:
        to = call.body.get("to")
        if not isinstance(to, str) or not _CHAT.fullmatch(to):
            return failed(400, "The property, 'to', in the request body is invalid (line: -, column: -)")
        return self._send_billed(call, channel, [to], "push")

    def _multicast(self, call: Recorded, channel: LineChannel) -> Answer:
        to = call.body.get("to")
        # LINE 1.3: multicast: 1-500 userIds, no groups
        if not isinstance(to, list) or not 1 <= len(to) <= 500:
            return invalid("Size must be between 1 and 500", "to")
        if not all(isinstance(one, str) and _CHAT.fullmatch(one) and one[0] == "U" for one in to):
            return failed(400, "The property, 'to', in the request body is invalid (line: -, column: -)")
        return self._send_billed(call, channel, to, "multicast")

    def _send_billed(self, call: Recorded, channel: LineChannel, to: list[str], via: str) -> Answer:
        key = call.headers.get("x-line-retry-key")
        # LINE 1.3: X-Line-Retry-Key is a UUID
        if key is not None and not _UUID.fullmatch(key):
            return failed(400, "The X-Line-Retry-Key header must be a UUID")
        if details := faults_of_messages(call.body.get("messages")):
            return refuse(details)
        accepted = self._accepted.get(f"{channel.channel_id}:{key}") if key else None
        # LINE 1.3: already accepted -> 409; a key lives 24 h
        if accepted is not None and self.clock() - accepted.at < 24 * 3600:
            return self._again(accepted, channel, via)
        # LINE 1.3: foreign id, or a group the bot left -> 400
        if via == "push" and to[0] in self.foreign:
            return failed(400, "Failed to send messages")
        # LINE 1.3: the quota counts recipients, not objects; who can't be reached costs nothing
        reached = [one for one in to if one not in self.blocked | self.foreign]
        cost = sum(self.members.get(one, 1) for one in reached)
        if self.quota is not None and self.used + cost > self.quota:
            return failed(429, MONTHLY_LIMIT)
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

    def _again(self, accepted: Accepted, channel: LineChannel, via: str) -> Answer:
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
