"""Write overviews: what the mini model may say of a person, and what the person makes of it.

Invariants [test_overview]:
- A sentence of the model names facts and summaries that it was shown, and says nothing that they do not.
- What a person wrote stays until they change it.
- What they took out does not come back, in its words or from its sources.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import select

from config import Settings
from memory import tokens
from memory.access.owners import get_user, lock_owner
from memory.errors import InvalidRequest, ModelError
from memory.jobs import JobQueue, scheduled_request
from memory.knowledge.fact_ranking import Ranking
from memory.knowledge.fact_writes import FACTS, valid_at
from memory.knowledge.grounding import Ungrounded, check_restated, stems
from memory.knowledge.overview import KEY, NAMESPACE, OVERVIEW_TOKENS, fitting, sentence_line
from memory.llm.mini_model import (
    INTEGER,
    TEXT,
    InvalidAnswer,
    MiniModel,
    json_objects,
    list_of,
    object_of,
    request_for,
)
from memory.paging import Page
from memory.prompts.prompts import Prompts
from memory.quoting import block, escape, one_line
from memory.sessions.messages import PRIVATE
from memory.store import documents
from models import IS_NEWEST_SUMMARY, Database, FactRow, JobRow, OwnerRow, SessionRow, SummaryRow, Transaction
from models.facts import Fact
from models.jobs import Job, JobRequest
from models.overview import Overview, Sentence
from models.owners import Caller
from models.sections import Sections
from models.store import MODEL, Item, Put

OWNERS = ("user", "space")  # the kinds that have an overview
SOURCE_TOKENS = 2_500  # of facts, and of summaries, that one call reads
SESSIONS_MAX = 12  # the latest with a summary
REMOVED_MAX = 50  # that are remembered, the latest
SENTENCES_MAX = 20  # that are read of an answer
READ_SECTIONS = ("topic", "requirements", "constraints", "data", "open_questions")
ANSWER = object_of(sentences=list_of(object_of(text=TEXT, sources=list_of(INTEGER))))
_SOON = timedelta(seconds=5)

_NEWEST = (
    select(SessionRow.public_id, SessionRow.title, SessionRow.updated_at, SummaryRow.version, SummaryRow.sections)
    .join(SummaryRow, IS_NEWEST_SUMMARY)
    .where(SessionRow.remember, ~PRIVATE)
    .order_by(SessionRow.updated_at.desc(), SessionRow.id.desc())
    .limit(SESSIONS_MAX)
)


@dataclass(frozen=True)
class Source:
    """Line that the model may rest a sentence on: a fact, or a line of a summary."""

    text: str
    at: datetime
    fact: int | None = None
    summary: tuple[str, int] | None = None

    @property
    def line(self) -> str:
        return f"{escape(one_line(self.text))} (said {self.at:%Y-%m-%d})"


@dataclass(frozen=True)
class OverviewState:
    """Newest version, and how it stands. is_shown: prompts show it. is_updating: a job for it is due or runs."""

    overview: Overview
    is_shown: bool
    is_updating: bool
    error: str | None


@dataclass(frozen=True)
class Overviews:
    """Reads and changes overviews on behalf of callers, and has the mini model write them."""

    settings: Settings
    database: Database
    prompts: Prompts
    job_queue: JobQueue
    mini: MiniModel
    ranking: Ranking
    now: Callable[[], datetime]

    def get(self, caller: Caller) -> OverviewState:
        """Return the overview as it is. Raises NotFound for an unknown person."""
        with self.database.read() as tx:
            return self._state(tx, get_user(tx, caller))

    def versions(self, caller: Caller, *, cursor: str | None = None, limit: int = 50) -> Page[Overview]:
        """Return all versions, newest first. Raises NotFound."""
        with self.database.read() as tx:
            item = self._item(tx, get_user(tx, caller).id)
            return documents.page_of_versions(tx, item, Overview.of, cursor, limit)

    def edit(self, caller: Caller, sentences: Sequence[Sentence], expected: int | None = None) -> OverviewState:
        """Store the person's own sentences; the next prompt shows them. With `expected` only over that version.

        One that is there already stays as it is; another may rest on what those rest on.
        Raises NotFound, Conflict, and InvalidRequest for other sources or more than a prompt shows.
        """
        if len(fitting(sentences)) < len(sentences):
            raise InvalidRequest(
                "overview_too_long",
                f"An overview may have about {OVERVIEW_TOKENS} tokens, since every prompt carries it. Nothing was "
                "changed. Shorten it.",
                param="sentences",
            )
        with self.database.write() as tx:
            owner = get_user(tx, caller)
            before = self._read(tx, owner.id)
            documents.check_version(KEY, expected, before.version)
            there = {sentence.text: sentence for sentence in before.sentences}
            sources = frozenset[Any]().union(*(sentence.sources for sentence in before.sentences))
            if any(not sentence.sources <= sources for sentence in sentences):
                text = "A sentence may rest only on what the present ones rest on. Nothing was changed."
                raise InvalidRequest("unknown_source", text, param="sentences")
            kept = tuple(there.get(sentence.text, sentence) for sentence in sentences)
            of_model = (sentence for sentence in before.sentences if sentence.author == MODEL)
            gone = (sentence for sentence in of_model if sentence not in kept)
            removed = tuple(dict.fromkeys([*before.removed, *gone]))[-REMOVED_MAX:]
            self._write(tx, owner, replace(before, sentences=kept, removed=removed), "person")
            return self._state(tx, owner)

    def rollback(self, caller: Caller, version: int) -> OverviewState:
        """Make an earlier version the newest again, without sentences whose facts hold no longer. Raises NotFound."""
        with self.database.write() as tx:
            owner = get_user(tx, caller)
            old = Overview.of(documents.get_version(tx, self._item(tx, owner.id), version))
            valid = set(tx.scalars(select(FactRow.id).where(FactRow.owner_id == owner.id, valid_at(None))))
            sentences = tuple(sentence for sentence in old.sentences if valid.issuperset(sentence.facts))
            self._write(tx, owner, replace(old, sentences=sentences), "rollback")
            return self._state(tx, owner)

    def refresh(self, caller: Caller) -> OverviewState:
        """Ask for an update now, also where nothing has changed. Raises NotFound, LimitReached."""
        with self.database.write() as tx:
            owner = get_user(tx, caller)
            self.mini.budgets.check(tx, owner.id)
            request = JobRequest("overview", owner.id, owner.tenant, owner.id, force=True, payload={"asked": True})
            self.job_queue.enqueue(tx, request)
            return self._state(tx, owner)

    # -- the job

    def enqueue_update(self, tx: Transaction, owner: OwnerRow | None) -> None:
        """Ask for an update at its time, as something about the person has changed."""
        when = self.settings.overview
        if when.is_scheduled and owner is not None and owner.kind in OWNERS and owner.remember:
            self.job_queue.enqueue(tx, scheduled_request(when, "overview", owner, self.now()))

    def run(self, job: Job) -> bool:
        """Have the model write the overview, unless it was made from what there is now. Idempotent.

        Return whether something changed meanwhile. Raises ModelError, LimitReached.
        """
        with self.database.read() as tx:
            owner = tx.get(OwnerRow, job.owner_id)
            if owner is None:
                return False
            before, sources = self._read(tx, owner.id), self._sources(tx, owner.id)
            is_asked = (job.payload or {}).get("asked", False)
            if not (sources or before.sentences) or (before.read == _digest(sources) and not is_asked):
                return False
            self.mini.budgets.check(tx, owner.id)
            prompt, repair = (self.prompts.find(tx, Caller(owner.tenant), name) for name in ("overview", "repair"))
        own = tuple(sentence for sentence in before.sentences if sentence.author != MODEL)
        request = request_for(
            f"{prompt.render()}\n\nToday is {self.now():%Y-%m-%d, %A}.", _blocks(sources, own), ANSWER
        )
        try:
            usable = partial(_read_answer, sources, replace(before, sentences=own))
            written = self.mini.ask(owner.id, request, repair, usable).value if sources else ()
        except InvalidAnswer as problem:
            text = "The overview stays as it was. The mini model's sentences were refused, and so was their repair: "
            raise ModelError("overview_refused", f"{text}{problem}", quoted=str(problem)) from None
        with self.database.write() as tx:
            row = lock_owner(tx, job.owner_id)
            if row is None:
                return False
            digest = _digest(self._sources(tx, row.id))
            if self._read(tx, row.id) != before or digest != _digest(sources):
                return True  # it changed meanwhile: once more
            self._write(tx, row, replace(before, sentences=(*own, *written), read=digest), MODEL)
        return False

    # -- rows

    def _item(self, tx: Transaction, owner_id: int) -> Item | None:
        return documents.read(tx, owner_id, NAMESPACE, KEY, self.now())

    def _read(self, tx: Transaction, owner_id: int) -> Overview:
        stored = documents.newest_version(tx, self._item(tx, owner_id))
        return Overview.of(stored) if stored is not None else Overview()

    def _state(self, tx: Transaction, owner: OwnerRow) -> OverviewState:
        job = select(JobRow.state, JobRow.run_at, JobRow.error)
        job = job.where(JobRow.kind == "overview", JobRow.key == str(owner.id))
        state, run_at, error = tx.execute(job).first() or (None, None, None)
        is_due = state == "pending" and run_at is not None and run_at <= self.now() + _SOON
        overview, is_shown = self._read(tx, owner.id), self.settings.overview.mode != "off"
        return OverviewState(overview, is_shown, state == "running" or is_due, error if state == "failed" else None)

    def _write(self, tx: Transaction, owner: OwnerRow, overview: Overview, author: str) -> None:
        documents.write(tx, owner.id, Put(NAMESPACE, KEY, overview.value), self.now(), author=author)

    def _sources(self, tx: Transaction, owner_id: int) -> list[Source]:
        """Return what the model reads: the facts that a prompt would show first, and the newest summaries."""
        rows = tx.execute(FACTS.where(FactRow.owner_id == owner_id, valid_at(None)).order_by(FactRow.id))
        facts = self.ranking.prioritise([Fact(*row) for row in rows], "", SOURCE_TOKENS, self.now())
        lines = [Source(fact.text, fact.valid_from, fact=fact.id) for fact in facts]
        room = SOURCE_TOKENS
        for row in tx.execute(_NEWEST.where(SessionRow.owner_id == owner_id)):
            place = row.public_id, row.version
            for text in _lines_of(row):
                source = Source(text, row.updated_at, summary=place)
                room -= tokens.estimate(source.line)
                if room < 0:
                    return lines
                lines.append(source)
        return lines


def _lines_of(row: Any) -> list[str]:
    sections, title = Sections.from_dict(row.sections), one_line(row.title)
    lines = []
    for name in READ_SECTIONS:
        value = getattr(sections, name)
        items = (value,) if isinstance(value, str) else value
        lines += [f"{title}, {name.replace('_', ' ')}: {item}" for item in items if item]
    return lines


def _digest(sources: Sequence[Source]) -> str:
    lines = sorted(f"{source.fact} {source.summary} {source.text}" for source in sources)
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def _blocks(sources: Sequence[Source], own: Sequence[Sentence]) -> list[str]:
    numbered = [(source, f"[{number}] {source.line}") for number, source in enumerate(sources, 1)]
    return [
        block("facts", (line for source, line in numbered if source.fact is not None)),
        block("summaries", (line for source, line in numbered if source.fact is None)),
        block("written", map(sentence_line, own)),
    ]


def _read_answer(sources: Sequence[Source], before: Overview, answer: str) -> tuple[Sentence, ...]:
    """Return the sentences of an answer that may stay. Raises InvalidAnswer when there is none but refused ones.

    before: the overview with the person's own sentences alone.
    """
    lists = (entry.value.get("sentences") for entry in json_objects(answer))
    proposals = next((sentences for sentences in lists if isinstance(sentences, list)), None)
    if proposals is None:
        raise InvalidAnswer("It holds no complete JSON object with a list `sentences`.")
    kept, refused = list[Sentence](), list[str]()
    for number, proposed in enumerate(proposals[:SENTENCES_MAX], 1):
        try:
            kept.append(_grounded(sources, before, proposed))
        except Ungrounded as reason:
            refused.append(f"sentence {number}: {reason}")
    if refused and not kept:
        raise InvalidAnswer(f"No sentence can stay: {'; '.join(refused)}.")
    return fitting((*before.sentences, *dict.fromkeys(kept)))[len(before.sentences) :]


def _grounded(sources: Sequence[Source], before: Overview, proposed: Any) -> Sentence:
    """Return a sentence with its sources. Raises Ungrounded."""
    text, numbers = (proposed.get("text"), proposed.get("sources")) if isinstance(proposed, dict) else (None, None)
    if not isinstance(text, str) or not isinstance(numbers, list) or not numbers:
        raise Ungrounded("it has no text or no sources")
    if not all(type(number) is int and 1 <= number <= len(sources) for number in numbers):
        raise Ungrounded("a source of it does not exist")
    rests_on = [sources[number - 1] for number in dict.fromkeys(numbers)]
    text = one_line(text)
    check_restated(text, [source.text for source in rests_on], max(source.at for source in rests_on))
    facts = tuple(source.fact for source in rests_on if source.fact is not None)
    summaries = tuple(dict.fromkeys(source.summary for source in rests_on if source.summary is not None))
    sentence = Sentence(text, facts, summaries)
    words = set(stems(text))
    if any(sentence.sources <= old.sources or words <= set(stems(old.text)) for old in before.removed):
        raise Ungrounded("the person took out what it says")
    return sentence
