"""Trains the local classifier: `python -m processors.local.train MESSAGES.jsonl [-o FILE]`.

The file holds labelled messages (see `training.labelled`); those written by hand come along. What is written are
weights: none of the messages can be read out of them.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path

from processors.local import installed
from processors.rules import default_rules


def main() -> None:
    parser = ArgumentParser(description="Trains the local classifier.")
    parser.add_argument("messages", type=Path, nargs="*", help="labelled messages, JSON Lines")
    parser.add_argument("-o", "--output", type=Path, help="default: the file that comes with the product")
    arguments = parser.parse_args()
    if not installed():
        sys.exit("needs the extra: pip install 'chat-chat[local]'")
    from processors.local.classifier import FILE
    from processors.local.training import labelled, train, written
    from processors.local.vectors import SentenceVectors

    examples = [example for path in arguments.messages for example in labelled(path)]
    base = [*written(), *examples]
    default_rules()
    classifier = train(base, (), SentenceVectors())
    output: Path = arguments.output or FILE
    classifier.weights.write(output)
    sys.stdout.write(
        f"{len(base)} messages, temperature {classifier.weights.temperature:.2f}: {output} "
        f"({output.stat().st_size / 1024:.0f} KB)\n"
    )


if __name__ == "__main__":
    main()
