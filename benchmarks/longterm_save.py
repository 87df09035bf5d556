"""What saving one event costs with 0, 100 and 1000 events already there: `python -m benchmarks.longterm_save`.

Beside it the plain way, reading, parsing and rewriting the file, and what the disk itself takes for one fsync.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from memory.index.notes import Notes
from memory.long_term.json_files import JsonFiles
from memory.remember import Remember
from processors.models import EventType, MemoryEvent

TENANT = "store_001"
ROUNDS = 200


def event(name: str) -> MemoryEvent:
    payload = {
        "original_message": "ราคาสินค้านี้เท่าไหร่ครับ",
        "language": "th",
        "reasoning": "asks",
        "classified_by": "rules",
    }
    return MemoryEvent(event_type=EventType.INQUIRY, payload=payload, importance_score=0.8, event_id=name)


async def milliseconds(rounds: int, call: Callable[[int], Awaitable[object]]) -> float:
    taken = []
    for number in range(rounds):
        begin = time.perf_counter()
        await call(number)
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken) * 1000


async def main() -> None:
    print(f"{'median ms, file with':32}{'0':>9}{'100':>9}{'1000':>9}  events")
    with tempfile.TemporaryDirectory() as folder:
        rows: dict[str, list[float]] = {}
        for there in (0, 100, 1000):
            store = JsonFiles(Path(folder) / str(there))
            remember = Remember(store)
            noted = JsonFiles(Path(folder) / str(there), noted=Notes(Path(folder) / "index").note)

            async def fresh(user: str, there: int = there, store: JsonFiles = store) -> None:
                events = [event(f"old{n}") for n in range(there)]
                await store.save_events(TENANT, user, events, attributes={"preferred_language": "th"})

            for user in ("a", "b", "c", "d", "e"):
                await fresh(user)
            plain = Path(folder) / str(there) / "plain.json"
            plain.write_bytes(json.dumps([event(f"old{n}").model_dump(mode="json") for n in range(there)]).encode())

            def rewrite(number: int, plain: Path = plain) -> None:
                events = [*json.loads(plain.read_bytes()), event(f"n{number}").model_dump(mode="json")]
                beside = plain.with_suffix(".tmp")
                with beside.open("wb") as file:
                    file.write(json.dumps(events).encode())
                    file.flush()
                    os.fsync(file.fileno())
                beside.replace(plain)

            async def together(number: int, store: JsonFiles = store) -> None:
                await asyncio.gather(*(store.save_events(TENANT, "d", [event(f"{number}/{n}")]) for n in range(16)))

            for name, call in {
                "save_events": lambda n, s=store: s.save_events(TENANT, "a", [event(f"n{n}")]),
                "remember (attributes, summary)": lambda n, r=remember: r.save(TENANT, "b", [event(f"n{n}")]),
                "save_events, noted for the lists": lambda n, s=noted: s.save_events(TENANT, "e", [event(f"n{n}")]),
                "load, nothing new": lambda n, s=store: s.load(TENANT, "c"),
                "16 saves at once, each": together,
                "read, parse, rewrite, fsync": lambda n, w=rewrite: asyncio.to_thread(w, n),
            }.items():
                share = 16 if call is together else 1
                rows.setdefault(name, []).append(await milliseconds(ROUNDS // share, call) / share)
            await store.close()
            await noted.close()
        for name, figures in rows.items():
            print(f"{name:32}" + "".join(f"{figure:9.3f}" for figure in figures))


if __name__ == "__main__":
    asyncio.run(main())
