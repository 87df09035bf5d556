"""Whatever comes to the webhooks' door, in however many pieces, is answered below ASGI as it is above, and the same of
it is kept."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gateway.adapters.line import LineReceiver
from gateway.adapters.telegram import TelegramReceiver
from gateway.inbox.away import SafeInbox
from gateway.inbox.base import Policy
from gateway.inbox.spool import Spool
from gateway.intake import Intake
from gateway.messages import InboundMessage
from gateway.metrics import Metrics
from gateway.routes.webhooks import Receive, Scope, Send, Webhooks
from gateway.serving import serve
from tests.unit.receiving import HOOK, NOW, SHOP, sign

STREAMS = 250
ANOTHERS = "Uanother"  # the destination of a bot that is not the channel's
LINE, TELEGRAM = "/webhooks/line/shop/line-main", "/webhooks/telegram/shop/tg"
PATHS = [
    *(LINE + more for more in ("/", "//", "?x=1", "#a", "#a#b", "%00", ";x", "\x7f", "/" + "x" * 70_000, "ก")),
    *("/webhooks//line/shop/line-main", "//webhooks/line/shop/line-main", "/webhooks/../webhooks/line/shop/line-main"),
    *("/webhooks/%6cine/shop/line-main", "/webhooks/line/shop/nobody", "/webhooks/line/shop/tg", "/webhooks/[x"),
    *("http://x/webhooks/line/shop/line-main", "/webhooks/", "*", "/webhooks/fax/shop/line-main", "/webhooks/?#"),
]
BEFORE = (("1793000000000", "1e400"), ("1793000000000", "-5"), ('"events"', '"ev\\u0065nts"'), ('"hi"', '"\\ud800"'))
TAKEN = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


class Kept:
    """An inbox that keeps all it is given, once."""

    def __init__(self) -> None:
        self.by_id: dict[str, InboundMessage] = {}

    async def put(self, messages: Sequence[tuple[InboundMessage, Policy]]) -> list[bool]:
        await asyncio.sleep(0)
        new = [message.event_id not in self.by_id for message, _ in messages]
        self.by_id |= {message.event_id: message for message, _ in messages}
        return new


class Bots:
    """What is known of destinations, and of channels that met the wrong one."""

    def matches(self, tenant: Any, channel: str, destination: str) -> bool:
        return destination != ANOTHERS

    async def wrong(self, tenant: Any, channel: str, destination: str) -> str | None:
        return "another bot's" if destination == ANOTHERS else None

    def owner(self, destination: str) -> None: ...

    def met_here(self, *_: Any) -> bool:
        return False

    async def met(self, *_: Any) -> None: ...

    async def well(self, *_: Any) -> None: ...


class Door:
    def __init__(self, folder: Path, *, short: bool) -> None:
        async def take(entry: Any) -> None:
            entry.release()

        async def catch_up(_: Any) -> None: ...

        self.kept, bots, metrics = Kept(), Bots(), Metrics()
        safe = SafeInbox(self.kept, Spool(folder), take, catch_up)  # type: ignore[arg-type]
        self._webhooks = Webhooks(
            tenant_of={"shop": SHOP}.get,
            receivers={"line": LineReceiver(), "telegram": TelegramReceiver(lambda *_: "bot")},
            intake=Intake(safe, metrics),
            metrics=metrics,
            bot_ids=bots,  # type: ignore[arg-type]
            states=bots,  # type: ignore[arg-type]
            put_soon=safe.put_soon,
            clock=lambda: NOW,
        )
        self.closing = asyncio.Event()
        if short:
            self.at_once = self._webhooks.at_once

    async def whole(self) -> None:
        pass

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith("/webhooks/"):
            await self._webhooks(scope, receive, send)
            return
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


class Writer:
    """Requests as anybody may send them: most of each are as they should be."""

    def __init__(self, seed: int) -> None:
        self._luck = random.Random(seed)
        self._number = 0

    def _odd(self, usual: Any, others: Sequence[Any], share: float = 0.12) -> Any:
        return self._luck.choice(others) if self._luck.random() < share else usual

    def body(self) -> bytes:
        self._number += 1
        id_ = f"E{self._number}"
        message = {
            "type": "text",
            "id": "1",
            "text": self._odd("hi", ["สวัสดี", "a" * 2000, "x\0y", "😀", "\ud83d", ""], 0.3),
        }
        event = {"type": "message", "mode": "active", "timestamp": 1793000000000, "webhookEventId": id_}
        event |= {"deliveryContext": {"isRedelivery": False}, "source": {"type": "user", "userId": "U1"}}
        event |= {"replyToken": f"t{id_}", "message": message}
        follow = {"type": "follow", "webhookEventId": f"F{id_}", "source": event["source"], "replyToken": "r"}
        events = self._odd([event], [[], [event, follow], [event, event], [event, 5, None, {"type": "message"}]], 0.3)
        told = {"destination": self._odd("U0", [ANOTHERS, "", None]), "events": events}
        raw = json.dumps(told, ensure_ascii=self._luck.random() < 0.5)
        raw = raw.replace(*self._odd(("", ""), [*BEFORE, ('"text":', '"text": "first", "text":'), ("{", "[" * 50_000)]))
        body = raw.encode("utf-8", "surrogatepass")
        odd = [b"", b"\xef\xbb\xbf" + body, body + b" \r\n", body + b"x", body[:-3], body.replace(b'"hi"', b'"h\xffi"')]
        return bytes(self._odd(body, odd))

    def request(self) -> bytes:
        body = self.body()
        signature, path = sign(body), self._odd(LINE, [*PATHS, TELEGRAM, TELEGRAM])
        method, version = self._odd("POST", ["GET", "HEAD", "OPTIONS", "PUT", "post"]), self._odd("1.1", ["1.0", "2.0"])
        name = self._odd("X-Line-Signature", ["x-line-signature", "X-LINE-SIGNATURE", "X_Line_Signature"])
        signed = self._odd(
            [signature], [[], ["", signature], ["x", signature], [signature, "x"], [f" {signature}\t"], ["ก"]]
        )
        chunked = b"%x;a=b\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
        size, sizes = (
            f"Content-Length: {len(body)}",
            ["Content-Length: -1", "Content-Length: 1048577", "Content-Length: x"],
        )
        sizes += [f"{size}\r\n{size}", f"{size}\r\nTransfer-Encoding: chunked", f"content-LENGTH:{len(body)} ", "X: y"]
        length, sent = self._odd(
            (size, body), [*((one, body) for one in sizes), ("Transfer-Encoding: chunked", chunked)]
        )
        more = ["Connection: close", "Connection: keep-alive", "Connection: Upgrade\r\nUpgrade: websocket", "X Bad: y"]
        more += ["Connection: Upgrade\r\nUpgrade: h2c"]
        more += [
            "Expect: 100-continue",
            "X-Folded: a\r\n b",
            f"X-Long: {'y' * 70_000}",
            "Connection: keep-alive, close",
        ]
        head = [f"{method} {path} HTTP/{version}", "Host: x", *(f"{name}: {one}" for one in signed), length]
        head += [f"X-Telegram-Bot-Api-Secret-Token: {self._odd(HOOK, ['x', ''])}"] if path == TELEGRAM else []
        return "\r\n".join([*head, self._odd("Accept: */*", more)]).encode() + b"\r\n\r\n" + bytes(sent)

    def pieces(self) -> list[bytes]:
        requests = [self.request() for _ in range(self._luck.choice((1, 1, 1, 2, 3)))]
        requests.append(b"GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        whole, how = b"".join(requests), self._luck.random()
        if how < 0.4:
            return [whole]
        if how < 0.6:
            return requests
        if how < 0.7 and len(whole) < 1500:
            return [whole[at : at + 37] for at in range(0, len(whole), 37)]
        cuts = sorted(self._luck.sample(range(1, len(whole)), self._luck.choice((1, 2, 4))))
        return [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]


def alike(short: bytes, long: bytes, doors: Sequence[Door]) -> bool:
    """What comes in one read with something broken behind it gets the answer of that on the long way, as nothing else
    is told by then; what needs no wait has its own by then on the short one. None of them is told that it was taken
    and was not."""
    here, there = (door.kept.by_id for door in doors)
    if short == long:
        return here == there
    while short.startswith(TAKEN):
        short = short.removeprefix(TAKEN)
    return short == long and long.startswith(b"HTTP/1.1 400 ") and there.items() <= here.items()


async def told(port: int, pieces: Sequence[bytes], patience: float) -> bytes:
    """What is answered until the connection is closed, or nothing has come for `patience` seconds."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = bytearray()

    async def read() -> None:
        try:
            while got := await asyncio.wait_for(reader.read(65536), patience):
                answer.extend(got)
        except (TimeoutError, ConnectionError):
            pass

    reading = asyncio.create_task(read())
    for piece in pieces:
        if not writer.transport.is_closing():
            writer.write(piece)
            await asyncio.sleep(0.003)
    await reading
    writer.transport.abort()
    return bytes(answer)


async def test_the_short_way_answers_and_keeps_what_the_long_one_does(tmp_path: Path) -> None:
    doors = [Door(tmp_path / name, short=name == "short") for name in ("short", "long")]
    stop, ports, serving, faults = asyncio.Event(), [], [], list[Mapping[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    for door in doors:
        bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        serving.append(asyncio.create_task(serve(door, "127.0.0.1", 0, stop, bound.set_result)))  # type: ignore[arg-type]
        ports.append(await bound)
    asked = Writer(28)
    for _ in range(STREAMS):
        pieces = asked.pieces()
        for patience in (0.1, 1.0, 5.0):  # a busy machine gets another chance
            for door in doors:
                door.kept.by_id.clear()
            short, long = await asyncio.gather(*(told(port, pieces, patience) for port in ports))
            if same := alike(short, long, doors):
                break
        assert same, (pieces, short, long)
    assert not faults
    stop.set()
    await asyncio.gather(*serving)
