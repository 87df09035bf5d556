"""A language model's answer before anybody sees it: without links that are not the shop's, secrets, ids of people, and
never with our rules or the shop's instructions word by word. Pure.

Whatever a model was talked into, it can only say it: what it may do is held by the tools. What it says in other words,
or in another language, nothing here finds.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import urlsplit

from config.tenants import Tenant
from gateway import prompt
from gateway.adapters.base import Watch

GAP = "…"
_ENDINGS = (
    "com|net|org|info|biz|co|io|me|ly|gl|gg|tv|cc|to|app|dev|ai|xyz|top|club|site|online|store|shop|link|click|live|vip"
    "|work|pro|fun|icu|cyou|buzz|example|test|th|ru|cn|tk|ml|ga|cf|gq|pw|su|ws|us|uk|de|fr|jp|kr|sg|my|vn|la|kh|mm|id|ph|in|eu"
)
_DOT = "[.\u3002\uff0e\uff61]"
_DOTS = re.compile(_DOT)
_MARKS = re.compile(r"[\W_]+")
_MAY_LEAD = re.compile(rf"{_DOT}|://|\]\(")
_LEADING = re.compile(r"[.\u3002\uff0e\uff61:\]]")  # one of these is in each of those: found at once that none is there
_LABEL = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
_BARE = (
    rf"(?<![\w@./-])(?:[\w.+-]+@)?(?:{_LABEL}{_DOT}){{1,6}}(?:{_ENDINGS})(?![\w-])(?::\d+)?(?:/[^\s<>()\[\]\"'ก-๙]*)?"
)
_LINK = re.compile(rf"\b[a-z][a-z0-9+.-]{{1,15}}://[^\s<>\"'`]+|{_BARE}", re.IGNORECASE)
_MARKDOWN = re.compile(r"(!?)\[([^\]\n]*)\]\(\s*<?([^()\s<>]*(?:\([^()\s]*\)[^()\s<>]*)*)>?(?:\s+[\"'(][^)\n]*)?\s*\)")
_DEFINED = re.compile(r"^ {0,3}\[[^\]\n]+\]:\s*\S.*$", re.MULTILINE)
_TAGS = re.compile(r"</?(?:procedures|customer|shop_facts|summary|events|memories|shop_answers|shop_files|forwarded)>")
# Some endpoints give what a model thought as part of its answer.
_THOUGHT = re.compile(r"\A\s*<think(?:ing)?(?:>.*?(?:</think(?:ing)?>\s*|\Z)|\Z)", re.DOTALL)
_IDS = re.compile(
    r"\b(?:(?:line|telegram):(?:group:)?-?[UCR]?[0-9a-f]{5,32}|[UCR][0-9a-f]{32}|(?:sm|cc):[a-z0-9_-]+:\S+)",
)
_SECRETS = re.compile(
    r"\bsk-[A-Za-z0-9_-]{12,}|\b\d{6,12}:[A-Za-z0-9_-]{16,}|\bBearer\s+\S{16,}|\bsha256:[0-9a-f]{64}|\bk_[0-9a-f]{12}\b"
)
_NO_WORD = re.compile(r"[A-Za-z0-9_:-]{6}")  # each of these has as much of this, and Thai has none
_ENCODED = re.compile(r"[A-Za-z0-9+/]{80,}={0,2}")
_PIECE, _STEP = 40, 5  # characters of a run, and between the runs that are looked for
_BIT = 12  # characters that tell a run from most of what is said
_SHORT = 120  # characters below which instructions are looked for as a whole
_MUCH = 0.4  # of the instructions
_BEGUN = re.compile(rf"\S*(?:[:/@]|{_DOT})\S*\Z")
_WORD = 400  # characters at the end of a growing answer that may become a link

Seen = Callable[[], Iterable[str]]  # what the model was told of the shop, and of this customer


class Guard:
    """For one tenant."""

    def __init__(self, tenant: Tenant) -> None:
        own = [one.instructions or "" for one in tenant.agents.values()]
        self._hosts = frozenset(tenant.image_hosts) | _hosts([_words_of(tenant)])
        self._secrets = tuple(_secrets_of(tenant))
        self._rules = _runs(prompt.RULES)
        self._instructions = [(plain, _runs(plain)) for one in own if len(plain := _plain(one)) >= _PIECE]
        texts = [_plain(prompt.RULES), *(plain for plain, _ in self._instructions)]
        self._bits = frozenset(text[at : at + _BIT] for text in texts for at in range(len(text) - _BIT + 1))
        self._bits |= {bit[::-1] for bit in self._bits}
        self._short = [whole for whole, _ in self._instructions if len(whole) < _SHORT]
        self._ascii = all(map(str.isascii, texts))

    def checked(self, text: str, *, shop: Seen = tuple, customer: Seen = tuple) -> str | None:
        """What may be said; None: nothing of it, for it gives away what the model was told to be. Links lead to hosts
        that stand in the shop's own words or in what `shop` gives; an e-mail address may also be the customer's own."""
        tagged = "<" in text
        if tagged:
            text = _THOUGHT.sub("", text)
        if self._tells(text):
            return None
        if tagged:
            text = _TAGS.sub("", text)
        if _NO_WORD.search(text):
            text = _IDS.sub(GAP, _SECRETS.sub(GAP, text))
        for secret in self._secrets:
            text = text.replace(secret, GAP)
        if not (_LEADING.search(text) and _MAY_LEAD.search(text)):
            return text
        hosts = self._hosts
        looked: list[bool] = []

        def own(host: str) -> bool:
            nonlocal hosts
            if not looked:  # only where there is a link at all
                looked.append(True)
                hosts = hosts | _hosts(shop())
            return any(host == one or host.endswith(f".{one}") for one in hosts)

        def link(match: re.Match[str]) -> str:
            found = match[0]
            if "@" in found and "://" not in found:
                mine = found.lower() in " ".join(customer()).lower()
                return found if mine or own(_host(found)) else GAP
            return found if own(_host(found)) else GAP

        def named(match: re.Match[str]) -> str:
            target = match[3]
            if _LINK.fullmatch(target):
                return match[0] if own(_host(target)) else match[2]
            return match[2] if ":" in target or target.startswith(("/", "\\")) else match[0]

        text = _MARKDOWN.sub(named, text)
        text = _DEFINED.sub("", text) if "]:" in text else text
        return _LINK.sub(link, text)

    def _tells(self, text: str) -> bool:
        # Of what is in English nothing is told by an answer that has too few letters of it.
        if self._ascii and len(text.lower().encode("ascii", "ignore")) < _PIECE:
            return False
        plain = _plain(text)
        if len(plain) < _PIECE:
            return False
        decoded = [_plain(one) for one in _decoded(text)]
        return self._is_told(plain, plain[::-1]) or any(map(self._is_told, decoded))

    def _is_told(self, plain: str, *turned: str) -> bool:
        # Each run that is told has one of these bits within it.
        bits = [plain[at : at + _BIT] for at in range(0, len(plain) - _BIT + 1, _PIECE - _BIT + 1)]
        if self._bits.isdisjoint(bits) and not any(one in way for one in self._short for way in (plain, *turned)):
            return False
        return any(self._gives_away(way) for way in (plain, *turned))

    def _gives_away(self, plain: str) -> bool:
        said = {plain[at : at + _PIECE] for at in range(len(plain) - _PIECE + 1)}
        if len(said & self._rules) >= 2:
            return True
        for whole, runs in self._instructions:
            if len(whole) < _SHORT:
                if whole in plain:
                    return True
            elif len(said & runs) >= max(2, _MUCH * len(runs)):
                return True
        return False


class Guarded:
    """A watch that sees a growing answer as far as it may be said: what may become a link waits until it is whole."""

    __slots__ = ("_checked", "_looked", "_may", "_said", "_watch", "gone")

    def __init__(self, watch: Watch, checked: Callable[[str], str | None]) -> None:
        self._watch = watch
        self._checked = checked
        self._said: Callable[[], str] = str
        self._may = ""  # of its first `_looked` characters
        self._looked = 0
        self.gone = watch.gone

    def grew(self, said: Callable[[], str]) -> None:
        if said is not self._said:  # another answer
            self._said, self._looked = said, 0
        self._watch.grew(self._so_far)

    def _so_far(self) -> str:
        text = self._said()
        ready = text[: _whole(text)]
        grown = len(ready) - self._looked
        # Each word at first, then ever more at once: looking at all of it for each piece would cost its square.
        if not ready or not 0 <= grown < len(ready) // 10:
            self._looked = len(ready)
            self._may = (self._checked(ready) or "") if ready else ""
        return self._may

    async def close(self) -> None:
        await self._watch.close()


def _whole(text: str) -> int:
    """How much of it is no link that has only begun."""
    at = begun.start() if (begun := _BEGUN.search(text, max(0, len(text) - _WORD))) else len(text)
    named = text.rfind("[", max(0, at - _WORD), at)
    return named if named >= 0 and text.find(")", named, at) < 0 else at


def _plain(text: str) -> str:
    return _MARKS.sub("", text.lower())  # marks, spaces and the vowels above Thai letters don't matter


def _runs(text: str) -> frozenset[str]:
    plain = _plain(text)
    return frozenset(plain[at : at + _PIECE] for at in range(0, len(plain) - _PIECE + 1, _STEP))


def _decoded(text: str) -> Sequence[str]:
    out = []
    for found in _ENCODED.findall(text):
        try:
            out.append(base64.b64decode(found + "=" * (-len(found) % 4), validate=False).decode("utf-8", "ignore"))
        except (binascii.Error, ValueError):
            continue
    return out


def _host(link: str) -> str:
    """Where it leads; what can't be told leads nowhere that anybody named."""
    plain = _DOTS.sub(".", link)
    try:
        return (urlsplit(plain if "://" in plain else f"//{plain}").hostname or "?").removeprefix("www.")
    except ValueError:
        return "?"


def _hosts(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(_host(one[0]) for text in texts for one in _LINK.finditer(text)) - {"?"}


def _words_of(tenant: Tenant) -> str:
    """Everything that the shop wrote into its file, but for its secrets, which show as stars."""
    told = {"agents", "faq", "replies", "privacy", "channels", "name", "staff"}
    return str(tenant.model_dump(mode="json", include=told))


def _secrets_of(tenant: Tenant) -> Iterable[str]:
    for channel in tenant.channels.values():
        for name in ("channel_secret", "channel_access_token", "bot_token", "webhook_secret"):
            if (secret := getattr(channel, name, None)) is not None and len(secret.get_secret_value()) >= 8:
                yield secret.get_secret_value()
    if tenant.llm.api_key is not None:
        yield tenant.llm.api_key.get_secret_value()
