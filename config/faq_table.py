"""A shop's answers as a table that Excel and others open: a row an answer, several questions, buttons or media in one
cell a line each; `answer` holds for every language that has no column of its own. CSV, and with the extra `xlsx`
workbooks.

A cell that a spreadsheet would take for a formula goes out with a ' before it, and comes back without.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from config.tenant_model import Attachment, Faq

COLUMNS = ("questions", "answer", "answer_th", "answer_en", "buttons", "media")
_LARGEST_UNPACKED = 50_000_000  # bytes
MOST_ROWS = 20_000
MAX_BYTES = 10_000_000
# What people call the columns, in lower case.
_CALLED = {
    "question": "questions",
    "คำถาม": "questions",
    "q": "questions",
    "answer": "answer",
    "คำตอบ": "answer",
    "a": "answer",
    "คำตอบไทย": "answer_th",
    "คำตอบภาษาไทย": "answer_th",
    "answer th": "answer_th",
    "answer thai": "answer_th",
    "คำตอบอังกฤษ": "answer_en",
    "คำตอบภาษาอังกฤษ": "answer_en",
    "answer en": "answer_en",
    "answer english": "answer_en",
    "button": "buttons",
    "ปุ่ม": "buttons",
    "รูป": "media",
    "สื่อ": "media",
}
_FORMULA = re.compile(r"'*[=+\-@\t\r＝＋－＠]")
_LINES = re.compile(r"\r\n|\r|\n")


class TableError(ValueError):
    """A table can't be used. `wrong` says why, a line each, with the row as a spreadsheet counts it."""

    def __init__(self, wrong: Sequence[str]) -> None:
        super().__init__("\n".join(wrong))
        self.wrong = tuple(wrong)


def rows_of(entries: Iterable[Faq]) -> list[list[str]]:
    """With the names of the columns first."""
    return [list(COLUMNS), *([_safe(cell) for cell in _row(entry)] for entry in entries)]


def csv_of(entries: Iterable[Faq]) -> bytes:
    """UTF-8 with the mark by which Excel knows it."""
    out = io.StringIO()
    csv.writer(out).writerows(rows_of(entries))
    return out.getvalue().encode("utf-8-sig")


def xlsx_of(entries: Iterable[Faq]) -> bytes:
    """Raises ModuleNotFoundError without the extra `xlsx`."""
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell

    book = Workbook(write_only=True)
    sheet = book.create_sheet("FAQ")
    for row in rows_of(entries):
        cells = [WriteOnlyCell(sheet, _SHOWN_AS_TEXT.sub("", cell)) for cell in row]
        for cell in cells:
            cell.data_type = "s"  # never a formula
        sheet.append(cells)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


_SHOWN_AS_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # no workbook holds these


def read_table(file: Path) -> list[Faq]:
    """Raises TableError with everything that is wrong; ModuleNotFoundError for a workbook without the extra `xlsx`."""
    try:
        if file.stat().st_size > MAX_BYTES:
            raise TableError([f"{file} is larger than {MAX_BYTES // 1_000_000} MB"])
        rows = _workbook(file) if file.suffix.lower() == ".xlsx" else _csv(file.read_bytes())
    except OSError as error:
        raise TableError([f"{file} can't be read: {error.strerror or type(error).__name__}"]) from None
    return entries_of(rows)


def entries_of(rows: Sequence[Sequence[str]]) -> list[Faq]:
    """Raises TableError."""
    head = (
        [_CALLED.get(name, name) for name in (cell.strip().lower().replace("_", " ") for cell in rows[0])]
        if rows
        else []
    )
    head = [name.replace(" ", "_") for name in head]
    if "questions" not in head or not {"answer", "answer_th", "answer_en"} & set(head):
        raise TableError([f"the first row does not name the columns: {', '.join(COLUMNS)}"])
    if unknown := [name for name in head if name and name not in COLUMNS]:
        raise TableError([f"{', '.join(unknown)}: no such column; known are {', '.join(COLUMNS)}"])
    if len(rows) > MOST_ROWS:
        raise TableError([f"there are more than {MOST_ROWS} rows"])
    found: list[Faq] = []
    wrong: list[str] = []
    asked: dict[str, int] = {}
    for number, row in enumerate(rows[1:], start=2):
        cells = {name: _unsafe(cell).strip() for name, cell in zip(head, row, strict=False) if name}
        if not any(cells.values()):
            continue
        try:
            entry = _entry(cells)
        except ValidationError as error:
            wrong.append(f"row {number}: {_first(error)}")
            continue
        except ValueError as error:
            wrong.append(f"row {number}: {error}")
            continue
        if (before := asked.setdefault(entry.questions[0], number)) != number:
            wrong.append(f"row {number}: asks the same as row {before}")
        found.append(entry)
    if wrong:
        raise TableError(wrong)
    return found


