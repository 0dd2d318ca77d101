"""Traces: a span for each request, each turn with its phases, and each job, for an OpenTelemetry collector.

They are taken where the metrics are, and tell the same.  OpenTelemetry's own instrumentations of Flask and SQLAlchemy
would send paths, searches and addresses, which name people.

Invariants:
- No span holds a name or a word of anybody's: only routes as the code writes them, statuses, error codes, kinds,
  outcomes, and the id of the request, under which the log has hashes (test_otlp).
"""

import time
from collections.abc import Mapping
from pathlib import Path

from opentelemetry.context import Context, attach
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from memory.ops.logs import current
from memory.ops.metrics import METHODS, Metrics


class Traces(Metrics):
    """Metrics whose requests, turns and jobs are sent as spans too."""

    def __init__(self, collector: str) -> None:
        """`collector` is the address that OTEL_EXPORTER_OTLP_ENDPOINT names."""
        super().__init__()
        self._address = f"{collector.rstrip('/')}/v1/traces"
        resource = Resource.create({"service.name": "recap"}).merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=resource)
        self._tracer = self._provider.get_tracer("recap")

    def share(self, folder: Path) -> None:
        """See Metrics.  Spans are sent from here on, by a thread, which would not survive a fork."""
        super().share(folder)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(self._address)))

    def start_request(self, traceparent: str | None) -> None:
        """See Metrics.  What this thread does next belongs to the request."""
        super().start_request(traceparent)
        # No `tracestate`: it would be passed on, and may hold anything.
        caller = TraceContextTextMapPropagator().extract({"traceparent": traceparent or ""}, Context())
        span = self._tracer.start_span("request", caller, SpanKind.SERVER)
        attach(set_span_in_context(span, Context()))

    def end_request(self, method: str, route: str, status: int, seconds: float, code: str | None) -> None:
        """See Metrics."""
        super().end_request(method, route, status, seconds, code)
        span = get_current_span()
        method = method if method in METHODS else "other"
        span.update_name(f"{method} {route}")
        span.set_attributes({"http.request.method": method, "http.route": route, "http.response.status_code": status})
        span.set_attribute("recap.request", str(current().get("request", "")))
        if code is not None:
            span.set_attribute("error.type", code)
        if status >= 500:
            span.set_status(Status(StatusCode.ERROR))
        span.end()
        attach(Context())

    def count_turn(
        self, api: str, outcome: str, phases: Mapping[str, float], first_text: float | None, seconds: float
    ) -> None:
        """See Metrics."""
        super().count_turn(api, outcome, phases, first_text, seconds)
        at = time.time_ns() - round(seconds * 1e9)
        attributes = {"recap.api": api, "recap.outcome": outcome}
        turn = self._tracer.start_span("turn", attributes=attributes, start_time=at)
        for phase, lasted in phases.items():
            span = self._tracer.start_span(phase, set_span_in_context(turn), start_time=at)
            at += round(lasted * 1e9)
            span.end(at)
        turn.end()

    def count_job(self, kind: str, outcome: str, seconds: float | None = None) -> None:
        """See Metrics."""
        super().count_job(kind, outcome, seconds)
        if seconds is not None:
            at = time.time_ns() - round(seconds * 1e9)
            attributes = {"recap.outcome": outcome}
            self._tracer.start_span(f"job {kind}", Context(), attributes=attributes, start_time=at).end()
