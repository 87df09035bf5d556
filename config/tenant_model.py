"""A tenant: one business, as its file describes it, every value resolved and checked.

Models are frozen, refuse unknown fields, and hold secrets as SecretStr. The defaults here hold where neither
the file nor the environment says otherwise.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import cached_property, partial
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from config.broadcasts import Broadcasts
from config.business_hours import check_block, check_days, check_hours, mistake, week_of
from config.documented import Documented
from config.field_types import (
    COMMANDS,
    Address,
    BotToken,
    CommandName,
    CommandWord,
    EventName,
    HostName,
    Identifier,
    KeyHash,
    LineSecret,
    LineToken,
    Name,
    OneOrMany,
    Origin,
    PublicAddress,
    Secret,
    StickerNumber,
    UserId,
    WebhookSecret,
    Words,
    Zone,
)
from config.holidays import Holidays, OpeningTimes
from config.routing import Routing
from config.texts import BUILT_IN, Price, ReplyName, Text

TENANT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\Z")
DEFAULT_AGENT, DEFAULT_AGENT_ALIAS = "default", "general"


class _Model(Documented):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class LineChannel(_Model):
    """A LINE Official Account's Messaging API channel."""

    platform: Literal["line"] = "line"
    channel_secret: LineSecret
    channel_access_token: LineToken | None = None
    """May be left out where channel_id is given: tokens are then made, and renewed, with id and secret."""
    allow_push: bool = True
    """May an answer cost quota when the reply token is gone?"""
    channel_id: Identifier | None = None

    @model_validator(mode="after")
    def _can_speak(self) -> LineChannel:
        if self.channel_access_token is None and self.channel_id is None:
            raise mistake(
                "has no channel_access_token, so nothing can be answered",
                "add channel_access_token, or channel_id: tokens are then made with it and the secret",
            )
        return self


class TelegramChannel(_Model):
    """A Telegram bot."""

    platform: Literal["telegram"] = "telegram"
    bot_token: BotToken
    webhook_secret: WebhookSecret | None = None
    """What Telegram sends with each webhook; needed in webhook mode."""
    mode: Literal["webhook", "polling"] = "webhook"
    """`polling` needs no public address; one worker polls."""

    @model_validator(mode="after")
    def _not_forgeable(self) -> TelegramChannel:
        if self.mode == "webhook" and self.webhook_secret is None:
            raise mistake(
                "has no webhook_secret, so anyone could forge messages",
                "add webhook_secret: a random text of A-Z, a-z, 0-9, _ and -; or mode: polling",
            )
        return self


class WebChannel(_Model):
    """The web chat."""

    platform: Literal["web"] = "web"
    allowed_origins: tuple[Origin, ...] = ()
    """Sites that may embed the chat; the bot's own site always may."""


class TerminalChannel(_Model):
    """`chat-chat chat`. Every tenant can be talked to in the terminal, with or without this channel."""

    platform: Literal["terminal"] = "terminal"


Channel = Annotated[
    LineChannel | TelegramChannel | WebChannel | TerminalChannel,
    Field(discriminator="platform"),
]


class Agent(_Model):
    """A persona of a tenant."""

    instructions: str = ""
    """Who the bot is and how it speaks, in any language."""
    instructions_file: str | None = None
    """A file instead, named relative to the tenant's file or to CONFIG_DIR, inside CONFIG_DIR."""
    about: str = ""
    """What it is for, as a model is told that chooses among the agents: see routing."""
    model: Words = "openai/gpt-4o-mini"
    conversation_memory: bool = True
    """false: stateless, each message stands alone."""
    system_role: Literal["system", "user"] = "system"
    """`user` for models that ignore the system role."""
    max_tool_rounds: int = Field(default=3, ge=0, le=20)
    vision: bool = False
    """true: the model can see, and is shown customers' photos."""
    hearing: Words | None = None
    """A speech model, such as `openai/whisper-1`: voice messages are read out to it at llm.base_url. Left out: they are
    kept, but not understood."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_answer_tokens: int | None = Field(default=None, ge=1)
    """The longest answer; what a model thinks counts too. Left out: as long as the model likes."""
    model_size: float | None = Field(default=None, gt=0)
    """Billions of parameters, where the model's name does not tell: a small model is told less at once."""
    context_window: int | None = Field(default=None, ge=1024)
    """Tokens that the model reads and writes in one go, where the built-in table does not know it."""
    rewrite: Literal["auto", "rules", "model", "off"] = "auto"
    """How "and the big one?" is turned into what can be looked for: by rules, and for what these leave open by the
    model: `auto`, if it has 14 billion parameters or more; `rules`, never; `model`, whatever its size."""
    suggestions: Annotated[tuple[Words, ...], OneOrMany] = ()
    """Buttons for a customer to begin with, each a question in the customer's words."""


