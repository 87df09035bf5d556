"""A workbook that a stranger made is not unpacked before it is known how large it gets."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from config.faq_table import TableError, read_table


def test_a_workbook_that_unpacks_to_more_than_memory_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    file = tmp_path / "faq.xlsx"
    with ZipFile(file, "w", ZIP_DEFLATED) as packed, packed.open("xl/sharedStrings.xml", "w") as strings:
        for _ in range(51):
            strings.write(bytes(1_000_000))
    assert file.stat().st_size < 100_000
    with pytest.raises(TableError, match="unpacks to more than 50 MB"):
        read_table(file)
