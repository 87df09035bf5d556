"""The benchmark that tells what a message's CPU goes to looks by the CPU of the main thread alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import json, signal, sys, threading, time
from pathlib import Path
from benchmarks.stages import Looks

def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

def main_thread_works():
    burn(0.1)

looks = Looks(Path(sys.argv[1]))
looked = []
looks._look = lambda *_: looked.append(1)
looks.begin()
other = threading.Thread(target=burn, args=(0.3,))
other.start()
while other.is_alive():
    time.sleep(0.01)  # else all that came meanwhile is one
beside = len(looked)
main_thread_works()
looks.end()
print(json.dumps([beside, len(looked) - beside, json.loads(Path(sys.argv[1]).read_text())["threads"]]))
"""


def test_looks_come_by_the_main_threads_cpu_and_not_by_others(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "found.json")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    beside, own, threads = json.loads(told.stdout)
    assert beside <= 5  # some thirty by the CPU of the process
    assert own >= 10
    assert threads >= 0.25
