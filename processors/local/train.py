"""Trains what is learned: `python -m processors.local.train MESSAGES.jsonl … [-o FILE]`.

The files hold labelled messages (see `training.labelled`); those written by hand come along. Two files are written: the
local classifier, and what the rules know of the wording. They hold weights; no message can be read out of them. Takes a
minute or two of one core.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path

from config.extras import install
from processors.local import installed


def main() -> None:
    parser = ArgumentParser(description="Trains the local classifier.")
    parser.add_argument("messages", type=Path, nargs="*", help="labelled messages, JSON Lines")
    parser.add_argument(
        "-o", "--output", type=Path, help="the classifier alone, into this file; else both that come with the product"
    )
    arguments = parser.parse_args()
    if not installed():
        sys.exit(f"needs the extra: {install('local')}")
    from processors.local.classifier import FILE
    from processors.local.training import labelled, train, train_wording, written
    from processors.local.vectors import SentenceVectors
    from processors.rules import wording

    base = [*written(), *(example for path in arguments.messages for example in labelled(path))]
    if arguments.output is None:
        # First, as the classifier hears what the rules say.
        groups = train_wording(base, wording.FILE)
        told(f"{len(base)} messages, {groups} groups of letters", wording.FILE)
    classifier = train(base, (), SentenceVectors())
    output: Path = arguments.output or FILE
    classifier.weights.write(output)
    told(f"{len(base)} messages, temperature {classifier.weights.temperature:.2f}", output)


def told(what: str, path: Path) -> None:
    sys.stdout.write(f"{what}: {path} ({path.stat().st_size / 1024:.0f} KB)\n")


if __name__ == "__main__":
    main()
