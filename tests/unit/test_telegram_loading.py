"""aiogram is loaded without what nothing here uses of it."""

from __future__ import annotations

import subprocess
import sys

# In a process of its own: here other tests may have imported aiogram whole.
_LOADS = """
import asyncio
import sys
import aiohttp
from aiohttp import web
from gateway.adapters.telegram_loading import load_session
Bots = load_session()
print({"aiogram", "aiogram.client.bot", "aiogram.types.message", "aiogram.methods.send_message"} & sys.modules.keys())
from aiogram.methods import SendMessage, TelegramMethod
from gateway.adapters.telegram_session import TelegramMethod as ours
print(issubclass(SendMessage, ours), TelegramMethod is ours)

async def answer(request):
    print(request.path, await request.json())
    return web.json_response({"ok": True, "result": {"message_id": 7}})

async def main():
    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    bots = Bots(f"http://127.0.0.1:{runner.addresses[0][1]}")
    said = {"chat_id": "1", "text": "hello", "entities": [{"type": "bold", "offset": 0, "length": 5}]}
    print(await bots.call("1000001:test", "sendMessage", said, aiohttp.ClientTimeout(60)))
    await bots.close()
    await runner.cleanup()

asyncio.run(main())
"""


def test_aiograms_models_stay_unloaded_until_somebody_imports_them_and_calls_are_made_all_the_same() -> None:
    done = subprocess.run([sys.executable, "-c", _LOADS], capture_output=True, text=True, check=False, timeout=90)
    said = done.stdout.splitlines()
    body = {"chat_id": "1", "text": "hello", "entities": [{"type": "bold", "offset": 0, "length": 5}]}
    assert said == ["set()", "True True", f"/bot1000001:test/sendMessage {body}", "{'message_id': 7}"], done.stderr
