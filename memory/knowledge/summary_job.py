"""Updates: the mini model reads what was said since the last summary, in a job or, storing nothing, for a preview.

Guarantee: it reads the session's current line after the summary it goes on from, in order and without a gap (but for
erased and hidden messages).  An update is stored only when the model's answer passed all checks, nobody changed the
summary meanwhile (compare and swap on the version), and no message it was made from was replaced, erased or hidden.
The database is free while the model works.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import func, select

from config import Settings
from memory import tokens
from memory.access.owners import get_session, lock_session
from memory.errors import CONTENT_REFUSED, CONTEXT_EXCEEDED, InvalidRequest, ModelError
from memory.knowledge.current_facts import CurrentFacts
from memory.knowledge.fact_ranking import Ranking
from memory.knowledge.fact_writes import add_proposed
from memory.knowledge.grounding import Grounding
from memory.knowledge.summaries import add_version, find_version, replace_texts
from memory.knowledge.summary_update import CUT_OFF, SummaryUpdate, update_summary
from memory.leases import Leases
from memory.llm import DigestMaterial
from memory.llm.json_answers import MiniModel, ParsedAnswer
from memory.ops import logs
from memory.ops.metrics import Metrics
from memory.prompts.prompts import Prompt, Prompts
from memory.quoting import GAP
from memory.sessions.compaction import use_newest_summary
from memory.sessions.messages import RECENT_MESSAGES, VISIBLE
from memory.sessions.refusals import mark_refused, reason_of
from memory.sessions.sessions import Sessions
from models import Database, JobRow, MessageRow, OwnerRow, SessionRow, SummaryRow, Transaction
from models.facts import Fact
from models.jobs import Job
from models.messages import Message
from models.owners import Caller, Usage
from models.sections import Sections

log = logging.getLogger(__name__)

KNOWN_FACTS_TOKENS = 600  # of known facts that the mini model sees, so that it can say which of them changed
BATCH_TOKENS = 6000  # of messages in one call, so that a small model can read them
BATCH_MESSAGES = BATCH_TOKENS // tokens.MESSAGE_OVERHEAD
SHORTEST_CHARS = 400  # to which a message is cut that a model can't read whole
TOO_MUCH = frozenset({CUT_OFF, CONTENT_REFUSED, CONTEXT_EXCEEDED})
"""The codes of errors that fewer messages may avoid."""
_MOST = "messages_max"  # in a job's payload: how many messages the model could digest at once
GIVEN = "preview"  # the name of a prompt that is tried as a text


@dataclass(frozen=True)
class Preview:
    """A summary that was not stored.

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


@dataclass(frozen=True)
class Batch:
    """What one call of the mini model digests, and the session as it was then, up to its `last` message to digest."""

    version: int
    last: int
    owner_id: int
    material: DigestMaterial
    prompt: Prompt
    repair: Prompt
    most: int  # messages that the job's next step may have
    refused: ModelError | None = None  # why the model server does not read its only message

    @property
    def through(self) -> int:
        return self.material.messages[-1].position

    def of(self, messages: Sequence[Message]) -> Batch:
        """The step with other messages, whose number the next steps keep to."""
        return replace(self, material=replace(self.material, messages=messages), most=len(messages))


