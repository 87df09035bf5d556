"""aiogram's HTTP session without the rest of aiogram: calls go out and answers come in as plain JSON, so nothing here
makes use of its methods, its models of Telegram's objects or its dispatcher, which take seconds and a hundred MB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from processors.loading import in_part

if TYPE_CHECKING:
    from gateway.adapters.telegram_session import Bots

_PARTS: dict[str, dict[str, str]] = {
    "aiogram": {},
    "aiogram.client": {},
    "aiogram.methods": {"Response": "base", "TelegramMethod": "base"},
    "aiogram.types": {
        "InputFile": "input_file",
        "ResponseParameters": "response_parameters",
        "TelegramObject": "base",
    },
    "aiogram.utils": {},
}


def load_session() -> type[Bots]:
    """Blocks for a tenth of a second. Where aiogram was imported before, it stays as it is."""
    with in_part(_PARTS):
        from gateway.adapters.telegram_session import Bots

    return Bots
