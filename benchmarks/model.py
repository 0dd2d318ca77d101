"""A scripted OpenAI-compatible model server that answers each request in a fixed time and records the calls.

    with ModelProcess() as model:                     # model.url ends in /v1
        model.follow(Script(first=0.3))               # seconds until the first text
        ...
        model.calls()                                 # the times and messages of each call

`ModelProcess` runs it in a separate process (`python -m benchmarks.model`), so that the benchmark and the model do not
wait for each other.  `ScriptedModel` is the same server within an event loop.  The main model answers with `reply`.
The mini model answers with a digest in the format of Recap's prompt: a short statement of each message, up to the
prompt's limit of words, and a fact for each statement of the person.

Guarantee: the same request gets the same answer.  The process ends when the process that started it ends.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from html import unescape
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2

from benchmarks.notes import answer
from benchmarks.serving import MAIN, MINI, ROOT, STOP_SECONDS

PIECES = 10  # of a streamed reply
MESSAGE_TOKENS = 3  # of each message, in addition to its words
SUMMARY_WORDS = 400  # the limit in Recap's summary prompt
STATEMENT_WORDS = 16  # of a message, in the summary
FACT_WORDS_MIN = 6  # shorter sentences, such as "Ha, go on.", are not facts

_HEAD = b"HTTP/1.1 %d\r\nContent-Type: application/json\r\n"
_WORD = re.compile(r"\w+|[^\w\s]")
_SUMMARY = re.compile(r"<summary_so_far>\n(.*?)\n</summary_so_far>", re.S)
_SAID = re.compile(r"^\[(\d+)\] (?:\d{4}-\d\d-\d\d )?\d\d:\d\d (user|assistant): (.*)$", re.M)
_SENTENCE = re.compile(r".+?(?:[.!?…]+(?=\s)|$)")

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Script:
    """How the models behave.  `keeps`: whether calls are recorded with their messages."""

    first: float = 0.0  # seconds until a reply's first text
    rest: float = 0.0  # seconds from there to its end
    mini: float = 0.0  # seconds for a digest
    words: int = SUMMARY_WORDS  # of a summary at most
    facts: int | None = None  # of a digest at most
    keeps: bool = True
    reply: str | None = None  # of the main model; None: its usual answer


@dataclass(frozen=True)
class Call:
    """A call of the model: when it began and ended, by `time.monotonic`, and its messages."""

    model: str
    begun: float
    ended: float
    messages: Sequence[Mapping[str, Any]]

    @property
    def text(self) -> str:
        return "\n".join(str(message["content"] or "") for message in self.messages)

    @property
    def tokens(self) -> int:
        """An estimate independent of any model: words and punctuation marks, plus MESSAGE_TOKENS for each message."""
        return len(_WORD.findall(self.text)) + MESSAGE_TOKENS * len(self.messages)


class ScriptedModel:
    """The server.  `calls` are the answered calls, `most` the largest number of replies in progress at once."""

    def __init__(self, script: Script, reply: Callable[[str], str] = answer) -> None:
        self.script = script
        self.calls: list[Call] = []
        self.most = 0
        self._reply = reply
        self._writing = 0

    async def serve(self, port: int) -> asyncio.Server:
        return await asyncio.start_server(self._connected, "127.0.0.1", port, backlog=1024)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _request(reader)) is not None:
                begun = time.monotonic()
                path, body = request
                if urlsplit(path).path == "/v1/chat/completions":
                    await self._complete(writer, body)
                    await writer.drain()
                    self.calls.append(
                        Call(body["model"], begun, time.monotonic(), body["messages"] * self.script.keeps)
                    )
                else:
                    status, value = self._asked_about(path, body)
                    _write(writer, status, value)
                    await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # Recap keeps connections open until the end, or drops them when it is stopped
        finally:
            writer.close()

    async def _complete(self, writer: asyncio.StreamWriter, body: Mapping[str, Any]) -> None:
        asked = str(body["messages"][-1]["content"])
        if body["model"] == MINI:
            await asyncio.sleep(self.script.mini)
            digest = digested(asked, self.script.words)
            digest["facts"] = digest["facts"][: self.script.facts]
            return _write(writer, 200, completion(MINI, json.dumps(digest, ensure_ascii=False)))
        text = self._reply(asked) if self.script.reply is None else self.script.reply
        self._writing += 1
        self.most = max(self.most, self._writing)
        try:
            if body.get("stream"):
                await self._stream(writer, text)
            else:
                await asyncio.sleep(self.script.first + self.script.rest)
                _write(writer, 200, completion(MAIN, text))
        finally:
            self._writing -= 1

    async def _stream(self, writer: asyncio.StreamWriter, text: str) -> None:
        words, due = text.split(), time.monotonic() + self.script.first
        writer.write(_HEAD % 200 + b"Transfer-Encoding: chunked\r\n\r\n")
        for piece in range(PIECES):
            await asyncio.sleep(due - time.monotonic())  # until a fixed time, so that delays do not add up
            at, end = (len(words) * part // PIECES for part in (piece, piece + 1))
            writer.write(_event({"content": "".join(f"{word} " for word in words[at:end])}))
            await writer.drain()
            due += self.script.rest / (PIECES - 1)
        writer.write(_event({}, "stop") + _chunk(b"data: [DONE]\n\n") + _chunk(b""))

    def _asked_about(self, path: str, body: Any) -> tuple[int, Any]:
        """Answer the benchmark's own requests: set the script, read the calls."""
        asked = urlsplit(path)
        if asked.path == "/script":
            self.script = Script(**body)
            return 200, {}
        if asked.path == "/calls":
            since = int(parse_qs(asked.query)["since"][0])
            return 200, [asdict(call) for call in self.calls[since:]]
        return 404, {"error": {"message": f"There is nothing at {asked.path}."}}


