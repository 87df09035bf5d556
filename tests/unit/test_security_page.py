"""docs/security.md names the tests that show what it says: they exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", (ROOT / "docs" / "security.md").read_text("utf-8"))


def test_every_test_that_the_threat_model_names_exists() -> None:
    assert len(NAMED) > 12
    missing = [
        (file, name)
        for file, name in NAMED
        if not (ROOT / file).is_file()
        or (name and not re.search(rf"^ *(?:async )?def {name}\(", (ROOT / file).read_text("utf-8"), re.MULTILINE))
    ]
    assert missing == []


def test_every_row_of_the_threat_model_names_one() -> None:
    page = (ROOT / "docs" / "security.md").read_text("utf-8")
    table = page.partition("## The threat model")[2].partition("\n\n**")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 6
    assert [row for row in rows if "`tests/" not in row] == []