class LLM(_Model):
    """With whose key and where the language model is asked."""

    api_key: Secret | None = None
    base_url: Address = "https://openrouter.ai/api/v1"
    fallback_models: tuple[Words, ...] = ()
    daily_budget_usd: float | None = Field(default=None, ge=0)
    """US dollars a day of the shop's time zone. At a limit the shop's own answers and rules go on; staff are told."""
    monthly_budget_usd: float | None = Field(default=None, ge=0)
    daily_tokens: int | None = Field(default=None, ge=0)
    """Tokens, read and written."""
    monthly_tokens: int | None = Field(default=None, ge=0)
    timeout: float = Field(default=30.0, gt=0, le=600)
    """Seconds for a whole call, retries included."""


class Understanding(_Model):
    """When the turn asks the language model to classify."""

    policy: Literal["always", "when_unsure", "never"] = "always"


class Memory(_Model):
    """How much is remembered, and for how long."""

    sm_ttl: int = Field(default=1800, ge=0)
    """Seconds of silence after which a session ends; 0: never."""
    max_turns: int = Field(default=10, ge=1, le=1000)
    importance_threshold: float = Field(default=0.5, ge=0, le=1)
    extract_every: int = Field(default=5, ge=0, le=1000)
    """Messages of a customer after which the language model reads what they say of themselves; 0: only when a session
    ends."""
    max_events_per_user: int = Field(default=1000, ge=1)
    event_retention_days: int = Field(default=365, ge=1)
    transcript_retention_days: int = Field(default=90, ge=1)
    embeddings: Words = "local"
    """What finds by meaning: `local` or `local-e5` (where installed), `none`, or a model at an OpenAI-compatible
    endpoint."""


class Behaviour(_Model):
    """How the bot takes part in a conversation."""

    debounce_ms: int = Field(default=800, ge=0, le=60_000)
    """Messages this close together are answered together."""
    debounce_max_ms: int = Field(default=3000, ge=0, le=300_000)
    stale_after: int = Field(default=3600, ge=1)
    """Seconds; a message that waited longer gets one apology."""
    max_attempts: int = Field(default=5, ge=1, le=100)
    groups: Literal["mention", "always", "never"] = "mention"
    """In a group: answer when addressed, to everything, or not at all."""
    rate_limit_per_minute: int = Field(default=20, ge=0)
    """Messages of one person; 0: no limit."""
    human_timeout_min: int = Field(default=120, ge=1, le=10_080)
    """Minutes after which the bot takes a conversation back that staff have not written in."""
    when_closed: Literal["answer", "shop_only"] = "answer"
    """Outside business_hours: `answer` as always; `shop_only`: commands and the shop's own answers alone."""
    ask_rating: bool = False
    """true: customers are offered thumbs up and down when a person's help has ended, and told of the command for it."""

    @model_validator(mode="after")
    def _in_order(self) -> Behaviour:
        if self.debounce_max_ms < self.debounce_ms:
            raise mistake("has a debounce_max_ms below debounce_ms", "raise debounce_max_ms, or lower debounce_ms")
        return self


PersonalData = Literal["thai_id", "card", "phone", "bank_account", "email"]


