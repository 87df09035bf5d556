"""The bill of materials and the list of licences are made of what is pinned."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import licences  # noqa: E402


def test_the_bill_is_cyclonedx_and_names_everything_that_is_pinned() -> None:
    validation = pytest.importorskip("cyclonedx.validation.json")
    schema = pytest.importorskip("cyclonedx.schema")
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "licences.py", "--sbom"], capture_output=True, text=True, check=True
    )
    assert validation.JsonStrictValidator(schema.SchemaVersion.V1_6).validate_str(done.stdout) is None
    named = {(one["name"], one["version"]) for one in json.loads(done.stdout)["components"]}
    pins = {
        pin
        for file in licences.PINS
        for pin in re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", (ROOT / file).read_text("utf-8"), re.MULTILINE)
    }
    assert named == pins


def test_a_list_that_is_not_up_to_date_is_told_line_by_line() -> None:
    one = licences.Package("aiogram", "3.31.0", (), "MIT")
    there = licences.listed([one])
    assert licences.wrong([one], there) == []
    newer = licences.Package("aiogram", "3.32.0", (), "MIT")
    assert licences.wrong([newer], there) == ["aiogram 3.32.0 is not listed", "aiogram 3.31.0 is listed and not pinned"]
    other = licences.Package("aiogram", "3.31.0", (), "GPL-3.0")
    assert licences.wrong([other], there) == ["aiogram: listed as MIT, its metadata says GPL-3.0"]
    elsewhere = licences.Package("aiogram", "3.31.0", (), licences.NOT_HERE)
    assert licences.wrong([elsewhere], there) == []
