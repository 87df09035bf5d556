"""What the stand-ins share: a strict local server that records what it got and can be told what to answer next.

A stand-in that was given a journal file keeps its state over a kill -9: each change is one line, applied again at the
next start.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from tests.standins.model import Answer, Fault, Json, Recorded, faults_of


class StandIn:
    """A platform on loopback. `async with` starts it on a free port; `start` after `stop` takes the same again."""

    name = "stand-in"

    def __init__(self, *, port: int = 0, journal: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives seconds since 1970 for everything that expires."""
        self.port = port
        self.clock = clock
        self._journal_path = journal
        self._journal: Any = None
        self._runner: web.AppRunner | None = None
        self._calls: dict[int, Recorded] = {}
        self._count = 0
        self.hung_up = 0  # callers that left in the middle of a stream
        self._faults: list[Fault] = []
        self._news = asyncio.Condition()

    # --- life

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listens; a second start takes the same port again."""
        if self._journal_path is not None and self._journal is None:
            self._replay(self._journal_path)
            self._journal = self._journal_path.open("ab", buffering=0)
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._entry)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await self._listen(self._runner)

    async def _listen(self, runner: web.AppRunner) -> None:
        self.port = await self._site(runner, self.port)

    @staticmethod
    async def _site(runner: web.AppRunner, port: int) -> int:
        await web.TCPSite(runner, "127.0.0.1", port, reuse_address=True).start()
        return int(runner.addresses[-1][1])

    async def stop(self) -> None:
        """Closes every connection, also those that wait for an answer."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The base address to give to a client."""
        return self.root

    # --- what tests ask and say

    @property
    def calls(self) -> list[Recorded]:
        """Every call in the order of arrival."""
        return list(self._calls.values())

    def calls_to(self, part: str) -> list[Recorded]:
        """The calls with `part` in their path."""
        return [call for call in self._calls.values() if part in call.path]

    def next(self, *faults: Fault) -> None:
        """Queues what coming calls meet; the first in the queue that fits a call is taken."""
        self._faults.extend(faults)

    async def until(self, holds: Callable[[], bool], timeout: float = 90.0) -> None:
        """Waits until `holds()` after some call; AssertionError with the calls that came after `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout), self._news:
                await self._news.wait_for(holds)
        except TimeoutError:
            seen = [(call.method, call.path, call.answered_status) for call in self.calls]
            raise AssertionError(f"{self.name}: not within {timeout} s; calls: {seen}") from None

    def reset(self) -> None:
        """Forgets calls and queued faults; stand-ins forget their own state too."""
        self._calls.clear()
        self._faults.clear()
        if self._journal is not None:
            self._journal.truncate(0)

    # --- what each platform adds

    async def handle(self, call: Recorded, request: web.Request, fault: Fault) -> Answer:
        """The platform's answer to a call."""
        raise NotImplementedError

    def refused(self, call: Recorded) -> Answer | None:
        """What the platform refuses before anything else can go wrong there: a wrong key."""
        return None

    def apply(self, change: str, data: dict[str, Json]) -> None:
        """Applies a change of state, live or from the journal."""
        raise NotImplementedError

    def script(self, orders: dict[str, Json]) -> dict[str, Json]:
        """Orders over the control interface, beside `faults`; returns what was made."""
        return {}

    def state(self) -> dict[str, Json]:
        """What `/_delivered` shows."""
        return {}

    def headers(self) -> dict[str, str]:
        """Headers of every answer."""
        return {}

    def read_body(self, raw: bytes, content_type: str) -> Json:
        """The body as it is recorded and handled."""
        if not raw:
            return None
        try:
            return json.loads(raw)
        except ValueError:
            return raw.decode("utf-8", "replace")

    # --- the journal

    def commit(self, change: str, **data: Json) -> None:
        """Changes the state, so that it is still changed after a kill."""
        self._write(change, data)
        self.apply(change, data)

    def _write(self, change: str, data: dict[str, Json]) -> None:
        if self._journal is not None:
            self._journal.write(json.dumps([change, data], ensure_ascii=True).encode() + b"\n")

    def _replay(self, path: Path) -> None:
        if not path.exists():
            return
        raw = path.read_bytes()
        whole = raw[: raw.rfind(b"\n") + 1]
        if whole != raw:  # killed in the middle of a line: it must not swallow the next one
            path.write_bytes(whole)
        for line in whole.splitlines():
            change, data = json.loads(line)
            if change == "call":
                self._remember(Recorded(**data))
            elif change == "answered":
                self._answered(data["number"], data["status"])
            else:
                self.apply(change, data)

    def _remember(self, call: Recorded) -> None:
        self._calls[call.number] = call
        self._count = max(self._count, call.number)

    def _answered(self, number: int, status: int) -> None:
        if number in self._calls:
            self._calls[number] = replace(self._calls[number], answered_status=status)

    # --- one request

    async def _entry(self, request: web.Request) -> web.StreamResponse:
        if request.path.startswith("/_"):
            return await self._control(request)
        raw = await request.read()
        self._count += 1
        call = Recorded(
            number=self._count,
            method=request.method,
            path=request.path,
            query=dict(request.query),
            headers={name.lower(): value for name, value in request.headers.items()},
            body=self.read_body(raw, request.headers.get("Content-Type", "")),
            at_monotonic=time.monotonic(),
        )
        self._remember(call)
        self._write("call", asdict(call))
        await self._tell()
        answer = await self._answer(call, request)
        if answer is None:
            return self._cut(request)
        self._answered(call.number, answer.status)
        self._write("answered", {"number": call.number, "status": answer.status})
        await self._tell()
        return await self._send(request, answer)

    async def _answer(self, call: Recorded, request: web.Request) -> Answer | None:
        refusal = self.refused(call)
        if refusal is not None:
            return refusal
        fault = self._take(call.path)
        usual: Answer | None = None
        if fault.landed:
            usual = await self.handle(call, request, fault)
            await self._tell()
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if fault.cut:
            return None
        if fault.status:
            text = isinstance(fault.body, str)
            return Answer(fault.status, fault.body, fault.headers, "text/html" if text else "application/json")
        return usual or await self.handle(call, request, fault)

    def _take(self, path: str) -> Fault:
        for place, fault in enumerate(self._faults):
            if fault.on in path:
                if fault.times > 1:
                    self._faults[place] = replace(fault, times=fault.times - 1)
                else:
                    del self._faults[place]
                return fault
        return Fault()

    async def _send(self, request: web.Request, answer: Answer) -> web.StreamResponse:
        headers = {**self.headers(), **answer.headers}
        if answer.stream is not None:
            return await self._stream(request, answer, headers)
        if answer.body is None and answer.status == 202:
            return web.Response(status=202, headers=headers)
        if isinstance(answer.body, bytes):
            return web.Response(
                status=answer.status, body=answer.body, content_type=answer.content_type, headers=headers
            )
        text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
        return web.Response(status=answer.status, text=text, content_type=answer.content_type, headers=headers)

    async def _stream(self, request: web.Request, answer: Answer, headers: dict[str, str]) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=headers)
        response.content_type = answer.content_type
        try:
            await response.prepare(request)
            for piece in answer.stream or ():
                if piece is None:
                    self._cut(request)
                    return response
                if isinstance(piece, bytes):
                    await response.write(piece)
                else:
                    await asyncio.sleep(piece)
            await response.write_eof()
        except ConnectionResetError:  # the caller hung up: nothing more to say
            self.hung_up += 1
            await self._tell()
        return response

    @staticmethod
    def _cut(request: web.Request) -> web.Response:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    # --- the control interface, for stand-ins that run as processes

    async def _control(self, request: web.Request) -> web.Response:
        if request.path == "/_calls":
            since = int(request.query.get("since", "0"))
            return web.json_response({"calls": [asdict(call) for call in self.calls if call.number > since]})
        if request.path == "/_delivered":
            return web.json_response(self.state())
        if request.path == "/_script" and request.method == "POST":
            orders = await request.json()
            self.next(*faults_of(orders.get("faults", ())))
            return web.json_response(self.script(orders))
        if request.path == "/_reset" and request.method == "POST":
            self.reset()
            return web.json_response({})
        return web.json_response({"message": "no such order"}, status=404)