class Privacy(_Model):
    """What is kept from the language model, and what is not written down at all."""

    withhold: Annotated[tuple[PersonalData, ...], OneOrMany] = ()
    """The language model is told a name such as [phone_1] in place of these; its answer has them again. What stands in
    pictures or is spoken can't be withheld."""
    mask: Annotated[tuple[PersonalData, ...], OneOrMany] = ()
    """Kept as [phone] and the like: in the history, transcripts, events and facts. The turn itself still knows them."""
    notice: Text | None = None
    """Said once, before the first answer to somebody new: what is kept and why, and how to have it deleted."""
    encrypt: bool | None = None
    """Whether what lies on disk is encrypted; it takes ENCRYPTION_KEY. Left out: as ENCRYPT_AT_REST says."""


class Staff(_Model):
    """Where the shop's own people are told of what needs them."""

    channel: str
    chat: Identifier


def _apart(commands: dict[CommandName, CommandWord]) -> dict[CommandName, CommandWord]:
    words = [word for word in map(partial(_word, commands), COMMANDS) if word]
    for word in words:
        if words.count(word) > 1:
            raise mistake(f"has two commands /{word}", "give each a name of its own, or switch one off with false")
    return commands


def _word(commands: dict[CommandName, CommandWord], name: CommandName) -> str | None:
    given = commands.get(name, True)
    return name if given is True else given or None


class Replies(_Model):
    """Texts of the shop's own; those left out are built in."""

    welcome: Text | None = None
    fallback: Text | None = None
    unanswered: Text | None = None
    """For a question that nothing here answers, once staff are asked; left out: `fallback`."""
    error: Text | None = None
    out_of_hours: Text | None = None


class Sticker(_Model):
    """A sticker, as each platform names it."""

    package: StickerNumber
    """LINE's package, one of those that bots may send."""
    id: StickerNumber
    telegram: Words | None = None
    """Telegram's file_id of a sticker, which holds for one bot; without it nothing is shown there."""


class Attachment(_Model):
    """What goes with an answer: one of a picture, a file and a sticker."""

    image: PublicAddress | None = None
    """JPEG or PNG; LINE takes up to 10 MB, Telegram up to 5 MB."""
    file: PublicAddress | None = None
    """Telegram shows PDF and ZIP as a file; elsewhere a file is a link."""
    name: Words | None = None
    """Of the image or file, shown to customers."""
    sticker: Sticker | None = None

    @model_validator(mode="after")
    def _one(self) -> Attachment:
        if sum(one is not None for one in (self.image, self.file, self.sticker)) != 1:
            raise mistake("is not one of image, file and sticker", "write each as an entry of its own")
        return self


class Faq(_Model):
    """An answer that needs no language model, and the ways in which customers ask for it."""

    questions: Annotated[tuple[Words, ...], OneOrMany, Field(min_length=1)]
    answer: Text
    buttons: Annotated[tuple[Words, ...], OneOrMany] = ()
    """What may be asked next; pressing one sends its words."""
    media: tuple[Attachment, ...] = ()
    """Shown below the answer, in this order."""


