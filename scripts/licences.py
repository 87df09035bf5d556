"""Prints what requirements.txt pins and is installed here, with its licence, as docs/licences.md has it:
`python scripts/licences.py > docs/licences.md`."""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST = 60  # characters: some put the whole text there


def licence(found: Distribution) -> str:
    told = found.metadata
    named = told.get("License-Expression") or told.get("License") or ""
    if named and "\n" not in named.strip() and len(named) <= LONGEST and named != "UNKNOWN":
        return named.strip()
    by_class = [one.rpartition(" :: ")[2] for one in told.get_all("Classifier") or () if one.startswith("License ::")]
    return ", ".join(by_class) or "see its files"


def main() -> None:
    pinned = re.findall(
        r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", (ROOT / "requirements.txt").read_text(), re.M
    )
    lines = ["# Licences of the packages", "", "| package | version | licence |", "| --- | --- | --- |"]
    for name, version in sorted(pinned, key=lambda one: one[0].lower()):
        try:
            lines.append(f"| {name} | {version} | {licence(distribution(name))} |")
        except PackageNotFoundError:  # another platform's
            lines.append(f"| {name} | {version} | not installed here |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
