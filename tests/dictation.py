"""A reply of the scripted model server that is streamed as the test dictates it.

    reply = Dictation()
    server.main.queue(reply)
    reply.asked.wait(5)    # the request has come
    reply.say("One ")      # as often as wanted
    reply.end()            # or reply.break_off(), as closing the server does too

Only what is asked for as a stream can be dictated.
"""

from __future__ import annotations

import queue
import threading

from tests.model_replies import Exchange, Reply


class Dictation(Reply):
    """See the module."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self._steps: queue.SimpleQueue[str | bool] = queue.SimpleQueue()

    def say(self, piece: str) -> None:
        self._steps.put(piece)

    def end(self) -> None:
        """A good end, with usage and [DONE]."""
        self._steps.put(True)

    def break_off(self) -> None:
        """The connection is gone."""
        self._steps.put(False)

    def send(self, exchange: Exchange) -> None:
        assert exchange.streaming, "only a stream can be dictated"
        self.asked.set()
        said = ""
        exchange.begin()
        while isinstance(step := self._next(exchange.server.closing), str):
            exchange.event(exchange.chunk({"content": step}))
            said += step
        if not step:
            exchange.break_off()
        exchange.event(exchange.chunk({}, "stop"))
        exchange.event({**exchange.chunk({}), "choices": [], "usage": exchange.usage(said)})
        exchange.event("[DONE]")
        exchange.end()

    def _next(self, closing: threading.Event) -> str | bool:
        while not closing.is_set():
            try:
                return self._steps.get(timeout=0.02)
            except queue.Empty:
                continue
        return False
