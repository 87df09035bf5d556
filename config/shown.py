"""Mistakes as they are printed: the place in the file with a caret under it, in Thai or English, no secret shown."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from wcwidth import wcswidth

from config.in_thai import in_thai
from config.mistakes import Mistake

Lang = Literal["th", "en"]

_MOST = 100  # characters of a line that are shown
_HIDDEN = "•"
# The value of a field that is named like a secret, and whatever looks like one; `${NAME}` is none.
_SECRET = re.compile(
    r"(?i)([\w-]*(?:secret|token|api_?key|password)[\w-]*[\"']?\s*:\s*)(?!\s*\$\{)([^\s,}\]#][^,}\]]*)"
)
_LIKE_ONE = re.compile(r"(?=[^\s]*[0-9])(?=[^\s]*[A-Za-z])[A-Za-z0-9+/=_:.\-]{20,}")
_PUBLIC = re.compile(r"sha256:|https?:|[a-z-]+/[a-z]")


def language_of(environment: Mapping[str, str] = os.environ) -> Lang:
    """What the terminal is set to: `th`, else `en`."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environment.get(name):
            return "th" if value.lower().startswith("th") else "en"
    return "en"


def shown(mistakes: Sequence[Mistake], lang: Lang = "en") -> list[str]:
    """Lines to print: for each mistake what is wrong and how to mend it, its line and a caret below the place."""
    sources: dict[Path, list[str]] = {}
    out = []
    for mistake in mistakes:
        if mistake.file not in sources:
            sources[mistake.file] = _source(mistake.file)
        out.append(str(in_thai(mistake) if lang == "th" else mistake))
        out += _place(mistake, sources[mistake.file])
    return out


def _source(file: Path) -> list[str]:
    try:
        with file.open("rb") as opened:
            return opened.read(1 << 20).decode("utf-8-sig", "replace").splitlines()
    except OSError:
        return []


def _place(mistake: Mistake, lines: list[str]) -> list[str]:
    if mistake.line > len(lines) or (mistake.field == "(file)" and not lines[mistake.line - 1].strip()):
        return []
    line = hidden(lines[mistake.line - 1])
    column = min(mistake.column, len(line) + 1)
    begin = max(0, column - _MOST // 2) if len(line) > _MOST else 0
    part, before = line[begin : begin + _MOST], line[begin : column - 1]
    number = f"{mistake.line:>5}"
    return [f"{number} | {_visible(part)}", f"{' ' * len(number)} | {' ' * _width(before)}^"]


def hidden(line: str) -> str:
    """A line of a file with every secret in it covered, character by character, so that columns stay."""
    line = _SECRET.sub(lambda found: found[1] + _cover(found[2]), line)
    return _LIKE_ONE.sub(lambda found: found[0] if _PUBLIC.match(found[0]) else _cover(found[0]), line)


def _cover(text: str) -> str:
    bare = text.rstrip()
    return _HIDDEN * len(bare) + text[len(bare) :]


def _visible(text: str) -> str:
    """Tabs and other invisible characters as something that can be seen, each in one column."""
    return re.sub("[\u00a0\u2000-\u200f\u2060\u3000\ufeff]", "␣", text.replace("\t", "→"))


def _width(text: str) -> int:
    """Columns on a terminal: Thai vowels and tone marks above and below take none."""
    seen = _visible(text)
    return max(wcswidth(seen), 0) or len(seen)
