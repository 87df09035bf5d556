"""What comes in and what goes out, frozen."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from memory.keys import GROUPS


class Kind(StrEnum):
    """What an inbound message is. Kinds we know nothing of never become messages: they are counted and passed over."""

    TEXT = "text"
    STICKER = "sticker"
    IMAGE = "image"
    VIDEO = "video"
    AUDIO = "audio"
    FILE = "file"
    LOCATION = "location"
    CONTACT = "contact"
    POSTBACK = "postback"
    FOLLOW = "follow"  # also: unblocked, /start, added to a group
    UNFOLLOW = "unfollow"  # also: blocked, thrown out
    EDITED = "edited"
    UNSEND = "unsend"
    OTHER = "other"  # a customer's message of a kind that is new to us
    # Ours, never a platform's:
    NOTICE = "notice"  # in the staff chat's conversation: what staff are to be told
    STAFF_REPLY = "staff_reply"  # in a customer's conversation: what came of staff


RELAYED = frozenset((Kind.NOTICE, Kind.STAFF_REPLY))  # no person wrote it to the bot


class InboundMessage(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One message of a person, verified and parsed, with no trace of the platform's own form."""

    tenant: str
    channel: str  # its name in the tenant's file
    platform: str  # line | telegram | web | terminal
    event_id: str  # the platform's own: webhookEventId, update_id; one delivery, one answer
    user_id: str  # canonical: line:U…, telegram:12345, line:group:C…, telegram:group:-100…
    chat_id: str  # where the platform wants the answer
    kind: Kind = Kind.TEXT
    text: str = ""  # at most MAX_TEXT characters; "" for a sticker or photo without words
    sender_id: str | None = None  # in a group: who wrote, canonical; None where the platform does not say
    sender_name: str | None = None
    language_code: str | None = None  # the person's app language, where the platform tells
    message_id: str | None = None  # the platform's own
    sent_at: float = 0.0  # seconds since 1970, as the platform says
    received_at: float = 0.0  # seconds since 1970, when we took it
    reply_token: str | None = None  # LINE: once, within about a minute of receipt
    quote_token: str | None = None
    thread_id: str | None = None  # Telegram topic
    business_id: str | None = None  # Telegram business connection
    redelivered: bool = False
    mentioned: bool = True  # in a group: was the bot addressed (mention, reply to it, command)
    extra: dict[str, Any] = {}  # what the kind needs: sticker keywords, coordinates, file id, postback params
    agent: str = "default"
    conversation_id: str = "main"
    trace: str = ""  # where its way began: see gateway.spans

    @property
    def group(self) -> bool:
        return self.user_id.startswith(GROUPS)  # as `is_group`: asked for at every step of a turn

    @property
    def alone(self) -> bool:
        """Answered by itself: a command, a button, a sticker, each request over HTTP. Words, pictures and what changes
        them go together."""
        return self.kind not in _TOGETHER or self.text.startswith("/") or self.platform == "web"

    @property
    def lane(self) -> str:
        """Messages of one lane may be answered together: same channel, chat and topic, in a group of one member. What
        may have been answered already is answered as it was then, without what came since."""
        if self.alone:
            return f"!{self.event_id}"
        begun = "|begun" if self.extra and self.extra.get(BEGUN) else ""
        place = f"{self.channel}|{self.chat_id}|{self.thread_id or ''}{begun}"
        return f"{place}|{self.sender_id or ''}" if ":group:" in self.user_id else place


_TOGETHER = frozenset((Kind.TEXT, Kind.IMAGE, Kind.VIDEO, Kind.AUDIO, Kind.FILE, Kind.EDITED, Kind.UNSEND))

BEGUN = "begun"  # in a message's `extra`: the outbox of an answer under way when the process that made it ended
MAX_TEXT = 20_000  # characters kept of one message; the rest is cut, and the message says so in `extra["cut"]`


encode: Callable[[InboundMessage], bytes] = msgspec.json.Encoder().encode


decode: Callable[[bytes], InboundMessage] = msgspec.json.Decoder(InboundMessage).decode


class QuickReply(msgspec.Struct, frozen=True):
    """A button below the answer; pressing it sends `text`."""

    label: str
    text: str


class Image(msgspec.Struct, frozen=True, omit_defaults=True, tag="image"):
    """A picture at an https address; `alt` says what it shows, in plain text."""

    url: str
    alt: str = ""

    @property
    def link(self) -> str:
        return f"{self.alt} ({self.url})" if self.alt else self.url


class File(msgspec.Struct, frozen=True, omit_defaults=True, tag="file"):
    """A file at an https address; `name` is plain text."""

    url: str
    name: str = ""

    @property
    def link(self) -> str:
        return f"{self.name} ({self.url})" if self.name else self.url


class Sticker(msgspec.Struct, frozen=True, omit_defaults=True, tag="sticker"):
    """LINE's package and id; `telegram`: the file_id there, None: nothing is shown there."""

    package: str
    id: str
    telegram: str | None = None


Media = Image | File | Sticker


class Tokens(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an answer took of the model, as its provider counts."""

    prompt: int = 0
    completion: int = 0


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the bot says: Markdown, before any platform's limits."""

    text: str
    quick_replies: tuple[QuickReply, ...] = ()
    model: str | None = None  # None: rules and canned replies
    provider: str | None = None
    media: tuple[Media, ...] = ()  # shown below the text
    by_shop: bool = False  # the shop's own words: pictures in them may come from any host
    actions: tuple[dict[str, Any], ...] = ()  # what the model did before it answered: tool, arguments, result
    cut: bool = False  # the customer ended it before it was whole
    before: tuple[Answer, ...] = ()  # earlier answers that the customer still waits for, oldest first
    tokens: Tokens = Tokens()
    ridden: tuple[str, float] | None = None  # what the message means, told by the model with its answer
    status: int = 0  # of an answer that is a refusal, as HTTP says it: 429
    sets: dict[str, Any] = {}  # what the session's variables hold once it was said
    for_staff: str = ""  # why staff are to be asked what was asked here, "" where they are not
    nearest: str = ""  # of what nothing answered: the shop's own question that is nearest


class Target(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Where an answer goes."""

    tenant: str
    channel: str
    platform: str
    chat_id: str
    reply_token: str | None = None
    token_received_at: float = 0.0  # seconds since 1970
    thread_id: str | None = None
    business_id: str | None = None
    group: bool = False


def target_of(message: InboundMessage) -> Target:
    return Target(
        tenant=message.tenant,
        channel=message.channel,
        platform=message.platform,
        chat_id=message.chat_id,
        reply_token=message.reply_token,
        token_received_at=message.received_at,
        thread_id=message.thread_id,
        business_id=message.business_id,
        group=message.group,
    )
