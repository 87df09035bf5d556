"""The memory of a process that runs for months: what was loaded at its start is never looked through again, and what a
thread gives back is there for all.

Modules, SDKs and their models are some 350 000 objects. A full collection walks over all of them, which stops every
turn for a tenth of a second and more, several times a minute, and finds nothing; while loading it runs dozens of times.
"""

from __future__ import annotations

import gc
import sys

LOADED_AFTER = 10.0  # seconds
_ARENA_MAX = -8  # glibc's M_ARENA_MAX
YOUNG = 10_000  # new objects between two looks at them; a message makes some hundred that live until its end


def loading() -> None:
    """From now on nothing is collected, until `loaded`. Before the first thread."""
    gc.disable()
    if sys.platform == "linux":
        import ctypes

        # glibc gives each thread an arena of its own, and each keeps what its fullest moment took. Python's threads
        # take turns anyway.
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
        if mallopt is not None:
            mallopt(_ARENA_MAX, 1)


def loaded() -> None:
    """What is there by now stays; what comes is collected."""
    gc.freeze()
    gc.set_threshold(YOUNG, 10, 10)
    gc.enable()


async def settle() -> None:
    """`loaded`, once what a process loads behind its start is there."""
    import asyncio  # not with `--help`

    await asyncio.sleep(LOADED_AFTER)
    loaded()
