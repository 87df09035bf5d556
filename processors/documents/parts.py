"""What a file holds, and what is wrong with one."""

from __future__ import annotations

from dataclasses import dataclass

LARGEST = 20 * 1024 * 1024  # bytes of a PDF
LARGEST_TEXT = 5 * 1024 * 1024  # of any other
MOST_CHARACTERS = 2_000_000  # of one file
MOST_PAGES = 500
MOST_ROWS = 20_000


class DocumentError(Exception):
    """A file can't be used. The message says what is wrong with it, `remedy` how to mend that."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a file below one heading ("" where there is none) or on one page. `whole`: it is not to be joined
    with the next one, as a row of a table."""

    text: str
    heading: str = ""
    page: int | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Passage:
    """What is found and told of a file. `title` is what its readers call it."""

    text: str
    title: str
    heading: str = ""
    page: int | None = None
