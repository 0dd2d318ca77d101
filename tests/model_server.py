"""A scripted OpenAI-compatible model server on loopback: real HTTP, threads, chunked SSE, kept-alive connections.

    with ModelServer() as server:                     # server.url ends in /v1
        server.main.queue("Hello!", Status(500))      # the main model's next replies, in order
        server.mini.queue({"topic": "tea"})           # the mini model's: what is not text becomes JSON
        server.embeddings.queue(Status(500))          # what answers at /v1/embeddings next
        ...
        server.requests[0].body["messages"]           # what came, in order of arrival

A model whose queue is empty answers with `default(body)`: the main one echoes, the mini one fills the JSON schema it
was asked for, and the words of a text decide its embedding.  A reply is text, JSON, a function of the request, or one
of the `Reply` objects of `model_replies`.
As a program, for tests of whole processes: `python -m tests.model_server --port 0 --main-delay 0.3` prints its URL.
"""

import argparse
import json
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Self

from tests.model_replies import (  # noqa: F401 - tests take replies from here
    FILTERED,
    Body,
    CutStream,
    Delay,
    Dictation,
    Endless,
    Exchange,
    HangUp,
    Html,
    Json,
    Raw,
    Reply,
    SseError,
    Status,
    Text,
    ToolCalls,
    digest,
    echo,
    embeddings,
)


@dataclass(frozen=True)
class Received:
    """One request: which model it was for (`main`, `mini`, `embeddings`, or `other` for none), and when it came."""

    model: str
    method: str
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: Body
    at: float  # time.monotonic()


class ScriptedModel:
    """One model's queue of replies and what it answers when that is empty."""

    def __init__(self, default: Callable[[Body], Any]) -> None:
        self.default = default
        self._queued: deque[Any] = deque()

    def queue(self, *replies: Any) -> None:
        self._queued.extend(replies)

    def next(self) -> Any:
        try:
            return self._queued.popleft()
        except IndexError:
            return None


def is_mini(body: Body) -> bool:
    """Return whether a request is for the mini model, which has to be called so."""
    return "mini" in str(body.get("model"))


