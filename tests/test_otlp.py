"""Traces as a collector gets them: what happened, under one roof with the caller's, and no word of anybody's."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.processes import Api, migrated_server

pytestmark = pytest.mark.slow

CALLERS = "4bf92f3577b34da6a3ce929d0e0e4736"  # the id of a trace
SECRETS = ("marzipan", "zephyrine", "quokka", "tiramisu", "platypus")


@contextmanager
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """A collector's address, and what it got."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", bodies
        finally:
            server.shutdown()


def spans_of(bodies: list[bytes]) -> list[Span]:
    requests = map(ExportTraceServiceRequest.FromString, bodies)
    return [
        span for one in requests for part in one.resource_spans for scope in part.scope_spans for span in scope.spans
    ]


def test_requests_turns_and_jobs_are_told_without_a_word_of_anybodys(tmp_path, migrated):
    with (
        collector() as (address, bodies),
        migrated_server(tmp_path, migrated, OTEL_EXPORTER_OTLP_ENDPOINT=address, SUMMARY_DEBOUNCE="0") as server,
    ):
        server.start()
        with Api(server) as api:
            api.http.headers["traceparent"] = f"00-{CALLERS}-00f067aa0ba902b7-01"
            api.http.headers["tracestate"] = "platypus=platypus"
            api.chat("quokka", "I am allergic to marzipan.", user_id="zephyrine")
            api.chat("quokka", "Is marzipan what I am allergic to?", user_id="zephyrine", stream=False)
            del api.http.headers["traceparent"]
            body = {"session_id": "quokka", "message": "And marzipan?", "user_id": "zephyrine", "stream": True}
            assert "[DONE]" in api.http.post("/api/chat", json=body).text
            api.get("/api/search", q="marzipan", user_id="zephyrine")
            assert api.http.get("/api/users/tiramisu", params={"q": "tiramisu"}).status_code == 404
            assert api.http.request("TIRAMISU", "/tiramisu").status_code in (404, 405)
            api.jobs_done()
        assert server.stop() == 0, "and what was not sent yet is sent now"
    spans = spans_of(bodies)
    named = {span.name for span in spans}
    assert {"POST /api/chat", "GET /api/search", "GET /api/users/<path:user_id>", "job index", "job summary"} <= named
    everything = b"".join(bodies).lower()
    assert b"recap" in everything and [one for one in SECRETS if one.encode() in everything] == []
    chats = [span for span in spans if span.name == "POST /api/chat"]
    assert [chat.trace_id.hex() == CALLERS for chat in sorted(chats, key=lambda one: one.start_time_unix_nano)] == [
        True,
        True,
        False,
    ]
    for chat in chats:
        (turn,) = [span for span in spans if span.parent_span_id == chat.span_id]
        phases = [span for span in spans if span.parent_span_id == turn.span_id]
        assert turn.name == "turn" and {turn.trace_id} == {span.trace_id for span in phases} == {chat.trace_id}
        assert {span.name for span in phases} == {"admit", "recall", "compose", "answer", "record"}
        assert chat.start_time_unix_nano <= turn.start_time_unix_nano <= turn.end_time_unix_nano
        assert all(span.end_time_unix_nano <= turn.end_time_unix_nano for span in phases)
    tops = [span for span in spans if span.name.startswith(("job", "GET"))]
    assert tops and not any(span.parent_span_id for span in tops)