class ModelProcess:
    """A `ScriptedModel` in a separate process, which runs until the end of the block."""

    def __enter__(self) -> ModelProcess:
        self._process = subprocess.Popen(  # nosec B603 # our own program, no shell
            [sys.executable, "-m", "benchmarks.model"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C reaches the benchmark alone, which then stops this process
        )
        assert self._process.stdout is not None
        port = self._process.stdout.readline().strip()
        if not port:
            raise RuntimeError(f"the scripted model did not start: exit code {self._process.wait(STOP_SECONDS)}")
        self.url = f"http://127.0.0.1:{port}/v1"
        self._http = httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60.0, trust_env=False)
        self._calls: list[Call] = []
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.close()
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_SECONDS)

    def follow(self, script: Script) -> None:
        """Change the script for all further calls."""
        self._http.post("/script", json=asdict(script)).raise_for_status()

    def calls(self) -> list[Call]:
        """All answered calls so far, in the order in which they ended."""
        told = self._http.get("/calls", params={"since": len(self._calls)}).raise_for_status().json()
        self._calls += [Call(**call) for call in told]
        return list(self._calls)


def completion(model: str, text: str) -> Json:
    """A chat.completion with that text."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"id": "chatcmpl-bench", "object": "chat.completion", "created": 1, "model": model, "choices": [choice]}


def digested(material: str, words: int = SUMMARY_WORDS) -> dict[str, Any]:
    """The mini model's answer: the summary in `material`, updated with its messages, and new facts.

    The summary has at most `words` words; its oldest statements are dropped.
    """
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


async def _request(reader: asyncio.StreamReader) -> tuple[str, Any] | None:
    """The path and JSON body of the next request; None if the connection is closed."""
    size, line = 0, await reader.readline()
    if not line:
        return None
    path = line.split(b" ")[1].decode()
    while line := (await reader.readline()).strip():
        name, _, value = line.partition(b":")
        size = int(value) if name.lower() == b"content-length" else size
    return path, json.loads(await reader.readexactly(size) or b"null")


def _write(writer: asyncio.StreamWriter, status: int, value: Any) -> None:
    content = json.dumps(value, ensure_ascii=False).encode()
    writer.write(_HEAD % status + b"Content-Length: %d\r\n\r\n%b" % (len(content), content))


def _event(delta: Mapping[str, str], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    about = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1, "model": MAIN}
    return _chunk(b"data: " + json.dumps({**about, "choices": [choice]}).encode() + b"\n\n")


def _chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


async def _until_nobody_listens() -> None:
    """Serve until standard input is closed."""
    server = await ScriptedModel(Script()).serve(0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(_until_nobody_listens())
