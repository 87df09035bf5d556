"""How what is optional is added."""

from __future__ import annotations


def install(extra: str) -> str:
    """The command, in the folder of the clone: by the name of the package an index would give somebody else's, and
    without `-e` a copy would be installed, which later changes of the clone leave as it is."""
    return f".venv/bin/pip install -e '.[{extra}]'"
