"""Where a message's time goes, told to a collector; who looks sees kinds and times, and no word of anybody's."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from gateway import logs
from gateway.tracing import Tracing
from tests.house import LLM_KEY, house


class Collector:
    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.url = ""

    @property
    def spans(self) -> list[Span]:
        read = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        return [span for one in read for of in one.resource_spans for scope in of.scope_spans for span in scope.spans]


@pytest.fixture
def collector() -> Iterator[Collector]:
    found = Collector()

    class Takes(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            found.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nowhere."""

    with HTTPServer(("127.0.0.1", 0), Takes) as server:
        found.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield found
        server.shutdown()
        thread.join()


@contextmanager
def tracing(collector: Collector, ratio: float = 1.0) -> Iterator[Tracing]:
    made = Tracing(collector.url, ratio, "test", "1")
    yield made
    made.close()


async def test_a_message_is_one_trace_from_its_webhook_to_its_answer(
    tmp_path: Path, redis_url: str, collector: Collector
) -> None:
    user = "U" + "a" * 32
    with tracing(collector) as spans:
        async with house(tmp_path, redis_url, llm_key=LLM_KEY, spans=spans) as home:
            assert await home.line_says(user, "Do you have rhubarb marmalade?") == 200
            await home.quiet()
    (receive,) = [span for span in collector.spans if span.name == "receive"]
    of_it = {span.name: span for span in collector.spans if span.trace_id == receive.trace_id}
    assert {"receive", "redis put", "turn", "model", "redis intent", "send line", "redis finish"} <= of_it.keys()
    assert of_it["turn"].parent_span_id == receive.span_id
    for name in ("model", "send line", "redis finish"):
        assert of_it[name].parent_span_id == of_it["turn"].span_id
    attributes = {one.key: one.value.string_value for one in of_it["turn"].attributes}
    assert (attributes["tenant"], attributes["channel"]) == ("shop", "line-main")
    everything = b"".join(collector.bodies)
    for word in (b"rhubarb", user.encode()):
        assert word not in everything


def test_what_was_not_chosen_at_its_beginning_is_traced_nowhere(collector: Collector) -> None:
    with tracing(collector, 0.0) as first, tracing(collector) as second:
        with first.whole("receive"):
            carried = first.here()
        with second.whole("turn", [carried]), second.part("model"):
            pass
    assert carried.startswith("00-")
    assert collector.spans == []


def test_what_fails_is_told_by_its_kind_alone(collector: Collector) -> None:
    with (
        tracing(collector) as spans,
        pytest.raises(ValueError, match="rhubarb"),
        spans.whole("turn", tenant="shop"),
        spans.part("model"),
    ):
        raise ValueError("rhubarb")
    assert [(span.name, span.status.message) for span in collector.spans] == [
        ("model", "ValueError"),
        ("turn", "ValueError"),
    ]
    assert b"rhubarb" not in b"".join(collector.bodies)


def test_messages_answered_together_are_linked(collector: Collector) -> None:
    with tracing(collector) as spans:
        carried = []
        for _ in range(2):
            with spans.whole("receive"):
                carried.append(spans.here())
        with spans.whole("turn", carried):
            pass
    one, other, turn = collector.spans
    assert (turn.trace_id, [link.trace_id for link in turn.links]) == (one.trace_id, [other.trace_id])


def test_a_log_line_has_the_ids_of_the_trace_it_belongs_to(collector: Collector) -> None:
    told = io.StringIO()
    with tracing(collector) as spans:
        logging_ = logs.setup("INFO", "json", told)
        logging_.trace(spans.ids)
        with spans.whole("turn"):
            logging.getLogger("gateway.worker").info("within")
        logging.getLogger("gateway.worker").info("without")
        logging_.close()
    within, without = map(json.loads, told.getvalue().splitlines())
    (turn,) = collector.spans
    assert (within["trace_id"], within["span_id"]) == (turn.trace_id.hex(), turn.span_id.hex())
    assert "trace_id" not in without


def test_where_nobody_looks_nothing_of_it_is_loaded() -> None:
    # The client of Redis looks by itself whether there is an SDK; ours is loaded by gateway.tracing alone.
    ours = {"gateway.tracing", "opentelemetry.exporter"}
    code = f"import sys, gateway.app, gateway.front_door; sys.exit(bool({ours} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2]).returncode == 0
