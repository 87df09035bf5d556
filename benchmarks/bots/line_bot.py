"""The least bot that one writes with LINE's SDK: FastAPI, the openai SDK, a Redis list of the last 20 messages.

It answers before it acknowledges, keeps no message, knows no double delivery and one channel only.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from linebot.v3.exceptions import InvalidSignatureError
from linebot.v3.messaging import AsyncApiClient, AsyncMessagingApi, Configuration, ReplyMessageRequest, TextMessage
from linebot.v3.webhook import WebhookParser
from linebot.v3.webhooks import MessageEvent, TextMessageContent
from openai import AsyncOpenAI
from redis.asyncio import Redis

STANDIN = os.environ["STANDIN"]
parser = WebhookParser(os.environ["SECRET"])
model = AsyncOpenAI(base_url=f"{STANDIN}/v1", api_key="benchmark")
store = Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with AsyncApiClient(Configuration(access_token=os.environ["TOKEN"], host=STANDIN)) as client:
        app.state.line = AsyncMessagingApi(client)
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/callback")
async def callback(request: Request) -> str:
    try:
        events = parser.parse((await request.body()).decode(), request.headers["X-Line-Signature"])
    except InvalidSignatureError:
        raise HTTPException(401, "Invalid signature") from None
    for event in events:
        if isinstance(event, MessageEvent) and isinstance(event.message, TextMessageContent):
            text = await answer(f"history:{event.source.user_id}", event.message.text)
            message = TextMessage(text=text)
            await app.state.line.reply_message(ReplyMessageRequest(replyToken=event.reply_token, messages=[message]))
    return "OK"


async def answer(key: str, text: str) -> str:
    earlier = [json.loads(line) for line in await store.lrange(key, 0, -1)]
    asked = {"role": "user", "content": text}
    messages = [{"role": "system", "content": "You are a shop's assistant."}, *earlier, asked]
    completion = await model.chat.completions.create(model="stub", messages=messages)
    said = completion.choices[0].message.content or ""
    pipe = store.pipeline(transaction=False)
    for line in (asked, {"role": "assistant", "content": said}):
        pipe.rpush(key, json.dumps(line, ensure_ascii=False))
    pipe.ltrim(key, -20, -1)
    pipe.expire(key, 1800)
    await pipe.execute()
    return said


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]), access_log=False, log_level="warning")