class TenantFile(_Model):
    """A tenant's file as it is written."""

    extends: Words | None = None
    """A template that stands below this file, such as base.yaml: beside it or in the config folder."""
    name: Words
    """Shown to people."""
    timezone: Zone = "Asia/Bangkok"
    language: Literal["th", "en", "auto"] = "auto"
    """`auto`: the customer's."""
    shop: dict[Name, Text] = Field(default_factory=dict)
    """What the shop says of itself, by a name of your own: `{{shop.phone}}` in an answer stands for it. With phone,
    address, map, email and website the bot answers who asks for them."""
    prices: dict[Words, Price] = Field(default_factory=dict)
    """Goods and what they cost: {ลาเต้: 65, เค้ก: เริ่มต้น 120 บาท}; a number is baht. Other names stand in products."""
    channels: dict[Name, Channel]
    agents: dict[Name, Agent] = Field(default_factory=dict)
    routing: Routing | None = None
    """Which agent answers; without it the agent default, unless another is asked for by name."""
    llm: LLM = LLM()
    understanding: Understanding = Understanding()
    memory: Memory = Memory()
    behaviour: Behaviour = Behaviour()
    privacy: Privacy = Privacy()
    staff: Staff | None = None
    commands: Annotated[dict[CommandName, CommandWord], AfterValidator(_apart)] = Field(default_factory=dict)
    """Another name for a command, or false: switched off."""
    blocked_users: tuple[UserId, ...] = ()
    """Whose messages are passed over everywhere, such as `line:U…` or `telegram:12345`."""
    replies: Replies = Replies()
    broadcasts: Broadcasts = Broadcasts()
    faq: tuple[Faq, ...] = ()
    image_hosts: Annotated[tuple[HostName, ...], OneOrMany] = ()
    """Whose pictures the language model may show, such as images.example.com; its other pictures stay links. A picture
    is fetched as soon as it is shown, so an address that a stranger talked the model into could tell them things."""
    products: tuple[Annotated[tuple[Words, ...], OneOrMany, Field(min_length=1)], ...] = ()
    """The shop's goods, each by one name or several, in any language: known again in what customers write."""
    keywords: dict[EventName, Annotated[tuple[Words, ...], OneOrMany]] = Field(default_factory=dict)
    business_hours: Annotated[
        dict[
            Annotated[str, AfterValidator(check_days)],
            Annotated[tuple[Annotated[str, AfterValidator(check_block)], ...], OneOrMany],
        ],
        AfterValidator(check_hours),
    ] = Field(default_factory=dict)
    """Several blocks a day are allowed, and ends after midnight; a day left out is closed."""
    holidays: Holidays | None = None
    """Days with other hours: public holidays, closed days of the shop's own, special hours."""
    api_keys: tuple[KeyHash, ...] = ()
    """SHA-256 of the keys that open this tenant's API."""


class Tenant(TenantFile):
    """A tenant with its id and every value resolved: its own, else the environment's, else the default."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]

    @model_validator(mode="before")
    @classmethod
    def _default_agent(cls, value: Any) -> Any:
        """Every tenant has the agent `default`; `general` is another name for it."""
        if not isinstance(value, dict):
            return value
        agents = value.get("agents") or {}
        if not isinstance(agents, dict):
            return value
        agents = {DEFAULT_AGENT if name == DEFAULT_AGENT_ALIAS else name: agent for name, agent in agents.items()}
        return {**value, "agents": {DEFAULT_AGENT: {}, **agents}}

    def model_post_init(self, context: Any, /) -> None:
        _ = self.times  # what is wrong with them is told when the file is read

    def agent(self, name: str = DEFAULT_AGENT) -> Agent | None:
        """The agent of that name; None: there is none."""
        return self.agents.get(DEFAULT_AGENT if name == DEFAULT_AGENT_ALIAS else name)

    def is_staff_chat(self, channel: str, chat: str) -> bool:
        return self.staff is not None and (self.staff.channel, self.staff.chat) == (channel, chat)

    def command(self, name: CommandName) -> str | None:
        """The word after `/` that this shop's customers type for a command; None: it is switched off."""
        return _word(self.commands, name)

    def speaks(self, language: str) -> str:
        """The language to answer a customer in who wrote in `language` (`th`, `en`, `mixed`): `th` or `en`."""
        wanted = language if self.language == "auto" else self.language
        return "en" if wanted == "en" else "th"

    def reply(self, name: ReplyName, language: str = "th") -> str:
        """A canned reply in the customer's language: the shop's own, else the built-in one."""
        wanted = self.speaks(language)
        own: Text | None = getattr(self.replies, name)
        if name == "unanswered" and own is None:
            own = self.replies.fallback
        text = (own.en if wanted == "en" else own.th) if own else None
        return text or BUILT_IN[name].within(wanted)

    @cached_property  # each turn asks; a private attribute takes pydantic six calls
    def times(self) -> OpeningTimes | None:
        """When the shop is open; None: it gives no hours, and is always."""
        if not (self.business_hours or self.holidays):
            return None
        week = week_of(self.business_hours) if self.business_hours else None
        return OpeningTimes(week, self.holidays, self.timezone)

    def is_open(self, now: datetime) -> bool:
        """Is the shop open at `now` (aware)? Always, if it gives no hours."""
        return (times := self.times) is None or times.is_open(now)
