"""What `chat-chat faq import|export` does to a tenant's file."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import yaml

from config import taught, variables
from config.faq_table import TableError, csv_of, plain, read_table, xlsx_of
from config.mistakes import TenantError
from config.settings import Settings
from config.tenant_files import load_tenant
from config.tenant_model import TENANT_ID, Faq
from config.yaml_source import MAX_BYTES, decode, parse, read_bytes

_KEY = re.compile(r"faq\s*:")
_GOES_ON = re.compile(r"[\s\-\]}#]|$")  # how a line begins that still belongs to the field above it
_KEPT = ".before-import"


class CannotDo(Exception):
    """The message says why, and what to do."""


def exported(settings: Settings, tenant: str, kind: str = "csv") -> bytes:
    """The tenant's own answers, as its file has them, and those that staff taught it. Raises CannotDo."""
    entries = [*_of_file(settings, tenant)[1], *taught.read(taught.path_of(settings.data_dir, tenant))]
    return xlsx_of(entries) if kind == "xlsx" else csv_of(entries)


def imported(
    settings: Settings, tenant: str, table: Path, *, replace: bool = False, dry_run: bool = False
) -> list[str]:
    """Takes a table's answers into the tenant's file: those whose first question is known are replaced, the others
    added; with `replace` there are no others. What was done. Raises CannotDo and TableError, and then changes nothing.
    """
    file, old = _of_file(settings, tenant)
    new = read_table(table)
    if not new:
        raise TableError([f"{table} holds no answers"])
    merged = new if replace else _merged(old, new)
    try:
        known = load_tenant(file, settings)
    except TenantError as error:
        raise CannotDo(f"mend the file first: {error.mistakes[0]}") from None
    wrong = list(variables.unknown(known.model_copy(update={"faq": tuple(merged)})))
    if wrong:
        raise TableError(
            [f"{merged[int(loc[1])].questions[0]}: {what}; {remedy}" for loc, what, remedy in wrong if loc[0] == "faq"]
        )
    text = decode(file, read_bytes(file))
    written = with_faq(file, text, [plain(entry) for entry in merged])
    if len(written.encode()) > MAX_BYTES:
        raise CannotDo(f"{file} would be larger than {MAX_BYTES // 1024} KiB: leave out what is seldom asked")
    changed = sum(entry not in old for entry in merged)
    gone = sum(entry.questions[0] not in {one.questions[0] for one in merged} for entry in old)
    done = [f"{len(merged)} answers: {changed} new or changed, {gone} removed"]
    if dry_run:
        return [*done, "nothing was written"]
    if merged != old:
        backup = file.with_name(file.name + _KEPT)
        backup.write_text(text, encoding="utf-8")
        _replace(file, written)
        done.append(f"{file} is written; as it was before, comments among its answers included, it is {backup.name}")
    return done


def with_faq(file: Path, text: str, entries: Sequence[dict[str, Any]]) -> str:
    """The file's text with other answers, the rest as it was. Raises CannotDo where that can't be done for sure."""
    block = yaml.safe_dump({"faq": list(entries)}, allow_unicode=True, sort_keys=False, width=110).splitlines()
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if _KEY.match(line)]
    if starts:
        start = starts[0]
        end = next((n for n in range(start + 1, len(lines)) if not _GOES_ON.match(lines[n])), len(lines))
        while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
            end -= 1  # what stands before the next field belongs to it
        lines[start:end] = block
    else:
        lines += ["", *block]
    ending = "\r\n" if "\r\n" in text else "\n"
    written = ending.join(lines) + ending
    before, after = dict(parse(file, text).data), parse(file, written)
    before.pop("faq", None)
    rest = dict(after.data)
    if after.mistakes or rest.pop("faq", None) != list(entries) or rest != before:
        raise CannotDo(
            f"the answers in {file} stand in a form that can't be replaced: write them as a list below `faq:`"
        )
    return written


def _of_file(settings: Settings, tenant: str) -> tuple[Path, list[Faq]]:
    """The tenant's file, and its answers with nothing filled in."""
    file = settings.config_dir / "tenants" / f"{tenant}.yaml"
    if not TENANT_ID.match(tenant) or not file.is_file():
        raise CannotDo(f"there is no tenant {tenant!r}: see `chat-chat tenants list`")
    try:
        found = parse(file, decode(file, read_bytes(file))).data.get("faq") or []
        return file, [Faq.model_validate(_pruned(entry)) for entry in found]
    except (TenantError, ValueError, TypeError, AttributeError):
        raise CannotDo(f"the file has mistakes: see `chat-chat tenants check {quote(str(file))}`") from None


def _pruned(entry: Any) -> Any:
    return {name: value for name, value in entry.items() if value is not None}


def _merged(old: Sequence[Faq], new: Sequence[Faq]) -> list[Faq]:
    by_question = {entry.questions[0]: entry for entry in new}
    kept = [by_question.pop(entry.questions[0], entry) for entry in old]
    return [*kept, *by_question.values()]


def _replace(file: Path, text: str) -> None:
    """In one step: whoever follows the file sees the old or the new one, whole."""
    target = Path(os.path.realpath(file))
    half = target.with_name(f".{target.name}.half")
    with half.open("w", encoding="utf-8", newline="") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    half.chmod(target.stat().st_mode & 0o777)
    half.replace(target)
