"""Preview a summary: what a prompt makes of a conversation, with nothing stored."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import func, select

from memory import tokens
from memory.access.owners import get_session
from memory.engine import Engine
from memory.errors import InvalidRequest
from memory.knowledge.summary_job import BATCH_MESSAGES, make_batch, read_session
from memory.knowledge.summary_update import update_summary
from memory.llm.mini_model import BATCH_TOKENS
from memory.prompts.prompts import PromptTemplate
from models import MessageRow, SessionRow, SummaryRow, Transaction
from models.owners import Caller
from models.sections import Sections

PREVIEW = "preview"  # the name of a prompt that a preview tries as a text


@dataclass(frozen=True)
class Preview:
    """Summary that was not stored.

    It goes on from version `since` (0: from the beginning) and covers the messages up to position `through`.
    `prompt` is the label of the named prompt that made it, `current_version` the stored summary to compare it with.
    """

    sections: Sections
    tokens: int
    model: str
    prompt: str | None
    usage: dict[str, Any]
    since: int
    through: int
    current_version: int


def preview(engine: Engine, caller: Caller, session_id: str, *, prompt: str | None, text: str | None) -> Preview:
    """Return the summary that a prompt gives the conversation.

    prompt: its name; without it and a `text`, the prompt in use.
    Whoever edits a prompt compares it with the stored summary, so the prompt reads as much of the conversation as
    one call can: from its beginning, or from the earliest version after which one call can read the rest.

    Raises NotFound, InvalidRequest for a text that can't be a prompt and for a session without messages,
    LimitReached when the owner's day is spent, and ModelError.
    """
    with engine.database.read() as tx:
        row = get_session(tx, caller, session_id)
        engine.budgets.check(tx, row.owner_id)
        if text is None:
            instruction = engine.prompts.find_summary(tx, caller, prompt or engine.settings.summary_prompt)
        else:
            engine.prompts.check(PREVIEW, text)
            instruction = PromptTemplate(PREVIEW, 0, text, source="given")
        start = _starting_point(tx, row)
        previous = (start.sections, start.through) if start is not None else (None, None)
        session = read_session(engine, tx, row.id, row.owner_id, row.tenant)
        batch = make_batch(engine, tx, session, instruction, previous, BATCH_MESSAGES)
    if batch is None:
        raise InvalidRequest(
            "nothing_to_summarise",
            f"Session {session_id!r} has no messages to summarise yet. Try the prompt on another conversation.",
        )
    ask = partial(engine.mini.ask, row.owner_id, tenant=row.tenant)
    answer = update_summary(ask, batch.prompt, batch.source)
    return Preview(
        sections=answer.value.sections,
        tokens=tokens.estimate(str(answer.value.sections)),
        model=answer.model,
        prompt=instruction.label if text is None else None,
        usage=answer.usage,
        since=start.version if start is not None else 0,
        through=batch.through,
        current_version=row.summary_version,
    )


def _starting_point(tx: Transaction, row: SessionRow) -> SummaryRow | None:
    """Return the earliest version after which one call can read all later messages (None: the beginning).

    If there is none, return the last version that does not cover everything.
    """
    if row.tokens <= BATCH_TOKENS:
        return None
    of_session = (SummaryRow.session_id == row.id, SummaryRow.branch == 0, SummaryRow.through < row.message_count)
    later = (MessageRow.session_id == row.id, MessageRow.branch == 0, MessageRow.position > SummaryRow.through)
    left = select(func.sum(MessageRow.tokens)).where(*later).scalar_subquery()
    versions = select(SummaryRow).where(*of_session).limit(1)
    first = versions.where(left <= BATCH_TOKENS).order_by(SummaryRow.through, SummaryRow.version.desc())
    return tx.scalar(first) or tx.scalar(versions.order_by(SummaryRow.through.desc(), SummaryRow.version.desc()))
