"""The admin key's file. It loads nothing: whoever starts processes looks there first."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

KEY_FILE = "admin_api_key"


def admin_key(configured: str | None, data_dir: Path) -> tuple[str, bool]:
    """The admin key and whether it was made just now; then it is kept in `DATA_DIR/admin_api_key`, mode 0600."""
    if configured:
        return configured, False
    path = data_dir / KEY_FILE
    data_dir.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text("ascii").strip(), False
    key = secrets.token_urlsafe(32)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(key + "\n")
    return key, True
