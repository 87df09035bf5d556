"""The least bot that one writes with aiogram: its webhook server, the openai SDK, a Redis list of the last 20 messages.

It acknowledges and answers in the background, so what is in flight is lost when it ends.
"""

from __future__ import annotations

import json
import os

import uvloop
from aiogram import Bot, Dispatcher
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.types import Message
from aiogram.webhook.aiohttp_server import SimpleRequestHandler, setup_application
from aiohttp import web
from openai import AsyncOpenAI
from redis.asyncio import Redis

STANDIN = os.environ["STANDIN"]
dispatcher = Dispatcher()
model = AsyncOpenAI(base_url=f"{STANDIN}/v1", api_key="benchmark")
store = Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


@dispatcher.message()
async def on_message(message: Message) -> None:
    key = f"history:{message.chat.id}"
    earlier = [json.loads(line) for line in await store.lrange(key, 0, -1)]
    asked = {"role": "user", "content": message.text}
    messages = [{"role": "system", "content": "You are a shop's assistant."}, *earlier, asked]
    completion = await model.chat.completions.create(model="stub", messages=messages)
    said = completion.choices[0].message.content or ""
    pipe = store.pipeline(transaction=False)
    for line in (asked, {"role": "assistant", "content": said}):
        pipe.rpush(key, json.dumps(line, ensure_ascii=False))
    pipe.ltrim(key, -20, -1)
    pipe.expire(key, 1800)
    await pipe.execute()
    await message.answer(said)


def main() -> None:
    bot = Bot(os.environ["TOKEN"], session=AiohttpSession(api=TelegramAPIServer.from_base(STANDIN)))
    app = web.Application()
    SimpleRequestHandler(dispatcher, bot, secret_token=os.environ["SECRET"]).register(app, path="/webhook")
    setup_application(app, dispatcher, bot=bot)
    uvloop.install()
    web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]), access_log=None, print=None)


if __name__ == "__main__":
    main()
