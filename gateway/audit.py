"""Who read, changed, exported or deleted whose data: one line each, only ever added, without the data itself.

`DATA_DIR/audit/<tenant>/<month>.jsonl`. People stand in it under `memory.pseudonyms`: whoever knows an id finds its
lines, nobody reads an id out of them; so they outlive their person's being forgotten.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

import orjson

from memory import keys
from memory.pseudonyms import Pseudonyms
from processors.models import iso

log = logging.getLogger(__name__)

KEPT_FOR = timedelta(days=730)
FOLDER = "audit"
DEED = "chat_chat.deed"  # in a request's scope: what a form did and to whom, where its address does not tell
Place = tuple[str, int]  # of a line: its month, its number
Deed = Literal["read", "export", "change", "delete"]


@dataclass(frozen=True, slots=True)
class Entry:
    """`who`: a key's name, `admin`, `command` or `customer`; `whose`: a person's pseudonym, "" for everybody's or the
    shop's own; `by`: the route or command."""

    at: str
    who: str
    did: Deed
    whose: str
    by: str
    status: int = 200


class AuditLog:
    """`data_dir` is DATA_DIR. Blocking; what can't be written is said in the log, and holds nobody up."""

    def __init__(self, data_dir: Path) -> None:
        self._base = data_dir / FOLDER
        self._names = Pseudonyms(data_dir)

    def note(
        self, tenant: str, at: datetime, who: str, did: Deed, by: str, *, user: str | None = None, status: int = 200
    ) -> None:
        try:
            entry = Entry(iso(at), who, did, self._names.of(tenant, user) if user else "", by, status)
            path = keys.audit_file(self._base, tenant, f"{at:%Y-%m}")
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(handle, orjson.dumps(asdict(entry)) + b"\n")
            finally:
                os.close(handle)
        except (OSError, keys.InvalidId) as error:
            log.error("not noted who did what: %s", type(error).__name__, extra={"tenant": tenant})

    def of(self, tenant: str, user: str | None = None, since: datetime | None = None) -> Iterator[Entry]:
        """The newest first; of one person, where one is named. Raises OSError, InvalidId."""
        for _, entry in self.placed(tenant, user, since):
            yield entry

    def placed(
        self, tenant: str, user: str | None = None, since: datetime | None = None, before: Place | None = None
    ) -> Iterator[tuple[Place, Entry]]:
        """The same with the place of each, and from a place on: which lines have however many come."""
        whose = self._names.of(tenant, user) if user else None
        first = iso(since) if since else ""
        for path in sorted(keys.audit_file(self._base, tenant, "x").parent.glob("*.jsonl"), reverse=True):
            if before is not None and path.stem > before[0]:
                continue
            lines = path.read_bytes().splitlines()
            if before is not None and path.stem == before[0]:
                del lines[max(0, before[1]) :]
            for number in range(len(lines) - 1, -1, -1):
                try:
                    entry = Entry(**orjson.loads(lines[number]))
                except (ValueError, TypeError):
                    continue
                if entry.at < first:
                    return
                if whose in (None, entry.whose):
                    yield (path.stem, number), entry

    def prune(self, tenant: str, now: datetime) -> int:
        """Removes whole months that lie further back than what is kept; how many."""
        oldest = f"{now - KEPT_FOR:%Y-%m}"
        gone = [one for one in keys.audit_file(self._base, tenant, "x").parent.glob("*.jsonl") if one.stem < oldest]
        for path in gone:
            path.unlink(missing_ok=True)
        return len(gone)
