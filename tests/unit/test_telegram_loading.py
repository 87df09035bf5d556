"""aiogram is loaded without what nothing here uses of it."""

from __future__ import annotations

import subprocess
import sys

# In a process of its own: here other tests may have imported aiogram whole.
_LOADS = """
import asyncio
import aiohttp
from aiohttp import web
from pydantic import BaseModel
before = BaseModel.__dict__["model_rebuild"]
from gateway.adapters.telegram_loading import load_session
Bots = load_session()
from aiogram.types import Message
print(BaseModel.__dict__["model_rebuild"] is before, Message.__pydantic_complete__)

async def answer(request):
    print(request.path, dict(await request.post()))
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


def test_the_models_of_telegrams_objects_stay_unbuilt_and_calls_are_made_all_the_same() -> None:
    done = subprocess.run([sys.executable, "-c", _LOADS], capture_output=True, text=True, check=False, timeout=90)
    said = done.stdout.splitlines()
    form = {"chat_id": "1", "text": "hello", "entities": '[{"type": "bold", "offset": 0, "length": 5}]'}
    assert said == ["True False", f"/bot1000001:test/sendMessage {form}", "{'message_id': 7}"], done.stderr