@dataclass(frozen=True)
class SummaryJob:
    """Has the mini model update summaries."""

    settings: Settings
    database: Database
    prompts: Prompts
    current_facts: CurrentFacts
    ranking: Ranking
    leases: Leases
    sessions: Sessions
    mini: MiniModel
    metrics: Metrics
    now: Callable[[], datetime]
    enqueue_update: Collection[Callable[[Transaction, OwnerRow], None]]  # what asks for the jobs that new facts need
    type_names: Callable[[Transaction, SessionRow], Sequence[str]]  # the types that a session's conversation may have

    def run(self, job: Job) -> bool:
        """Digest the first messages that no summary covers, as many as one call can read; whether there are more.

        A model that fails on so many reads half of them, down to one. A message that the server refuses even alone is
        left out. One that is too long alone is shortened. The job's next steps are not larger than what worked.
        Messages that arrive meanwhile are left to the job of their own turn, which waits for the end of a burst.
        Idempotent.  Raises ModelError.
        """
        batch = self._next_batch(job)
        if batch is None:
            return False
        batch, answer = self._update_fewer(batch)
        return not self._store(job, batch, answer) or batch.through < batch.last

    def preview(self, caller: Caller, session_id: str, *, prompt: str | None, text: str | None) -> Preview:
        """The summary that the prompt named `prompt`, or one of this `text`, gives the conversation; without either,
        the prompt in use.

        Whoever edits a prompt compares it with the stored summary, so the prompt reads as much of the conversation as
        one call can: from its beginning, or from the earliest version after which one call can read the rest.

        Raises NotFound, InvalidRequest for a text that can't be a prompt and for a session without messages,
        LimitReached when the owner's day is spent, and ModelError.
        """
        with self.database.read() as tx:
            row = get_session(tx, caller, session_id)
            self.mini.budgets.check(tx, row.owner_id)
            if text is None:
                instruction = self.prompts.find_summary(tx, caller, prompt or self.settings.summary_prompt)
            else:
                self.prompts.check(GIVEN, text)
                instruction = Prompt(GIVEN, 0, text, source="given")
            since = _starting_point(tx, row)
            batch = self._make_batch(tx, row, since, instruction)
        if batch is None:
            raise InvalidRequest(
                "nothing_to_summarise",
                f"Session {session_id!r} has no messages to summarise yet. Try the prompt on another conversation.",
            )
        answer = self._update(batch)
        return Preview(
            sections=answer.value.sections,
            tokens=tokens.estimate(str(answer.value.sections)),
            model=answer.model,
            prompt=instruction.label if text is None else None,
            usage=_usage(answer),
            since=since.version if since else 0,
            through=batch.through,
            current_version=batch.version,
        )

    def _next_batch(self, job: Job) -> Batch | None:
        """The next messages to digest; None when there are none, or the session was erased."""
        with self.database.read() as tx:
            row = tx.get(SessionRow, job.session_id)
            if row is None:
                return None
            default = self.settings.summary_prompt  # also for a prompt that was deleted since
            named = (job.payload or {}).get("prompt") or default
            prompt = self.prompts.find(tx, Caller(row.tenant), named, default)
            since = find_version(tx, row, row.summary_version)
            return self._make_batch(tx, row, since, prompt, (job.payload or {}).get(_MOST, BATCH_MESSAGES))

    def _make_batch(
        self,
        tx: Transaction,
        row: SessionRow,
        since: SummaryRow | None,
        prompt: Prompt,
        most: int = BATCH_MESSAGES,
    ) -> Batch | None:
        """The next messages after version `since` (None: from the first one), so many at most; None when there are
        none."""
        messages, last = _read_messages(tx, row, since.through if since else 0, most), row.message_count
        if messages and messages[-1].role == "user" and not self.leases.is_free(row):
            last = messages.pop().position - 1  # a turn is about to answer it
        if not messages:
            return None
        previous = Sections.from_dict(since.sections) if since else Sections()
        known, text = self._known(tx, row), " ".join(message.content for message in messages)
        material = DigestMaterial(
            previous,
            tuple(messages),
            self.ranking.prioritise(known, text, KNOWN_FACTS_TOKENS, self.now()),
            links=self.settings.links == "on",
            types=self.type_names(tx, row),
        )
        repair = self.prompts.find(tx, Caller(row.tenant), "repair")
        return Batch(row.summary_version, last, row.owner_id, material, prompt, repair, most)

    def _known(self, tx: Transaction, row: SessionRow) -> tuple[Fact, ...]:
        return self.current_facts.read(tx, row.owner_id, row.id)

    def _update(self, batch: Batch) -> ParsedAnswer[SummaryUpdate]:
        """What the mini model makes of a step."""
        return update_summary(partial(self.mini.ask, batch.owner_id), batch.prompt, batch.repair, batch.material)

    def _update_fewer(self, batch: Batch) -> tuple[Batch, ParsedAnswer[SummaryUpdate]]:
        """Digest a step, or as many of its first messages as the model can digest.  Raises ModelError."""
        while True:
            try:
                return batch, self._update(batch)
            except ModelError as error:
                messages = batch.material.messages
                if error.code not in TOO_MUCH:
                    raise
                if len(messages) > 1:
                    batch = batch.of(messages[: len(messages) // 2])
                elif error.code == CONTENT_REFUSED:
                    return replace(batch, most=BATCH_MESSAGES, refused=error), self._leave_out(batch)
                elif error.code == CONTEXT_EXCEEDED and len(messages[0].content) > SHORTEST_CHARS:
                    batch = replace(batch.of([_shortened(messages[0], error.window)]), most=BATCH_MESSAGES)
                else:
                    raise

    def _leave_out(self, batch: Batch) -> ParsedAnswer[SummaryUpdate]:
        """Go on without a step's only message, which the model server refuses: the summary covers it unread."""
        log.warning("a message is left out: the model server refuses it", extra=logs.fields(position=batch.through))
        return ParsedAnswer(SummaryUpdate(batch.material.previous), self.mini.model_server.models.mini.name, ())

    def _store(self, job: Job, batch: Batch, answer: ParsedAnswer[SummaryUpdate]) -> bool:
        """Store the new version and its facts; False when the session changed meanwhile."""
        with self.database.write() as tx:
            row = lock_session(tx, job.session_id)
            read = [message.id for message in batch.material.messages]
            there = tx.scalar(select(func.count()).where(MessageRow.id.in_(read), *VISIBLE))
            if row is None or row.summary_version != batch.version or there != len(read):
                log.info("the session changed while its summary was being updated; doing it again")
                return False
            if batch.refused is not None:
                mark_refused(tx, read, batch.refused.code, reason_of(batch.refused), self.now())
                self.sessions.enqueue_follow_ups(tx, row, summarise=False)
            grounding, known = Grounding(batch.material, row.facts_through), self._known(tx, row)
            drafts = answer.value.facts
            if not batch.material.links:
                drafts = tuple(replace(draft, links=()) for draft in drafts)
            counts, corrected, refused = add_proposed(tx, row, drafts, grounding, known, self.now())
            row.facts_through = max(row.facts_through, batch.through)
            sections = replace_texts(answer.value.sections, corrected)
            usage = {**_usage(answer), "facts": counts}
            about = {"model": answer.model, "prompt": batch.prompt.label, "usage": usage}
            add_version(tx, row, sections, batch.through, self.now(), author="model", **about)
            if answer.value.type in (*batch.material.types, "") and batch.material.types:
                row.recognised_type = answer.value.type
            for enqueue_update in self.enqueue_update:
                enqueue_update(tx, row.owner)
            if corrected:
                use_newest_summary(tx, row, self.settings)  # a true head matters more than a stable one
            _remember_most(tx, job, batch)
        if refused:
            log.info("%d facts refused: %s", len(refused), "; ".join(refused))
        self.metrics.count_facts(counts)
        figures = {f"facts_{outcome}": count for outcome, count in counts.items()}
        of_version = logs.fields(version=batch.version + 1, through=batch.through, model=answer.model, **figures)
        log.info("summary", extra=of_version)
        return True


def _remember_most(tx: Transaction, job: Job, batch: Batch) -> None:
    """Let the job's next step be no larger than this one could be."""
    if batch.most != (job.payload or {}).get(_MOST, BATCH_MESSAGES):
        row = tx.get(JobRow, job.id, with_for_update=True)
        if row is not None:
            row.payload = {**(row.payload or {}), _MOST: batch.most if batch.through < batch.last else BATCH_MESSAGES}


def _usage(answer: ParsedAnswer[SummaryUpdate]) -> dict[str, Any]:
    total = sum(answer.spent, Usage(0, 0))
    of_tokens = {"prompt_tokens": total.prompt_tokens, "completion_tokens": total.completion_tokens}
    return {**of_tokens, "calls": len(answer.spent)}


def _shortened(message: Message, window: int | None) -> Message:
    """A message's beginning and end, at most half of it, and at most half of what the model can read."""
    part = min(len(message.content) // 4, window or len(message.content))  # a token has four characters
    return message._replace(content=f"{message.content[:part]}\n{GAP}\n{message.content[-part:]}")


def _read_messages(tx: Transaction, row: SessionRow, through: int, most: int = BATCH_MESSAGES) -> list[Message]:
    """The messages after `through`, BATCH_TOKENS and `most` of them; a larger message is a batch by itself."""
    batch: list[Message] = []
    budget = BATCH_TOKENS
    following = tx.execute(RECENT_MESSAGES.limit(most), {"session": row.id, "after": through})
    for message in map(Message._make, following):
        if batch and message.tokens > budget:
            break
        budget -= message.tokens
        batch.append(message)
    return batch


def _starting_point(tx: Transaction, row: SessionRow) -> SummaryRow | None:
    """The earliest version of the summary (None: the beginning) after which one call can read all messages since;
    else the last one that does not cover everything."""
    if row.tokens <= BATCH_TOKENS:
        return None
    of_session = (SummaryRow.session_id == row.id, SummaryRow.branch == 0, SummaryRow.through < row.message_count)
    later = (MessageRow.session_id == row.id, MessageRow.branch == 0, MessageRow.position > SummaryRow.through)
    left = select(func.sum(MessageRow.tokens)).where(*later).scalar_subquery()
    versions = select(SummaryRow).where(*of_session).limit(1)
    first = versions.where(left <= BATCH_TOKENS).order_by(SummaryRow.through, SummaryRow.version.desc())
    return tx.scalar(first) or tx.scalar(versions.order_by(SummaryRow.through.desc(), SummaryRow.version.desc()))
