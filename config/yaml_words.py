"""Where a file is no YAML: the parser's complaint in the words of somebody who keeps a shop.

What the parser quotes is left out: it may be part of a secret.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from config.mistakes import Mistake

_KEY = re.compile(r"\s*(?:- +)?([A-Za-z_][\w.-]*)\s*:(?=\s|$)")
_GLUED = re.compile(r"\s*(?:- +)?([A-Za-z_][\w-]*):(?=[^\s/])")
_WHOLE = re.compile(r"\s*(?:- +)?[^\s#:][^:]*: +[^\s|>&{\[]")  # a field with its value in the same line
_CURLY = "“”„‟‘’‚‛«»"
_INVISIBLE = re.compile("[\u00a0\u1680\u2000-\u200f\u202f\u2060\u3000\ufeff]")


def curly(text: str) -> bool:
    """Whether a text stands in curly quotes as in straight ones, none within."""
    return len(text) > 1 and text[0] in _CURLY and text[-1] in _CURLY and not any(c in _CURLY for c in text[1:-1])


def invisible(name: str) -> bool:
    """Whether a field's name holds characters that look like a space, or like nothing."""
    return _INVISIBLE.search(name) is not None


def tabs(file: Path, text: str) -> list[Mistake]:
    """Every line that is indented with a tab."""
    what, remedy = "is indented with a tab", "indent with spaces: YAML takes no tabs there"
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if "\t" in line[: _indent(line)] and line.strip():
            found.append(Mistake(file, number, line.index("\t") + 1, _field(line), what, remedy))
    return found


def without_line(text: str, number: int, *, whole: bool) -> str:
    """The text with the value of a line taken away, or all of it; every other line stays in its place."""
    lines = text.split("\n")
    number = min(number, len(lines))
    line = lines[number - 1]
    kept = None if whole else _KEY.match(line)
    lines[number - 1] = kept[0] if kept else ""
    for below in range(number, len(lines)):  # what belonged to it
        if lines[below].strip() and _indent(lines[below]) <= _indent(line):
            break
        lines[below] = ""
    return "\n".join(lines)


def said(file: Path, text: str, error: yaml.YAMLError) -> Mistake:
    if isinstance(error, yaml.reader.ReaderError):
        before = text[: error.position] if isinstance(error.position, int) else ""
        line, column = before.count("\n") + 1, len(before.rsplit("\n", 1)[-1]) + 1
        what, remedy = "holds a control character", "delete the invisible character in that place"
        return Mistake(file, line, column, "(file)", what, remedy)
    return _Place(file, text.splitlines(), error).mistake()


class _Place:
    """Where the parser gave up, and what stands there."""

    def __init__(self, file: Path, lines: list[str], error: Any) -> None:
        self._file, self._lines = file, lines
        self._problem = str(getattr(error, "problem", None) or "can't be parsed")
        self._context = str(getattr(error, "context", None) or "")
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        self.line: int = mark.line + 1 if mark else 1
        self.column: int = mark.column + 1 if mark else 1
        begun = getattr(error, "context_mark", None)
        self._begun = (begun.line + 1, begun.column + 1) if begun else None

    def mistake(self) -> Mistake:
        what, remedy = self._words()
        here = self._text(self.line)
        return Mistake(self._file, self.line, self.column, _field(here), what, remedy)

    def _words(self) -> tuple[str, str]:
        if "quoted scalar" in self._context and self._begun:
            self.line, self.column = self._begun
            return "has a quote that is never closed", "close the quotes"
        for number in (self.line, self._above()):
            words = self._written(number)
            if words:
                return words
        if "flow" in self._context and self._begun:
            self.line, self.column = self._begun
            what = "has a bracket that is not closed, or a comma missing inside"
            return what, "separate what stands inside by commas, and close each [ with ] and each { with }"
        if "mapping values" in self._problem:
            return self._second_colon()
        if "alias" in self._problem or "alias" in self._context or "cannot start any token" in self._problem:
            what = "begins with a character that YAML keeps for itself"
            return what, "put a value that begins with @, %, *, & or ` in quotes"
        if "expected" in self._problem:
            return self._indentation()
        problem = re.sub(r"'[^']{3,}'", "…", self._problem)
        return f"is not valid YAML: {problem}", "check quotes, brackets and indentation in this line and the one before"

    def _written(self, number: int) -> tuple[str, str] | None:
        """What can be told from a line alone."""
        here = self._text(number)
        if found := _GLUED.match(here):
            self.line, self.column = number, found.end()
            return "has no space after the colon", f"write `{found[1]}: …`"
        if "：" in here and not _KEY.match(here):
            self.line, self.column = number, here.index("：") + 1
            return "has a full-width colon (：)", "type a plain colon and a space"
        if number == self.line and (quote := re.search(rf"[:\[{{,-]\s*[{_CURLY}]", here)):
            self.column = quote.end()
            remedy = 'type straight ones ("), or put straight ones around them if customers should see them'
            return "stands in curly quotes, which YAML takes for letters", remedy
        return None

    def _second_colon(self) -> tuple[str, str]:
        above, here = self._above(), self._text(self.line)
        key = _KEY.match(here)
        if above and key and self.column <= key.end() + 1 and _indent(here) > _indent(self._text(above)):
            self.column = _indent(here) + 1
            if _WHOLE.match(self._text(above)):
                what = f"stands further in than line {above}, which is a whole field already"
                return what, f"begin it in the same column as line {above}"
        return "has a colon inside a text", "put the whole text in quotes"

    def _indentation(self) -> tuple[str, str]:
        here = self._text(self.line)
        own = _indent(here)
        if self.column > own + 1:
            return "has something after its value", "put the whole text in quotes"
        near = sorted((level for level in self._levels() if level != own), key=lambda level: abs(level - own))[:2]
        what = f"is indented by {own} spaces, which fits nothing above it"
        return what, f"indent it by {' or '.join(map(str, sorted(near)))} spaces" if near else "begin it in column 1"

    def _levels(self) -> set[int]:
        """The indentations that are in force above."""
        levels: set[int] = set()
        least = 10_000
        for number in range(self.line - 1, 0, -1):
            text = self._text(number)
            if _says(text) and _indent(text) < least:
                least = _indent(text)
                levels.add(least)
                if text.lstrip().startswith("- "):
                    levels.add(least + 2)
        return levels

    def _above(self) -> int:
        """The line before that says something; 0: there is none."""
        return next((n for n in range(self.line - 1, 0, -1) if _says(self._text(n))), 0)

    def _text(self, number: int) -> str:
        return self._lines[number - 1] if 0 < number <= len(self._lines) else ""


def _says(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _field(line: str) -> str:
    found = _KEY.match(line) or _GLUED.match(line)
    return found[1] if found else "(file)"
