"""From messages that were found to excerpts a prompt can show: windows around them, merged, within a token budget.

The best hits come first for as long as the budget lasts; a window gives up its edges before its hit, and what does
not fit is passed over for what does.  What is found of one session is one excerpt, since its tags cost as much as a
message.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from sqlalchemy import and_, bindparam, or_, select

from memory import tokens
from memory.domain import Excerpt, Message
from memory.rendering import GAP, chat_block, undated_line
from memory.sessions.messages import COLUMNS, SAID, of_columns
from models import MessageRow, SessionRow, Transaction
from search_index import Hit

HIT_TOKENS, NEIGHBOUR_TOKENS = 200, 80  # of one message in an excerpt; replies can be long
NAMED_DAY = "2024-03-01 "  # as it stands in a line

_M, _S = MessageRow.__table__.c, SessionRow.__table__.c
_SAID = select(_M.session_id, _S.title, *COLUMNS).join(SessionRow.__table__, _S.id == _M.session_id).where(*SAID)
# By their ids: with its column alone SQLite would take the index of owners, and go through all that this one has.
_OF_OWNER = _M.owner_id + 0 == bindparam("owner")
_AMONG = _SAID.where(_M.id.in_(bindparam("ids", expanding=True)), _OF_OWNER)


class Stored(NamedTuple):
    """A message, and its session's row id and title."""

    message: Message
    session_id: int
    title: str


def stored(tx: Transaction, owner_id: int, ids: Sequence[int]) -> dict[int, Stored]:
    """The owner's messages among `ids`, by id; another owner's, replaced and erased ones are left out."""
    return {one.message.id: one for one in _stored(tx.execute(_AMONG, {"ids": ids, "owner": owner_id}))}


def around(tx: Transaction, found: Iterable[Stored], reach: int) -> list[Stored]:
    """All messages within `reach` positions of any of `found`, these included, by session and position.

    They are of the current line, as all that is found.
    """
    near = [
        and_(
            _M.session_id == one.session_id,
            _M.position.between(one.message.position - reach, one.message.position + reach),
        )
        for one in found
    ]
    if not near:
        return []
    return _stored(tx.execute(_SAID.where(or_(*near)).order_by(_M.session_id, _M.position)))


def _stored(rows: Iterable[Sequence[Any]]) -> list[Stored]:
    return [Stored(of_columns(columns), session_id, title) for session_id, title, *columns in rows]


def excerpts(
    tx: Transaction,
    found: Mapping[int, Stored],
    hits: Sequence[Hit],
    *,
    budget: int,
    reach: int,
    exclude: Collection[int] = (),
) -> tuple[Excerpt, ...]:
    """Excerpts of at most `budget` tokens, as they are quoted, for `hits` (the best first) among the rows `found`.

    `reach` messages on either side of a hit are shown with it; those in `exclude` never are.
    """
    best = {hit.message_id: hit for hit in hits if hit.message_id in found}
    near = around(tx, (found[message_id] for message_id in best), reach) if reach else []
    shown: dict[int, list[Message]] = {}  # by session
    days: dict[int, set[date]] = {}  # on which those were said
    seen = set(exclude)
    for message_id in best:
        hit = found[message_id]
        for one in _window(hit, near, reach) if reach else [hit]:
            if one.message.id in seen:
                continue
            message = shown_in_part(one.message, found=one.message.id in best)
            if _surely_over(message.content, budget):
                break
            day = message.created_at.date()
            on = days.get(one.session_id)
            cost = cost_of(message, first=on is None, same_day=on == {day})
            if cost > budget:
                break
            budget -= cost
            seen.add(message.id)
            shown.setdefault(one.session_id, []).append(message)
            days.setdefault(one.session_id, set()).add(day)
    titles = {one.message.session_id: one.title for one in found.values()}
    return tuple(sorted(_made(shown.values(), best, titles), key=lambda excerpt: -excerpt.score))


def _window(hit: Stored, near: Sequence[Stored], reach: int) -> Sequence[Stored]:
    """What is shown around a hit, itself first and then the nearest."""

    def distance(one: Stored) -> int:
        return abs(one.message.position - hit.message.position)

    return sorted((one for one in near if one.session_id == hit.session_id and distance(one) <= reach), key=distance)


def shown_in_part(message: Message, *, found: bool) -> Message:
    """A message as an excerpt shows it: cut to its budget, which is larger for one that was `found`."""
    content = tokens.clip(message.content, HIT_TOKENS if found else NEIGHBOUR_TOKENS)
    return message if content == message.content else message._replace(content=content)


def _surely_over(text: str, budget: int) -> bool:
    """Whether a text costs more than the budget however it is quoted: of plain characters quoting drops none.  Once the
    first hits have taken most of a budget, that is seen of most others, and at a tenth of what `cost_of` takes."""
    return tokens.estimate(text) > budget and text.isascii() and text.isprintable()


def cost_of(message: Message, *, first: bool, same_day: bool = True) -> int:
    """Tokens of one more message in an excerpt: of a line and a gap, or as the `first` of a session, of a block.

    Unless it was said on the `same_day` as all the others, it and two lines more may have to name their days.
    """
    if first:
        return tokens.estimate(chat_block(Excerpt(message.session_id, "", (message,), (), 0.0))) + 1
    named = "" if same_day else 3 * NAMED_DAY
    return tokens.estimate(f"{GAP}\n{named}{undated_line(message)}\n") + 1


def _made(sessions: Iterable[list[Message]], best: Mapping[int, Hit], titles: Mapping[str, str]) -> Iterator[Excerpt]:
    for messages in sessions:
        hits = sorted((best[message.id] for message in messages if message.id in best), key=lambda hit: -hit.score)
        if hits:
            of = messages[0].session_id
            in_order = tuple(sorted(messages, key=lambda message: message.position))
            ids = tuple(hit.message_id for hit in hits)
            yield Excerpt(of, titles.get(of, ""), in_order, ids, hits[0].score, hits[0].why)
