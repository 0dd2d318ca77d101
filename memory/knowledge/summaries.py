"""Read, edit and ask for the structured summaries of sessions; every version of one is kept."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, bindparam, func, insert, select

from memory import tokens
from memory.access.owners import get_session
from memory.engine import Engine
from memory.errors import Conflict, InvalidRequest, NotFound
from memory.knowledge import overview
from memory.knowledge.grounding import stems, strip_framing, words_of
from memory.knowledge.rule_set import rules_of
from memory.knowledge.summary_update import SUMMARY_TOKENS_MAX, one_line_item
from memory.paging import Page, read_page
from memory.sessions.compaction import summary_state, use_newest_summary
from memory.sessions.messages import covered_position
from memory.sessions.titles import name_after, title_taken_anew
from models import IS_SUMMARY_IN_USE, FactRow, JobRow, MessageRow, SessionRow, SummaryRow, Transaction, as_value
from models.facts import Fact
from models.jobs import JobRequest
from models.owners import Caller
from models.sections import SECTIONS, Sections


@dataclass(frozen=True)
class SummaryVersion:
    """Version of a summary: what it says, which messages it covers (positions up to `through`), who made it.

    A `replaced` version covers messages that were replaced since, so it can't be brought back.
    """

    version: int
    sections: Sections
    through: int
    tokens: int
    author: str
    model: str | None
    prompt: str | None
    usage: dict[str, Any] | None
    restores: int | None
    created_at: datetime
    replaced: bool


@dataclass(frozen=True)
class SummaryState:
    """Newest version (None: there is none yet) and state of the summary.

    state: `none` (nothing to summarise yet), `current`, `pending` (messages wait), `updating` or `failed`.
    """

    session_id: str
    latest: SummaryVersion | None
    state: str
    error: str | None
    job_id: int | None
    head_version: int
    message_count: int


_JOB = select(JobRow.id, JobRow.state, JobRow.error).where(JobRow.kind == "summary", JobRow.key == bindparam("key"))


def get(engine: Engine, caller: Caller, session_id: str) -> SummaryState:
    """Return the newest version and the state. Raises NotFound."""
    with engine.database.read() as tx:
        return state_of(tx, get_session(tx, caller, session_id))


def versions(
    engine: Engine, caller: Caller, session_id: str, *, cursor: str | None, limit: int
) -> Page[SummaryVersion]:
    """Return all versions, newest first. Raises NotFound."""
    with engine.database.read() as tx:
        query = select(SummaryRow).where(SummaryRow.session_id == get_session(tx, caller, session_id).id)
        return read_page(tx, query, cursor, limit, SummaryRow.version).map(lambda row: as_version(row.SummaryRow))


def edit(
    engine: Engine, caller: Caller, session_id: str, sections: Sections, expected: int | None = None
) -> SummaryState:
    """Store the person's own summary; the next prompt shows it.  With `expected`, only over that version.

    Lines that the rules keep out are left out.

    Raises NotFound, Conflict, and InvalidRequest for a summary that is too long for every prompt to carry.
    """
    size = tokens.estimate(str(sections))
    if size > SUMMARY_TOKENS_MAX:
        raise InvalidRequest(
            "summary_too_large",
            f"A summary may have about {SUMMARY_TOKENS_MAX:,} tokens, since every prompt carries it; this one has "
            f"{size:,}. Nothing was changed. Shorten it.",
            param="sections",
        )
    with engine.database.write() as tx:
        row = get_session(tx, caller, session_id)
        if expected is not None and expected != row.summary_version:
            raise Conflict(
                "summary_changed",
                f"The summary is at version {row.summary_version} by now, not {expected}. "
                "Nothing was changed; read it again and apply your edit to that.",
            )
        add_version(engine, tx, row, sections, row.summary_through, "person")
        return _shown(engine, tx, row)


def rollback(engine: Engine, caller: Caller, session_id: str, version: int) -> SummaryState:
    """Make an earlier version the newest again.

    Prompts carry the messages it does not cover word for word, until the next update summarises them anew.
    Raises NotFound, and Conflict for a version that was made from replaced messages.
    """
    with engine.database.write() as tx:
        row = get_session(tx, caller, session_id)
        old = find_version(tx, row, version)
        if old is None:
            raise NotFound("version_not_found", f"The summary has no version {version}.", param="version")
        if old.branch:
            raise Conflict(
                "version_replaced",
                f"Version {version} was made from messages that have been replaced since, so it would bring them "
                "back. Nothing was changed. Choose another version, or write what you want to keep into the "
                "summary yourself.",
            )
        bring_back(engine, tx, row, old, "rollback")
        return _shown(engine, tx, row)


def refresh(engine: Engine, caller: Caller, session_id: str) -> SummaryState:
    """Ask for an update now, also after a failure.  Raises NotFound, and LimitReached when the day is spent."""
    with engine.database.write() as tx:
        row = get_session(tx, caller, session_id)
        engine.budgets.check(tx, row.owner_id)
        engine.job_queue.enqueue(tx, JobRequest("summary", row.id, row.tenant, row.owner_id, row.id, force=True))
        return state_of(tx, row)


# -- versions, in the caller's transaction


def _shown(engine: Engine, tx: Transaction, row: SessionRow) -> SummaryState:
    """Show the version that the person wants from now on; return the state."""
    overview.outdate(tx, row.owner_id, engine.now(), session_id=row.public_id)
    use_newest_summary(tx, row, engine.settings)
    return state_of(tx, row)


def add_version(
    engine: Engine, tx: Transaction, row: SessionRow, sections: Sections, through: int, author: str, **about: Any
) -> None:
    """Make what the rules keep of `sections` the session's newest version.

    It covers the messages up to position `through`.
    """
    sections = rules_of(tx, row.owner_id, row.tenant).kept_of(sections)
    row.summary_version += 1
    row.summary_through = covered_position(tx, row, through)
    about |= {"author": author, "created_at": engine.now()}
    insert_version(tx, row.id, row.summary_version, sections, row.summary_through, **about)
    name_after(tx, row, sections.topic)
    tx.flush()


def bring_back(
    engine: Engine, tx: Transaction, row: SessionRow, old: SummaryRow | None, author: str, before: int | None = None
) -> None:
    """Make a copy of an earlier version the newest; None: an empty summary. before: a position it must not cover.

    It becomes a version of its own: no number is used twice, and an update in progress notices the change.
    """
    sections = Sections()
    through = 0
    restores = None
    if old is not None:
        sections = Sections.from_dict(old.sections)
        restores = old.version
        through = old.through if before is None else min(old.through, before - 1)
    add_version(engine, tx, row, sections, through, author, restores=restores)


def insert_version(
    tx: Transaction, session_row_id: int, version: int, sections: Sections, through: int, **about: Any
) -> None:
    """Store a version, to which the session has advanced. about: its author, its time and more columns."""
    columns = {"session_id": session_row_id, "version": version, "through": through, **about}
    columns |= {"sections": sections.as_dict(), "tokens": tokens.estimate(str(sections))}
    tx.execute(insert(SummaryRow.__table__), columns)


def use_newest_left(engine: Engine, tx: Transaction, row: SessionRow, author: str) -> None:
    """Use the newest version that is left, after newer ones were erased or their messages replaced."""
    left = select(SummaryRow).where(SummaryRow.session_id == row.id, SummaryRow.branch == 0)
    newest = tx.scalar(left.order_by(SummaryRow.version.desc()).limit(1))
    row.recognised_type = None  # it may rest on what is gone
    if newest is not None and newest.version == row.summary_version:
        row.summary_through = newest.through
    else:
        bring_back(engine, tx, row, newest, author)


@contextmanager
def summarised_without(
    engine: Engine, tx: Transaction, row: SessionRow, messages: Collection[MessageRow]
) -> Iterator[Collection[SummaryRow]]:
    """Erase the versions of a session's summary that may repeat these messages, which go within; yield the versions.

    The newest version without them is used again, and the title, if it came from what goes, is taken anew. The caller
    asks for the job that continues the summary.
    """
    branches = select(MessageRow.branch, func.min(MessageRow.position)).where(MessageRow.session_id == row.id)
    begins = {branch: first for branch, first in tx.execute(branches.group_by(MessageRow.branch)) if branch}
    versions = tx.scalars(select(SummaryRow).where(SummaryRow.session_id == row.id).order_by(SummaryRow.version)).all()
    gone: dict[int | None, SummaryRow] = {}
    for message in messages:
        gone |= _repeating(versions, message, begins)
    with title_taken_anew(tx, row):
        yield gone.values()
        for version in gone.values():
            tx.delete(version)
        tx.flush()
        if row.summary_version in gone:
            use_newest_left(engine, tx, row, "erasure")
    if row.head_version in gone:
        use_newest_summary(tx, row, engine.settings)
    row.summary_through = covered_position(tx, row, row.summary_through)


def _repeating(
    versions: Sequence[SummaryRow], message: MessageRow, begins: Mapping[int, int]
) -> dict[int | None, SummaryRow]:
    """Return the summary versions that may repeat the message, by number. begins: where each branch begins."""
    tainted: dict[int | None, SummaryRow] = {}
    previous: int | None = None
    for version in versions:
        # A branch's versions also cover messages before the place where the branch was cut off.
        is_older = not message.branch or version.branch < message.branch
        is_beneath = version.branch and is_older and message.position < begins.get(version.branch, 0)
        may_have_read = message.refused is None or version.created_at < message.refused.at
        is_on_path = version.branch == message.branch or is_beneath
        covers = may_have_read and version.through >= message.position and is_on_path
        # A person's summary stays on the current branch when the messages that it covered are replaced.
        first_edit = previous is None and version.author == "person" and message.branch
        parent = version.restores if version.author in ("rollback", "replacement", "erasure") else previous
        if covers or first_edit or parent in tainted:
            tainted[version.version] = version
        previous = version.version
    return tainted


def replace_texts(sections: Sections, instead: Mapping[Fact, str]) -> Sections:
    """Replace, or with an empty text remove, each text that says just what one of these facts said.

    Other texts are for the mini model to write anew: a sentence may rightly speak of how things were before.
    """
    words = {old: one_line_item(new) for fact, new in instead.items() for old in words_of(fact)}
    return sections.map_texts(lambda text: words.get(strip_framing(text), text))


def rewrite_newest(
    engine: Engine, tx: Transaction, which: ColumnElement[bool], rewrite: Callable[[Sections], Sections], author: str
) -> list[SessionRow]:
    """Rewrite the newest summaries of these sessions; return the sessions whose summary is another one now.

    Prompts that show an older version with what is rewritten show the newest from now on.
    """
    rewritten: list[SessionRow] = []
    in_use = select(SessionRow, SummaryRow).join(SummaryRow, IS_SUMMARY_IN_USE).where(which)
    for row, version in tx.execute(in_use.order_by(SummaryRow.version)).all():
        sections = Sections.from_dict(version.sections)
        if (changed := rewrite(sections)) != sections:
            if version.version == row.summary_version:
                add_version(engine, tx, row, changed, row.summary_through, author)
                rewritten.append(row)
            use_newest_summary(tx, row, engine.settings)
    return rewritten


def undo_correction(engine: Engine, tx: Transaction, new: FactRow, old: str) -> None:
    """Take a correction out of its session's newest summary, also where a model put it in other words.

    What the version before the correction said of the `old` words stands there again.
    """
    if new.session_id is None:
        return
    row = tx.get_one(SessionRow, new.session_id)
    newest = find_version(tx, row, row.summary_version)
    earlier = select(SummaryRow).where(SummaryRow.session_id == row.id, SummaryRow.branch == 0)
    before = tx.scalar(
        earlier.where(SummaryRow.created_at < new.created_at).order_by(SummaryRow.version.desc()).limit(1)
    )
    if newest is None or before is None:
        return
    were, are = Sections.from_dict(before.sections), Sections.from_dict(newest.sections)
    words = set(stems(new.text))
    old_words = set(stems(old))
    changed: dict[str, Any] = {}
    new_words = words - old_words
    if not (words and old_words):
        return
    for section in SECTIONS:
        was, shown = getattr(were, section.name), getattr(are, section.name)
        if section.kind == "line" and was and new_words and new_words <= set(stems(shown)) - set(stems(was)):
            changed[section.name] = was
        elif section.kind == "items":
            left = [item for item in shown if item in was or not words.issubset(stems(item))]
            for place, item in enumerate(was):
                if item not in left and old_words.issubset(stems(item)):
                    left.insert(place, item)
            changed[section.name] = tuple(left)
    undone = replace(are, **changed)
    if undone != are:
        add_version(engine, tx, row, undone, row.summary_through, "erasure")
        use_newest_summary(tx, row, engine.settings)


def state_of(tx: Transaction, row: SessionRow) -> SummaryState:
    """Return the state of the session's summary, with its newest version."""
    newest = find_version(tx, row, row.summary_version)
    job_id, job_state, error = tx.execute(_JOB, {"key": str(row.id)}).first() or (None, None, None)
    latest = as_version(newest) if newest else None
    state = summary_state(row, job_state)
    return SummaryState(row.public_id, latest, state, error, job_id, row.head_version, row.message_count)


def as_version(row: SummaryRow) -> SummaryVersion:
    return as_value(SummaryVersion, row, sections=Sections.from_dict(row.sections), replaced=row.branch > 0)


def find_version(tx: Transaction, row: SessionRow, version: int) -> SummaryRow | None:
    return tx.scalar(select(SummaryRow).where(SummaryRow.session_id == row.id, SummaryRow.version == version))
