"""Logging: one line a record, as JSON or for a terminal, written by a thread of its own, secrets masked.

Callers keep to two rules: what a person wrote is never logged at INFO or above, and names of people and things go into
`extra=` (see CONTEXT), not into the message.
"""

from __future__ import annotations

import atexit
import logging
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener
from queue import SimpleQueue
from typing import Any, Final, Literal, TextIO
from urllib.parse import quote

import orjson

# What a record may carry in `extra=`, and what is added to it of the trace that it belongs to.
CONTEXT: Final = ("tenant", "channel", "conversation", "event", "trace_id", "span_id")
MASK: Final = "***"
_SHORTEST_SECRET = 6  # a shorter one would mask ordinary words, and guards nothing
_QUIET = {
    "aiogram": logging.WARNING,
    "aiohttp": logging.WARNING,
    "asyncio": logging.WARNING,
    "httpcore": logging.WARNING,
    "httpcore2": logging.WARNING,
    "httpx": logging.WARNING,
    "httpx2": logging.WARNING,
    "openai": logging.WARNING,
    "uvicorn": logging.WARNING,
    "uvicorn.access": logging.CRITICAL + 1,
    "watchfiles": logging.WARNING,
}

Format = Literal["console", "json"]


class Secrets:
    """The values that no log line may show."""

    def __init__(self) -> None:
        self._values: set[str] = set()
        self._longest_first: tuple[str, ...] = ()  # made anew at the first line after one more came

    def register(self, value: str | None) -> None:
        """From now on `value`, also as part of a URL, is shown as `***`. Fewer than 6 characters are passed over."""
        if value and len(value) >= _SHORTEST_SECRET and value not in self._values:
            self._values |= {value, quote(value, safe="")}

    def mask(self, text: str) -> str:
        if len(self._longest_first) != len(self._values):
            # So a secret that holds another one is masked whole. A copy, as another thread may register one meanwhile.
            self._longest_first = tuple(sorted(self._values.copy(), key=len, reverse=True))
        for value in self._longest_first:
            if value in text:
                text = text.replace(value, MASK)
        return text


_secrets = Secrets()


def register_secret(value: str | None) -> None:
    """See Secrets.register: of this process's log."""
    _secrets.register(value)


class _MaskingQueueHandler(QueueHandler):
    """Formats message, traceback and stack where they arise (the objects may change later), masked, and queues them."""

    ids: Callable[[], Mapping[str, str]] = dict  # of the trace under way here

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        queued = logging.makeLogRecord(record.__dict__)
        queued.msg, queued.args = _secrets.mask(_message(record)), None
        trace = [logging.Formatter().formatException(record.exc_info)] if record.exc_info else []
        trace += [record.stack_info] if record.stack_info else []
        queued.exc_text = _secrets.mask("\n".join(trace)) or None
        queued.exc_info = queued.stack_info = None
        for field in CONTEXT:
            if (value := getattr(record, field, None)) is not None:
                setattr(queued, field, _secrets.mask(str(value)))
        queued.__dict__.update(self.ids())
        return queued


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (
        TypeError,
        ValueError,
        KeyError,
    ):  # arguments that don't fit: the record's place is more use than a traceback
        return f"{record.msg} {record.args!r} (arguments that don't fit: {record.pathname}:{record.lineno})"


class JsonFormatter(logging.Formatter):
    """`{"time": …Z, "level", "logger", "message", …context, "trace"}` on one line; absent fields are left out."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _time(record).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {field: value for field in CONTEXT if (value := getattr(record, field, None)) is not None}
        if record.exc_text:
            line["trace"] = record.exc_text
        # orjson refuses lone surrogates, which a message may hold.
        return orjson.dumps({k: v.encode("utf-8", "replace").decode() for k, v in line.items()}).decode()


class ConsoleFormatter(logging.Formatter):
    """`12:34:56 WARNING message  [tenant=demo]`, the time local; then the trace."""

    def format(self, record: logging.LogRecord) -> str:
        context = " ".join(
            f"{field}={value}" for field in CONTEXT if (value := getattr(record, field, None)) is not None
        )
        level = "" if record.levelno == logging.INFO else f"{record.levelname} "
        line = f"{_time(record).astimezone():%H:%M:%S} {level}{record.getMessage()}"
        line += f"  [{context}]" if context else ""
        line = line.replace("\n", "\n    ")  # a message can't pass for another line
        return f"{line}\n{record.exc_text}" if record.exc_text else line


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


class Logging:
    """Logging in force. `close()` writes what is queued and gives the root logger back as it was."""

    def __init__(self, level: int, fmt: Format, stream: TextIO) -> None:
        output = logging.StreamHandler(stream)
        output.setFormatter(JsonFormatter() if fmt == "json" else ConsoleFormatter())
        queue: SimpleQueue[logging.LogRecord] = SimpleQueue()
        self._handler = _MaskingQueueHandler(queue)
        self._listener = QueueListener(queue, output)
        self._root = logging.getLogger()
        self._before = (self._root.level, self._root.handlers[:])
        self._root.handlers[:] = [self._handler]
        self._root.setLevel(level)
        self._open = True
        for name, floor in _QUIET.items():
            logging.getLogger(name).setLevel(max(level, floor))
        self._listener.start()
        atexit.register(self.close)  # also after a crash the last lines are written

    def trace(self, ids: Callable[[], Mapping[str, str]]) -> None:
        """From now on each line has these."""
        self._handler.ids = ids

    def close(self) -> None:
        if self._open:
            self._open = False
            atexit.unregister(self.close)
            self._root.setLevel(self._before[0])
            self._root.handlers[:] = self._before[1]
            self._listener.stop()


def setup(level: str, fmt: Format, stream: TextIO | None = None) -> Logging:
    """Sends all logging to `stream` (standard error) from a thread, so that a slow one never holds up the event loop.

    `level` is a standard name (`INFO`), raises ValueError for another. Call `close()` on what it returns at the end.
    """
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise ValueError(f"{level!r} is no log level: use DEBUG, INFO, WARNING, ERROR or CRITICAL")
    return Logging(number, fmt, stream or sys.stderr)
