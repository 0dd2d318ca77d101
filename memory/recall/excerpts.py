"""Make excerpts of the messages that a search found, as a prompt shows them: windows, merged, within a token budget.

The best hits fill the budget, short ones before long ones that are little better; a window gives up its edges before
its hit.  For a list question all hits are shown, each cut to an even share of the budget.  What is found of one session
is one excerpt, since its tags cost as much as a message.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, tzinfo
from itertools import chain, takewhile
from math import fsum
from operator import itemgetter
from typing import NamedTuple
from urllib.parse import quote

from sqlalchemy import Connection, and_, bindparam, or_, select, true

from memory import tokens
from memory.quoting import GAP, escape, message_line, message_lines, tagged
from memory.sessions.messages import INDEXED, MESSAGES, QUOTABLE
from models import MessageRow, SessionRow
from models.base import local_time
from models.messages import PASSAGE, Excerpt, Message, in_zone
from search_index import Hit
from search_index.analysis import DEFAULT_ANALYSIS, Analysis

HIT_TOKENS, NEIGHBOUR_TOKENS = 200, 80  # of one message in an excerpt; replies can be long
EVEN_TOKENS_MIN = 20  # of one message beside many; less says too little
AROUND_TEXT_TOKENS = 8  # of a line: its time, speaker and line ends
LENGTH_POWER = 0.1  # of its tokens, by which a hit's score is divided: twice as long is worth a 15th less
TITLE_TOKENS, URI_CHARS_SHOWN = 20, 200  # of a document, with each excerpt
NAMED_DAY = "2024-03-01 "  # as it stands in a line
_FRAME = tagged("chat", [""], updated_at=NAMED_DAY.strip())  # what stands around the lines of a session
_SPEAKER = "12:00 assistant: "  # before the words of a line
SEARCHED_CHARS = 40_000  # of a long message, in which the part is looked for that an excerpt shows
_PIECE = re.compile(
    r"[^.!?。！？\n]{1,200}(?:[.!?。！？\n]+\s*|(?<=\s)|$)|.{1,200}", re.S
)  # a sentence, or part of one
Spans = Sequence[tuple[datetime | None, datetime | None]]

_M = MessageRow.__table__.c
_HITS = MessageRow.__table__.alias("hit")
_HIT = _HITS.c
_IN_WINDOWS = (
    MESSAGES.add_columns(_M.session_id, SessionRow.title)
    .join(
        _HITS,
        (_HIT.session_id == _M.session_id)
        & _M.position.between(_HIT.position - bindparam("window_size"), _HIT.position + bindparam("window_size")),
    )
    # The hits by their ids: with the owner's column alone SQLite would go through all that this owner has.
    .where(_HIT.id.in_(bindparam("ids", expanding=True)), _HIT.owner_id + 0 == bindparam("owner"))
    .where(_HIT.branch == 0, _HIT.erased_at.is_(None), _HIT.refused.is_(None), *QUOTABLE)
    .order_by(_M.session_id, _M.position)
)


class LocatedMessage(NamedTuple):
    """Message with its session's row id and title."""

    message: Message
    session_row_id: int
    title: str


def messages_of(loaded: Mapping[int, LocatedMessage]) -> list[Message]:
    """Return the messages of windows that were loaded."""
    return [located.message for located in loaded.values()]


def load_windows(tx: Connection, owner_id: int, ids: Sequence[int], window_size: int) -> dict[int, LocatedMessage]:
    """Load the owner's messages with these `ids` and their neighbours, by id, in their order.

    window_size: positions on either side of a message that its neighbours have.

    Another owner's, replaced, erased and refused messages are left out.
    """
    if not ids:
        return {}
    rows = tx.execute(_IN_WINDOWS, {"ids": ids, "owner": owner_id, "window_size": window_size}).all()
    # The last two columns are those beside the message's own.
    return {row.id: LocatedMessage(Message._make(row[:-2]), row[-2], row[-1]) for row in rows}


def find_in_spans(
    tx: Connection, owner_id: int, session_row_id: int | None, spans: Spans, limit: int, exclude: Collection[int]
) -> list[int]:
    """Return the ids of the latest messages of an owner, or of one session, in any of the `spans`."""
    within = [
        and_(true() if after is None else _M.created_at >= after, true() if before is None else _M.created_at < before)
        for after, before in spans
    ]
    query = select(_M.id).where(_M.owner_id == owner_id, *INDEXED, _M.role != PASSAGE, or_(*within))
    if session_row_id is not None:
        query = query.where(_M.session_id == session_row_id)
    newest = tx.scalars(query.order_by(_M.created_at.desc(), _M.id.desc()).limit(limit + len(exclude)))
    return [message_id for message_id in newest if message_id not in exclude][:limit]


