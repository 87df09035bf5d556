"""Tenants: their models, and the register that loads their files and keeps them up to date.

A file that is wrong never stops the others, and never takes away what served before: the last good one stays in force.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from watchfiles import awatch

from config.differences import differences
from config.mistakes import Mistake, TenantError
from config.settings import Settings
from config.stamps import SETTLED, Stamp, Still, changed, stamp_of, unsettled
from config.stopping import stopped
from config.tenant_files import Reading, load_tenant, paths_of, read_tenant, tokens
from config.tenant_model import (
    LLM,
    Agent,
    Attachment,
    Behaviour,
    Channel,
    Faq,
    LineChannel,
    Memory,
    Replies,
    Staff,
    TelegramChannel,
    Tenant,
    TerminalChannel,
    Understanding,
    WebChannel,
)
from config.texts import ReplyName, Text

__all__ = [
    "LLM",
    "Agent",
    "Attachment",
    "Behaviour",
    "Channel",
    "Faq",
    "LineChannel",
    "Memory",
    "Mistake",
    "Replies",
    "ReplyName",
    "Staff",
    "TelegramChannel",
    "Tenant",
    "TenantError",
    "TenantStatus",
    "Tenants",
    "TerminalChannel",
    "Text",
    "Understanding",
    "WebChannel",
    "load_tenant",
]

log = logging.getLogger(__name__)

POLL = 1.5  # seconds between looks at the files where the file system tells of no change
# Where a look takes long it comes as often as takes this part of a core, but for so many seconds: with the time that a
# file takes to be settled, less than the five that are promised.
PART, LONGEST = 0.003, 3.0
STEP = 500  # ms between looks at what the file system has told: each wakes the process

Callback = Callable[[str, Tenant | None, Tenant | None], None]


@dataclass(frozen=True, slots=True)
class TenantStatus:
    """How a tenant's file stands. `error`: it never loaded; `stale`: it is broken, the last good one is serving."""

    id: str
    file: Path
    state: Literal["ok", "error", "stale"]
    errors: tuple[Mistake, ...] = ()
    channels: Mapping[str, str] = field(default_factory=dict)  # name -> platform, of what is serving


@dataclass(slots=True)
class _Entry:
    """What is known of one file. `tenant` is the last good one."""

    file: Path
    tenant: Tenant | None = None
    mistakes: tuple[Mistake, ...] = ()
    stamps: dict[Path, Stamp] = field(default_factory=dict)
    read_at: float = 0.0
    refused: bool = False  # because of another tenant's channel: looked at again whenever anything changes
    missing_since: float | None = None


@dataclass(slots=True)
class _Scan:
    """What one look at the files found; applied in one step on the event loop."""

    present: list[Path]
    readings: list[tuple[Reading, dict[Path, Stamp], float]]
    directory: OSError | None = None
    still: Still | None = None  # nothing was found to do: nor is there, as long as the files stay as they were before


