"""Preparing a turn: what is recalled for it, and the prompt that is made of all.

Guarantee: a client's request always gets a prompt: its own messages as they came, where the memory can't be had.
Other turns raise what went wrong.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from config import Settings
from memory.clients.conversation import ClientRequest
from memory.clients.prompt import unmodified
from memory.errors import RecapError
from memory.facts.facts import Facts
from memory.llm import LanguageModel, ReplyMaterial
from memory.ops import logs
from memory.ops.database_errors import database_failed
from memory.recall.recall import Past, Recall, Recalled
from memory.sections import Sections
from memory.turn.admission import Admitted
from memory.turn.context import ComposedPrompt, compose
from memory.turn.report import MemoryReport
from memory.turn.tools import Tools
from memory.turn.values import TurnRequest
from memory.turn.views import Remembered

log = logging.getLogger(__name__)

ASKED = "the model looks back when it wants to"
UNASKED = "the model calls no tools, so the message was read"
THEIRS = "the client has tools of its own, so the message was read"
PASSED_ON = "the request went to the model as it came"
FORGIVEN = ("session_busy", "turn_lost")  # errors that keep a client's turn out of memory, and no one from an answer
BEFORE = 6  # messages in which "the bug" or "she" may have been named just before


@dataclass(frozen=True)
class Prepared:
    """A prompt, what it shows of the memory, and as of when; `problem` is why a client's shows less than there is."""

    prompt: ComposedPrompt
    memory: MemoryReport
    at: datetime
    problem: str | None = None


class Preparing:
    """Recalls and composes."""

    def __init__(
        self, settings: Settings, facts: Facts, recall: Recall, main: LanguageModel, now: Callable[[], datetime]
    ) -> None:
        self._settings = settings
        self._facts = facts
        self._recall = recall
        self._main = main
        self._now = now

    def tools(self, admitted: Admitted, request: TurnRequest) -> Tools | None:
        """What the model looks back with in mode `tools`; None when Recap looks back for it, or nobody does."""
        settings = self._settings
        wanted = (request.recall or settings.recall) == "tools" and self._main.can_call_tools
        if request.client is not None or not (wanted and settings.recall_limit and settings.recall_tokens):
            return None
        return Tools(self._recall, _past(admitted), limit=settings.recall_limit, zone=request.timezone)

    def recalled(self, admitted: Admitted, request: TurnRequest, tools: Tools | None) -> Recalled | str:
        """What fits the message of the past, or why a client's request goes on without memory."""
        began = admitted.remembered.began
        if admitted.passed_on or tools is not None:
            return Recalled((), "tools", ASKED)
        try:
            return began.memory.recalled if began is not None else self._look_back(admitted, request)
        except Exception as error:  # noqa: BLE001 - a client's request fails open, whatever breaks
            return forgiven(request, error)

    def prompt(self, admitted: Admitted, request: TurnRequest, recalled: Recalled | str) -> Prepared:
        """The prompt of a turn with what was recalled."""
        at = admitted.remembered
        if request.client is None:
            assert isinstance(recalled, Recalled)
            return self._compose(at, recalled)
        if admitted.passed_on or isinstance(recalled, str):
            return self._unmodified(at, request, request.client, recalled if isinstance(recalled, str) else None)
        problem = "summary_failed" if at.summary_failing else None
        try:
            prepared = self._compose(at, recalled)
        except Exception as error:  # noqa: BLE001 - as above
            return self._unmodified(at, request, request.client, forgiven(request, error))
        if problem and prepared.memory.tail_dropped:  # and what was dropped is in no summary
            return self._unmodified(at, request, request.client, problem)
        return replace(prepared, problem=problem)

    def _look_back(self, admitted: Admitted, request: TurnRequest) -> Recalled:
        mode = request.recall or self._settings.recall
        recalled = self._recall.look_back(
            _past(admitted),
            request.message,
            mode="auto" if mode == "tools" else mode,
            before=[message.content for message in admitted.remembered.tail[-BEFORE:]],
            now=self._now(),
            zone=request.timezone,
        )
        if mode != "tools":
            return recalled
        why = THEIRS if request.client is not None else "" if self._main.can_call_tools else UNASKED
        return replace(recalled, mode=mode, reason=f"{why}: {recalled.reason}" if why else recalled.reason)

    def _compose(self, at: Remembered, recalled: Recalled) -> Prepared:
        """The prompt of a turn.  One that goes on with an exchange shows what that began with, word for word."""
        view, tail = at.view, at.tail
        now = at.began.at if at.began is not None else self._now()
        if at.began is not None:
            in_head = {fact.id for fact in view.head_facts}
            facts = tuple(fact for fact in at.began.memory.facts if fact.id not in in_head)
        else:
            in_sight = {message.id for message in tail}
            unseen = [fact for fact in view.other_facts if fact.source_message_id not in in_sight]
            facts = self._facts.ranking.for_message(unseen, view.message.content, now)
        prompt = compose(view, tail, recalled.excerpts, facts, self._settings.context_tokens, now)
        report = MemoryReport(
            summary_version=at.summary_version,
            head_version=view.head_version,
            state=at.summary_state,
            facts=(*self._facts.ranking.scored(view.head_facts, view.message.content, now), *prompt.facts),
            recalled=Recalled(prompt.excerpts, recalled.mode, recalled.reason),
            tail_messages=len(tail),
            tail_dropped=len(view.tail) - len(tail),
        )
        return Prepared(prompt, report, now)

    def _unmodified(self, at: Remembered, request: TurnRequest, client: ClientRequest, problem: str | None) -> Prepared:
        """The client's messages as they came."""
        now = self._now()
        material = ReplyMaterial(request.message, now, Sections(), (), (), ())
        memory = MemoryReport(at.summary_version, 0, at.summary_state, (), Recalled((), "off", PASSED_ON), 0, 0)
        messages = unmodified(client.conversation)
        return Prepared(ComposedPrompt(messages, material, at.view.full_history_tokens), memory, now, problem)


def forgiven(request: TurnRequest, error: Exception) -> str:
    """Why a client's request goes on without memory, for programs.  Raises what is no failure of memory's."""
    if request.client is None or (isinstance(error, RecapError) and error.code not in FORGIVEN):
        raise error
    if isinstance(error, RecapError):
        log.warning("a client's request goes on without memory", extra=logs.fields(code=error.code))
        return error.code
    log.error("a client's request goes on without memory", exc_info=error)
    failed = database_failed(error)
    return failed.code if failed is not None else "memory_failed"


def _past(admitted: Admitted) -> Past:
    """What a turn may look into: all of the owner's past but what its prompt shows anyway."""
    view = admitted.remembered.view
    shown = frozenset(message.id for message in (*admitted.remembered.tail, *view.exchange))
    return Past(view.owner_id, view.owner_key, view.session_row_id, shown)
