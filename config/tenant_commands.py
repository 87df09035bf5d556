"""What `chat-chat tenants list|check|new|schema` does: settings in, text and exit status out."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from config.mistakes import Mistake
from config.new_tenant import SCHEMA, Answers, CannotWrite, next_steps, write_new
from config.settings import Settings
from config.shown import Lang, shown
from config.tenant_files import read_tenant
from config.tenant_model import TenantFile
from config.tenants import Tenants

_PLACEHOLDER = {"type": "string", "pattern": r"^\$\{[A-Za-z_*][A-Za-z0-9_*]*\}$"}


class Outcome(NamedTuple):
    """What to print, and the exit status: 0 done, 1 a check failed or the job could not be done."""

    text: str
    code: int = 0


def list_tenants(settings: Settings) -> Outcome:
    """A line for each tenant file: id, state, channels, and the first mistake of one that is wrong."""
    tenants = Tenants(settings)
    tenants.load()
    rows = []
    for status in tenants.status():
        tenant = tenants.get(status.id)
        channels = ", ".join(f"{channel} ({platform})" for channel, platform in status.channels.items())
        more = (
            str(status.errors[0]) if status.errors else f"{tenant.name if tenant else ''}: {channels or 'no channel'}"
        )
        rows.append((status.id, status.state, more))
    if not rows:
        return Outcome(_none_found(settings))
    width = max(len(row[0]) for row in rows)
    return Outcome("\n".join(f"{tenant_id:<{width}}  {state:<5}  {more}" for tenant_id, state, more in rows))


def check_tenants(settings: Settings, files: Sequence[Path] = (), lang: Lang = "en") -> Outcome:
    """Every mistake in the given files, or those of the ids given (none: in all of CONFIG_DIR/tenants), with its place;
    1 if there is any."""
    tenants = Tenants(settings)
    tenants.load()
    found = {os.path.realpath(status.file): status.errors for status in tenants.status()}
    checked: dict[Path, tuple[Mistake, ...]] = {}
    by_id = {Path(status.id): status.file for status in tenants.status()}
    for file in [named if os.path.exists(named) else by_id.get(named, named) for named in files] or by_id.values():
        known = found.get(os.path.realpath(file))
        checked[file] = read_tenant(file, settings).mistakes if known is None else known
    if not checked:
        return Outcome(_none_found(settings), 1)
    lines: list[str] = []
    told: set[Mistake] = set()  # of a template that several extend
    for file, mistakes in checked.items():
        news = [mistake for mistake in mistakes if mistake not in told]
        told.update(news)
        lines += shown(news, lang) or [f"{file}: {_same(mistakes, lang) if mistakes else 'ok'}"]
    wrong = sum(1 for mistakes in checked.values() if mistakes)
    if told:
        count = f"{len(told)} mistake{'s' * (len(told) > 1)} in {wrong} of {len(checked)} files"
        lines.append(f"พบที่ผิด {len(told)} แห่ง ใน {wrong} จาก {len(checked)} ไฟล์" if lang == "th" else count)
    return Outcome("\n".join(lines), int(wrong > 0))


def _same(mistakes: Sequence[Mistake], lang: Lang) -> str:
    files = ", ".join(sorted({str(mistake.file) for mistake in mistakes}))
    return f"ผิดตาม {files} ด้านบน" if lang == "th" else f"the mistakes of {files}, see above"


def new_tenant(settings: Settings, answers: Answers, lang: Lang = "en") -> Outcome:
    """Writes a commented tenant file that works as it stands, never over one that is there, and the schema beside."""
    try:
        file = write_new(settings, answers)
    except CannotWrite as error:
        return Outcome(str(error), 1)
    with suppress(OSError):  # completion is a help, no more
        (settings.config_dir / SCHEMA).write_text(tenant_schema().text + "\n", encoding="utf-8")
    return Outcome(next_steps(file, answers, lang))


def tenant_schema() -> Outcome:
    """JSON Schema (2020-12) of a tenant file as it is written, for editors: any value may be a `${NAME}`."""
    schema = _with_placeholders(TenantFile.model_json_schema())
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "chat-chat tenant file"}
    return Outcome(json.dumps({**schema, **head}, ensure_ascii=False, indent=2))


def _with_placeholders(node: Any) -> Any:
    if isinstance(node, list):
        return [_with_placeholders(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") in ("integer", "number", "boolean") or ("enum" in node and "const" not in node):
        about = {key: node[key] for key in ("title", "description", "default") if key in node}
        return {**about, "anyOf": [{k: v for k, v in node.items() if k not in about}, _PLACEHOLDER]}
    return {key: _with_placeholders(value) if key != "propertyNames" else value for key, value in node.items()}


def _none_found(settings: Settings) -> str:
    return f"no tenant file in {settings.config_dir / 'tenants'}: `chat-chat tenants new ID` writes one"