def windows(
    loaded: Mapping[int, LocatedMessage], ids: Collection[int], window_size: int
) -> dict[int, list[LocatedMessage]]:
    """Return each message with those within `window_size` positions of it, the nearest first."""
    places = {(located.session_row_id, located.message.position): located for located in loaded.values()}
    steps = sorted(range(-window_size, window_size + 1), key=abs)
    nearest = {}
    for message_id in ids:
        hit = loaded[message_id]
        around = [places.get((hit.session_row_id, hit.message.position + step)) for step in steps]
        nearest[message_id] = [located for located in around if located is not None]
    return nearest


def make_excerpts(  # noqa: PLR0913 - what was found, by what, and how much of it is shown
    loaded: Mapping[int, LocatedMessage],
    hits: Sequence[Hit],
    *,
    budget: int,
    window_size: int,
    exclude: Collection[int] = (),
    evenly: bool = False,
    terms: Collection[str] = (),
    analysis: Analysis = DEFAULT_ANALYSIS,
) -> tuple[Excerpt, ...]:
    """Return excerpts of at most `budget` tokens, as they are quoted, for the loaded `hits`, which are best first.

    loaded: the hits and their neighbours, by id.
    window_size: messages on either side of a hit that are shown with it.
    exclude: ids of messages that are never shown. evenly: cut the hits so that all of them are shown.
    terms: of the query, by this `analysis`; of a long hit the part is shown that has them.
    """
    best = {hit.message_id: hit for hit in hits if hit.message_id in loaded}
    most = _even_share([loaded[message_id] for message_id in best], budget) if evenly else None
    hit_tokens = most or HIT_TOKENS
    located_by_session: dict[int, list[LocatedMessage]] = {}
    days: dict[int, set[date]] = {}  # on which those were said
    seen = set(exclude)
    starts: dict[int, int] = {}

    def worth(message_id: int) -> float:
        size = AROUND_TEXT_TOKENS + min(loaded[message_id].message.tokens, hit_tokens)
        return best[message_id].score / size**LENGTH_POWER

    for around in windows(loaded, sorted(best, key=worth, reverse=True), window_size).values():
        for near in around:
            if near.message.id in seen:
                continue
            if min(near.message.tokens, hit_tokens, NEIGHBOUR_TOKENS) > budget:
                break  # a line has at least the tokens of its text: it need not be made
            is_found = near.message.id in best
            start = _start_of(near.message.content, hit_tokens, terms, analysis) if is_found and terms else 0
            message = truncate_message(near.message, found=is_found, most=most, start=start)
            line = message_line(message)
            day = message.created_at.date()
            on = days.setdefault(near.session_row_id, set())
            cost = line_tokens(line, first=not on, same_day=on == {day})
            if cost > budget:
                break
            budget -= cost
            seen.add(message.id)
            if start:
                starts[message.id] = start
            located_by_session.setdefault(near.session_row_id, []).append(near._replace(message=message))
            on.add(day)
    excerpts = []
    for located in located_by_session.values():
        messages = sorted((near.message for near in located), key=lambda message: message.position)
        ids = {message.id for message in messages}
        if hit_ids := [message_id for message_id in best if message_id in ids]:
            excerpt = Excerpt(
                session_id=messages[0].session_id,
                title=located[0].title,
                messages=tuple(messages),
                hits=tuple(hit_ids),
                score=best[hit_ids[0]].score,
                why=best[hit_ids[0]].why,
                message_tokens=most,
                starts={id: starts[id] for id in ids & starts.keys()},
            )
            excerpts.append(excerpt)
    return tuple(sorted(excerpts, key=lambda excerpt: -excerpt.score))


