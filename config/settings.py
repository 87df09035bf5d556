"""The environment, read once: every setting of the process, checked before anything starts."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeVar, cast
from urllib.parse import parse_qs, urlsplit

from dotenv import dotenv_values

from config.vault import parse_keys

T = TypeVar("T")
Compression = Literal["none", "gzip", "zstd"]
LogFormat = Literal["console", "json"]

_TRUE = frozenset({"1", "true", "yes", "y"})
_FALSE = frozenset({"0", "false", "no", "n"})
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
MOUNTED = Path("/run/secrets")  # where docker puts secrets
# What may come from a file as well: the one that NAME_FILE names, else /run/secrets/NAME or /run/secrets/name.
_SECRET = ("OPENROUTER_API_KEY", "EMBEDDINGS_API_KEY", "ADMIN_API_KEY", "REDIS_URL", "LONGTERM_URL", "ENCRYPTION_KEY")
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class SettingsError(Exception):
    """A setting is wrong. The message is one line: the variable, what is wrong, what is allowed."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment and `.env` say, else the defaults. `Settings()` holds the defaults alone.

    What may carry a secret (keys, and URLs with a password in them) is never in the `repr`.
    """

    redis_url: str | None = field(default=None, repr=False)  # None: the embedded server
    redis_cluster: bool = False
    redis_shards: int = 16  # of a cluster: over how many slots the marks of what waits are spread
    redis_copies: int = 0  # replicas that are to have a message before a webhook is acknowledged
    data_dir: Path = Path("data")
    config_dir: Path = Path("config")
    longterm_url: str | None = field(default=None, repr=False)  # None: JSON files
    lm_compression: Compression = "none"
    encryption_key: tuple[bytes, ...] = field(default=(), repr=False)  # the current one first, older ones after it
    encrypt_at_rest: bool = True  # where there is a key; a tenant may say otherwise
    openrouter_api_key: str | None = field(default=None, repr=False)  # None: rules and canned replies answer
    openrouter_base_url: str = field(default="https://openrouter.ai/api/v1", repr=False)
    openrouter_model: str = "openai/gpt-4o-mini"
    embeddings: str = "local"  # none, local, local-e5, or a model's name at `embeddings_base_url`
    embeddings_base_url: str | None = field(default=None, repr=False)  # None: where the language model is asked
    embeddings_api_key: str | None = field(default=None, repr=False)  # None: the language model's, if asked there
    line_api_base: str = field(default="https://api.line.me", repr=False)
    line_data_api_base: str = field(default="https://api-data.line.me", repr=False)
    telegram_api_base: str = field(default="https://api.telegram.org", repr=False)
    public_url: str | None = field(default=None, repr=False)  # no slash at its end, like the other bases
    admin_api_key: str | None = field(default=None, repr=False)  # None: one is made at the first start
    tls_proxy: bool = False  # an https proxy of ours stands before the HTTP side, and says who asks
    enable_memory: bool = True
    memory_max_turns: int = 10  # short-term memory keeps twice as many messages
    memory_ttl_min: int = 30  # minutes; 0: a session never ends by idleness
    memory_max_conversations: int = 0  # 0: no cap
    lm_max_events: int = 1000  # per user
    lm_retention_days: int = 365
    importance_threshold: float = 0.5
    log_level: str = "INFO"
    log_format: LogFormat = "json"
    shutdown_grace: float = 25.0  # seconds from SIGTERM to the exit
    alive_file: Path | None = None  # a worker touches it every few seconds, for whoever watches over it
    otel_exporter_otlp_endpoint: str | None = field(default=None, repr=False)  # None: nothing is traced
    otel_traces_sampler_arg: float = 0.1  # the share of messages that are traced
    variables: Mapping[str, str] = field(
        default_factory=dict, repr=False, compare=False
    )  # for `${NAME}` in tenant files

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None, dotenv: Path | None = Path(".env")) -> Settings:
        """Reads `env` (None: the process's own) over the file `dotenv`; an empty value counts as unset.

        Raises SettingsError for the first wrong value.
        """
        given = os.environ if env is None else env
        variables = {name: value for name, value in _dotenv(dotenv).items() if value.strip()}
        variables.update({name: value for name, value in given.items() if value.strip()})
        for name in _SECRET:
            if name not in variables and (kept := _kept_in_file(name, variables)):
                variables[name] = kept
        read = _Reader(variables)
        d = cls()
        return replace(
            d,
            redis_url=read("REDIS_URL", _redis_url, d.redis_url),
            redis_cluster=read("REDIS_CLUSTER", _boolean, d.redis_cluster) or read("REDIS_URL", _names_cluster, False),
            redis_shards=read("REDIS_SHARDS", _whole(1, 1024), d.redis_shards),
            redis_copies=read("REDIS_COPIES", _whole(0, 10), d.redis_copies),
            data_dir=read("DATA_DIR", _path, d.data_dir),
            config_dir=read("CONFIG_DIR", _path, d.config_dir),
            longterm_url=read("LONGTERM_URL", _longterm_url, d.longterm_url),
            lm_compression=read("LM_COMPRESSION", _compression, d.lm_compression),
            encryption_key=read("ENCRYPTION_KEY", parse_keys, d.encryption_key),
            encrypt_at_rest=read("ENCRYPT_AT_REST", _boolean, d.encrypt_at_rest),
            openrouter_api_key=read("OPENROUTER_API_KEY", _key, d.openrouter_api_key),
            openrouter_base_url=read("OPENROUTER_BASE_URL", web_address, d.openrouter_base_url),
            openrouter_model=read("OPENROUTER_MODEL", _word, d.openrouter_model),
            embeddings=read("EMBEDDINGS", _word, d.embeddings),
            embeddings_base_url=read("EMBEDDINGS_BASE_URL", web_address, d.embeddings_base_url),
            embeddings_api_key=read("EMBEDDINGS_API_KEY", _key, d.embeddings_api_key),
            line_api_base=read("LINE_API_BASE", web_address, d.line_api_base),
            line_data_api_base=read("LINE_DATA_API_BASE", web_address, d.line_data_api_base),
            telegram_api_base=read("TELEGRAM_API_BASE", web_address, d.telegram_api_base),
            public_url=read("PUBLIC_URL", _public_url, d.public_url),
            admin_api_key=read("ADMIN_API_KEY", _key, d.admin_api_key),
            tls_proxy=read("TLS_PROXY", _boolean, d.tls_proxy),
            enable_memory=read("ENABLE_MEMORY", _boolean, d.enable_memory),
            memory_max_turns=read("MEMORY_MAX_TURNS", _whole(1, 1000), d.memory_max_turns),
            memory_ttl_min=read("MEMORY_TTL_MIN", _whole(0, 525_600), d.memory_ttl_min),
            memory_max_conversations=read("MEMORY_MAX_CONVERSATIONS", _whole(0), d.memory_max_conversations),
            lm_max_events=read("LM_MAX_EVENTS", _whole(1), d.lm_max_events),
            lm_retention_days=read("LM_RETENTION_DAYS", _whole(1, 36_500), d.lm_retention_days),
            importance_threshold=read("IMPORTANCE_THRESHOLD", _number(0, 1), d.importance_threshold),
            log_level=read("LOG_LEVEL", _level, d.log_level),
            log_format=read("LOG_FORMAT", _log_format, "console" if sys.stderr.isatty() else "json"),
            shutdown_grace=read("SHUTDOWN_GRACE", _number(0, 3600), d.shutdown_grace),
            alive_file=read("ALIVE_FILE", _path, d.alive_file),
            otel_exporter_otlp_endpoint=read("OTEL_EXPORTER_OTLP_ENDPOINT", web_address, d.otel_exporter_otlp_endpoint),
            otel_traces_sampler_arg=read("OTEL_TRACES_SAMPLER_ARG", _number(0, 1), d.otel_traces_sampler_arg),
            variables=variables,
        )


class _Reader:
    """Reads one variable after another; the value's own complaint becomes a line that names the variable."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    def __call__(self, name: str, parse: Callable[[str], T], default: T) -> T:
        raw = self._variables.get(name)
        if raw is None:
            return default
        try:
            return parse(raw.strip())
        except ValueError as error:
            raise SettingsError(f"{name}: {error}") from None


def _kept_in_file(name: str, variables: Mapping[str, str]) -> str | None:
    named = variables.get(f"{name}_FILE")
    for path in [Path(named)] if named else [MOUNTED / name, MOUNTED / name.lower()]:
        try:
            return path.read_text(encoding="utf-8-sig").strip()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it is no UTF-8 text"
            raise SettingsError(f"{name}: {path} can't be read ({why}); let this user read it") from None
    if named:
        raise SettingsError(f"{name}_FILE: {named} does not exist; allowed: the path of a file with the value alone")
    return None


def _dotenv(path: Path | None) -> dict[str, str]:
    if path is None or not path.is_file():
        return {}
    try:
        # Nothing is interpolated: a secret may hold a `$`.
        found = dotenv_values(path, interpolate=False, encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise SettingsError(f"{path}: can't be read ({error.strerror}); let this user read it, or remove it") from None
    return {name: value for name, value in found.items() if value is not None}


def _boolean(raw: str) -> bool:
    word = raw.lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise ValueError(f"{raw!r} is neither true nor false; allowed: 1 true yes y, 0 false no n")


def _whole(least: int, most: int | None = None) -> Callable[[str], int]:
    allowed = f"a whole number from {least}" + (f" to {most}" if most is not None else "")

    def parse(raw: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,12}", raw):
            raise ValueError(f"{raw!r} is not a whole number; allowed: {allowed}")
        value = int(raw)
        if value < least or (most is not None and value > most):
            raise ValueError(f"{raw} is out of range; allowed: {allowed}")
        return value

    return parse


def _number(least: float, most: float) -> Callable[[str], float]:
    def parse(raw: str) -> float:
        try:
            value = float(raw)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise ValueError(f"{raw!r} is not a number; allowed: a number from {least:g} to {most:g}")
        if not least <= value <= most:
            raise ValueError(f"{raw} is out of range; allowed: a number from {least:g} to {most:g}")
        return value

    return parse


def _one_of(raw: str, allowed: tuple[str, ...]) -> str:
    if raw not in allowed:
        raise ValueError(f"{raw!r} is not known; allowed: {', '.join(allowed)}")
    return raw


def _compression(raw: str) -> Compression:
    return cast(Compression, _one_of(raw.lower(), ("none", "gzip", "zstd")))


def _log_format(raw: str) -> LogFormat:
    return cast(LogFormat, _one_of(raw.lower(), ("console", "json")))


def _level(raw: str) -> str:
    return _one_of(raw.upper(), _LEVELS)


def _path(raw: str) -> Path:
    if "\0" in raw:
        raise ValueError("holds a NUL character; allowed: a path")
    return Path(raw).expanduser()


def _word(raw: str) -> str:
    if re.search(r"\s", raw):
        raise ValueError("holds white space; allowed: a model's name such as openai/gpt-4o-mini")
    return raw


def _key(raw: str) -> str:
    # A key travels in an HTTP header; the value itself is never repeated in the complaint.
    if not re.fullmatch(r"[!-~]+", raw):
        raise ValueError("holds white space or characters outside ASCII; allowed: the key alone")
    return raw


def _url(raw: str, schemes: tuple[str, ...], example: str) -> str:
    """The URL unchanged. Its text is never repeated in a complaint: it may hold a password."""
    allowed = f"allowed: {example}"
    try:
        parts = urlsplit(raw)
        _ = parts.port
    except ValueError:
        raise ValueError(f"is not a valid URL; {allowed}") from None
    if parts.scheme not in schemes:
        raise ValueError(f"does not begin with {' or '.join(s + '://' for s in schemes)}; {allowed}")
    if re.search(r"\s", raw) or not (parts.path if parts.scheme == "unix" else parts.hostname):
        raise ValueError(f"is not a valid URL; {allowed}")
    return raw


def web_address(raw: str) -> str:
    """An http(s) base address without a slash at its end. Raises ValueError with what is allowed."""
    return _url(raw, ("http", "https"), "an address such as https://api.example.com").rstrip("/")


_SEVERAL = "redis+cluster://host:6379,host:6379 or redis+sentinel://host:26379,host:26379/name"


def _redis_url(raw: str) -> str:
    scheme, _, rest = raw.partition("://")
    kind = scheme.partition("+")[2]
    if kind in ("cluster", "sentinel"):  # several hosts: each is looked at as one of its own
        at, hosts, path = re.fullmatch(r"(.*@)?([^/?]*)(.*)", rest, re.DOTALL).groups()  # type: ignore[union-attr]
        for host in hosts.split(","):
            _url(f"{scheme.partition('+')[0]}://{at or ''}{host}{path}", ("redis", "rediss"), _SEVERAL)
        if kind == "sentinel" and not path.strip("/").partition("?")[0]:
            raise ValueError(f"does not name what the sentinels watch over; allowed: {_SEVERAL}")
        return raw
    return _url(raw, ("redis", "rediss", "unix"), "redis://host:6379/0, rediss://host:6379/0 or unix:///path/to/socket")


def _names_cluster(raw: str) -> bool:
    return raw.partition("://")[0].endswith("+cluster")


def _longterm_url(raw: str) -> str:
    allowed = "postgresql://user:password@host/database, or unset for JSON files"
    # A socket's folder, or several servers, stand behind the question mark.
    elsewhere = "host" in parse_qs(raw.partition("?")[2])
    return raw if elsewhere and re.fullmatch(r"postgresql://\S+", raw) else _url(raw, ("postgresql",), allowed)


def _public_url(raw: str) -> str:
    address = web_address(raw)
    parts = urlsplit(address)
    # LINE and Telegram call https alone; plain http is for trying things out on this machine.
    if parts.scheme != "https" and parts.hostname not in _LOCAL:
        raise ValueError("does not begin with https://; allowed: the https address where platforms reach us")
    return address
