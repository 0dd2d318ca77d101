"""Other sessions of a person as a prompt shows them by their gist: their summary in a few words.

"Where were we with the trip?" asks how things stand.  The messages that a search finds may be the oldest ones, so the
summaries of their sessions are shown in full before them, and take half of their tokens at most.

"Let's continue where we left off" names nothing that a search could find.  The latest conversation is shown by its
summary and last messages, the two before it by a line each.  For a list question, such as "in which order did I raise
the topics?", each of the latest ones is shown by a line.

Beside the excerpts of a search, the summary of another session that fits best is shown in a line.  It takes only the
tokens that they have left, so it never replaces a message.

Invariants:
- Nothing of a conversation with an unremembered message is shown, not even its title (test_other_sessions).
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, exists, select

from memory import tokens
from memory.quoting import one_line
from memory.recall.excerpts import addresses, excerpt_block, truncate_message
from memory.recall.relevance import FOREIGN_SUMMARY, OTHER
from memory.recall.search import SearchScope, facts_and_summaries
from memory.sessions.messages import INDEXED, MESSAGES, PRIVATE, VISIBLE
from models import MessageRow, SessionRow, SummaryRow
from models.messages import Excerpt, Gist, Message
from models.sections import SECTIONS, Sections
from search_index import Hit, PreparedQuery, SearchIndex

ENDINGS_TOKENS_MAX = 320  # of RECALL_TOKENS
GIST_TOKENS, LINE_TOKENS = 160, 20  # of a summary: in full, or in a line
IN_FULL = ("requirements", "constraints", "excluded", "open_questions", "data")  # sections of it, after the topic
SESSIONS, MESSAGES_SHOWN = 3, 4
CONSIDERED = 10  # latest sessions that are read
SUMMARIES_MAX = 100  # newest summaries that a turn searches
LINE_TOKENS_MIN = 25  # tokens below which no line fits

_TITLES = {section.name: section.title for section in SECTIONS}
_AS_LATEST = {"latest": 1.0}  # why a session is shown: it is one of the latest
_M, _S, _V = MessageRow.__table__.c, SessionRow.__table__.c, SummaryRow.__table__.c
_SPOKEN = *VISIBLE, *INDEXED, _M.role.in_(("user", "assistant")), _M.content != ""
_NEWEST = SummaryRow.__table__, (_V.session_id == _S.id) & (_V.version == _S.summary_version)
_COLUMNS = _S.id, _S.public_id, _S.title, _S.updated_at, _V.id.label("summary_id"), _V.sections
_LATEST = (
    select(_S.id)
    .where(_S.owner_id == bindparam("owner"), _S.id != bindparam("session"), _S.is_document.is_(False))
    .order_by(_S.updated_at.desc(), _S.id.desc())
    .limit(CONSIDERED)
)
_ENDED = (
    select(*_COLUMNS)
    .outerjoin(*_NEWEST)
    .where(_S.id.in_(_LATEST.scalar_subquery()), ~PRIVATE, exists().where(_M.session_id == _S.id, *_SPOKEN))
    .order_by(_S.updated_at.desc(), _S.id.desc())
    .limit(bindparam("sessions"))
    .offset(bindparam("skipped"))
)
_BY_ID = select(*_COLUMNS).outerjoin(*_NEWEST).where(_S.id.in_(bindparam("sessions", expanding=True)), ~PRIVATE)
_LAST = (
    MESSAGES.where(_M.session_id == bindparam("session"), *_SPOKEN, _M.id.not_in(bindparam("shown", expanding=True)))
    .order_by(_M.position.desc())
    .limit(MESSAGES_SHOWN)
)


class OtherSessions(NamedTuple):
    """Other sessions that a prompt may show by their gist.

    summaries: lines of those that fit the query. of_hits: summaries in full, of sessions that have hits, by their row
    ids, if the message points at earlier ones. endings: how the latest conversations ended.
    """

    summaries: Sequence[Excerpt] = ()
    of_hits: Mapping[int, Excerpt] = {}
    endings: tuple[Excerpt, ...] = ()

    @property
    def in_full(self) -> set[int]:
        """Return the row ids of the sessions whose summaries may be shown in full."""
        return {gist.session_row_id for excerpt in self.endings if (gist := excerpt.gist)}.union(self.of_hits)


def latest_lines(tx: Connection, scope: SearchScope, budget: int, page: str) -> tuple[Excerpt, ...]:
    """Return a line for each of the owner's latest conversations but the scope's own, in at most `budget` tokens."""
    rows = _ended(tx, scope, CONSIDERED)
    return _within([_gist_alone(row, 1 / rank, _AS_LATEST) for rank, row in enumerate(rows, 1)], budget, page)


def latest_endings(tx: Connection, scope: SearchScope, budget: int, page: str, place: int) -> tuple[Excerpt, ...]:
    """Return how the owner's latest conversations but the scope's own ended, in at most `budget` tokens.

    page: the address of Recap's page, see `excerpt_block`. place: of the first conversation, counted from the newest.
    """
    rows = _ended(tx, scope, SESSIONS, place - 1)
    excerpts = [_gist_alone(row, 1 / rank, _AS_LATEST, in_full=rank == 1) for rank, row in enumerate(rows, 1)]
    if excerpts:
        excerpts[0] = replace(excerpts[0], messages=_last(tx, rows[0].id))
    return _within(excerpts, budget, page)


def _ended(tx: Connection, scope: SearchScope, sessions: int, skipped: int = 0) -> Sequence[Any]:
    of_scope = {"owner": scope.owner_id, "session": scope.session_row_id or 0}
    return tx.execute(_ENDED, {**of_scope, "sessions": sessions, "skipped": skipped}).all()


def _gist_alone(row: Any, score: float, why: Mapping[str, float], *, in_full: bool = False) -> Excerpt:
    """Return a session as its gist shows it, without messages."""
    return Excerpt(row.public_id, row.title, (), (), round(score, 4), why, gist_of(row, in_full=in_full))


def own_ending(tx: Connection, scope: SearchScope, budget: int, page: str) -> tuple[Excerpt, ...]:
    """Return the last messages of the scope's session that its prompt does not show, in at most `budget` tokens."""
    messages = _last(tx, scope.session_row_id or 0, scope.exclude)
    return (
        _within([Excerpt(messages[0].session_id, "", messages, (), 1.0, _AS_LATEST)], budget, page) if messages else ()
    )


