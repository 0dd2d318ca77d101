"""Consolidate a person's facts in a job: merge those that say the same, invalidate those that a newer one contradicts.

Of facts that say the same the newest stays, or one that the person pinned. Plans whose day is over are invalidated too.
Two facts surely say the same if they have the same words in the same order, wherever it begins ("in May she moved to
Porto", "she moved to Porto in May"). Of pairs that share many words the mini model reads some, in one call a day.

Invariants [test_consolidation]:
- Facts that two people stated, or that differ in a name, a number, a date or a "not", do not say the same.
- A fact is not merged into one that ends before it.
- No fact is deleted or worded anew. A run is its revisions, all of one time. Undoing it makes valid again what it
  invalidated, and later runs leave that alone. A job that is cancelled changes nothing.
"""

import logging
import re
from calendar import monthrange
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, tzinfo
from functools import cached_property
from itertools import groupby, islice, permutations

from sqlalchemy import exists, func, select
from sqlalchemy.orm import aliased

from memory.access.owners import get_user, lock_owner, owner_zone
from memory.engine import Engine
from memory.errors import InvalidRequest, NotFound
from memory.knowledge.fact_reads import FACTS, IN_ALL_SESSIONS, NOW
from memory.knowledge.fact_writes import end_of, invalidate, merge, revalidate
from memory.knowledge.grounding import DATE, names_in, numbers_in, stems, words_as_written
from memory.knowledge.supersession import Sole, excludes, may_correct, sole_value
from memory.languages import MONTHS, NEGATION, NEGATIVE, plain_apostrophes
from memory.llm.mini_model import INTEGER, InvalidAnswer, first_object, list_of, object_of, request_for
from memory.prompts.prompts import PromptTemplate
from memory.quoting import block, fact_line
from models import FactRevisionRow, FactRow, JobRow, MessageRow, OwnerRow, Transaction
from models.base import local_time
from models.facts import Fact
from models.jobs import Job, JobRequest
from models.owners import Caller

log = logging.getLogger(__name__)

COMPARED_FACTS_MAX = 5_000  # of a person that are compared, the newest
PAIRS_MAX = 100  # that one call of the mini model reads
LISTED_RUNS_MAX = 50  # that are listed
ACTIONS = ("merged", "contradicted", "expired")
ANSWER = object_of(same=list_of(INTEGER), contradicts=list_of(INTEGER))
ALIKE = 0.3  # the share of all their words that two facts have in common, if they say the same
NEARLY = 0.5  # that of two facts which are one but for a value
NEVER = datetime.max.replace(tzinfo=UTC)
SIMILAR_MAX = 3  # older facts that are shown beside one
FRAMES = frozenset(("the", "a", "an", "user", "user's", "person", "person's"))  # words that say nothing in a fact


@dataclass(frozen=True)
class Run:
    """Counts of the facts that a run invalidated, and that nobody has made valid again."""

    at: datetime
    merged: int = 0
    contradicted: int = 0
    expired: int = 0


_REVALIDATED = exists().where(FactRevisionRow.fact_id == FactRow.id, FactRevisionRow.action == "reopened")
_FACTS = (
    FACTS.add_columns(MessageRow.name)
    .outerjoin(MessageRow, MessageRow.id == FactRow.source_message_id)
    .where(*IN_ALL_SESSIONS, ~_REVALIDATED)
    .order_by(FactRow.id.desc())
    .limit(COMPARED_FACTS_MAX)
)
_LATER = aliased(FactRevisionRow)
_LAST = select(func.max(_LATER.id)).where(_LATER.fact_id == FactRow.id).scalar_subquery()
_INVALIDATED = (
    select(FactRevisionRow.at, FactRevisionRow.action, FactRow.id, FactRow.superseded_by, FactRow.expires_at)
    .join(FactRow, FactRow.id == FactRevisionRow.fact_id)
    .where(FactRevisionRow.id == _LAST, FactRevisionRow.action.in_(ACTIONS), FactRow.valid_to.is_not(None))
    .order_by(FactRevisionRow.at.desc())
)
"""The facts that runs invalidated, with the time and the action, if nothing has changed them since; newest first."""


# -- which facts say the same


@dataclass(frozen=True)
class Pair:
    """Two facts that may say the same, or contradict each other.

    verdict: `same`, `contradicts` (the newer one says otherwise), or empty where the mini model has to read them.
    may_be_same: without it, `same` would be wrong.
    """

    older: Fact
    newer: Fact
    verdict: str
    may_be_same: bool