def _row(entry: Faq) -> Iterable[str]:
    th, en = entry.answer.th or "", entry.answer.en or ""
    answers = (th, "", "") if th == en else ("", th, en)
    return "\n".join(entry.questions), *answers, "\n".join(entry.buttons), "\n".join(map(_shown, entry.media))


def _entry(cells: Mapping[str, str]) -> Faq:
    both, th, en = (cells.get(name, "") for name in ("answer", "answer_th", "answer_en"))
    if not (both or th or en):
        raise ValueError("has no answer")
    if not _listed(cells.get("questions", "")):
        raise ValueError("has no question")
    apart = {name: text for name, text in (("th", th or both), ("en", en or both)) if text}
    data: dict[str, Any] = {
        "questions": _listed(cells["questions"]),
        "answer": apart if th or en else both,
        "buttons": _listed(cells.get("buttons", "")),
        "media": [_attachment(line) for line in _listed(cells.get("media", ""))],
    }
    return Faq.model_validate({name: value for name, value in data.items() if value})


def plain(entry: Faq) -> dict[str, Any]:
    """As it is written in a tenant's file."""
    th, en = entry.answer.th, entry.answer.en
    out: dict[str, Any] = {
        "questions": list(entry.questions),
        "answer": th if th == en else {name: text for name, text in (("th", th), ("en", en)) if text},
    }
    if entry.buttons:
        out["buttons"] = list(entry.buttons)
    if entry.media:
        out["media"] = [one.model_dump(exclude_none=True) for one in entry.media]
    return out


def _shown(one: Attachment) -> str:
    if one.sticker:
        more = f" {one.sticker.telegram}" if one.sticker.telegram else ""
        return f"sticker {one.sticker.package} {one.sticker.id}{more}"
    return " ".join(filter(None, ("image" if one.image else "file", one.image or one.file, one.name)))


def _attachment(line: str) -> dict[str, Any]:
    kind, _, rest = line.partition(" ")
    if kind.lower() in ("image", "file") and rest.strip():
        address, _, name = rest.strip().partition(" ")
        return {kind.lower(): address} | ({"name": name.strip()} if name.strip() else {})
    if kind.lower() == "sticker" and len(parts := rest.split()) in (2, 3):
        return {"sticker": dict(zip(("package", "id", "telegram"), parts, strict=False))}
    raise ValueError(
        "its media are not lines such as `image https://… name`, `file https://… name` or `sticker 446 1988`"
    )


def _listed(cell: str) -> list[str]:
    return [line.strip() for line in _LINES.split(cell) if line.strip()]


def _first(error: ValidationError) -> str:
    one = error.errors(include_url=False)[0]
    context = one.get("ctx") or {}
    where = str(one["loc"][0]) if one["loc"] else ""
    return f"{where} {context['what']}; {context['remedy']}" if "what" in context else f"{where}: {one['msg']}"


def _safe(cell: str) -> str:
    return f"'{cell}" if _FORMULA.match(cell) else cell


def _unsafe(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell[1:]) else cell


def _csv(raw: bytes) -> list[list[str]]:
    text = _decoded(raw)
    first = text.partition("\n")[0]
    mark = max(",;\t", key=first.count)
    csv.field_size_limit(MAX_BYTES)
    try:
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=mark))
    except csv.Error as error:
        raise TableError([f"it is no CSV: {error}"]) from None


def _decoded(raw: bytes) -> str:
    """UTF-8, else UTF-16 with its mark, else Windows' Thai, as older Excels save it."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16", "replace")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        try:
            return raw.decode("cp874")
        except UnicodeDecodeError:
            raise TableError(["it is neither UTF-8 nor Thai as Windows writes it: save it as CSV UTF-8"]) from None


def _workbook(file: Path) -> list[list[str]]:
    from zipfile import BadZipFile, ZipFile

    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        with ZipFile(file) as packed:  # a few kilobytes may unpack to more than there is memory
            if sum(one.file_size for one in packed.infolist()) > _LARGEST_UNPACKED:
                raise TableError([f"it unpacks to more than {_LARGEST_UNPACKED // 1_000_000} MB"])
        book = load_workbook(file, read_only=True, data_only=True)
        sheet = book.worksheets[0]
        shown = sheet.iter_rows(max_row=MOST_ROWS + 1, max_col=len(COLUMNS) + 5, values_only=True)
        rows = [["" if cell is None else str(cell) for cell in row] for row in shown]
        book.close()
    except TableError:
        raise
    except (BadZipFile, InvalidFileException, KeyError, ValueError, IndexError) as error:
        raise TableError([f"it is no workbook that can be read: {type(error).__name__}"]) from None
    return rows
