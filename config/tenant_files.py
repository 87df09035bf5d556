"""A tenant's file: read, filled in, resolved over the environment's settings, checked."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from config import broadcasts, routing, taught, variables
from config.explain import explain
from config.mistakes import Loc, Mistake, TenantError, nearest
from config.secrets import Found, Missing, Secrets
from config.settings import Settings
from config.templates import extended
from config.tenant_model import DEFAULT_AGENT, DEFAULT_AGENT_ALIAS, TENANT_ID, LineChannel, TelegramChannel, Tenant
from config.yaml_source import Document, decode, parse, read_bytes


@dataclass(slots=True)
class Reading:
    """What came of reading a tenant's file: a tenant or mistakes, and the other files that it depended on."""

    file: Path
    tenant: Tenant | None = None
    mistakes: tuple[Mistake, ...] = ()
    depends: set[Path] = field(default_factory=set)  # templates, secrets, instructions; missing ones too
    ended: bool = True  # with a line's end: a file that is still being written seldom does
    document: Document | None = None  # where in the file each part stands
    secrets: dict[str, Found] = field(default_factory=dict)  # those that were found, by their names
    missing: set[str] = field(default_factory=set)  # the names of those that were not


def load_tenant(file: Path, settings: Settings) -> Tenant:
    """The tenant of a file, named after it. Raises TenantError with every mistake that was found."""
    reading = read_tenant(file, settings)
    if reading.tenant is None:
        raise TenantError(reading.mistakes)
    return reading.tenant


def read_tenant(file: Path, settings: Settings) -> Reading:
    """Like load_tenant, but returns the mistakes. Reads files: not for the event loop."""
    reading = Reading(file)
    try:
        check_file_name(file)
        raw = read_bytes(file)
        reading.ended = raw.endswith(b"\n")
        document = parse(file, decode(file, raw))
        reading.document = document = extended(document, settings.config_dir, reading.depends)
        reading.tenant = _Build(document, settings, reading).tenant()
    except TenantError as error:
        reading.mistakes = tuple(sorted(error.mistakes, key=lambda m: (m.file != file, m.line, m.column)))
    return reading


def check_file_name(file: Path) -> str:
    """The tenant's id. Raises TenantError for a name that is none."""
    if file.suffix != ".yaml" and not os.path.lexists(file):
        what, remedy = "does not exist", "check its path"
    elif file.suffix != ".yaml":
        what, remedy = "does not end in .yaml", f"rename it to {file.stem.lower()}.yaml"
    elif not TENANT_ID.match(file.stem):
        good = re.sub(r"[^a-z0-9_-]", "-", file.stem.lower()).strip("-_")[:64] or "my-shop"
        what = "has a name that is no tenant id"
        remedy = f"rename it to {good}.yaml: 1 to 64 of a-z, 0-9, _ and -, beginning with a letter or digit"
    else:
        return file.stem
    raise TenantError([Mistake(file, 1, 1, "(file)", what, remedy)])


def tokens(tenant: Tenant) -> dict[str, str]:
    """Platform tokens of a tenant's channels and the channel's name: no two channels may share one."""
    found: dict[str, str] = {}
    for name, channel in tenant.channels.items():
        if isinstance(channel, LineChannel):
            token = channel.channel_access_token
            found[f"line:{token.get_secret_value() if token else channel.channel_id}"] = name
        elif isinstance(channel, TelegramChannel):
            found[f"telegram:{channel.bot_token.get_secret_value()}"] = name
    return found


