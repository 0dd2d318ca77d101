"""From messages that were found to excerpts a prompt can show: windows around them, merged, within a token budget.

The best hits come first for as long as the budget lasts; a window gives up its edges before its hit, and what does
not fit is passed over for what does.  What is found of one session is one excerpt, since its tags cost as much as a
message.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from memory import tokens
from memory.domain import Excerpt, Message
from memory.messages import as_message
from memory.quoting import GAP, chat_block, message_line
from models import MessageRow, SessionRow
from search_index import Hit

HIT_TOKENS, NEIGHBOUR_TOKENS = 200, 80  # of one message in an excerpt; replies can be long

Found = Mapping[int, tuple[MessageRow, SessionRow]]


def rows_of(tx: Session, owner_id: int, ids: Sequence[int]) -> dict[int, tuple[MessageRow, SessionRow]]:
    """The owner's messages among `ids`, with their sessions; another owner's and replaced ones are left out."""
    query = (
        select(MessageRow, SessionRow)
        .join(SessionRow, SessionRow.id == MessageRow.session_id)
        .where(MessageRow.id.in_(ids), MessageRow.owner_id == owner_id, MessageRow.branch == 0)
    )
    return {row.id: (row, session) for row, session in tx.execute(query)}


def around(tx: Session, rows: Iterable[MessageRow], reach: int) -> list[MessageRow]:
    """All messages within `reach` positions of any of `rows`, these included, by session and position.

    `rows` are of the current line, as all that is found.
    """
    near = [
        and_(
            MessageRow.session_id == row.session_id,
            MessageRow.branch == 0,
            MessageRow.position.between(row.position - reach, row.position + reach),
        )
        for row in rows
    ]
    if not near:
        return []
    return list(tx.scalars(select(MessageRow).where(or_(*near)).order_by(MessageRow.session_id, MessageRow.position)))


def excerpts(
    tx: Session, found: Found, hits: Sequence[Hit], *, budget: int, reach: int, exclude: Collection[int] = ()
) -> tuple[Excerpt, ...]:
    """Excerpts of at most `budget` tokens, as they are quoted, for `hits` (the best first) among the rows `found`.

    `reach` messages on either side of a hit are shown with it; those in `exclude` never are.
    """
    best = {hit.message_id: hit for hit in hits if hit.message_id in found}
    if reach:
        near = around(tx, (found[message_id][0] for message_id in best), reach)
    else:
        near = [row for row, _ in found.values()]
    shown: dict[int, list[Message]] = {}  # by session
    seen = set(exclude)
    for message_id in best:
        hit, session = found[message_id]
        window = [row for row in near if row.session_id == hit.session_id and abs(row.position - hit.position) <= reach]
        for row in sorted(window, key=lambda row: abs(row.position - hit.position)):
            if row.id in seen:
                continue
            message = shown_in_part(as_message(row, session), found=row.id in best)
            beside = shown.setdefault(row.session_id, [])
            cost = cost_of(message, first=not beside)
            if cost > budget:
                break
            budget -= cost
            seen.add(row.id)
            beside.append(message)
    titles = {session.public_id: session.title for _, session in found.values()}
    return tuple(sorted(_made(shown.values(), best, titles), key=lambda excerpt: -excerpt.score))


def shown_in_part(message: Message, *, found: bool) -> Message:
    """A message as an excerpt shows it: cut to its budget, which is larger for one that was `found`."""
    return replace(message, content=tokens.clip(message.content, HIT_TOKENS if found else NEIGHBOUR_TOKENS))


def cost_of(message: Message, *, first: bool) -> int:
    """Tokens of one more message in an excerpt: of a line and a gap, or as the `first` of a session, of a block."""
    alone = Excerpt(message.session_id, "", (message,), (), 0.0)
    return tokens.estimate(chat_block(alone) if first else f"{GAP}\n{message_line(message)}\n") + 1


def _made(sessions: Iterable[list[Message]], best: Mapping[int, Hit], titles: Mapping[str, str]) -> Iterator[Excerpt]:
    for messages in sessions:
        hits = sorted((best[message.id] for message in messages if message.id in best), key=lambda hit: -hit.score)
        if hits:
            of = messages[0].session_id
            in_order = tuple(sorted(messages, key=lambda message: message.position))
            ids = tuple(hit.message_id for hit in hits)
            yield Excerpt(of, titles.get(of, ""), in_order, ids, hits[0].score, hits[0].why)