def _even_share(hits: Sequence[LocatedMessage], budget: int) -> int:
    """Return the tokens to which hits are cut so that all fit the budget; what short ones leave is for the others."""
    days = {(hit.session_row_id, hit.message.created_at.date()) for hit in hits}
    sessions = len({hit.session_row_id for hit in hits})
    budget -= len(hits) * line_tokens(_SPEAKER, first=False, same_day=len(days) == sessions)
    budget -= sessions * tokens.estimate(_FRAME)
    for hits_left, size in zip(range(len(hits), 0, -1), sorted(hit.message.tokens for hit in hits), strict=True):
        if size * hits_left > budget:
            return max(EVEN_TOKENS_MIN, min(budget // hits_left, HIT_TOKENS))
        budget -= size
    return HIT_TOKENS


def _start_of(text: str, size: int, terms: Collection[str], analysis: Analysis) -> int:
    """Return where to begin a text so that `size` tokens of it have most of these terms, rare ones before others.

    It begins with a sentence. Of several parts that are as good it is the first, of neighbours the one in their middle.
    """
    if tokens.estimate(text) <= size:
        return 0
    pieces = [piece for piece in _PIECE.finditer(text[:SEARCHED_CHARS]) if piece.group().strip()]
    sizes = [tokens.estimate(piece.group()) for piece in pieces]
    wanted = frozenset(terms)
    found = [wanted.intersection(analysis.terms(piece.group())) for piece in pieces]
    counts = Counter(chain.from_iterable(found))
    scores: list[float] = []
    # Of the part that begins with a piece, as far as `size` reaches:
    there = Counter[str]()
    used = 0
    end = 0
    for first, words in enumerate(found):
        while end < len(pieces) and used + sizes[end] <= size:
            there.update(found[end])
            used += sizes[end]
            end += 1
        scores.append(fsum([1 / counts[word] for word in there if there[word]]))
        if end > first:
            there.subtract(words)
            used -= sizes[first]
        end = max(end, first + 1)
    most = max(scores, default=0)
    if not most or scores[0] == most:
        return 0
    begin = scores.index(most)
    neighbours = sum(1 for _ in takewhile(lambda score: score == most, scores[begin:]))
    return pieces[begin + neighbours // 2].start()


def truncate_message(message: Message, *, found: bool, most: int | None = None, start: int = 0) -> Message:
    """Return a message as an excerpt shows it: cut to its budget, larger for one that was `found`, or to `most`.

    start: where what is shown begins.
    """
    usual = HIT_TOKENS if found else NEIGHBOUR_TOKENS
    content = tokens.truncate(message.content, usual if most is None else min(most, usual), start)
    return message if content == message.content else message._replace(content=content)


def line_tokens(line: str, *, first: bool, same_day: bool = True) -> int:
    """Return the tokens of one more message in an excerpt: of its line and a gap, or as the `first`, of a block.

    Unless it was said on the `same_day` as all the others, it and two lines more may have to name their days.
    """
    if first:
        return tokens.estimate(f"{_FRAME}{line}") + 1
    return tokens.estimate(f"{GAP}\n{'' if same_day else 3 * NAMED_DAY}{line}\n") + 1


# -- as a prompt quotes them


def excerpt_blocks(excerpts: Iterable[Excerpt], room: int, zone: tzinfo, page: str = "") -> tuple[list[str], int]:
    """Return the blocks of the first excerpts that fit into `room` tokens, and the room left.

    The oldest comes first, since a model reads that the later of two statements holds.
    zone, page: see `excerpt_block`.
    """
    kept = [(excerpt.updated_at, excerpt_block(excerpt, zone, page)) for excerpt in excerpts]
    blocks, room = tokens.fit_budget(room, (text for _, text in kept))
    return [text for _, text in sorted(kept[: len(blocks)], key=itemgetter(0))], room


def excerpt_block(excerpt: Excerpt, zone: tzinfo = UTC, page: str = "") -> str:
    """Return an excerpt as a block that names the day of what it shows, and where it stands.

    A document stands where it is from; without that, or where that is very long, at its address in Recap.
    zone: of its times. page: the address of Recap's page; with it the block also links to the message there.
    """
    messages = in_zone(excerpt.messages, zone)
    gist = excerpt.gist
    updated = local_time(excerpt.updated_at, zone).date()
    gist_lines = list(map(escape, gist.lines)) if gist is not None else []
    lines = [*gist_lines, *([GAP] if gist_lines and messages else ()), *message_lines(messages, updated)]
    if excerpt.is_document:
        own = (messages[0].extra or {}).get("uri", "")
        uri = own if 0 < len(own) <= URI_CHARS_SHOWN else f"recap://documents/{excerpt.session_id}"
        return tagged("document", lines, title=tokens.truncate(excerpt.title, TITLE_TOKENS), uri=uri, added=updated)
    return tagged("chat", lines, updated_at=updated, **addresses(excerpt, page))


def addresses(excerpt: Excerpt, page: str = "") -> dict[str, str]:
    """Return the attributes that say where an excerpt's best message stands: its URI and, with a `page`, its link."""
    session = quote(excerpt.session_id, safe="", errors="surrogatepass")
    uri = f"recap://sessions/{session}"
    url = f"{page}/#/{session}"
    if excerpt.hits or excerpt.messages:  # else it is a gist alone
        message_id = excerpt.hits[0] if excerpt.hits else excerpt.messages[-1].id
        uri += f"/messages/{message_id}"
        url += f"/{message_id}"
    return {"uri": uri, "url": url} if page else {"uri": uri}
