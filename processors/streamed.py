"""An answer that comes in pieces, put together to what the same answer is when it comes whole. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import orjson

from processors import lenient
from processors.openrouter_errors import from_body

_END = b"[DONE]"


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    tool_calls: None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    finish_reason: str | None = None
    error: None = None


class _Chunk(msgspec.Struct, gc=False):
    """A piece of text, and what stands around it, as nearly all are: whatever has more can't be read as one."""

    choices: tuple[_Choice, ...] = ()
    model: str | None = None
    provider: str | None = None
    usage: dict[str, Any] | None = None
    error: None = None


_chunks = msgspec.json.Decoder(list[_Chunk]).decode


class Streamed:
    """Takes the bytes of a stream of server-sent events as they come.

    Each event's data is one line of JSON, as every endpoint that speaks OpenAI's chat completions sends it; comments
    and other fields are passed over.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._texts: list[str] = []
        self._calls: dict[int, list[dict[str, str]]] = {}  # by their index: some endpoints say 0 of every call
        self._of_all: dict[str, Any] = {}  # model, provider, usage: the same in each chunk, or in the last alone
        self._reason: str | None = None
        self._half = ""  # of a character that was cut in two between pieces
        self._mend = False

    def take(self, data: bytes) -> str:
        """The text in it, "" where there is none yet. Raises LLMError for an error told in the stream, ValueError for
        what is no JSON."""
        lines, end, self._rest = (self._rest + data).rpartition(b"\n")
        if not end:
            return ""
        told = lines.rstrip().removesuffix(_END).rstrip()
        if told.endswith(b"data:"):
            told = told[:-5].rstrip()
        if not told.startswith(b"data:"):
            return self._each(lines)
        try:  # all at once: no text within JSON has an end of a line
            chunks = _chunks(b"[%b]" % told[5:].replace(b"\n\ndata:", b","))
        except msgspec.MsgspecError:
            return self._each(lines)
        return self._plain(chunks)

    @property
    def ended_well(self) -> bool:
        """There is text, and the model said all it wanted to say, and that it did."""
        return self._reason == "stop" and bool(self._texts) and not self._calls

    def whole(self) -> dict[str, Any]:
        """The answer as `/chat/completions` gives it when it is not streamed; without a finish reason where the stream
        ended in the middle."""
        message: dict[str, Any] = {"content": "".join(self._texts)}
        if self._calls:
            message["tool_calls"] = [
                {"id": call["id"] or None, "function": {"name": call["name"], "arguments": call["arguments"]}}
                for _, calls in sorted(self._calls.items())
                for call in calls
            ]
        answer = {**self._of_all, "choices": [{"message": message, "finish_reason": self._reason}]}
        return lenient.mended(answer) if self._mend else answer

    def _plain(self, chunks: Sequence[_Chunk]) -> str:
        of_all, texts = self._of_all, []
        for chunk in chunks:
            if chunk.choices:
                choice = chunk.choices[0]
                if choice.finish_reason:
                    self._reason = choice.finish_reason
                if choice.delta is not None and choice.delta.content:
                    texts.append(choice.delta.content)
            if chunk.model:
                of_all["model"] = chunk.model
            if chunk.provider:
                of_all["provider"] = chunk.provider
            if chunk.usage:
                of_all["usage"] = chunk.usage
        self._texts += texts
        return "".join(texts)

    def _each(self, lines: bytes) -> str:
        return "".join(map(self._line, lines.split(b"\n")))

    def _line(self, line: bytes) -> str:
        data = line[5:].strip() if line.startswith(b"data:") else b""
        if not data or data == _END:
            return ""
        try:
            return self._other(orjson.loads(data))
        except orjson.JSONDecodeError:
            chunk = lenient.with_halves(data)
        self._mend = True
        return self._paired(self._other(chunk))

    def _paired(self, text: str) -> str:
        """What of a text with halves of characters can be shown by now."""
        text, self._half = (self._half if "\udc00" <= text[:1] <= "\udfff" else "") + text, ""
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return lenient.whole(text)

    def _other(self, chunk: Any) -> str:
        """What is more, or other, than a piece of text."""
        if not isinstance(chunk, dict):
            return ""
        if chunk.get("error"):
            raise from_body(chunk["error"])
        for name in ("model", "provider", "usage"):
            if chunk.get(name):
                self._of_all[name] = chunk[name]
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return ""
        if choice.get("error"):
            raise from_body(choice["error"])
        self._reason = choice.get("finish_reason") or self._reason
        delta = choice.get("delta")
        if isinstance(delta, Mapping):
            self._more_of_calls(delta.get("tool_calls"))
        text = text_of(delta)
        if text:
            self._texts.append(text)
        return text

    def _more_of_calls(self, deltas: Any) -> None:
        """A call's name comes once, its arguments in pieces; `index` says which call they belong to, and another id
        that it is another one."""
        for at, delta in enumerate(deltas if isinstance(deltas, list) else ()):
            if not isinstance(delta, Mapping):
                continue
            index = delta.get("index")
            calls = self._calls.setdefault(index if isinstance(index, int) else at, [])
            name = str(delta.get("id") or "")
            if not calls or (name and calls[-1]["id"] not in ("", name)):
                calls.append({"id": "", "name": "", "arguments": ""})
            call, wanted = calls[-1], delta.get("function")
            wanted = wanted if isinstance(wanted, Mapping) else {}
            call["id"] = call["id"] or name
            call["name"] = call["name"] or str(wanted.get("name") or "")
            arguments = wanted.get("arguments")
            if arguments:
                call["arguments"] += arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()


def text_of(message: Any) -> str:
    """The text of a message or of a piece of one."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):  # some providers answer in parts
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""
