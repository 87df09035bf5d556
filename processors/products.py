"""The shop's own goods in a message, with how many of them are meant."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ahocorasick_rs import AhoCorasick, MatchKind

from processors.normalise import normalise, words_apart
from processors.numbers import COUNT, count_of

_MASKS = Path(__file__).parent / "rules" / "masks.txt"
_BEFORE = re.compile(rf"(?:^|[^\d.,])({COUNT})\s*(?:x\s*)?(?:[ก-๎]{{1,6}}\s)?\s*(?:[a-z]{{1,12}}\s+)?$")
_AFTER = re.compile(rf"^[ก-๎]{{0,12}}?\s*(?:x\s*)?({COUNT})(?![\d.,])")
_LATIN = re.compile(r"[a-z] $")
# Beside those that the rules know: words that begin with what is often sold.
_MORE = frozenset(("ชาม", "ชาย", "ชาติ", "ชาว", "ชาร์จ", "ปลาย", "ปลายทาง", "น้ำใจ", "น้ำหนัก", "หมูกระทะ", "เสื้อผ้า"))
_INNER = re.compile(r"[ั-ฺ็-๎]")  # what stands above, below or behind its letter: no word begins with it


class Products:
    """Each product by its names, in any language; the first is what it is called in the payload."""

    def __init__(self, products: Sequence[Sequence[str]]) -> None:
        self._first: dict[str, str] = {}
        for names in products:
            for name in names:
                word = words_apart(normalise(name))
                self._first.setdefault(word, names[0])
                if _LATIN.search(word):
                    self._first.setdefault(f"{word[:-1]}s ", names[0])
        self._first.pop("", None)
        # A longer word hides a product inside it: no tea (ชา) in a bowl (ชาม).
        self._words = sorted({*self._first, *(_longer() if self._first else ())})
        self._finder = AhoCorasick(self._words, matchkind=MatchKind.LeftmostLongest)

    def found(self, text: str) -> list[dict[str, Any]]:
        """`[{name, count}]` in the order of the text, each product once; `count` is None where none is said."""
        if not self._first:
            return []
        plain = words_apart(normalise(text))
        out: dict[str, int | None] = {}
        for index, start, end in self._finder.find_matches_as_indexes(plain):
            name = self._first.get(self._words[index])
            if name is None or _INNER.match(plain[end : end + 1]):
                continue
            said = _AFTER.match(plain[end:].strip()) or _BEFORE.search(plain[:start])
            count = count_of(said[1]) if said else None
            out[name] = count if out.get(name) is None else out[name]
        return [{"name": name, "count": count} for name, count in out.items()]


@cache
def _longer() -> frozenset[str]:
    return (
        frozenset(line for line in _MASKS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")) | _MORE
    )
