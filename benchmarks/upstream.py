"""A recording OpenAI-compatible model server on loopback, for benchmarks that look at what Recap sends.

    with Upstream() as upstream:                      # upstream.url ends in /v1
        upstream.reply = "what the main model says next"
        ...
        upstream.prompts[-1].messages                 # what it was sent

The main model says what it is told to.  The mini model keeps a summary as its prompt asks, deterministically: a short
statement of each message, the oldest dropped at the prompt's own limit, and a fact for what the person states.

Guarantee: the same requests get the same answers.  A request that is no chat completion gets a 404.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any

MAIN, MINI = "main", "mini"  # what OPENAI_MODEL and OPENAI_SUMMARY_MODEL are to be
SUMMARY_WORDS = 400  # what Recap's own summary prompt allows
STATEMENT_WORDS = 16  # of a message, in the summary
FACT_WORDS_MIN = 6  # "Ha, go on." is no fact

_SUMMARY = re.compile(r"<summary_so_far>\n(.*?)\n</summary_so_far>", re.S)
_SAID = re.compile(r"^\[(\d+)\] (?:\d{4}-\d\d-\d\d )?\d\d:\d\d (user|assistant): (.*)$", re.M)
_SENTENCE = re.compile(r".+?(?:[.!?…]+(?=\s)|$)")

Json = Mapping[str, Any]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that its other side has dropped, as a Recap that is ended does, is no error worth a trace."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@dataclass(frozen=True)
class Prompt:
    """A prompt of the main model, and the mini model's newest summary when it came."""

    messages: list[Json]
    summary: Json


class Upstream:
    """See the module.  Requests are taken in any thread, but it is for one conversation at a time."""

    def __init__(self) -> None:
        self.reply = ""
        self.prompts: list[Prompt] = []
        self._summary: Json = {}
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Upstream:
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def begin(self) -> None:
        """Another conversation begins: what came and what was summarised is forgotten."""
        self.prompts, self._summary = [], {}

    def complete(self, body: Json) -> str:
        """The answer to a request."""
        if body["model"] == MAIN:
            self.prompts.append(Prompt(body["messages"], self._summary))
            return self.reply
        digest = digested(body["messages"][-1]["content"])
        self._summary = digest["summary"]
        return json.dumps(digest, ensure_ascii=False)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # connections are kept
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path != "/v1/chat/completions":
                    return self._send(404, {"error": {"message": f"Nothing is at {self.path}."}})
                return self._send(200, completion(body["model"], upstream.complete(body)))

            def log_message(self, format: str, *args: Any) -> None:
                """Requests are recorded; nobody reads a log of them."""

            def _send(self, status: int, value: Json) -> None:
                content = json.dumps(value, ensure_ascii=False).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        return Handler


def completion(model: str, text: str) -> Json:
    """A chat.completion of that text."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"id": "chatcmpl-bench", "object": "chat.completion", "created": 1, "model": model, "choices": [choice]}


def digested(material: str, words: int = SUMMARY_WORDS) -> dict[str, Any]:
    """The mini model's answer: the summary in `material` brought up to date with its messages, of so many words at
    most, and new facts."""
    before = _SUMMARY.search(material)
    previous = json.loads(unescape(before[1])) if before else {}
    said = [(int(number), role, _first_sentence(unescape(text))) for number, role, text in _SAID.findall(material)]
    discussed = [*previous.get("discussed", ()), *(f"{role}: {_clipped(text)}" for _, role, text in said)]
    while sum(len(statement.split()) for statement in discussed) > words:
        discussed.pop(0)
    topic = previous.get("topic") or (_clipped(said[0][2]) if said else "")
    facts = [
        {"text": text, "quote": text, "source": number, "category": "other", "importance": 3, "scope": "user"}
        for number, role, text in said
        if role == "user" and not text.endswith("?") and len(text.split()) >= FACT_WORDS_MIN
    ]
    return {
        "summary": {**previous, "topic": topic, "discussed": discussed},
        "facts": [{**fact, "supersedes": []} for fact in facts],
    }


def _first_sentence(text: str) -> str:
    found = _SENTENCE.match(text)
    return found[0] if found else text


def _clipped(text: str) -> str:
    return " ".join(text.split()[:STATEMENT_WORDS])
