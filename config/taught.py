"""Answers that staff taught on the admin page, beside the tenant's file: `DATA_DIR/taught/<tenant>.json`, a list of
`{"id", "questions", "answer", "at"}`. The gateway writes it; here it is read with the tenant."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from config.tenant_model import Faq

log = logging.getLogger(__name__)

FOLDER = "taught"


def checked(entry: Any) -> Faq | None:
    """The entry as those of the tenant's file; None for what is none."""
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
        return None
    try:
        return Faq.model_validate({name: entry[name] for name in ("questions", "answer") if name in entry})
    except ValidationError:
        return None


def path_of(data_dir: Path, tenant: str) -> Path:
    return data_dir / FOLDER / f"{tenant}.json"


def read(path: Path) -> tuple[Faq, ...]:
    """What can't be read is passed over, and never keeps the tenant from serving."""
    try:
        listed = json.loads(path.read_bytes())
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        log.warning("%s can't be read: %s", path, type(error).__name__)
        return ()
    found = [checked(one) for one in listed] if isinstance(listed, list) else [None]
    if None in found:
        log.warning("%s: entries that are none are passed over", path)
    return tuple(one for one in found if one is not None)
