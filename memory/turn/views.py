"""What a session remembers, read at the start of a turn: the view its prompt is made from.

Guarantee: one consistent reading of the rows, in the transaction that begins the turn; and it fits CONTEXT_TOKENS, or
TooLarge is raised, which undoes that transaction.  (A client's exchange goes whole whatever its size: what it sends
beside it is for its model to refuse.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from config import Settings
from memory import tokens
from memory.clients.conversation import ClientRequest, Sent
from memory.clients.prompt import ClientView
from memory.domain import Caller, Message
from memory.facts.facts import Facts
from memory.prompts.prompts import Prompts
from memory.sections import Sections
from memory.sessions.messages import LINE_AFTER, of_columns
from memory.summary.summaries import shown, standing, update_job
from memory.turn.context import View, tail_that_fits
from memory.turn.report import MemoryReport
from memory.turn.values import TurnRequest
from models import SessionRow, Transaction, TurnRow


@dataclass(frozen=True)
class Began:
    """What the exchange that a turn goes on with showed of the memory when it began, and when that was."""

    memory: MemoryReport
    at: datetime


@dataclass(frozen=True)
class Remembered:
    """What a session remembers, what of its tail fits the prompt, and how its summary stands; `summary_failing`: the
    last try to bring it up to date went wrong."""

    view: View
    tail: tuple[Message, ...]
    summary_version: int = 0
    summary_state: str = "none"
    summary_failing: bool = False
    began: Began | None = None


class Views:
    """Reads what sessions remember."""

    def __init__(self, settings: Settings, facts: Facts, prompts: Prompts, now: Callable[[], datetime]) -> None:
        self._settings = settings
        self._facts = facts
        self._prompts = prompts
        self._now = now

    def read(
        self,
        tx: Transaction,
        caller: Caller,
        request: TurnRequest,
        row: SessionRow,
        exchange: Sequence[Message],
        *,
        unstored: Sequence[Message] = (),
        sent: Mapping[int, Sent] | None = None,
    ) -> Remembered:
        """What the session remembers for an answer to `exchange`; `unstored` is what was said before that and is not
        stored, `sent` what of it all a client sent.  Raises TooLarge."""
        held = self._facts.current(tx, row)
        if row.head_facts is None:
            row.head_facts = [fact.id for fact in self._facts.ranking.for_head(held, self._now())]
        in_head = {fact_id: place for place, fact_id in enumerate(row.head_facts)}
        line = [of_columns(one) for one in tx.execute(LINE_AFTER, {"session": row.id, "after": row.head_through})]
        answered = {message.id for message in exchange}  # last almost always: one taken up late has others after it
        tail = (one for one in line if one.id not in answered)
        message, *since = exchange
        system, explains = self._system(tx, caller, request, row)
        view = View(
            owner_id=row.owner_id or 0,
            owner_key=row.owner.index_key,
            session_row_id=row.id,
            system=system,
            head_version=row.head_version,
            summary=shown(tx, row),
            head_facts=tuple(sorted((fact for fact in held if fact.id in in_head), key=lambda fact: in_head[fact.id])),
            other_facts=tuple(fact for fact in held if fact.id not in in_head),
            tail=(*tail, *unstored),
            message=message,
            history_tokens=row.tokens + sum(one.tokens for one in (*unstored, message) if not one.id),
            since=tuple(since),
            client=None if request.client is None else ClientView(request.client.conversation, sent or {}),
            note="" if explains else self._prompts.find(tx, caller, "memory").render(),
        )
        reserved = self._settings.recall_tokens + self._settings.fact_tokens
        fitting = tail_that_fits(view, self._settings.context_tokens, reserved)
        began = _began(tx, message) if since else None
        job = update_job(tx, row)
        failing = job is not None and job.error is not None
        return Remembered(view, fitting, row.summary_version, standing(row, job), failing, began)

    def _system(self, tx: Transaction, caller: Caller, request: TurnRequest, row: SessionRow) -> tuple[str, bool]:
        """What the model is told first, and whether that explains the memory.  A client has its own instructions, or
        none: then it is what the session or the operator says, if anything."""
        own = request.system_prompt or row.system_prompt or self._settings.system_prompt
        if request.client is None and not own:
            return self._prompts.find(tx, caller, "system").render(), True
        return "" if request.client is not None and request.client.conversation.instructions else own, False


def nothing_remembered(request: TurnRequest, client: ClientRequest, now: datetime) -> Remembered:
    """For a client's request that is answered without memory."""
    size = sum(tokens.estimate_message(one.text) for one in client.conversation.messages)
    asked = Message(0, "", 1, "user", request.message, now, size)
    view = View(0, "", None, "", 0, Sections(), (), (), (), asked, size, client=ClientView(client.conversation))
    return Remembered(view, ())


def _began(tx: Transaction, message: Message) -> Began | None:
    turn = tx.scalar(select(TurnRow).where(TurnRow.user_message_id == message.id))
    if turn is None or turn.memory is None:
        return None
    return Began(MemoryReport.from_stored(tx, turn.memory), turn.started_at)
