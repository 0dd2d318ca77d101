"""A scripted OpenAI-compatible model server that answers each request in a fixed time and records the calls.

    with ModelProcess() as model:                     # model.url ends in /v1
        model.follow(Script(first=0.3))               # seconds until the first text
        ...
        model.calls()                                 # the times and messages of each call

It runs in a process of its own, so that the benchmark and the model do not wait for each other.  The main model answers
with `reply`.  The mini model answers with a digest in the format of Recap's prompt: a short statement of each message,
up to the prompt's limit of words, and a fact for each statement of the person.  The same request gets the same answer.
"""

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context, parent_process
from multiprocessing.managers import BaseManager
from types import TracebackType
from typing import Any, Self

from benchmarks.conversation import answer
from benchmarks.serving import MINI

PIECES = 10  # of a streamed reply
MESSAGE_TOKENS = 3  # of each message, in addition to its words
SUMMARY_WORDS = 400  # the limit in Recap's summary prompt
STATEMENT_WORDS = 16  # of a message, in the summary
FACT_WORDS_MIN = 6  # shorter sentences, such as "Ha, go on.", are not facts

_WORD = re.compile(r"\w+|[^\w\s]")
_SUMMARY = re.compile(r"<summary_so_far>\n(.*?)\n</summary_so_far>", re.S)
_MESSAGE = re.compile(r"^\[(\d+)\] (?:\d{4}-\d\d-\d\d \w+ )?\d\d:\d\d (user|assistant): (.*)$", re.M)
_SENTENCE = re.compile(r".+?(?:[.!?…]+(?=\s)|$)")

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Script:
    """Behaviour of the models.  keeps: whether calls are recorded with their messages."""

    first: float = 0.0  # seconds until a reply's first text
    mini: float = 0.0  # seconds for a digest
    words: int = SUMMARY_WORDS  # of a summary at most
    facts: int | None = None  # of a digest at most
    keeps: bool = True
    reply: str | None = None  # of the main model; None: its usual answer


@dataclass(frozen=True)
class Call:
    """A call of the model: when it started and ended, by `time.monotonic`, and its messages."""

    model: str
    started: float
    ended: float
    messages: Sequence[Mapping[str, Any]]

    @property
    def text(self) -> str:
        return "\n".join(str(message["content"] or "") for message in self.messages)

    @property
    def tokens(self) -> int:
        """Estimate without any model: words and punctuation marks, plus MESSAGE_TOKENS for each message."""
        return len(_WORD.findall(self.text)) + MESSAGE_TOKENS * len(self.messages)


class ScriptedModel(ThreadingHTTPServer):
    """The server; `calls` ended in this order."""

    request_queue_size = 1024

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.script = Script()
        self.calls: list[Call] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def follow(self, script: Script) -> None:
        self.script = script

    def calls_since(self, count: int) -> list[Call]:
        return self.calls[count:]

    def port(self) -> int:
        return self.server_port

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # Recap drops connections when it is stopped
            super().handle_error(request, client_address)


class _Requests(BaseHTTPRequestHandler):
    """The requests on one connection."""

    server: ScriptedModel
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        started, body = time.monotonic(), json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions":
            return self.send_error(404)
        script, stream, message = self.server.script, body.get("stream"), str(body["messages"][-1]["content"])
        text = digest(message, script) if body["model"] == MINI else script.reply or answer(message)
        if stream:
            self._begin_stream(text, script)
        else:
            time.sleep(script.mini if body["model"] == MINI else script.first)
        # Before the end is sent: who receives it may ask for the calls at once.
        messages = body["messages"] if script.keeps else []
        self.server.calls.append(Call(body["model"], started, time.monotonic(), messages))
        if stream:
            self._event(_completion("chat.completion.chunk", delta={}, finish_reason="stop"))
            self._event("[DONE]")
            self.wfile.write(b"0\r\n\r\n")
        else:
            reply = {"role": "assistant", "content": text}
            self._send(_completion("chat.completion", message=reply, finish_reason="stop"))
        return None

    def _begin_stream(self, text: str, script: Script) -> None:
        words = text.split()
        self._head("Transfer-Encoding", "chunked")
        time.sleep(script.first)
        for piece in range(PIECES):
            at, end = (len(words) * part // PIECES for part in (piece, piece + 1))
            delta = {"content": "".join(f"{word} " for word in words[at:end])}
            self._event(_completion("chat.completion.chunk", delta=delta, finish_reason=None))

    def _event(self, data: str) -> None:
        event = f"data: {data}\n\n".encode()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))

    def _send(self, answer: str) -> None:
        content = answer.encode()
        self._head("Content-Length", str(len(content)))
        self.wfile.write(content)

    def _head(self, name: str, value: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


class ModelProcess(BaseManager):
    """A `ScriptedModel` in a separate process, which runs until the end of the block, or of this process."""

    model: Callable[[], Any]

    def __enter__(self) -> Self:
        super().__init__(ctx=get_context("spawn"))
        self.start(_end_with_parent)
        self._model = self.model()
        self.url = f"http://127.0.0.1:{self._model.port()}/v1"
        self._calls: list[Call] = []
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.shutdown()

    def follow(self, script: Script) -> None:
        """Change the script for all further calls."""
        self._model.follow(script)

    def calls(self) -> list[Call]:
        """Return all answered calls so far, in the order in which they ended."""
        self._calls += self._model.calls_since(len(self._calls))
        return list(self._calls)


ModelProcess.register("model", ScriptedModel, exposed=("follow", "calls_since", "port"))


def _end_with_parent() -> None:
    def wait() -> None:
        if parent := parent_process():
            parent.join()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def digest(prompt: str, script: Script) -> str:
    """Return the mini model's answer as JSON: the summary in `prompt`, updated with its messages, and new facts.

    The oldest statements of a summary that becomes too long are dropped.
    """
    before = _SUMMARY.search(prompt)
    previous = json.loads(unescape(before[1])) if before else {}
    messages = [(int(number), role, _sentence(unescape(text))) for number, role, text in _MESSAGE.findall(prompt)]
    discussed = [*previous.get("discussed", ()), *(f"{role}: {_clip(text)}" for _, role, text in messages)]
    while sum(len(statement.split()) for statement in discussed) > script.words:
        discussed.pop(0)
    topic = previous.get("topic") or (_clip(messages[0][2]) if messages else "")
    facts = [
        {"text": text, "quote": text, "source": number, "category": "other", "importance": 3, "scope": "user"}
        for number, role, text in messages
        if role == "user" and not text.endswith("?") and len(text.split()) >= FACT_WORDS_MIN
    ]
    answer = {
        "summary": {**previous, "topic": topic, "discussed": discussed},
        "facts": [{**fact, "supersedes": []} for fact in facts[: script.facts]],
    }
    return json.dumps(answer, ensure_ascii=False)


def _completion(kind: str, **choice: Any) -> str:
    """Return an answer of the main or mini model as JSON: a whole one, or a chunk."""
    head = {"id": "chatcmpl-bench", "object": kind, "created": 1, "model": "scripted"}
    return json.dumps({**head, "choices": [{"index": 0, **choice}]})


def _sentence(text: str) -> str:
    first = _SENTENCE.match(text)
    return first[0] if first else text


def _clip(text: str) -> str:
    return " ".join(text.split()[:STATEMENT_WORDS])