class Tenants:
    """All tenants of `CONFIG_DIR/tenants`. Reads are plain lookups; files are read by `load` and `watch` alone."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._clock = clock  # as the file system's
        self._directory = settings.config_dir / "tenants"
        self._entries: dict[Path, _Entry] = {}
        self._serving: dict[str, Tenant] = {}  # changed in its place: `get` is its own
        # The tenant that is serving under this id, or None: asked for ten times a turn.
        self.get: Callable[[str], Tenant | None] = self._serving.get
        self._sorted: list[Tenant] | None = []  # None: somebody came, changed or went
        self._tokens: dict[str, tuple[str, str]] = {}  # of those: tenant and channel of each
        self._callbacks: list[Callback] = []
        self._directory_failed = False
        self._still: Still | None = None
        self._look_from = 0.0  # on the monotonic clock: unasked

    def all(self) -> list[Tenant]:
        """Every tenant that is serving, by id."""
        if self._sorted is None:
            self._sorted = [self._serving[tenant_id] for tenant_id in sorted(self._serving)]
        return self._sorted.copy()

    def status(self) -> list[TenantStatus]:
        """Every file that was found, by name, also those that could not be used."""
        entries = (self._entries[file] for file in sorted(self._entries))
        return [_status(entry) for entry in entries if entry.tenant or entry.mistakes]

    def on_change(self, callback: Callback) -> None:
        """`callback(tenant_id, old, new)` for each tenant that came (old None), changed, or went (new None).

        Called on the thread that loads (in `watch`: the event loop's); it must be quick and must not raise.
        """
        self._callbacks.append(callback)

    def load(self) -> None:
        """Reads every file that is new or changed. Blocks; for the start and for commands."""
        self._apply(self._scan(), initial=True)

    async def watch(self, stop: asyncio.Event) -> None:
        """Follows the files until `stop` is set: a change takes effect within 5 seconds.

        Wakes up on the file system's word, and every POLL seconds without it, as network file systems give none.
        """
        async with aclosing(self._wakes(stop)) as wakes:
            async for told in wakes:
                if told or self._still is None or time.monotonic() >= self._look_from:
                    await self._look()
                while self._still is None and not await stopped(stop, SETTLED):  # something was changed just now
                    await self._look()

    async def _wakes(self, stop: asyncio.Event) -> AsyncGenerator[bool, None]:
        """One item for each time to look; whether the file system told of a change."""
        while not stop.is_set():
            with suppress(OSError, RuntimeError):  # no directory yet, or no inotify watch left: the poll goes on
                async for told in awatch(
                    self._settings.config_dir,
                    stop_event=stop,
                    rust_timeout=int(POLL * 1000),
                    yield_on_timeout=True,
                    debounce=400,
                    step=STEP,
                    ignore_permission_denied=True,
                ):
                    yield bool(told)
            yield False
            await stopped(stop, POLL)

    async def _look(self) -> None:
        began = time.monotonic()
        if (scan := await asyncio.to_thread(self._scan_changed)) is not None:
            self._apply(scan)
        ended = time.monotonic()
        self._look_from = ended + min(LONGEST, (ended - began) / PART) - POLL / 2

    def _scan_changed(self) -> _Scan | None:
        """None where all is as it was when there was nothing to do: a look at a thousand tenants each second."""
        if self._still is not None and self._still.so():
            return None
        return self._scan()

    def _scan(self) -> _Scan:
        """Reads what changed. Changes nothing of ours: runs beside the event loop."""
        still = Still(self._directory, {path for entry in self._entries.values() for path in entry.stamps})
        try:
            present = list(paths_of(self._directory))
        except OSError as error:
            return _Scan(list(self._entries), [], error)
        readings = []
        for file in present:
            entry = self._entries.get(file)
            if entry is not None and not entry.refused and not changed(entry.stamps, entry.read_at):
                continue
            now = self._clock()
            # Stamps are taken before the reading: what changes in between is seen as a change the next time.
            known = {path: stamp_of(path) for path in (file, *(entry.stamps if entry else ()))}
            reading = read_tenant(file, self._settings)
            stamps = {path: known[path] if path in known else stamp_of(path) for path in (file, *reading.depends)}
            readings.append((reading, stamps, now))
        quiet = not readings and self._entries.keys() == set(present)
        return _Scan(present, readings, still=still if quiet else None)

    def _apply(self, scan: _Scan, *, initial: bool = False) -> None:
        self._still = scan.still
        if scan.directory is not None and not self._directory_failed:
            if isinstance(scan.directory, FileNotFoundError) and not self._entries:
                log.warning("there is no %s yet: `chat-chat tenants new` writes a first tenant", self._directory)
            else:
                log.error("%s can't be read (%s): tenants stay as they were", self._directory, scan.directory.strerror)
        self._directory_failed = scan.directory is not None
        self._move_renamed(scan)
        self._drop_missing(set(scan.present), initial=initial)
        for reading, stamps, now in scan.readings:
            entry = self._entries.get(reading.file)
            if entry is None:
                entry = self._entries[reading.file] = _Entry(reading.file)
            entry.stamps, entry.read_at = stamps, now
            # Right after a change a file may be half written, and good all the same; the next look comes soon.
            if not initial and unsettled(stamps, reading.file, reading.ended, now):
                entry.read_at = 0.0
                continue
            self._take(entry, reading)

    def _move_renamed(self, scan: _Scan) -> None:
        """A file under a new name is another tenant. The old one goes at once: both have the same channels."""
        present = set(scan.present)
        new = {
            stamp[3]: reading.file
            for reading, stamps, _ in scan.readings
            if (stamp := stamps[reading.file]) and reading.file not in self._entries
        }
        for file, entry in list(self._entries.items()):
            stamp = entry.stamps.get(file)
            if file in present or stamp is None or stamp[3] not in new:
                continue
            old, to = file.stem, new[stamp[3]].stem
            log.warning(
                "tenant %s: its file was renamed to %s, so it is tenant %s from now on, with other webhook addresses. "
                "What is remembered stays with %s: rename it back, or take it along with `chat-chat tenants export %s` "
                "and `import --as %s --add`",
                *(old, new[stamp[3]].name, to, old, old, to),
            )
            del self._entries[file]
            if entry.tenant is not None:
                self._serve(old, None)

    def _drop_missing(self, present: set[Path], *, initial: bool) -> None:
        now = time.monotonic()
        for file, entry in list(self._entries.items()):
            if file in present:
                entry.missing_since = None
                continue
            # Some editors rename the old file away before they write the new one.
            entry.missing_since = entry.missing_since or now
            if initial or now - entry.missing_since >= SETTLED:
                del self._entries[file]
                if entry.tenant is not None:
                    log.info("tenant %s: its file is gone, its channels stop; its memory stays", entry.tenant.id)
                    self._serve(entry.tenant.id, None)

    def _take(self, entry: _Entry, reading: Reading) -> None:
        mistakes = reading.mistakes
        if reading.tenant is not None:
            mistakes = self._shared_tokens(reading.tenant, reading)
        entry.refused = reading.tenant is not None and bool(mistakes)
        if mistakes:
            if mistakes != entry.mistakes:
                state = "the last good one goes on serving" if entry.tenant else "it is not served"
                for mistake in mistakes:
                    log.error("%s (%s)", mistake, state)
            entry.mistakes = mistakes
            return
        mended, entry.mistakes = bool(entry.mistakes), ()
        if entry.tenant is None or mended:
            log.info("tenant %s: loaded from %s", entry.file.stem, entry.file)
        if entry.tenant is not None and reading.tenant is not None and reading.tenant != entry.tenant:
            changed = ", ".join(differences(entry.tenant, reading.tenant))
            log.info("tenant %s: changed in %s: %s", entry.file.stem, entry.file, changed)
        entry.tenant = reading.tenant
        self._serve(entry.file.stem, reading.tenant)

    def _shared_tokens(self, tenant: Tenant, reading: Reading) -> tuple[Mistake, ...]:
        """Two tenants on one token would answer each other's customers: the one that serves already stays."""
        for token, channel in tokens(tenant).items():
            other, theirs = self._tokens.get(token, (tenant.id, ""))
            if other != tenant.id:
                what = f"has the same token as channel {theirs} of tenant {other}"
                remedy = "give each tenant its own channel, or remove it from one of the two"
                assert reading.document is not None
                return (reading.document.mistake(("channels", channel), what, remedy, at_key=True),)
        return ()

    def _serve(self, tenant_id: str, new: Tenant | None) -> None:
        old = self._serving.get(tenant_id)
        if new == old:
            return
        self._sorted = None
        for token in tokens(old) if old else ():
            self._tokens.pop(token, None)
        if new is None:
            del self._serving[tenant_id]
        else:
            self._serving[tenant_id] = new
            self._tokens |= {token: (tenant_id, channel) for token, channel in tokens(new).items()}
        for callback in self._callbacks:
            callback(tenant_id, old, new)


def _status(entry: _Entry) -> TenantStatus:
    state: Literal["ok", "error", "stale"] = "ok"
    if entry.mistakes:
        state = "stale" if entry.tenant else "error"
    channels = {name: channel.platform for name, channel in entry.tenant.channels.items()} if entry.tenant else {}
    return TenantStatus(entry.file.stem, entry.file, state, entry.mistakes, channels)
