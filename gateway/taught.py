"""What staff taught on the admin page beside the shop's file: answers that customers get word by word. Kept in
`DATA_DIR/taught/<tenant>.json`, which the tenant is loaded with (`config/taught.py`): the hand-written file stays as it
is."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from config.taught import FOLDER, checked
from memory.lists import SmallLists
from processors.models import iso

MOST = 500  # answers of one shop


class Taught:
    def __init__(self, data_dir: Path) -> None:
        self._lists = SmallLists(data_dir / FOLDER)

    def of(self, tenant: str) -> list[dict[str, Any]]:
        """`id`, `questions`, `answer`, `at`; the newest first."""
        return [one for one in reversed(self._lists.of(tenant)) if checked(one) is not None]

    def add(self, tenant: str, questions: Sequence[str], answer: str, now: datetime) -> str:
        """Its id. Every process answers with it within five seconds. Raises ValueError for what is no entry, and for
        too many; OSError."""
        asked = list(dict.fromkeys(filter(None, (" ".join(one.split()) for one in questions))))
        entry = {"id": secrets.token_hex(6), "questions": asked, "answer": answer.strip(), "at": iso(now)}
        if checked(entry) is None:
            raise ValueError("It takes a question and an answer")

        def change(there: list[Any]) -> list[Any]:
            left = [one for one in there if not (isinstance(one, dict) and one.get("questions") == asked)]
            if len(left) >= MOST:
                raise ValueError(f"At most {MOST} answers; put them into the shop's file")
            return [*left, entry]

        self._lists.change(tenant, change)
        return str(entry["id"])

    def remove(self, tenant: str, entry_id: str) -> bool:
        """Raises OSError."""
        found = any(one["id"] == entry_id for one in self.of(tenant))
        self._lists.change(
            tenant, lambda there: [one for one in there if not (isinstance(one, dict) and one.get("id") == entry_id)]
        )
        return found