def find_summaries(
    tx: Connection, index: SearchIndex, scope: SearchScope, prepared: PreparedQuery, limit: int
) -> list[Excerpt]:
    """Return lines of the summaries of other sessions that fit a query, best first."""
    summaries = facts_and_summaries(tx, "summary", scope.owner_id, None, SUMMARIES_MAX)
    texts = [summary.searchable for summary in summaries if summary.session_row_id != scope.session_row_id]
    hits = index.rank_texts(prepared.with_fields(limit=limit), texts)
    gate = FOREIGN_SUMMARY if prepared.is_foreign else OTHER
    fits = {hit.session_id: round(hit.fit, 4) for hit in hits if gate.is_open([hit])}
    rows = {row.id: row for row in tx.execute(_BY_ID, {"sessions": list(fits)})} if fits else {}
    return [_gist_alone(rows[id], fit, {"summary": fit}) for id, fit in fits.items() if id in rows]


def nearest_summary(summaries: Sequence[Excerpt], excerpts: Sequence[Excerpt], budget: int) -> tuple[Excerpt, ...]:
    """Return the first of the `summaries` whose session has no excerpt, if it fits what these leave of the budget."""
    shown = {excerpt.session_id for excerpt in excerpts}
    best = next((summary for summary in summaries if summary.session_id not in shown), None)
    if best is None:
        return ()
    room = budget - sum(map(_words_cost, excerpts))
    return (best,) if room >= LINE_TOKENS_MIN and _words_cost(best) <= room else ()


def read_summaries(tx: Connection, sessions: Collection[int]) -> dict[int, Excerpt]:
    """Return the summaries in full of the sessions with these row ids, by these ids; none that is its topic alone."""
    rows = tx.execute(_BY_ID, {"sessions": list(sessions)})
    summaries = {row.id: _gist_alone(row, 0.0, {}, in_full=True) for row in rows}
    return {id: summary for id, summary in summaries.items() if summary.gist and len(summary.gist.lines) > 1}


def summaries_of_hits(summaries: Mapping[int, Excerpt], hits: Sequence[Hit], budget: int) -> tuple[list[Excerpt], int]:
    """Return the summaries of the hits' sessions that half of the budget has room for, and what they leave of it.

    The session with most of the hits' scores comes first.  summaries: by the row ids of their sessions.
    """
    scores = defaultdict[int, float](float)
    for hit in hits:
        scores[hit.session_id] += hit.score
    shown: list[Excerpt] = []
    least = budget - budget // 2
    for session in sorted(scores.keys() & summaries.keys(), key=scores.__getitem__, reverse=True):
        if (left := budget - _words_cost(summaries[session])) >= least:
            shown.append(summaries[session])
            budget = left
    return shown, budget


