"""What runs beside the server."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from config.settings import Settings
from gateway import processes
from gateway.processes import _beside, _ended, _loading, _secrets_of, _stop_on_signals, run_all
from tests.acceptance.processes import ROOT


def test_every_secret_of_the_environment_is_kept_out_of_the_log() -> None:
    key, older = "0a" * 32, "0b" * 32
    env = {
        "REDIS_URL": "redis://:red%2Fis-word@127.0.0.1/0",
        "LONGTERM_URL": "postgresql://me:longterm-word@127.0.0.1/x",
        "OPENROUTER_API_KEY": "sk-or-word",
        "EMBEDDINGS_API_KEY": "embeddings-word",
        "ADMIN_API_KEY": "admin-word",
        "ENCRYPTION_KEY": f"{key}, {older}",
    }
    found = _secrets_of(Settings.from_env(env, dotenv=None))
    words = {"red%2Fis-word", "red/is-word", "longterm-word", "sk-or-word", "embeddings-word", "admin-word"}
    assert {one for one in found if one} == words | {key, older}
    assert not [one for one in _secrets_of(Settings()) if one]


async def test_what_stops_beside_the_server_is_told_at_once_and_takes_nothing_along(
    caplog: pytest.LogCaptureFixture,
) -> None:
    words = "is there tea"

    async def watch() -> None:
        raise ValueError(words)

    stopped = asyncio.Event()
    async with _beside(watch, stopped.wait):
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


def test_no_worker_begins_where_nothing_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would tell the same beside it, sooner or later."""
    begun: list[str] = []

    async def keep(url: str, stop: asyncio.Event) -> None:
        begun.append(url)

    monkeypatch.setattr(processes, "_keep_worker", keep)
    for name, value in {"REDIS_URL": "unix:///nowhere/redis.sock", "DATA_DIR": __file__, "ADMIN_API_KEY": ""}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(FileExistsError, match=__file__):
        run_all("127.0.0.1", 0, 1)
    assert begun == []


def test_interrupted_while_the_command_itself_loads_it_ends_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("import pathlib, time\npathlib.Path('loading').touch()\ntime.sleep(60)\n")
    begun = subprocess.Popen(
        [sys.executable, "-m", "gateway", "run"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # what runs in a shell's background ignores it
    )
    while not (tmp_path / "loading").exists() and begun.poll() is None:
        time.sleep(0.01)
    begun.send_signal(signal.SIGINT)
    assert begun.communicate(timeout=60)[1] == ""
    assert begun.returncode == -signal.SIGINT
