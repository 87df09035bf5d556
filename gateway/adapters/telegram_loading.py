"""aiogram without its models of Telegram's objects, of which nothing here makes use: calls go out and answers come in
as plain JSON. Building their validators is three quarters of its import's time and five sixths of its memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel

if TYPE_CHECKING:
    from gateway.adapters.telegram_session import Bots


def load_session() -> type[Bots]:
    """Blocks for a second or two. Where aiogram was imported before, it stays as it is."""
    with _unbuilt("aiogram.types"):
        from gateway.adapters.telegram_session import Bots

    return Bots


@contextmanager
def _unbuilt(package: str) -> Iterator[None]:
    """The package's models, which it puts off and then builds all at once, stay put off. Others' are built as ever:
    another thread may be importing them."""
    own = BaseModel.__dict__["model_rebuild"]
    built = cast("Any", own).__func__

    def rebuild(model: type[BaseModel], /, *, _parent_namespace_depth: int = 2, **options: Any) -> bool | None:
        if model.__module__.startswith(f"{package}."):
            return None
        return cast("bool | None", built(model, _parent_namespace_depth=_parent_namespace_depth + 1, **options))

    BaseModel.model_rebuild = classmethod(rebuild)  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        BaseModel.model_rebuild = own  # type: ignore[method-assign]
