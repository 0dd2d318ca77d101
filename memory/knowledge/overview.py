"""Overview: what matters now about a person, in a few sentences, each with the facts and summaries that it rests on.

The mini model writes them; the person may change them.

Invariants [test_overview, test_erasing]:
- When a source is erased, its sentences go from every version; when it is valid no longer, from the newest one.
- A prompt shows whole sentences, at most OVERVIEW_TOKENS of them.
- A sentence of the model names facts and summaries that it was shown, and says nothing that they do not.
- What a person wrote stays until they change it.
- What they took out does not come back, in its words or from its sources.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import Select, select

from memory import tokens
from memory.access.owners import get_user, lock_owner, owner_zone
from memory.engine import Engine
from memory.errors import InvalidRequest
from memory.knowledge.fact_ranking import Ranking
from memory.knowledge.fact_reads import read_facts, valid_at
from memory.knowledge.grounding import Ungrounded, check_restated, says, stems
from memory.knowledge.rule_set import RuleSet, rules_of
from memory.llm.mini_model import INTEGER, TEXT, InvalidAnswer, json_objects, list_of, object_of, request_for
from memory.quoting import block, escape, one_line
from memory.sessions.messages import PRIVATE
from memory.store import item_rows
from models import IS_NEWEST_SUMMARY, FactRow, JobRow, MessageRow, OwnerRow, SessionRow, SummaryRow, Transaction
from models.base import local_time
from models.jobs import Job, JobRequest
from models.overview import Overview, Sentence
from models.owners import Caller
from models.sections import SECTIONS, Sections
from models.store import MODEL, OWN, Item, ItemVersion, Put

if TYPE_CHECKING:
    from memory.paging import Page

NAMESPACE = (OWN, "overview")
KEY = "overview"
OVERVIEW_TOKENS = 150  # of the sentences in a prompt's prefix

_PLACE = {"type": "array", "prefixItems": [TEXT, INTEGER], "minItems": 2, "maxItems": 2}
_SENTENCES = list_of(object_of(text=TEXT, facts=list_of(INTEGER), summaries=list_of(_PLACE), author=TEXT))
SHAPE = object_of(sentences=_SENTENCES, removed=_SENTENCES, read=TEXT)

SOURCE_TOKENS = 2_500  # of facts, and of summaries, that one call reads
SESSIONS_MAX = 12  # the latest with a summary
REMOVED_MAX = 50  # that are remembered, the latest
SENTENCES_MAX = 20  # that are read of an answer
READ_SECTIONS = [section.name for section in SECTIONS if section.name not in ("excluded", "discussed")]
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
class OverviewState(ItemVersion):
    """Newest version, and how it stands. is_shown: prompts show it. is_updating: a job for it is due or runs."""

    is_shown: bool = False
    is_updating: bool = False
    error: str | None = None


def get(engine: Engine, caller: Caller) -> OverviewState:
    """Return the overview as it is. Raises NotFound for an unknown person."""
    with engine.database.read() as tx:
        return _state(engine, tx, get_user(tx, caller))


def versions(engine: Engine, caller: Caller, *, cursor: str | None, limit: int) -> "Page[ItemVersion]":
    """Return all versions, newest first. Raises NotFound."""
    with engine.database.read() as tx:
        item = _item(engine, tx, get_user(tx, caller).id)
        return item_rows.page_of_versions(tx, item, Overview.of, cursor, limit)


def edit(engine: Engine, caller: Caller, sentences: Sequence[Sentence], expected: int | None = None) -> OverviewState:
    """Store the person's own sentences; the next prompt shows them. With `expected` only over that version.

    One that is there already stays as it is; another may rest on what those rest on.
    Raises NotFound, Conflict, and InvalidRequest for other sources, more than a prompt shows, and what rules keep out.
    """
    if len(fitting(sentences)) < len(sentences):
        raise InvalidRequest(
            "overview_too_long",
            f"An overview may have about {OVERVIEW_TOKENS} tokens, since every prompt carries it. Nothing was "
            "changed. Shorten it.",
            param="sentences",
        )
    with engine.database.write() as tx:
        owner = get_user(tx, caller)
        stored = _read(engine, tx, owner.id)
        item_rows.check_version(KEY, expected, stored.version)
        before: Overview = stored.value
        existing = {sentence.text: sentence for sentence in before.sentences}
        sources = frozenset[Any]().union(*(sentence.sources for sentence in before.sentences))
        if any(not sentence.sources <= sources for sentence in sentences):
            text = "A sentence may rest only on what the present ones rest on. Nothing was changed."
            raise InvalidRequest("unknown_source", text, param="sentences")
        new = (sentence.text for sentence in sentences if sentence.text not in existing)
        if rules_of(tx, owner.id, owner.tenant).keeps_out(*new):
            text = "By the rules of what is kept, the topic of a sentence is kept out of memory. Nothing was changed."
            raise InvalidRequest("kept_out", text, param="sentences")
        kept = tuple(existing.get(sentence.text, sentence) for sentence in sentences)
        of_model = (sentence for sentence in before.sentences if sentence.author == MODEL)
        taken_out = (sentence for sentence in of_model if sentence not in kept)
        removed = tuple(dict.fromkeys([*before.removed, *taken_out]))[-REMOVED_MAX:]
        _write(engine, tx, owner, replace(before, sentences=kept, removed=removed), "person")
        return _state(engine, tx, owner)


def rollback(engine: Engine, caller: Caller, version: int) -> OverviewState:
    """Make an earlier version the newest again, without sentences whose facts are valid no longer.

    Sentences that the person took out since stay out, but for those of that version. Raises NotFound.
    """
    with engine.database.write() as tx:
        owner = get_user(tx, caller)
        stored = item_rows.get_version(tx, _item(engine, tx, owner.id), version)
        old = Overview.of(stored.value)
        newest = _read(engine, tx, owner.id).value
        then = FactRow.valid_from <= stored.created_at  # new words are valid since later
        valid = set(tx.scalars(select(FactRow.id).where(FactRow.owner_id == owner.id, valid_at(None), then)))
        sentences = tuple(sentence for sentence in old.sentences if valid.issuperset(sentence.facts))
        removed = tuple(sentence for sentence in newest.removed if sentence not in sentences)
        _write(engine, tx, owner, replace(old, sentences=sentences, removed=removed), "rollback")
        return _state(engine, tx, owner)


def refresh(engine: Engine, caller: Caller) -> OverviewState:
    """Ask for an update now, also where nothing has changed. Raises NotFound, LimitReached."""
    with engine.database.write() as tx:
        owner = get_user(tx, caller)
        engine.budgets.check(tx, owner.id)
        request = JobRequest("overview", owner.id, owner.tenant, owner.id, force=True, payload={"asked": True})
        engine.job_queue.enqueue(tx, request)
        return _state(engine, tx, owner)


# -- the job


def enqueue_update(engine: Engine, tx: Transaction, owner: OwnerRow | None) -> None:
    """Ask for an update at its time, as something about the person has changed."""
    when = engine.settings.overview
    if when.is_scheduled and owner is not None and owner.is_named and owner.remember:
        engine.job_queue.schedule(tx, when, "overview", owner)


def run(engine: Engine, job: Job) -> bool:
    """Have the model write the overview, unless it was made from what there is now. Idempotent.

    Return whether something changed meanwhile. Raises ModelError, LimitReached.
    """
    with engine.database.read() as tx:
        owner = tx.get(OwnerRow, job.owner_id)
        if owner is None:
            return False
        zone = owner_zone(tx, owner.id, engine.settings)
        stored = _read(engine, tx, owner.id)
        sources = _sources(engine, tx, owner.id, zone)
        before: Overview = stored.value
        today = engine.now().astimezone(zone)
        is_asked = (job.payload or {}).get("asked", False)
        if not (sources or before.sentences) or (before.read == _digest(sources) and not is_asked):
            return False
        engine.budgets.check(tx, owner.id)
        prompt = engine.prompts.find(tx, Caller(owner.tenant), "overview")
    by_person = tuple(sentence for sentence in before.sentences if sentence.author != MODEL)
    task = f"{prompt.render()}\n\nToday is {today:%Y-%m-%d, %A}."
    written = engine.mini.ask_about(
        owner.id,
        sources,
        lambda sources: request_for(task, _blocks(sources, by_person), ANSWER),
        owner.tenant,
        partial(_read_answer, replace(before, sentences=by_person)),
        replacing="overview",
    )
    with engine.database.write() as tx:
        row = lock_owner(tx, job.owner_id)
        if row is None:
            return False
        digest = _digest(_sources(engine, tx, row.id, owner_zone(tx, row.id, engine.settings)))
        if _read(engine, tx, row.id) != stored or digest != _digest(sources):
            return True  # it changed meanwhile: once more
        _write(engine, tx, row, replace(before, sentences=(*by_person, *(written or ())), read=digest), MODEL)
    return False


# -- rows


def _item(engine: Engine, tx: Transaction, owner_id: int) -> Item | None:
    return item_rows.read(tx, owner_id, NAMESPACE, KEY, engine.now())


def _read(engine: Engine, tx: Transaction, owner_id: int) -> ItemVersion:
    """Return the newest version, whose value is an Overview."""
    return item_rows.newest_version(tx, _item(engine, tx, owner_id)).read(Overview.of)


def _state(engine: Engine, tx: Transaction, owner: OwnerRow) -> OverviewState:
    of_owner = JobRow.kind == "overview", JobRow.key == str(owner.id)
    job = select(JobRow.state, JobRow.run_at, JobRow.error).where(*of_owner)
    state, run_at, error = tx.execute(job).first() or (None, None, None)
    is_due = state == "pending" and run_at is not None and run_at <= engine.now() + _SOON
    return OverviewState(
        **vars(_read(engine, tx, owner.id)),
        is_shown=engine.settings.overview.mode != "off",
        is_updating=state == "running" or is_due,
        error=error if state == "failed" else None,
    )


def _write(engine: Engine, tx: Transaction, owner: OwnerRow, overview: Overview, author: str) -> None:
    """Store a version, with what the rules keep of it."""
    overview = kept_by(rules_of(tx, owner.id, owner.tenant), overview)
    item_rows.write(tx, owner.id, Put(NAMESPACE, KEY, overview.value), engine.now(), author=author)


def kept_by(rules: RuleSet, overview: Overview) -> Overview:
    """Return an overview without the sentences that the rules keep out."""
    return overview.changed(lambda sentence: None if rules.keeps_out(sentence.text) else sentence)


def _sources(engine: Engine, tx: Transaction, owner_id: int, zone: tzinfo) -> list[Source]:
    """Return the lines that the model reads: of the facts that a prompt would show first, and the newest summaries.

    zone: of their times.
    """
    valid = read_facts(tx, FactRow.owner_id == owner_id, valid_at(None))
    facts = Ranking.of(engine).prioritise(valid, SOURCE_TOKENS, engine.now())
    lines = [Source(fact.text, local_time(fact.valid_from, zone), fact=fact.id) for fact in facts]
    of_summaries = [
        Source(text, local_time(row.updated_at, zone), summary=(row.public_id, row.version))
        for row in tx.execute(_NEWEST.where(SessionRow.owner_id == owner_id))
        for text in _lines_of(row)
    ]
    fitting, _ = tokens.fit_budget(SOURCE_TOKENS, (source.line for source in of_summaries))
    return [*lines, *of_summaries[: len(fitting)]]


def _lines_of(row: Any) -> list[str]:
    sections = Sections.from_dict(row.sections)
    title = one_line(row.title)
    lines = []
    for name in READ_SECTIONS:
        value = getattr(sections, name)
        items = (value,) if isinstance(value, str) else value
        lines += [f"{title}, {name.replace('_', ' ')}: {item}" for item in items if item]
    return lines


def _digest(sources: Sequence[Source]) -> str:
    lines = sorted(f"{source.fact} {source.summary} {source.text}" for source in sources)
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def _blocks(sources: Sequence[Source], by_person: Sequence[Sentence]) -> list[str]:
    numbered = [(source, f"[{number}] {source.line}") for number, source in enumerate(sources, 1)]
    return [
        block("facts", (line for source, line in numbered if source.fact is not None)),
        block("summaries", (line for source, line in numbered if source.fact is None)),
        block("written", map(sentence_line, by_person)),
    ]


def _read_answer(before: Overview, sources: Sequence[Source], answer: str) -> tuple[Sentence, ...]:
    """Return the grounded sentences of an answer. Raises InvalidAnswer when all of them are refused.

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
    if any(sentence.sources <= old.sources or says(old.text, text, share=1) for old in before.removed):
        raise Ungrounded("the person took out what it says")
    return sentence


