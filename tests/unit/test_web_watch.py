"""Who watches an answer grow in the browser."""

from __future__ import annotations

import asyncio
import gc
import weakref

from gateway.adapters.web import WebWatch
from gateway.guard import Guarded
from gateway.riding import Unseen
from gateway.web_log import LocalLog


async def test_it_is_held_by_nothing_once_the_turn_is_over() -> None:
    shown = WebWatch(LocalLog(), "shop/web:u1/default/main", "stream-1")
    watch = Guarded(Unseen(shown), str)  # as a turn does
    watch.grew(lambda: "One")
    await watch.close()
    watch.grew(lambda: "Two")  # too late: it would hold what was let go of
    gone = weakref.ref(shown)
    gc.disable()  # what holds itself would stay until all objects are looked through
    try:
        del shown, watch
        await asyncio.sleep(0)
        assert gone() is None
    finally:
        gc.enable()
