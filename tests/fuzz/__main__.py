"""`python -m tests.fuzz [--seconds N] [--seed N] [TARGET…]`: each target for so long; what was tried and found."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from pathlib import Path

from gateway.redis_server import EmbeddedRedis
from tests.fuzz.run import tried
from tests.fuzz.targets import targets


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("target", nargs="*", help="parts of their names; all of them if left out")
    asked = parser.parse_args()
    logging.disable()  # broken files are told of, thousands of them
    faults = 0
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        server = EmbeddedRedis(Path(folder))
        try:
            every = targets(server.start())
            words = [word.lower() for word in asked.target]
            for target in [one for one in every if not words or any(word in one.name.lower() for word in words)]:
                began, inputs, fault, seed = time.monotonic(), 0, "", asked.seed
                while not fault and time.monotonic() - began < asked.seconds:
                    more, fault = tried(target, 500, seed)
                    inputs, seed = inputs + more, seed + 1
                faults += bool(fault)
                took = time.monotonic() - began
                print(f"{target.name:20} {inputs:8} inputs in {took:5.0f} s  {fault or 'nothing'}", flush=True)
        finally:
            server.stop()
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