# -- in a prompt


def sentence_line(sentence: Sentence) -> str:
    return f"- {escape(one_line(sentence.text))}"


def fitting(sentences: Iterable[Sentence]) -> tuple[Sentence, ...]:
    """Return the first sentences that have at most OVERVIEW_TOKENS together."""
    all_sentences = tuple(sentences)
    lines, _ = tokens.fit_budget(OVERVIEW_TOKENS, map(sentence_line, all_sentences))
    return all_sentences[: len(lines)]


@dataclass(frozen=True)
class OverviewBlock:
    """Overview as a prompt's prefix shows it."""

    item_id: int = 0
    version: int = 0
    sentences: tuple[Sentence, ...] = ()
    lines: tuple[str, ...] = ()

    @classmethod
    def of(cls, row: Any) -> Self:
        """Return the block of an item's version. row: its `item_id`, `version`, `value` and `written_at`."""
        shown = fitting(map(Sentence.of, row.value["sentences"]))
        lines = (f"As of {row.written_at:%Y-%m-%d}:", *map(sentence_line, shown)) if shown else ()
        return cls(row.item_id, row.version, shown, lines)


# -- sentences whose source is gone; in the caller's transaction


def forget_facts(tx: Transaction, facts: Collection[FactRow], replaced: Collection[FactRow], now: datetime) -> None:
    """Remove from every version the sentences that rest on erased facts, or say what these say.

    replaced: those of the facts that have the former words of another one, on which sentences of these words rest.
    A summary may say a fact in other words, so half of its words are enough in a sentence that rests on one.
    """
    by_owner: dict[int, list[FactRow]] = defaultdict(list)
    for fact in facts:
        by_owner[fact.owner_id].append(fact)
    for owner_id, erased in by_owner.items():
        ids = {fact.id for fact in erased} | {fact.superseded_by or 0 for fact in erased if fact in replaced}
        texts = [fact.text for fact in erased if stems(fact.text)]
        item = item_rows.read(tx, owner_id, NAMESPACE, KEY, now)
        if item is not None:
            item_rows.drop_versions(tx, owner_id, item, partial(_without, facts=ids, texts=texts), now)


