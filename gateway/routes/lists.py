"""What every list takes and answers: `limit`, an opaque `cursor`; `{items, next_cursor, total}`."""

from __future__ import annotations

import base64
from typing import Annotated, Any, Generic, TypeVar

import orjson
from fastapi import HTTPException, Query
from pydantic import BaseModel

LIMIT = 200

Limit = Annotated[int, Query(ge=1, le=LIMIT, description="how many at the most")]
Cursor = Annotated[str, Query(description="`next_cursor` of the page before; empty: the first page")]

Item = TypeVar("Item")


class Page(BaseModel, Generic[Item]):
    """One page of a list. `total` counts what the filters let through, on all pages."""

    items: list[Item]
    next_cursor: str | None
    total: int


def cursor_of(*place: Any) -> str:
    """Where the next page begins, as text for a URL. `place` is JSON: the sort key of the last one shown, so that pages
    stay stable while things change."""
    return base64.urlsafe_b64encode(orjson.dumps(place)).rstrip(b"=").decode("ascii")


def place_of(cursor: str, length: int) -> list[Any] | None:
    """What `cursor_of` was given; None for the first page. Raises HTTPException 422 for what it never made."""
    if not cursor:
        return None
    try:
        place = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except ValueError:
        place = None
    if not isinstance(place, list) or len(place) != length:
        raise HTTPException(422, "cursor is not one that this list gave out")
    return place
