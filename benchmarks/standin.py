"""LINE's, Telegram's and the language model's place on loopback: cheap, and it takes whatever it is given.

What the platforms refuse is the matter of the strict stand-ins in the tests; here only the time counts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from benchmarks import http
from benchmarks.shop_talk import ANSWERED, MARK

_SENT = b'{"sentMessages":[{"id":"461230966842064897","quoteToken":"q"}]}'
_MESSAGE = b'{"ok":true,"result":{"message_id":1,"date":1,"chat":{"id":1,"type":"private"},"text":"x"}}'
_BOT = b'{"ok":true,"result":{"id":1,"is_bot":true,"first_name":"bot","username":"benchmark_bot"}}'
_DONE = b'{"ok":true,"result":true}'
_READING = '{"summary": "ลูกค้าถามเรื่องสินค้าของร้าน", "facts": []}'  # what a session told


class StandIn:
    """`on_sent(number)` is called for every message that a bot sends, `model_seconds` is how long the model thinks."""

    def __init__(self) -> None:
        self.model_seconds = 0.0
        self.model_calls = 0
        self.sent: dict[int, float] = {}  # message → time.perf_counter() of the first answer to it
        self.doubles = 0
        self.unmarked = 0  # calls that send something without a mark: the model was not asked
        self.on_sent: Callable[[int], None] = lambda number: None
        self.port = 0

    async def start(self) -> None:
        self._server, self.port = await http.listen(self._answer)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._server.close()

    def _answer(self, path: bytes, body: bytes) -> tuple[float, bytes]:
        if path.endswith(b"/chat/completions"):
            self.model_calls += 1
            if b'"response_format"' in body:
                return self.model_seconds, _completed(_READING)
            said = _streamed if b'"stream":true' in body else _completion
            return self.model_seconds, said(_last_mark(body))
        if path.startswith(b"/v2/bot/message/"):
            self._note(body)
            return 0.0, _SENT
        method = path.rpartition(b"/")[2].lower()
        if method == b"sendmessage":
            self._note(body)
            return 0.0, _MESSAGE
        return 0.0, _BOT if method == b"getme" else _DONE if path.startswith(b"/bot") else b"{}"

    def _note(self, body: bytes) -> None:
        # aiogram sends forms, in which the sign of a mark is escaped.
        number = _last_mark(body.replace(b"%23", b"#"))
        if number is None:
            self.unmarked += 1
            return
        if number in self.sent:
            self.doubles += 1
            return
        self.sent[number] = time.perf_counter()
        self.on_sent(number)


def _last_mark(body: bytes) -> int | None:
    marks = MARK.findall(body)
    return int(marks[-1]) if marks else None


def _streamed(number: int | None) -> bytes:
    """The same answer in pieces of four characters, which arrive at once: what reading them costs counts, not a model's
    pace."""
    text = f"{ANSWERED} #m{number}#"
    frame = {"id": "gen-1", "object": "chat.completion.chunk", "created": 1, "model": "stub"}
    deltas = [{"content": text[at : at + 4]} for at in range(0, len(text), 4)]
    chunks: list[dict[str, object]] = [{**frame, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    chunks.append({**frame, "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 10}})
    events = [json.dumps(chunk, ensure_ascii=False) for chunk in chunks]
    return "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"]).encode()


def _completion(number: int | None) -> bytes:
    return _completed(f"{ANSWERED} #m{number}#")


def _completed(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    answer = {
        "id": "gen-1",
        "object": "chat.completion",
        "created": 1,
        "model": "stub",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
    }
    return json.dumps(answer, ensure_ascii=False).encode()
