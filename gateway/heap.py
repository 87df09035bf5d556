"""The memory of a process that runs for months: what was loaded at its start is never looked through again, and what a
thread gives back is there for all.

Modules, SDKs and their models are some 350 000 objects. A full collection walks over all of them, which stops every
turn for a tenth of a second and more, several times a minute, and finds nothing; while loading it runs dozens of times.

A turn touches memory all over what is loaded and held, more pages than a processor keeps the places of: on Linux, where
the system's setting is "madvise", they are joined into large ones.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator

LOADED_AFTER = 10.0  # seconds
JOINED_EVERY = 60.0  # seconds: what has come since is joined
SETTING = "/sys/kernel/mm/transparent_hugepage/enabled"
LARGE = 2 << 20  # bytes of a large page, on x86-64 and on ARM with pages of 4 kB
_MADV_HUGEPAGE, _MADV_COLLAPSE = (
    14,
    25,
)  # <linux/mman.h>; the latter from Linux 6.1 on, before it the kernel takes its time
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
    """`loaded`, once what a process loads behind its start is there; from then on pages are joined. Runs until it is
    cancelled."""
    import asyncio  # not with `--help`

    await asyncio.sleep(LOADED_AFTER)
    loaded()
    while sys.platform == "linux":
        await asyncio.to_thread(join_pages)
        await asyncio.sleep(JOINED_EVERY)


def join_pages() -> None:
    """Asks the kernel for large pages under all that this process has on its heap. What it will not do, for want of
    memory or as the system's setting is "never", stays as it is."""
    import ctypes

    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    try:
        with open(SETTING, encoding="ascii") as setting:
            if "[never]" in setting.read():  # many kernels join what they are told to all the same
                return
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            places = list(_heaps(maps))
    except OSError:  # no /proc or /sys here
        return
    for begin, end in places:
        if madvise(begin, end - begin, _MADV_HUGEPAGE) == 0:
            madvise(begin, end - begin, _MADV_COLLAPSE)


def _heaps(maps: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Where large pages fit into what was allocated, from and to; no threads' stacks, of which little is used."""
    guard = -1
    for line in maps:
        place, access, _, _, file, *name = line.split()
        begin, end = (int(at, 16) for at in place.split("-"))
        if access == "---p":
            guard = end  # below each thread's stack
        elif access == "rw-p" and file == "0" and begin != guard and name in ([], ["[heap]"]):
            begin, end = -(-begin // LARGE) * LARGE, end // LARGE * LARGE
            if begin < end:
                yield begin, end