def with_summaries(excerpts: Sequence[Excerpt], summaries: Sequence[Excerpt]) -> tuple[Excerpt, ...]:
    """Return the excerpts, with summaries before the messages of their sessions or, if these have none, at the end."""
    gists = {summary.session_id: summary.gist for summary in summaries}
    shown = {excerpt.session_id for excerpt in excerpts}
    with_messages = [replace(excerpt, gist=gists.get(excerpt.session_id)) for excerpt in excerpts]
    return *with_messages, *(summary for summary in summaries if summary.session_id not in shown)


def _words_cost(excerpt: Excerpt) -> int:
    """Return the tokens of an excerpt without its address, as RECALL_TOKENS counts them."""
    return tokens.estimate(excerpt_block(excerpt)) - tokens.estimate(addresses(excerpt)["uri"])


def gist_of(row: Any, *, in_full: bool) -> Gist:
    """Return the gist of a session, from its columns `id`, `title`, `updated_at`, `summary_id` and `sections`."""
    sections = Sections.from_dict(row.sections) if row.sections else Sections()
    title, topic = one_line(row.title), one_line(sections.topic)
    lines = {"Topic": [topic or title]}
    if in_full:
        for name in IN_FULL:
            if items := getattr(sections, name):
                lines[_TITLES[name]] = list(map(str, items))
    elif title and topic not in ("", title):
        lines["Topic"] = [f"{title}: {topic}"]
    room = GIST_TOKENS if in_full else LINE_TOKENS
    fitting: dict[str, str] = {}
    for name in sorted(lines, key=lambda name: sum(map(len, lines[name]))):  # short lines leave longer ones their room
        fitting[name] = _fit_line(name, lines[name], room // (len(lines) - len(fitting)))
        room -= tokens.estimate(fitting[name])
    return Gist(row.id, row.summary_id, row.updated_at, tuple(fitting[name] for name in lines), in_full)


def _fit_line(name: str, items: Sequence[str], room: int) -> str:
    """Return a line of the items that fit `room` tokens whole; if none does, of the first one's beginning."""
    line = ""
    shown = 0
    for item in items:
        longer = f"{line}; {item}" if shown else f"{name}: {item}"
        if tokens.estimate(longer if shown + 1 == len(items) else f"{longer}; …") <= room:
            line = longer
            shown += 1
    if not shown:
        return tokens.truncate(f"{name}: {items[0]}", room)
    return line if shown == len(items) else f"{line}; …"


def read_gists(tx: Connection, stored: Sequence[tuple[int, int | None, bool]]) -> dict[int, tuple[Gist, str, str]]:
    """Return the gists of excerpts with the ids and titles of their sessions, by the row ids of these.

    stored: of each gist the session's row id, the summary's id and `in_full`.  Erased sessions are left out.
    """
    if not stored:
        return {}
    in_full = {row_id: full for row_id, _, full in stored}
    summary_ids = [summary_id for _, summary_id, _ in stored if summary_id is not None]
    query = select(*_COLUMNS).outerjoin(SummaryRow.__table__, (_V.session_id == _S.id) & _V.id.in_(summary_ids))
    rows = tx.execute(query.where(_S.id.in_(in_full)))
    return {row.id: (gist_of(row, in_full=in_full[row.id]), row.public_id, row.title) for row in rows}


def _last(tx: Connection, session_row_id: int, shown: Collection[int] = ()) -> tuple[Message, ...]:
    """Return the last messages of a session, each cut."""
    rows = tx.execute(_LAST, {"session": session_row_id, "shown": list(shown)}).all()
    return tuple(truncate_message(Message._make(row), found=False) for row in reversed(rows))


def _within(excerpts: Sequence[Excerpt], budget: int, page: str) -> tuple[Excerpt, ...]:
    """Return the first excerpts that fit `budget`.  The oldest messages are left out first, then whole excerpts."""
    kept = []
    for excerpt in excerpts:
        while (cost := tokens.estimate(excerpt_block(excerpt, page=page))) > budget and excerpt.messages:
            excerpt = replace(excerpt, messages=excerpt.messages[1:])
        if cost > budget or not (excerpt.messages or excerpt.gist):
            break
        budget -= cost
        kept.append(excerpt)
    return tuple(kept)
