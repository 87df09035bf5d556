"""What runs beside the server."""

from __future__ import annotations

import asyncio
import signal

import pytest

from gateway.processes import _beside, _ended, _loading, _stop_on_signals


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_told_to_end_it_stops_loading_at_once_and_else_what_it_has_in_hand(number: signal.Signals) -> None:
    loop, before = asyncio.get_running_loop(), {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    stop = _stop_on_signals()
    try:
        with pytest.raises(KeyboardInterrupt), _loading():
            signal.raise_signal(number)
        for told in (lambda: None, lambda: signal.raise_signal(number)):  # the loop hears of the first one as well
            told()
            async with asyncio.timeout(60):
                await stop.wait()
            stop.clear()
    finally:
        for one, handler in before.items():
            loop.remove_signal_handler(one)
            signal.signal(one, handler)


def test_what_was_told_to_end_while_it_loaded_has_ended_well() -> None:
    async def loads() -> int:
        with _loading():
            signal.raise_signal(signal.SIGTERM)
        return 1

    assert _ended(loads()) == 0
