"""What the scripted model server can answer, good and bad; see `tests.model_server`."""

import json
import queue
import socket
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Body = dict[str, Any]


class Exchange:
    """Write the answer to one request."""

    def __init__(self, connection: socket.socket, body: Body, server: Any) -> None:
        self.connection, self.body, self.server = connection, body, server
        self.streaming = bool(self.body.get("stream"))

    def respond(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        self._head(status, {"Content-Length": str(len(content)), **headers}, content)

    def json(self, value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        content = json.dumps(value).encode()
        self.respond(status, content, {"Content-Type": "application/json", **(headers or {})})

    def begin(self, content_type: str = "text/event-stream", status: int = 200) -> None:
        """Start a body of unknown length; then `write` and `end`."""
        self._head(status, {"Content-Type": content_type, "Transfer-Encoding": "chunked"}, b"")

    def write(self, data: bytes) -> None:
        self.connection.sendall(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def event(self, value: Any) -> None:
        self.write(b"data: " + (value if isinstance(value, str) else json.dumps(value)).encode() + b"\n\n")

    def end(self) -> None:
        self.connection.sendall(b"0\r\n\r\n")

    def chunk(self, delta: Body, finish: str | None = None, **more: Any) -> Body:
        return self._object("chat.completion.chunk", {"index": 0, "delta": delta, "finish_reason": finish}, **more)

    def completion(self, message: Body, finish: str = "stop", **more: Any) -> Body:
        message = {"role": "assistant", **message}
        return self._object("chat.completion", {"index": 0, "message": message, "finish_reason": finish}, **more)

    def usage(self, text: str) -> Body:
        """Count a word as a token, so that tests can count."""
        prompt = sum(len(str(message.get("content")).split()) for message in self.body.get("messages", []))
        completion = len(text.split())
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}

    def _object(self, kind: str, choice: Body, **more: Any) -> Body:
        model = self.body.get("model", "none")
        return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": model, "choices": [choice], **more}

    def _head(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        lines = [f"HTTP/1.1 {status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
        self.connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + content)


class Reply:
    def send(self, exchange: Exchange) -> None:
        raise NotImplementedError


@dataclass(frozen=True)
class Text(Reply):
    """Answer with a text, streamed word by word if that was asked for."""

    text: str = "One two three four five."
    usage: Any = "words"  # or what to send instead; None sends none
    finish: str | None = "stop"
    done: bool = True
    seconds_each: float = 0.0

    def send(self, exchange: Exchange) -> None:
        usage = exchange.usage(self.text) if self.usage == "words" else self.usage
        tail = {} if usage is None else {"usage": usage}
        if not exchange.streaming:
            return exchange.json(exchange.completion(self._message(exchange), self.finish or "stop", **tail))
        exchange.begin()
        exchange.event(exchange.chunk({"role": "assistant", "content": ""}))
        for delta in self._deltas(exchange):
            time.sleep(self.seconds_each)
            exchange.event(exchange.chunk(delta))
        if self.finish:
            exchange.event(exchange.chunk({}, self.finish))
        if usage is not None and exchange.body.get("stream_options", {}).get("include_usage"):
            exchange.event({**exchange.chunk({}), "choices": [], "usage": usage})
        if self.done:
            exchange.event("[DONE]")
        return exchange.end()

    def _message(self, exchange: Exchange) -> Body:
        return {"content": self.text}

    def _deltas(self, exchange: Exchange) -> Iterator[Body]:
        for piece in self.text.replace(" ", "\0 ").split("\0") if self.text else []:
            yield {"content": piece}


class ToolCalls(Text):
    """Calls of tools, each its name and arguments (a mapping, or text as it is), perhaps with words before them.

    Streamed they come in fragments: id and name first, then the arguments by a few characters, the calls interleaved.
    Some servers say "stop" where they end.
    """

    SIZE = 7  # characters of a fragment
    calls: tuple[tuple[str, Any], ...]

    def __init__(self, calls: tuple[tuple[str, Any], ...], text: str = "", finish: str = "tool_calls") -> None:
        super().__init__(text, finish=finish)
        object.__setattr__(self, "calls", calls)

    def _message(self, exchange: Exchange) -> Body:
        return {"content": self.text or None, "tool_calls": self._whole(exchange)}

    def _deltas(self, exchange: Exchange) -> Iterator[Body]:
        yield from super()._deltas(exchange)
        whole = self._whole(exchange)
        for place, call in enumerate(whole):
            function = {"name": call["function"]["name"], "arguments": ""}
            yield {"tool_calls": [{"index": place, **call, "function": function}]}
        given = [call["function"]["arguments"] for call in whole]
        for start in range(0, max(map(len, given), default=0), self.SIZE):
            for place, text in enumerate(given):
                if part := text[start : start + self.SIZE]:
                    yield {"tool_calls": [{"index": place, "function": {"arguments": part}}]}

    def _whole(self, exchange: Exchange) -> list[Body]:
        number = len(exchange.body.get("messages", []))
        return [
            {
                "id": f"call_{number}_{place}",
                "type": "function",
                "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
            }
            for place, (name, given) in enumerate(self.calls)
        ]


@dataclass(frozen=True)
class Status(Reply):
    """Answer with an HTTP error. body: text, or OpenAI's JSON; None makes one up."""

    code: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def send(self, exchange: Exchange) -> None:
        if isinstance(self.body, str):
            return exchange.respond(self.code, self.body.encode(), {"Content-Type": "text/plain", **self.headers})
        made_up = {"error": {"message": f"Scripted {self.code}.", "type": "scripted", "param": None, "code": None}}
        return exchange.json(made_up if self.body is None else self.body, self.code, self.headers)


FILTERED = Status(400, {"error": {"message": "Filtered.", "type": None, "param": "prompt", "code": "content_filter"}})


def Html(code: int = 200) -> Status:
    """Answer as a proxy or a wrong address does."""
    return Status(code, "<!DOCTYPE html><html><h1>It works!</h1></html>", {"Content-Type": "text/html"})


def Json(value: Any) -> Status:
    """Answer with this JSON, which need not be a chat completion."""
    return Status(200, value)


@dataclass(frozen=True)
class Raw(Reply):
    """Write these chunks, each on its own, then the proper end of the body."""

    chunks: Iterable[bytes]
    content_type: str = "text/event-stream"
    status: int = 200

    def send(self, exchange: Exchange) -> None:
        exchange.begin(self.content_type, self.status)
        for chunk in self.chunks:
            exchange.write(chunk)
        exchange.end()


@dataclass(frozen=True)
class CutStream(Reply):
    """Write some pieces, or half a plain body, and close the connection."""

    after: int = 2

    def send(self, exchange: Exchange) -> None:
        exchange.begin("text/event-stream" if exchange.streaming else "application/json")
        if not exchange.streaming:
            exchange.write(json.dumps(exchange.completion({"content": "Half an answer."})).encode()[:-40])
        for number in range(self.after if exchange.streaming else 0):
            exchange.event(exchange.chunk({"content": f"piece {number} "}))
        raise ConnectionAbortedError


class HangUp(Reply):
    """Close the connection before any answer."""

    def send(self, exchange: Exchange) -> None:
        raise ConnectionAbortedError


@dataclass(frozen=True)
class Delay(Reply):
    """Answer later: after some seconds, or once an event is set. reply: None is the model's default."""

    until: float | threading.Event
    reply: Any = None

    def send(self, exchange: Exchange) -> None:
        due = time.monotonic() + (self.until if not isinstance(self.until, threading.Event) else 3600)
        while time.monotonic() < due and not exchange.server.closing.is_set():
            if isinstance(self.until, threading.Event):
                if self.until.wait(0.01):
                    break
            else:
                exchange.server.closing.wait(max(0, due - time.monotonic()))
        exchange.server.reply(exchange, self.reply)


@dataclass(frozen=True)
class SseError(Reply):
    """Write some pieces and then an error, inside a body that began with 200."""

    after: int = 1
    error: Any = field(default_factory=lambda: {"message": "The engine fell over.", "type": "server_error"})

    def send(self, exchange: Exchange) -> None:
        if not exchange.streaming:
            return exchange.json({"error": self.error})
        exchange.begin()
        for number in range(self.after):
            exchange.event(exchange.chunk({"content": f"piece {number} "}))
        exchange.write(b"event: error\n")
        exchange.event({"error": self.error})
        return exchange.end()


class Dictation(Reply):
    """Stream what the test dictates: `asked.wait()`, then `say` as often as wanted, then `end`."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self._steps: queue.SimpleQueue[str | bool] = queue.SimpleQueue()

    def say(self, piece: str) -> None:
        self._steps.put(piece)

    def end(self) -> None:
        """End the answer well, with usage and [DONE]."""
        self._steps.put(True)

    def break_off(self) -> None:
        self._steps.put(False)

    def send(self, exchange: Exchange) -> None:
        assert exchange.streaming, "only a stream can be dictated"
        self.asked.set()
        said = ""
        exchange.begin()
        while isinstance(step := self._steps.get(), str):
            exchange.event(exchange.chunk({"content": step}))
            said += step
        if not step:
            raise ConnectionAbortedError
        exchange.event(exchange.chunk({}, "stop"))
        exchange.event({**exchange.chunk({}), "choices": [], "usage": exchange.usage(said)})
        exchange.event("[DONE]")
        exchange.end()


class Endless(Reply):
    """Answer nothing, as a server that is slow, until the reader leaves; then `left` is set."""

    def __init__(self) -> None:
        self.asked, self.left = threading.Event(), threading.Event()

    def send(self, exchange: Exchange) -> None:
        assert exchange.streaming, "of a plain answer nobody knows whether its reader waits still"
        exchange.begin()
        self.asked.set()
        exchange.connection.recv(1)  # returns when the other side closes
        self.left.set()
        raise ConnectionAbortedError


def echo(body: Body) -> str:
    """Answer with the last message: the main model's default."""
    return f"Reply to: {body['messages'][-1]['content']}" if body.get("messages") else "Hello."


def digest(body: Body) -> Any:
    """Fill in the JSON schema that was asked for: the mini model's default. Its words are the last message's."""
    words = " ".join(echo(body).removeprefix("Reply to: ").split())[-80:]
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    return fill(schema, words) if schema else {"topic": words, "discussed": [words], "facts": []}


def embeddings(body: Body) -> Reply:
    """Answer at /v1/embeddings: each word counts at its own place, so texts of shared words are near."""
    rows = []
    for index, text in enumerate(body["input"]):
        vector = [0.0] * body.get("dimensions", 256)
        for word in text.lower().split():
            vector[zlib.crc32(word.strip(".,:?!").encode()) % len(vector)] += 1.0
        rows.append({"object": "embedding", "index": index, "embedding": vector})
    return Json({"object": "list", "data": rows[::-1], "model": body["model"], "usage": {}})


def fill(schema: Mapping[str, Any], words: str, name: str = "") -> Any:
    """Return the smallest value that `schema` allows (objects, arrays, enums, null, numbers, text)."""
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if "enum" in schema:
        return schema["enum"][0]
    if kind == "object":
        return {key: fill(value, words, key) for key, value in schema.get("properties", {}).items()}
    if kind == "array":
        return [words] if name == "discussed" else []
    return {"integer": schema.get("minimum", 1), "number": 1.0, "boolean": False, "null": None}.get(str(kind), words)