@dataclass(frozen=True)
class _Statement:
    """Statement of a fact, its speaker (None: the person), and the names in all of the person's facts."""

    fact: Fact
    speaker: str | None
    names: frozenset[str]

    @cached_property
    def words(self) -> list[str]:
        return [word for word in map(str.casefold, words_as_written(self.fact.text)) if word not in FRAMES]

    @cached_property
    def marks(self) -> frozenset[str]:
        """Return its keys in the search for similar ones: its words, and the thing of which a person has one."""
        return frozenset(stems(self.fact.text)).difference(FRAMES).union(self.sole[:1] if self.sole else ())

    @cached_property
    def sole(self) -> Sole:
        return sole_value(self.fact.text, self.fact.category)

    @cached_property
    def particulars(self) -> tuple[object, ...]:
        """Return the parts that are equal in facts that say the same. A plan is not the event that came of it."""
        text = plain_apostrophes(self.fact.text)
        names = self.names.intersection(word.partition("'")[0].casefold() for word in words_as_written(text))
        numbers = frozenset(map(frozenset, numbers_in(text)))
        dates = frozenset(date.group().casefold() for date in DATE.finditer(text))
        negated = NEGATION.search(text) is not None
        twice = frozenset(stems(NEGATION.sub(" ", " ".join(NEGATIVE.findall(text))))) if negated else frozenset()
        return self.speaker, names, numbers, dates, negated, twice, self.fact.category == "plan"

    def compare(self, other: "_Statement", likeness: float) -> Pair | None:
        """Return the pair of two facts that may say the same, or contradict each other. likeness: of their words."""
        may_be_same, same_speaker = self.particulars == other.particulars, self.speaker == other.speaker
        rotations = (other.words[at:] + other.words[:at] for at in range(len(other.words)))
        if may_be_same and self.words in rotations:
            verdict = "same"
        elif same_speaker and excludes(self.sole, other.sole):
            verdict = "contradicts"
        elif may_be_same or (same_speaker and likeness >= NEARLY and may_correct(self.fact.text, other.fact.text)):
            verdict = ""
        else:
            return None
        older, newer = sorted((self.fact, other.fact), key=lambda fact: (fact.valid_from, fact.id))
        return Pair(older, newer, verdict, may_be_same)


def duplicate_candidates(facts: Sequence[tuple[Fact, str | None]], through: int) -> Iterator[Pair]:
    """Yield the pairs of facts of which one has an id after `through`. facts: with their speakers, by id."""
    names = frozenset(name for fact, _ in facts for text in (fact.text, fact.quote) for name in names_in(text))
    before: list[_Statement] = []
    places: dict[str, list[int]] = defaultdict(list)  # by mark: the statements before that have it
    for statement in (_Statement(fact, speaker, names) for fact, speaker in facts):
        pairs = list(islice(_similar(statement, before, places), SIMILAR_MAX)) if statement.fact.id > through else []
        same = next((place for place, pair in pairs if pair.verdict == "same"), None)
        if same is not None:
            before[same] = statement  # it stands for both from now on
        else:
            for mark in statement.marks:
                places[mark].append(len(before))
            before.append(statement)
        yield from (pair for _, pair in pairs if pair.verdict or same is None)


def _similar(
    statement: _Statement, before: Sequence[_Statement], places: Mapping[str, Sequence[int]]
) -> Iterator[tuple[int, Pair]]:
    """Yield the pairs of a fact with similar ones before it, the most similar and newest first, and their places."""
    shared = Counter(place for mark in statement.marks for place in places.get(mark, ()))
    likeness: dict[int, float] = {}
    for place, count in shared.items():
        other = before[place]
        share = count / (len(statement.marks) + len(other.marks) - count)
        if share >= ALIKE or excludes(statement.sole, other.sole):
            likeness[place] = share
    for place in sorted(likeness, key=lambda place: (likeness[place], place), reverse=True):
        if pair := statement.compare(before[place], likeness[place]):
            yield place, pair


def runs(engine: Engine, caller: Caller) -> list[Run]:
    """Return the runs whose facts are still invalid, the newest first. Raises NotFound."""
    with engine.database.read() as tx:
        invalidated = tx.execute(_INVALIDATED.where(FactRow.owner_id == get_user(tx, caller).id))
        runs = groupby(invalidated, key=lambda row: row.at)
        return [Run(at, **Counter(row.action for row in rows)) for at, rows in runs][:LISTED_RUNS_MAX]


