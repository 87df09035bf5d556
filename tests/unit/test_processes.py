"""What runs beside the server."""

from __future__ import annotations

import asyncio

import pytest

from gateway.processes import _beside


async def test_what_stops_beside_the_server_is_told_at_once_and_takes_nothing_along(
    caplog: pytest.LogCaptureFixture,
) -> None:
    words = "is there tea"

    async def watch() -> None:
        raise ValueError(words)

    stopped = asyncio.Event()
    async with _beside(watch(), stopped.wait()):
        async with asyncio.timeout(60):
            while not caplog.records:
                await asyncio.sleep(0)
    assert "watch ended with an error: ValueError" in caplog.text
    assert words not in caplog.text
    assert len(caplog.records) == 1