def forget_sessions(tx: Transaction, owner_id: int, item: Item, messages: Select[int], now: datetime) -> Counter[str]:
    """Remove from every version the sentences that rest on summaries of sessions with these messages.

    The next update writes them anew from what is left. Return the number of rows by kind.
    """
    of_messages = select(MessageRow.session_id).where(MessageRow.id.in_(messages))
    session_ids = set(tx.scalars(select(SessionRow.public_id).where(SessionRow.id.in_(of_messages))))
    return item_rows.drop_versions(tx, owner_id, item, partial(_without, sessions=session_ids), now)


def outdate(tx: Transaction, owner_id: int, now: datetime, *, fact_id: int = 0, session_id: str = "") -> None:
    """Remove from the newest version the sentences that rest on a fact, or on summaries of a session."""
    item = item_rows.read(tx, owner_id, NAMESPACE, KEY, now)
    if item is not None and (rest := _without(item.value, {fact_id}, {session_id})) != item.value:
        item_rows.write(tx, owner_id, Put(NAMESPACE, KEY, rest), now, author="correction")


def _without(
    value: Mapping[str, Any],
    facts: Collection[int] = (),
    sessions: Collection[str] = (),
    texts: Collection[str] = (),
) -> dict[str, Any]:
    """Return a stored overview without the sentences that rest on facts or sessions, or say one of these texts."""

    def left(sentence: Sentence) -> Sentence | None:
        share = 0.5 if sentence.summaries else 1.0
        is_gone = any(fact_id in facts for fact_id in sentence.facts)
        is_gone = is_gone or any(session_id in sessions for session_id, _ in sentence.summaries)
        return None if is_gone or any(says(sentence.text, text, share) for text in texts) else sentence

    return Overview.of(value).changed(left).value


# -- in another database


def moved(value: Any, facts: Mapping[int, int], sessions: Mapping[str, str]) -> Any:
    """Return a value of an export as it may be stored here, without sentences whose source did not come along.

    facts, sessions: the ids here by those in the export. value: of SHAPE.
    """

    def here(sentence: Sentence) -> Sentence | None:
        of_facts = tuple(facts[fact_id] for fact_id in sentence.facts if fact_id in facts)
        summaries = tuple((sessions[key], version) for key, version in sentence.summaries if key in sessions)
        is_whole = len(of_facts) == len(sentence.facts) and len(summaries) == len(sentence.summaries)
        return replace(sentence, facts=of_facts, summaries=summaries) if is_whole else None

    return Overview.of(value).changed(here).value
