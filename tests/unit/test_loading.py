"""Loading what takes seconds."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from processors.loading import in_part, loaded


async def test_what_was_loaded_is_given_and_an_error_is_raised_where_it_is_waited_for() -> None:
    assert await loaded(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await loaded(lambda: 1 // 0)


async def test_one_who_stops_waiting_hears_no_more_of_it() -> None:
    waiting = asyncio.create_task(loaded(lambda: asyncio.run(asyncio.sleep(0.05))))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await loaded(lambda: None)


def test_a_process_ends_without_waiting_for_what_still_loads() -> None:
    code = """
import asyncio, threading
from processors.loading import in_part, loaded
async def main():
    asyncio.create_task(loaded(threading.Event().wait))
    await asyncio.sleep(0)
asyncio.run(main())
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_a_process_that_leaves_in_the_middle_of_an_extension_module_neither_aborts_nor_hangs() -> None:
    """A thread that holds no lock of the interpreter's when it ends, and asks for one afterwards, is ended by force: in
    the code of an extension module that is an abort."""
    code = """
import asyncio, threading, time
from processors.loading import leave, loaded
begun = threading.Event()
def load():
    begun.set()
    while True:
        time.sleep(0.0001)
async def main():
    asyncio.create_task(loaded(load))
    await asyncio.sleep(0)
    begun.wait()
asyncio.run(main())
print("said")
leave(3)
raise AssertionError("still here")
"""
    ended = subprocess.run([sys.executable, "-c", code], timeout=60, check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "said\n", "")


def test_leaving_is_left_to_the_interpreter_when_nothing_loads() -> None:
    code = """
import asyncio
from processors.loading import leave, loaded
asyncio.run(loaded(lambda: None))
leave(3)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


# In a process of its own: other tests have imported the SDKs whole.
_IN_PART = """
import sys
from processors.loading import in_part
with in_part({"openai": {}}):
    from openai._vendor.httpx_aiohttp import Httpx2AiohttpClient
with in_part({"linebot": {}, "linebot.v3": {}, "linebot.v3.messaging": {}}):
    from linebot.v3.messaging.exceptions import ApiException
with in_part({"aiogram": {}, "aiogram.methods": {"TelegramMethod": "base"}, "aiogram.types": {
    "InputFile": "input_file", "ResponseParameters": "response_parameters"}}):
    from aiogram.methods import TelegramMethod
    try:
        from aiogram.methods import SendMessage
    except ImportError as error:
        print(error.name)
others = {"openai", "openai.types", "linebot", "linebot.v3.messaging.models", "aiogram.client.bot"}
print(sorted(others & set(sys.modules)))
import aiogram.methods
import linebot.v3.messaging
import openai
print(issubclass(openai.DefaultAioHttpClient, Httpx2AiohttpClient))
print(linebot.v3.messaging.ApiException is ApiException, aiogram.methods.TelegramMethod is TelegramMethod)
with in_part({"openai": {}}):
    print(openai.AsyncOpenAI is sys.modules["openai"].AsyncOpenAI)
print(openai is sys.modules["openai"])
"""


def test_a_part_of_a_package_is_loaded_without_the_rest_which_can_be_had_afterwards() -> None:
    done = subprocess.run([sys.executable, "-c", _IN_PART], capture_output=True, text=True, timeout=90, check=False)
    assert done.stdout.splitlines() == ["aiogram.methods", "[]", "True", "True True", "True", "True"], done.stderr


def test_a_package_that_is_not_there_is_missed_as_ever() -> None:
    with pytest.raises(ModuleNotFoundError, match="No module named 'no_such_sdk'"), in_part({"no_such_sdk": {}}):
        pass
