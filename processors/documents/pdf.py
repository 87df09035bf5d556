"""The text of a PDF, page by page, read in a process of its own: a file that is made to hang or to eat all memory costs
that process, nothing else."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from config import cores
from processors.documents.parts import MOST_CHARACTERS, MOST_PAGES, DocumentError

SECONDS = 60.0  # of a clock; of the processor half
_MEGABYTES = 1024
_CHILD = Path(__file__).with_name("pdf_child.py")
_REMEDIES = {
    "locked": ("is locked with a password", "save it without one"),
    "pages": (f"has more than {MOST_PAGES} pages", "split it"),
    "characters": (f"holds more than {MOST_CHARACTERS:,} characters", "split it"),
    "broken": ("is no PDF that can be read", "open it and save it anew, or save its text as .txt"),
    "empty": ("holds no text, as a scan does", "save its text as .txt or .md"),
    "memory": (f"takes more than {_MEGABYTES} MB to be read", "save its text as .txt"),
    "time": (f"takes longer than {SECONDS:.0f} s to be read", "split it, or save its text as .txt"),
}


def pages(path: Path, *, seconds: float = SECONDS) -> list[tuple[int, str]]:
    """Numbers from 1 on, and what stands there, of pages with text. Raises DocumentError."""
    limits = [str(MOST_PAGES), str(MOST_CHARACTERS), str(_MEGABYTES), str(max(1, int(seconds / 2)))]
    cores.loosen()
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(_CHILD), str(path), *limits],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _error("time") from None
    try:
        told = json.loads(done.stdout)
    except ValueError:
        ended = done.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
        raise _error("time" if ended else "broken") from None
    if "error" in told:
        raise _error(told["error"])
    return [(int(number), str(text)) for number, text in told["pages"]]


def _error(name: str) -> DocumentError:
    return DocumentError(*_REMEDIES.get(name, _REMEDIES["broken"]))