def start(engine: Engine, caller: Caller) -> None:
    """Ask for a run now.  Raises NotFound, and InvalidRequest where consolidation is off."""
    if engine.settings.consolidation.mode == "off":
        raise InvalidRequest("consolidation_off", "CONSOLIDATION is off on this server, so no facts are merged.")
    with engine.database.write() as tx:
        owner = get_user(tx, caller)
        engine.job_queue.enqueue(tx, JobRequest("consolidation", owner.id, owner.tenant, owner.id, force=True))


def undo(engine: Engine, caller: Caller) -> Run:
    """Make valid again what the newest run invalidated, but for what was corrected since. Raises NotFound."""
    now = engine.now()
    with engine.database.write() as tx:
        owner = get_user(tx, caller)
        invalidated = tx.execute(_INVALIDATED.where(FactRow.owner_id == owner.id)).all()
        for at, rows in groupby(invalidated, key=lambda row: row.at):
            invalid = list(rows)
            valid_again = Counter[str]()
            while ready := [row for row in invalid if _is_valid(tx, row.superseded_by)]:
                for row in ready:
                    revalidate(tx, row.id, row.expires_at, now)
                    valid_again[row.action] += 1
                invalid = [row for row in invalid if row not in ready]
            if valid_again:
                return Run(at, **valid_again)
    raise NotFound("nothing_to_undo", "No run has closed facts that could be opened again.")


def enqueue_run(engine: Engine, tx: Transaction, owner: OwnerRow) -> None:
    """Ask for a run at its time if facts about the person are new."""
    new = FactRow.owner_id == owner.id, FactRow.id > owner.consolidated_through
    query = select(FactRow.id).where(*IN_ALL_SESSIONS, *new)
    when = engine.settings.consolidation
    if when.is_scheduled and owner.is_named and tx.scalar(query.limit(1), {NOW.key: engine.now()}) is not None:
        engine.job_queue.schedule(tx, when, "consolidation", owner)


# -- the job


def run(engine: Engine, job: Job) -> None:
    """Consolidate the person's facts.  Idempotent.  Raises ModelError."""
    with engine.database.read() as tx:
        owner = tx.get(OwnerRow, job.owner_id)
        if owner is None:
            return
        zone = owner_zone(tx, owner.id, engine.settings)
        rows = tx.execute(_FACTS.where(FactRow.owner_id == owner.id), {NOW.key: engine.now()}).all()
        prompt = engine.prompts.find(tx, Caller(owner.tenant), "consolidation")
    facts = [(Fact(*row[:-1]), row[-1]) for row in reversed(rows)]
    pairs = list(duplicate_candidates(facts, owner.consolidated_through))
    doubtful = [pair for pair in pairs if not pair.verdict]
    judged = _read(engine, owner, doubtful[:PAIRS_MAX], prompt) if doubtful else []
    left = doubtful if judged is None else doubtful[PAIRS_MAX:]
    through = max((fact.id for fact, _ in facts), default=0)
    if left:
        waiting = left[0]
        through = max(waiting.older.id, waiting.newer.id) - 1
    plans = {fact.id: end for fact, _ in facts if fact.category == "plan" and (end := _end(fact, zone)) is not None}
    with engine.database.write() as tx:
        row = lock_owner(tx, owner.id)
        if row is None or tx.get(JobRow, job.id) is None:
            return  # the person was erased, or the job cancelled
        counts = _apply(tx, [*(pair for pair in pairs if pair.verdict), *(judged or ())], plans, engine.now())
        row.consolidated_through = max(through, row.consolidated_through)
        when = engine.settings.consolidation
        if when.mode == "schedule" and (left or plans):
            engine.job_queue.schedule(tx, when, "consolidation", row)
    log.info("consolidation: %s", dict(counts) or "nothing to invalidate")


