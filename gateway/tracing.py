"""Spans sent to an OpenTelemetry collector over OTLP/HTTP. Loaded only where OTEL_EXPORTER_OTLP_ENDPOINT is set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

_PARENT = "traceparent"
_LINKED = 20  # messages answered together at the most
_PATIENCE = 3.0  # seconds for a collector that does not answer: a process that ends waits no longer


class Tracing:
    """Spans of `gateway.spans`. `endpoint` is the collector's base address; of all messages `ratio` are traced, and
    whoever goes on with a message keeps to what was decided for it."""

    def __init__(self, endpoint: str, ratio: float, service: str, version: str) -> None:
        named = Resource.create({"service.name": f"chat-chat-{service}", "service.version": version})
        self._provider = TracerProvider(resource=named, sampler=ParentBased(TraceIdRatioBased(ratio)))
        exporter = OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces", timeout=_PATIENCE)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("chat-chat", version)
        self._form = TraceContextTextMapPropagator()

    @contextmanager
    def whole(self, name: str, parents: Sequence[str] = (), **attributes: str | int | float) -> Iterator[None]:
        known = [self._form.extract({_PARENT: one}) for one in dict.fromkeys(parents) if one][:_LINKED]
        links = [trace.Link(trace.get_current_span(one).get_span_context()) for one in known[1:]]
        within = known[0] if known else context.Context()
        span = self._tracer.start_span(name, within, links=links, attributes=attributes)
        token = context.attach(trace.set_span_in_context(span))
        try:
            with _ended(span):
                yield
        finally:
            context.detach(token)

    @contextmanager
    def part(self, name: str, **attributes: str | int | float) -> Iterator[None]:
        """It is never the current one, so that it may end in another task, as a stream's does."""
        if not trace.get_current_span().get_span_context().is_valid:
            yield
            return
        with _ended(self._tracer.start_span(name, attributes=attributes)):
            yield

    def here(self) -> str:
        carried: dict[str, str] = {}
        self._form.inject(carried)
        return carried.get(_PARENT, "")

    def ids(self) -> Mapping[str, str]:
        place = trace.get_current_span().get_span_context()
        if not place.is_valid:
            return {}
        return {"trace_id": trace.format_trace_id(place.trace_id), "span_id": trace.format_span_id(place.span_id)}

    def close(self) -> None:
        """Sends what is left. Blocks for a few seconds at the most."""
        self._provider.shutdown()


@contextmanager
def _ended(span: trace.Span) -> Iterator[None]:
    """An error is told by its kind: its own words may quote a customer's."""
    try:
        yield
    except BaseException as error:
        span.set_status(trace.StatusCode.ERROR, type(error).__name__)
        raise
    finally:
        span.end()
