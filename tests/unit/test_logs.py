from __future__ import annotations

import io
import json
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

from gateway import logs

SECRET = "1234:invented/secret"
log = logging.getLogger("gateway.something")


class Written:
    """What logging wrote once it was closed."""

    def __init__(self) -> None:
        self.stream = io.StringIO()
        self.logging: logs.Logging | None = None

    def start(self, level: str = "INFO", fmt: logs.Format = "json") -> None:
        self.logging = logs.setup(level, fmt, self.stream)

    def text(self) -> str:
        if self.logging:
            self.logging.close()
        return self.stream.getvalue()

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text().splitlines()]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    monkeypatch.setattr(logs, "_secrets", logs.Secrets())
    levels = {name: logging.getLogger(name).level for name in logs._QUIET}
    written = Written()
    yield written
    written.text()
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def fail_with(text: str) -> None:
    try:
        raise ValueError(text)
    except ValueError:
        log.exception("it failed")


def test_a_json_line_holds_time_level_logger_message_and_context(written: Written) -> None:
    written.start()
    log.warning("%d answers late", 2, extra={"tenant": "demo", "channel": "line-main"})
    (record,) = written.records()
    assert record.pop("time").endswith("Z")
    assert record == {
        "level": "WARNING",
        "logger": "gateway.something",
        "message": "2 answers late",
        "tenant": "demo",
        "channel": "line-main",
    }


def test_a_console_line_is_short_and_names_the_context(written: Written) -> None:
    written.start(fmt="console")
    log.warning("slow", extra={"conversation": "sm:demo:line:U1"})
    log.info("fine")
    slow, fine = written.text().splitlines()
    assert slow[8:] == " WARNING slow  [conversation=sm:demo:line:U1]"
    assert fine[8:] == " fine"


def test_a_message_of_several_lines_does_not_pass_for_several_records(written: Written) -> None:
    written.start(fmt="console")
    log.info("one\n12:00:00 two")
    assert written.text().splitlines()[1] == "    12:00:00 two"


@pytest.mark.parametrize("fmt", ["json", "console"])
@pytest.mark.parametrize(
    "speak",
    [
        lambda: log.info(f"token {SECRET} given"),
        lambda: log.info("token %s given", SECRET),
        lambda: log.info("GET /bot%s/getMe", quote(SECRET, safe="")),
        lambda: log.info("headers %s", {"Authorization": f"Bearer {SECRET}"}),
        lambda: log.info("given", extra={"event": SECRET}),
        lambda: fail_with(f"https://api.example/bot{SECRET}/getMe"),
        lambda: log.info("here", stack_info=True, extra={"tenant": SECRET}),
        lambda: log.info("%d", SECRET),
    ],
    ids=["message", "argument", "URL", "inside an argument", "context", "traceback", "stack", "misfit argument"],
)
def test_a_secret_is_masked_wherever_it_stands(speak: Callable[[], None], fmt: logs.Format, written: Written) -> None:
    written.start(fmt=fmt)
    logs.register_secret(SECRET)
    speak()
    assert SECRET not in written.text()
    assert quote(SECRET, safe="") not in written.text()
    assert "***" in written.text()


def test_the_rest_of_a_masked_traceback_stays(written: Written) -> None:
    written.start()
    logs.register_secret(SECRET)
    fail_with(f"bot{SECRET} refused")
    (record,) = written.records()
    assert record["message"] == "it failed"
    assert record["trace"].endswith("ValueError: bot*** refused")


def test_a_secret_that_holds_another_is_masked_whole() -> None:
    secrets = logs.Secrets()
    secrets.register("abcdef")
    secrets.register("abcdef-ghijkl")
    assert secrets.mask("<abcdef-ghijkl> <abcdef>") == "<***> <***>"


def test_too_short_and_empty_secrets_mask_nothing() -> None:
    secrets = logs.Secrets()
    for value in ("", None, "abc"):
        secrets.register(value)
    assert secrets.mask("abc") == "abc"


def test_a_record_whose_arguments_do_not_fit_is_told_with_its_place(written: Written) -> None:
    written.start()
    misfit = "%d of %d"
    log.info(misfit, 1)
    (record,) = written.records()
    assert record["message"].startswith("%d of %d (1,) (arguments that don't fit: ")
    assert "test_logs.py" in record["message"]


def test_a_lone_surrogate_is_written_as_a_question_mark(written: Written) -> None:
    written.start()
    log.info("\ud83d here", extra={"event": "\udc00"})
    (record,) = written.records()
    assert (record["message"], record["event"]) == ("? here", "?")


def test_what_is_below_the_level_and_what_libraries_chat_about_is_left_out(written: Written) -> None:
    written.start(level="INFO")
    log.debug("what a customer wrote")
    for name in ("aiogram.event", "openai._base_client", "httpx2", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).info("chatter of %s", name)
    logging.getLogger("aiogram.event").warning("worth reading")
    assert [record["message"] for record in written.records()] == ["worth reading"]


def test_a_stream_that_hangs_does_not_hold_up_the_caller() -> None:
    free = threading.Event()

    class Hanging(io.StringIO):
        def write(self, text: str) -> int:
            assert free.wait(20)
            return super().write(text)

    stream = Hanging()
    logging_ = logs.setup("INFO", "json", stream)
    for number in range(100):
        log.info("number %d", number)  # would block at the first otherwise, and `free` is set only after the last
    assert stream.getvalue() == ""
    free.set()
    logging_.close()
    assert len(stream.getvalue().splitlines()) == 100


def test_closing_twice_is_one_closing(written: Written) -> None:
    before = logging.getLogger().handlers[:]
    written.start()
    written.text()
    written.text()
    assert logging.getLogger().handlers == before


def test_an_unknown_level_is_refused_with_the_right_ones() -> None:
    with pytest.raises(ValueError, match="'LOUD' is no log level: use DEBUG, INFO"):
        logs.setup("LOUD", "json")
