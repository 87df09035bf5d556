"""What staff think of single answers, `DATA_DIR/ratings/<tenant>.json`: the newest few thousand."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from memory.lists import SmallLists
from processors.models import iso

MOST = 2000
Rating = Literal["good", "bad"]


class Ratings:
    def __init__(self, data_dir: Path) -> None:
        self._lists = SmallLists(data_dir / "ratings")

    def of(self, tenant: str, user: str | None = None) -> dict[str, Rating]:
        """By the answer's message id; of one person, or of everybody."""
        listed = [one for one in self._lists.of(tenant) if isinstance(one, dict)]
        return {one["message_id"]: one["rating"] for one in listed if user in (None, one["user"])}

    def rate(self, tenant: str, user: str, message_id: str, rating: Rating | None, now: datetime) -> None:
        """None takes it back. Raises OSError."""
        added: list[Any] = []
        if rating is not None:
            added.append({"user": user, "message_id": message_id, "rating": rating, "at": iso(now)})
        self._lists.change(
            tenant, lambda there: [*(one for one in there if one.get("message_id") != message_id), *added][-MOST:]
        )

    def forget(self, tenant: str, ids: Collection[str]) -> int:
        """Removes those of these people's answers; how many. Raises OSError."""
        found = [one for one in self._lists.of(tenant) if one.get("user") in ids]
        self._lists.change(tenant, lambda there: [one for one in there if one.get("user") not in ids])
        return len(found)
