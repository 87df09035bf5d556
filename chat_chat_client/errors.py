"""What can go wrong."""

from __future__ import annotations


class ClientFault(Exception):
    """Any of these."""


class Refused(ClientFault):
    """The server said no: its problem document. `retry_after` in seconds, where it named any."""

    def __init__(self, status: int, title: str, detail: str = "", retry_after: float | None = None) -> None:
        super().__init__(f"{status} {title}" + (f": {detail}" if detail else ""))
        self.status = status
        self.title = title
        self.detail = detail
        self.retry_after = retry_after


class Unreachable(ClientFault):
    """There was no answer, or it broke off. What was asked for, where it changes anything, may have been done."""
