"""Who has something that is due, asked of the tenants' indexes: Due of memory.long_term.due.

What is asked is brought up to date first, by whoever changed since. Who is in no index yet (a restored folder, files
made by hand) is found when everybody is compared: when the index is made, and by clean-up as `IndexFile.refresh` says.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from config.vault import PLAIN, Vault
from memory.errors import CatalogUnavailable
from memory.index.file import IndexFile, NotMade
from memory.index.notes import Notes
from memory.index.rows import milliseconds
from memory.index.taking import Source

_OLD = "SELECT user FROM people WHERE oldest < ? AND user <> ''"
_MANY = "SELECT user FROM people WHERE events > ? AND user <> ''"
_FADING = "SELECT user FROM people WHERE fades <= ? AND user <> '' ORDER BY user"


class DueIndex:
    """`base` is `DATA_DIR/index`."""

    def __init__(self, base: Path, source: Source, vault: Vault = PLAIN) -> None:
        self._base = base
        self._source = source
        self._vault = vault
        self._files: dict[str, IndexFile] = {}
        self._making = threading.Lock()

    def old(self, tenant: str, before: datetime | None, most: int) -> list[str]:
        asked: list[tuple[str, Any]] = []
        if before is not None:
            asked.append((_OLD, milliseconds(before)))
        if most:
            asked.append((_MANY, most))
        return self._asked(tenant, " UNION ".join(one for one, _ in asked), [value for _, value in asked])

    def fading(self, tenant: str, now: datetime) -> list[str]:
        return self._asked(tenant, _FADING, [milliseconds(now)])

    def seen_to(self, tenant: str, users: Sequence[str]) -> None:
        self._file(tenant).take_again(users)

    def stop(self) -> None:
        for file in list(self._files.values()):
            file.stopping.set()

    def _asked(self, tenant: str, asked: str, values: Sequence[Any]) -> list[str]:
        if not asked:
            return []
        file = self._file(tenant)
        file.catch_up()
        try:
            with file.open() as db:
                return [user for (user,) in db.execute(asked, values)]
        except NotMade:
            raise CatalogUnavailable("the index of this tenant is not made yet") from None

    def _file(self, tenant: str) -> IndexFile:
        with self._making:
            if tenant not in self._files:
                self._files[tenant] = IndexFile(self._base, tenant, self._source, Notes(self._base), self._vault)
            return self._files[tenant]