class ModelServer:
    """See the module.  `connections` counts those open now, `accepted` all that ever came; `pages` are JSON by path."""

    def __init__(
        self,
        port: int = 0,
        *,
        reply: str | None = None,
        forgetful: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`reply` is what the main model says instead of an echo; a `forgetful` server keeps no `requests`, which a
        long run would fill its memory with."""
        self._tls = tls
        self._answer_with: Callable[[Body], Any] = echo if reply is None else lambda _: reply
        self._forgetful = forgetful
        self.reset()
        self.accepted = 0
        self.closing = threading.Event()
        self._open: set[socket.socket] = set()
        self._changed = threading.Condition()
        self._listener = socket.create_server(("127.0.0.1", port), backlog=512)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}/v1"
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening and drop every connection; held replies are let go.  No error when it is closed."""
        if self._listener.fileno() < 0:
            return
        self.closing.set()
        socket.create_connection(("127.0.0.1", self.port)).close()  # wakes the acceptor, on every system
        self._acceptor.join()
        self._listener.close()
        with self._changed:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # the other side was first
        self.wait_for(lambda: not self._open, 2.0)

    def reset(self) -> None:
        """Forget what came and what was scripted, so that tests can share a server; connections stay."""
        self.main = ScriptedModel(self._answer_with)
        self.mini = ScriptedModel(digest)
        self.embeddings = ScriptedModel(embeddings)
        self.requests: list[Received] = []
        self.pages: dict[str, Any] = {}

    @property
    def connections(self) -> int:
        return len(self._open)

    @property
    def keys(self) -> set[str]:
        return {request.headers["authorization"].removeprefix("Bearer ") for request in self.requests}

    def wait_for(self, condition: Callable[[], bool], timeout: float = 5.0) -> bool:
        """Wait until `condition` holds; it is looked at whenever a request arrives or a connection ends."""
        with self._changed:
            return self._changed.wait_for(condition, timeout)

    def wait_for_requests(self, count: int, timeout: float = 20.0) -> list[Received]:
        """Return the requests so far, once there are `count` of them; AssertionError if that takes too long."""
        assert self.wait_for(lambda: len(self.requests) >= count, timeout), f"{len(self.requests)} of {count} came"
        return list(self.requests)

    def reply(self, exchange: Exchange, reply: Any) -> None:
        """Send `reply`, whatever it is written as; None is the model's default."""
        if reply is None:
            reply = (self.mini if is_mini(exchange.body) else self.main).default
        if callable(reply):
            reply = reply(exchange.body)
        if not isinstance(reply, Reply):
            reply = Text(reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False))
        reply.send(exchange)

    def _accept(self) -> None:
        while not self.closing.is_set():
            connection, _ = self._listener.accept()
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._changed:
                self._open.add(connection)
                self.accepted += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection.makefile("rb") as stream:
                while (received := self._receive(stream)) and not self.closing.is_set():
                    self._answer(connection, received)
        except OSError:
            pass  # one side hung up, as scripted or not
        finally:
            connection.close()
            with self._changed:
                self._open.discard(connection)
                self._changed.notify_all()

    def _receive(self, stream: BinaryIO) -> Received | None:
        line = stream.readline().decode("latin-1").split()
        if len(line) < 2:
            return None
        headers: dict[str, str] = {}
        while header := stream.readline().strip().decode("latin-1"):
            name, _, value = header.partition(":")
            headers[name.lower()] = value.strip()
        content = stream.read(int(headers.get("content-length", 0)))
        body = json.loads(content) if content else {}
        path = line[1].partition("?")[0]
        if path.endswith("/embeddings"):
            model = "embeddings"
        else:
            model = "other" if not path.endswith("/chat/completions") else "mini" if is_mini(body) else "main"
        received = Received(model, line[0], line[1], headers, body, time.monotonic())
        with self._changed:
            if not self._forgetful:
                self.requests.append(received)
            self._changed.notify_all()
        return received

    def _answer(self, connection: socket.socket, received: Received) -> None:
        exchange = Exchange(connection, received.body, self)
        if received.model == "other" and received.path in self.pages:
            return exchange.json(self.pages[received.path])
        if received.model == "other":
            models = {name: {"id": name, "object": "model", "of_theirs": True} for name in ("gpt-4o", "gpt-4o-mini")}
            _, one, name = received.path.partition("/models/")
            if not one:
                return exchange.json({"object": "list", "data": list(models.values())})
            if name in models:
                return exchange.json(models[name])
            return Status(404, {"error": {"message": "No such model.", "code": "model_not_found"}}).send(exchange)
        model = {"main": self.main, "mini": self.mini, "embeddings": self.embeddings}[received.model]
        reply = model.next()
        return self.reply(exchange, model.default if reply is None else reply)


Prompt = list[dict[str, str]]


def at(server: ModelServer, **changes: Any) -> dict[str, Any]:
    """Return settings for `make_app` of an application that answers with the scripted server's models."""
    return {
        "openai_base_url": server.url,
        "openai_api_key": "test-key",
        "openai_model": "main-model",
        "openai_summary_model": "mini-model",
        "model_timeout": 5.0,
        **changes,
    }


def prompts(server: ModelServer, model: str = "main") -> list[Prompt]:
    """Return the messages of every prompt that the model got."""
    return [request.body["messages"] for request in list(server.requests) if request.model == model]


def question(prompt: Prompt) -> str:
    """Return the last message without the memory block before it."""
    block, end, text = prompt[-1]["content"].rpartition("</memory>\n\n")
    assert end, block
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description="A scripted OpenAI-compatible model server on loopback.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--main-delay", type=float, default=0.0, help="seconds before each of the main model's replies")
    parser.add_argument("--reply", help="what the main model says; it echoes otherwise")
    parser.add_argument("--forgetful", action="store_true", help="keep no requests, for long runs")
    options = parser.parse_args()
    with ModelServer(options.port, reply=options.reply, forgetful=options.forgetful) as server:
        if options.main_delay:
            server.main.default = lambda body: Delay(options.main_delay, options.reply or echo)
        print(server.url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