def _read(engine: Engine, owner: OwnerRow, pairs: Sequence[Pair], prompt: PromptTemplate) -> list[Pair] | None:
    """Return the pairs with the mini model's verdicts, without those that a content filter refuses.

    None: it read none, as it read some today, the budget is spent, or its answer was of no use.
    """
    with engine.database.write() as tx:
        row = lock_owner(tx, owner.id)
        now = engine.now()
        if row is None or engine.budgets.remaining(tx, owner.id) <= 0:
            return None
        if row.consolidated_at is not None and row.consolidated_at.date() == now.date():
            return None
        row.consolidated_at = now

    def lines(pairs: Sequence[Pair]) -> Iterator[str]:
        for number, pair in enumerate(pairs, 1):
            yield f"[{number}] older: {fact_line(pair.older)}"
            yield f"[{number}] newer: {fact_line(pair.newer)}"

    def judge(pairs: Sequence[Pair], text: str) -> list[Pair]:
        answer = first_object(text, ANSWER)
        contradicts, same = set(answer["contradicts"]), set(answer["same"])
        judged = []
        for number, pair in enumerate(pairs, 1):
            verdict = "contradicts" if number in contradicts else ""
            judged.append(replace(pair, verdict="same" if number in same and pair.may_be_same else verdict))
        return judged

    try:
        read = engine.mini.ask_about(
            owner.id,
            pairs,
            lambda pairs: request_for(prompt.render(), [block("pairs", lines(pairs))], ANSWER),
            owner.tenant,
            judge,
        )
    except InvalidAnswer as problem:
        log.warning("consolidation: the mini model's answer was refused: %s", problem)
        return None
    return read or []


def _apply(tx: Transaction, pairs: Sequence[Pair], plans: Mapping[int, datetime], now: datetime) -> Counter[str]:
    """Merge and invalidate facts that are still valid and say what was read, and plans whose day is over.

    plans: their ends by the ids of the facts. Return how many there were of each action.
    """
    read = {fact.id: fact.text for pair in pairs for fact in (pair.older, pair.newer)}
    query = FACTS.where(FactRow.id.in_({*read, *plans}), *IN_ALL_SESSIONS)
    facts = [Fact(*row) for row in tx.execute(query, {NOW.key: now})]
    valid = {fact.id: fact for fact in facts if fact.text == read.get(fact.id, fact.text)}
    merged_into: dict[int, int] = {}
    counts = Counter[str]()

    def standing(fact: Fact) -> Fact | None:
        """Return the fact, or the one that it was merged into, if that is valid."""
        fact_id = fact.id
        while fact_id in merged_into:
            fact_id = merged_into[fact_id]
        return valid.get(fact_id)

    for pair in pairs:
        older, newer = standing(pair.older), standing(pair.newer)
        if older is None or newer is None or older is newer:
            continue
        if pair.verdict == "same":
            merged, stays = sorted((older, newer), key=lambda fact: (fact.pinned, fact.valid_from, fact.id))
            if (stays.expires_at or NEVER) < (merged.expires_at or NEVER):
                continue  # what it says would end too soon
            merge(tx, merged, stays, now)
            merged_into[valid.pop(merged.id).id] = stays.id
            counts["merged"] += 1
        elif pair.verdict == "contradicts" and not older.pinned:
            invalidate(tx, valid.pop(older.id).id, now, "contradicted", by=newer)
            counts["contradicted"] += 1
    for fact_id, end in plans.items():
        if end <= now and fact_id in valid:
            invalidate(tx, fact_id, now, "expired", valid_to=end)
            counts["expired"] += 1
    return counts


def _is_valid(tx: Transaction, successor: int | None) -> bool:
    """Return whether a successor is valid, or there is none."""
    return successor is None or tx.scalar(select(FactRow.valid_to).where(FactRow.id == successor)) is None


def _end(plan: Fact, zone: tzinfo) -> datetime | None:
    """Return when the last day that a plan names is over everywhere; None if it was over when the plan was stated.

    zone: in which the person's days begin.
    """
    days = filter(None, (_last_day(date.group()) for date in DATE.finditer(plan.text)))
    last = max(days, default=date.min)
    return end_of(last) if last >= local_time(plan.valid_from, zone).date() else None


def _last_day(text: str) -> date | None:
    """Return the last day of a date that names its year: "2026-03-05", "5 March 2026", "March 2026", "2026"."""
    figures = [int(figure) for figure in re.findall(r"\d+", text)]
    year = next((figure for figure in figures if figure > 999), 0)
    month = next((MONTHS[word] for word in re.findall(r"[^\W\d_]+", text.lower()) if word in MONTHS), 0)
    rest = [figure for figure in figures if figure != year]
    if not month and text.startswith(str(year)):
        month = rest.pop(0) if rest else 12
    days = list[date]()
    for number, *named in [[month, *rest]] if month else permutations(rest, 2):  # 5/12/2026: of May, or December
        if year and 1 <= number <= 12:
            last = monthrange(year, number)[1]
            days.append(date(year, number, min(max(named[0], 1), last) if named else last))
    return max(days, default=None)
