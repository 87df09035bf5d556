"""What the admin page says, in both languages: gateway/web/admin/texts.toml."""

from __future__ import annotations

import tomllib
from functools import cache

from gateway.routes.page import FILES
from gateway.texts import Tongue

MONTHS: dict[Tongue, tuple[str, ...]] = {
    "th": ("ม.ค.", "ก.พ.", "มี.ค.", "เม.ย.", "พ.ค.", "มิ.ย.", "ก.ค.", "ส.ค.", "ก.ย.", "ต.ค.", "พ.ย.", "ธ.ค."),
    "en": ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
}


@cache
def texts() -> dict[str, tuple[str, str]]:
    """Thai and English by name."""
    parts = tomllib.loads((FILES / "admin" / "texts.toml").read_text(encoding="utf-8"))
    return {name: (thai, english) for part in parts.values() for name, (thai, english) in part.items()}


class Say:
    """The texts of one language: `say("found", count=3)`. A value that has no name of ours is shown as it is."""

    def __init__(self, language: Tongue) -> None:
        self._at = 0 if language == "th" else 1

    def knows(self, name: str) -> bool:
        return name in texts()

    def __call__(self, name: str, /, **values: object) -> str:
        told = texts().get(name)
        if told is None:
            return name.rpartition(".")[2]
        return told[self._at].format(**values) if values else told[self._at]
