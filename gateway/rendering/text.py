"""Characters, as people see them and as platforms count them."""

from __future__ import annotations

import regex

# A leading vowel is drawn before its consonant but belongs to it; ๆ and ฯ belong to the word before.
# Plain grapheme clusters part them. Bounded, so that a row of vowels is no endless cluster.
_CLUSTER = regex.compile(r"(?:(?=[เ-ไເ-ໄ])\X){0,2}(?=\S)\X(?:(?=[ๆฯໆ])\X){0,2}|\X")
_GRAPHEME = regex.compile(r"\X")
_CONTROL = regex.compile(r"[^\P{Cc}\n\t]")
_INVISIBLE = r"\s\p{C}\p{Z}\p{Variation_Selector}\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
_VISIBLE = regex.compile(rf"[^{_INVISIBLE}]|\p{{Co}}")
_MARKS = regex.compile(r"[!-/:-@\[-`{-~]")  # what Markdown lets a backslash make plain
_LEADING_VOWELS = "เแโใไເແໂໃໄ"


def utf16_len(text: str) -> int:
    """Length in UTF-16 code units, as LINE and Telegram count."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def scrub(text: str) -> str:
    """Line ends as `\\n`, no control characters but newline and tab, U+FFFD for what is no character."""
    if text.replace("\n", "").isprintable():
        return text
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    return _CONTROL.sub("", text)


def literal(text: str) -> str:
    """Markdown that shows `text` as it is, whatever marks stand in it."""
    return _MARKS.sub(r"\\\g<0>", text)


def visible(text: str) -> bool:
    """Whether there is anything to see: spaces of any width, format characters and fillers are not."""
    first = text[:1]
    return "ก" <= first <= "ฮ" or "เ" <= first <= "ไ" or "!" <= first <= "~" or _VISIBLE.search(text) is not None


def cluster_ends(text: str) -> list[int]:
    """Where each cluster ends: graphemes, with a Thai or Lao leading vowel and its consonant held together."""
    return [match.end() for match in _CLUSTER.finditer(text)]


def truncate_graphemes(label: str, n: int) -> str:
    """`label` on one line in at most `n` graphemes, the last of which is `…` where something was cut."""
    label = " ".join(scrub(label).split())
    graphemes: list[str] = _GRAPHEME.findall(label)
    if len(graphemes) <= n:
        return label
    kept = "".join(graphemes[: max(n - 1, 0)]).rstrip().rstrip(_LEADING_VOWELS)
    return f"{kept}…" if n > 0 else ""
