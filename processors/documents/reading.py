"""Markdown, plain text, CSV and PDF as parts. Blocking, for threads."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from processors.documents import pdf
from processors.documents.chunks import passages
from processors.documents.parts import (
    LARGEST,
    LARGEST_TEXT,
    MOST_CHARACTERS,
    MOST_ROWS,
    DocumentError,
    Part,
    Passage,
)
from processors.normalise import safe

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*\Z")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*\Z")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_THAI = re.compile(r"[ก-๛]")
# Old Thai fonts kept shifted marks where Unicode has nothing.
_SHIFTED = bytes.fromhex("103435363748494a4b4c48494a4b4c0d314d4748494a4b4c38393a")  # of U+F700 on, within Thai
_FONT_MARKS = {0xF700 + at: 0x0E00 + mark for at, mark in enumerate(_SHIFTED)}
_TORN = re.compile(r"([ัืํ]) (?=[ก-ฮา])")  # no word ends with one of these
_SARA_AM = re.compile(r"ํา")
_WIDEST = 32_000  # characters of one cell


def read(path: Path) -> list[Passage]:
    """A file's passages in its order. Raises DocumentError, and OSError where it can't be read."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise DocumentError(f"is no {', '.join(READERS)}", "save it as one of these")
    most = LARGEST if path.suffix.lower() == ".pdf" else LARGEST_TEXT
    size = path.stat().st_size
    if size > most:
        raise DocumentError(f"is larger than {most // 1024 // 1024} MB ({size / 1024 / 1024:.0f})", "split it")
    title, parts = reader(path)
    if sum(len(part.text) for part in parts) > MOST_CHARACTERS:
        raise DocumentError(f"holds more than {MOST_CHARACTERS:,} characters", "split it")
    found = passages(title or _title(path), parts)
    if not found:
        raise DocumentError("holds no text", "write something in it, or remove it")
    return found


def _title(path: Path) -> str:
    return safe(re.sub(r"[_\s-]+", " ", path.stem)).strip() or "?"


def _text(path: Path) -> str:
    """UTF-8, UTF-16 with its mark, or the Thai code page that spreadsheets and old editors write."""
    raw = path.read_bytes()
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        encodings = ["utf-16"]
    else:
        encodings = ["utf-8-sig", "cp874"]
    for encoding in encodings:
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        if encoding == "cp874" and len(_THAI.findall(text)) < len(text) / 10:
            continue
        if "\0" in text:
            break
        return _CONTROL.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n"))
    raise DocumentError("is not UTF-8 text", "save it as text in UTF-8")


def _plain(path: Path) -> tuple[str, list[Part]]:
    return "", [Part(_text(path))]


def _markdown(path: Path) -> tuple[str, list[Part]]:
    """Each heading begins a part; its heading names those above it. A first heading of degree one is the title."""
    title, fence, above = "", "", [""] * 6
    lines: list[str] = []
    parts: list[Part] = []

    def end() -> None:
        if text := "\n".join(lines).strip():
            parts.append(Part(text, " › ".join(filter(None, above))))
        lines.clear()

    for line in _text(path).split("\n"):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and line.strip().startswith(fence) else fence
            lines.append(line)
            continue
        if mark:
            fence = mark[1]
            lines.append(line)
            continue
        found, depth = _HEADING.match(line[:500]), 0
        said = ""
        if found:
            depth, said = len(found[1]), found[2]
        elif (
            lines and _UNDERLINE.match(line[:500]) and lines[-1].strip() and (len(lines) == 1 or not lines[-2].strip())
        ):
            depth, said = (1 if line.strip()[0] == "=" else 2), lines.pop().strip()
        if not depth:
            lines.append(line)
            continue
        end()
        if depth == 1 and not title and not parts:
            title, said = said, ""
        above[depth - 1 :] = [said[:200], *[""] * (6 - depth)]
    end()
    return title[:200], parts


def _table(path: Path) -> tuple[str, list[Part]]:
    """A row is a part, each value with its column's name. The first row names the columns."""
    text = _text(path)
    first = text[: text.find("\n") if "\n" in text else len(text)]
    delimiter = max(",;\t", key=first.count)
    out: list[Part] = []
    csv.field_size_limit(_WIDEST)
    try:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        names = [name.strip() for name in next(rows, [])]
        for number, row in enumerate(rows, 2):
            if number > MOST_ROWS:
                raise DocumentError(f"has more than {MOST_ROWS:,} rows", "split it")
            if said := " · ".join(_cells(names, row)):
                out.append(Part(said, whole=True))
    except csv.Error as error:
        raise DocumentError(
            f"is no table: {error}", "save it as CSV, with quotes around values that hold commas"
        ) from None
    return "", out or [Part(" · ".join(filter(None, names)), whole=True)]


def _cells(names: list[str], row: list[str]) -> Iterator[str]:
    for at, cell in enumerate(row):
        value = " ".join(cell.split())
        if value:
            name = names[at] if at < len(names) else ""
            yield f"{name}: {value}" if name else value


def _pages(path: Path) -> tuple[str, list[Part]]:
    return "", [Part(_mended(_CONTROL.sub(" ", text)), page=number) for number, text in pdf.pages(path)]


def _mended(text: str) -> str:
    """Thai as a PDF gives it: marks in the places that fonts kept for them, or lost and a space in their stead."""
    text = text.translate(_FONT_MARKS)
    return _SARA_AM.sub("ำ", _TORN.sub(r"\1", text))


READERS: dict[str, Callable[[Path], tuple[str, list[Part]]]] = {
    ".md": _markdown,
    ".txt": _plain,
    ".csv": _table,
    ".pdf": _pages,
}