class _Build:
    """The steps from a document to a tenant. Collects mistakes and goes on, to show as many as it can at once."""

    def __init__(self, document: Document, settings: Settings, reading: Reading) -> None:
        self._document = document
        self._settings = settings
        self._reading = reading
        self._secrets = Secrets(settings, reading.file.stem)
        self._mistakes: list[Mistake] = list(document.mistakes)
        self._unfilled: list[Loc] = []  # where a value is missing: what the model says of it is no news

    def tenant(self) -> Tenant:
        data = self._fill(_without_empty(self._document.data), ())
        self._reading.depends |= self._secrets.files
        self._reading.secrets, self._reading.missing = self._secrets.found, self._secrets.missing
        if "id" in data:
            self._wrong(("id",), "is not a known field", "remove it: the file's name is the tenant's id", at_key=True)
        self._agents(data)
        self._resolve(data)
        data["id"] = self._reading.file.stem
        tenant: Tenant | None = None
        try:
            tenant = Tenant.model_validate(data)
        except ValidationError as error:
            found = explain(self._document, error)
            if self._document.cut:
                found = [m for m in found if not m.what.startswith("is missing")]
            hidden = {self._document.mistake(loc, "", "").field for loc in self._unfilled}
            self._mistakes += [m for m in found if m.field not in hidden]
        if tenant is not None:
            self._staff(tenant)
            self._twice(tenant)
            self._keywords(tenant)
            if tenant.privacy.encrypt and not self._settings.encryption_key:
                remedy = "set ENCRYPTION_KEY to what `chat-chat encryption new-key` prints"
                self._wrong(("privacy", "encrypt"), "asks for encryption, and there is no key", remedy)
            for loc, what, remedy in (
                *variables.unknown(tenant),
                *routing.unknown(tenant),
                *broadcasts.unknown(tenant),
            ):
                self._wrong(loc, what, remedy)
        if tenant is None or self._mistakes:
            raise TenantError(self._mistakes)
        path = taught.path_of(self._settings.data_dir, tenant.id)
        self._reading.depends.add(path)
        more = taught.read(path)
        return variables.filled(tenant.model_copy(update={"faq": (*tenant.faq, *more)}) if more else tenant)

    def _wrong(self, loc: Loc, what: str, remedy: str, *, at_key: bool = False) -> None:
        self._mistakes.append(self._document.mistake(loc, what, remedy, at_key=at_key))

    def _fill(self, value: Any, loc: Loc) -> Any:
        if isinstance(value, dict):
            return {key: self._fill(item, (*loc, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self._fill(item, (*loc, index)) for index, item in enumerate(value)]
        if not isinstance(value, str):
            return value
        try:
            return self._secrets.fill(value)
        except Missing as missing:
            self._unfilled.append(loc)
            self._wrong(loc, f"tenant {self._reading.file.stem} {missing.what}", missing.remedy)
            return "?"

    def _agents(self, data: dict[str, Any]) -> None:
        agents = data.setdefault("agents", {})
        if not isinstance(agents, dict):
            return
        if DEFAULT_AGENT in agents and DEFAULT_AGENT_ALIAS in agents:
            self._wrong(
                ("agents", DEFAULT_AGENT_ALIAS), "is another name for default", "keep one of the two", at_key=True
            )
        for name, agent in agents.items():
            if not isinstance(agent, dict) or not isinstance(agent.get("instructions_file"), str):
                continue
            loc = ("agents", name, "instructions_file")
            if "instructions" in agent:
                self._wrong(loc, "stands beside instructions", "keep one of the two", at_key=True)
                continue
            try:
                agent["instructions"] = self._instructions(agent["instructions_file"])
            except Missing as wrong:
                self._wrong(loc, f"tenant {self._reading.file.stem} {wrong.what}", wrong.remedy)
            except TenantError as error:
                first = error.mistakes[0]
                self._wrong(loc, f"names a file that {first.what}", f"{first.remedy} ({first.file})")
        self._reading.depends |= self._secrets.files

    def _instructions(self, name: str) -> str:
        try:
            return self._secrets.fill(self._inside(name))
        except (OSError, RuntimeError):  # a name that is too long, links that go in a circle
            raise Missing("names a file that can't be found", "name a plain file inside CONFIG_DIR") from None

    def _inside(self, name: str) -> str:
        """The text of a file inside CONFIG_DIR."""
        root = self._settings.config_dir.resolve()
        remedy = f"name a file relative to the tenant's file or to {self._settings.config_dir}, such as prompts/shop.md"
        if "\0" in name:
            raise Missing("names no file", remedy)
        places = [(base / name).resolve() for base in (self._reading.file.parent, self._settings.config_dir)]
        self._reading.depends.update(place for place in places if place.is_relative_to(root))
        path = next((place for place in places if place.exists()), places[-1])
        if not path.is_relative_to(root) or Path(name).is_absolute():
            raise Missing("names a file outside CONFIG_DIR", remedy)
        if not path.exists():
            raise Missing("names a file that does not exist", remedy)
        return decode(path, read_bytes(path))

    def _resolve(self, data: dict[str, Any]) -> None:
        """The environment's settings below the tenant's values."""
        s = self._settings
        memory = {
            "sm_ttl": s.memory_ttl_min * 60,
            "max_turns": s.memory_max_turns,
            "importance_threshold": s.importance_threshold,
            "max_events_per_user": s.lm_max_events,
            "event_retention_days": s.lm_retention_days,
            "embeddings": s.embeddings,
        }
        _under(data, "memory", memory)
        llm = data.get("llm") or {}
        # A tenant's own endpoint never gets the environment's key: it would hand it to a stranger.
        base = llm.get("base_url") if isinstance(llm, dict) else None
        elsewhere = isinstance(base, str) and base.rstrip("/") != s.openrouter_base_url
        key = None if elsewhere else s.openrouter_api_key
        _under(data, "llm", {"base_url": s.openrouter_base_url, "api_key": key})
        agents = data["agents"]
        if isinstance(agents, dict):
            if DEFAULT_AGENT_ALIAS not in agents:
                agents.setdefault(DEFAULT_AGENT, {})
            for name in agents:
                _under(agents, name, {"model": s.openrouter_model, "conversation_memory": s.enable_memory})

    def _staff(self, tenant: Tenant) -> None:
        if tenant.staff is None:
            return
        channel = tenant.channels.get(tenant.staff.channel)
        fit = [name for name, c in tenant.channels.items() if isinstance(c, LineChannel | TelegramChannel)]
        loc = ("staff", "channel")
        if channel is None:
            near = nearest(tenant.staff.channel, fit)
            choice = f"write one of {', '.join(fit)}" if fit else "add a LINE or Telegram channel"
            remedy = f"did you mean {near}?" if near else choice
            self._wrong(loc, "is none of this tenant's channels", remedy)
        elif tenant.staff.channel not in fit:
            remedy = f"write one of {', '.join(fit)}" if fit else "add a LINE or Telegram channel"
            self._wrong(loc, "is a channel that can't reach staff", remedy)

    def _twice(self, tenant: Tenant) -> None:
        names = tokens(tenant)
        for name, channel in tenant.channels.items():
            if isinstance(channel, LineChannel | TelegramChannel) and name not in names.values():
                remedy = "give each channel its own token, or keep one of the two"
                self._wrong(("channels", name), "has the same token as another channel", remedy, at_key=True)

    def _keywords(self, tenant: Tenant) -> None:
        """A word under two kinds tells nothing."""
        first: dict[str, str] = {}
        for kind, words in tenant.keywords.items():
            for index, word in enumerate(words):
                other = first.setdefault(" ".join(word.casefold().split()), kind)
                if other != kind:
                    self._wrong(("keywords", kind, index), f"stands under {other} too", "keep it under one of them")


def _under(data: dict[str, Any], section: str, defaults: dict[str, Any]) -> None:
    own = data.get(section, {})
    if isinstance(own, dict):
        data[section] = {**defaults, **own}


def _without_empty(data: dict[str, Any]) -> dict[str, Any]:
    """A field with nothing after its colon counts as left out; a channel or agent with nothing counts as empty."""
    out: dict[str, Any] = _pruned(data)
    for section in ("channels", "agents"):
        if isinstance(data.get(section), dict):
            out[section] = {name: _pruned(value) if value is not None else {} for name, value in data[section].items()}
    return out


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(item) for key, item in value.items() if item is not None}
    return [_pruned(item) for item in value] if isinstance(value, list) else value


def paths_of(directory: Path) -> Iterable[Path]:
    """The tenant files of a directory, in order; hidden files and editors' copies are not looked at.

    A `.yml` is among them: it is refused with a remedy instead of being passed over in silence. A name that begins with
    `_` is a template's.
    """
    names = (name for name in os.listdir(directory) if name.endswith((".yaml", ".yml")))
    return [directory / name for name in sorted(names) if not name.startswith((".", "_")) and _is_text(name)]


def _is_text(name: str) -> bool:
    # A name in another encoding can't be shown in a log or an answer.
    return not any("\ud800" <= char <= "\udfff" for char in name)
