"""Budgets: how many tokens the model calls made for an owner may take on a day of UTC.

The main model's tokens and the mini model's count alike: those of turns, stored or not, of summaries, refused ones
included, and of previews.  What a turn or a summary took is written in the transaction that stores it; what left
nothing to store is written by itself.

Guarantee: once an owner has taken DAILY_TOKENS, nothing new is begun for them before the next day, on any worker or
node.  What has begun comes to its end: a day may end above its budget by the calls that were under way when it was
reached, and by the summaries of what was said until then.  A budget that can't be read lets nobody through.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta

from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from config import Settings
from memory.access.owners import find_user
from memory.domain import Caller, Usage
from memory.errors import LimitReached
from models import Database, OwnerRow, SessionRow, SpendingRow, Transaction

log = logging.getLogger(__name__)

_SPENDING = SpendingRow.__table__
_S = _SPENDING.c
_ON_DAY = _S.owner_id == bindparam("owner"), _S.day == bindparam("on")
_SPENT = select(_S.tokens).where(*_ON_DAY)
_MORE = update(_SPENDING).where(*_ON_DAY).values(tokens=_S.tokens + bindparam("more")).returning(_S.tokens)
_FIRST = insert(_SPENDING)

PATIENCE = 2.0  # seconds a call that is over waits to be counted by itself; whoever asked waits as long for the answer


class Budgets:
    """Counts what owners spend, and says when it is enough."""

    def __init__(self, settings: Settings, database: Database, now: Callable[[], datetime]) -> None:
        self._most = settings.daily_tokens
        self._database = database
        self._now = now

    def check(self, tx: Transaction, owner_id: int | None) -> None:
        """Raises LimitReached when the owner's day is spent.  An owner without a row (None) has spent nothing."""
        now = self._now()
        if not self._most or owner_id is None or spent_today(tx, owner_id, now) < self._most:
            return
        opens = datetime.combine(_day(now) + timedelta(days=1), time(), UTC)
        raise LimitReached(
            "daily_tokens_spent",
            f"The {self._most:,} tokens a day that this server gives a person are spent. Nothing of this request was "
            f"stored. The next day begins at {opens:%Y-%m-%d %H:%M} UTC; send it again then.",
            retry_after=(opens - now).total_seconds(),
        )

    def check_caller(self, caller: Caller, session_id: str | None) -> None:
        """The same for whoever a call is made for, in a transaction of its own."""
        if self._most:
            with self._database.read() as tx:
                self.check(tx, owner_of(tx, caller, session_id))

    def spend(self, tx: Transaction, owner_id: int, spent: Sequence[Usage]) -> None:
        """Count what calls took, in the transaction that stores what they were for."""
        tokens = sum(usage.total_tokens for usage in spent)
        if not tokens:
            return
        now = self._now()
        more = {"owner": owner_id, "on": _day(now), "more": tokens}
        if tx.scalar(_MORE, more) is not None:
            return
        try:
            with tx.begin_nested():
                tx.execute(_FIRST, {"owner_id": owner_id, "day": _day(now), "tokens": tokens})
        except IntegrityError:  # another node's turn was the day's first at the same moment
            tx.execute(_MORE, more)

    def charge(self, owner_id: int, spent: Sequence[Usage]) -> None:
        """Count what calls took that left nothing to store: a temporary turn, one that failed half-way, a preview.

        Not for an owner who was erased meanwhile.  What can't be written is logged, and what it paid for is given.
        """
        self._alone(spent, lambda tx: tx.scalar(select(OwnerRow.id).where(OwnerRow.id == owner_id)))

    def charge_caller(self, caller: Caller, session_id: str | None, spent: Sequence[Usage]) -> None:
        """The same where no owner is known yet.

        Where there is a budget, a person of whom nothing is stored becomes an owner by it, or temporary turns would
        cost nothing.  Where nobody is named there is nobody to count it for.
        """
        self._alone(spent, lambda tx: owner_of(tx, caller, session_id) or self._made(tx, caller))

    def _alone(self, spent: Sequence[Usage], owner: Callable[[Transaction], int | None]) -> None:
        if not any(usage.total_tokens for usage in spent):
            return
        try:
            with self._database.write(PATIENCE) as tx:
                owner_id = owner(tx)
                if owner_id is not None:
                    self.spend(tx, owner_id, spent)
        except SQLAlchemyError as error:
            log.error("the tokens of a model call could not be counted", exc_info=error)

    def _made(self, tx: Transaction, caller: Caller) -> int | None:
        if caller.user_id is None or not self._most:
            return None
        owner = OwnerRow(tenant=caller.tenant, kind="user", name=caller.user_id, created_at=self._now())
        tx.add(owner)
        tx.flush()
        return owner.id


def spent_today(tx: Transaction, owner_id: int, now: datetime) -> int:
    """What the owner's model calls have taken on the day of `now`."""
    return tx.scalar(_SPENT, {"owner": owner_id, "on": _day(now)}) or 0


def owner_of(tx: Transaction, caller: Caller, session_id: str | None) -> int | None:
    """The row of the owner a call is made for: the person it names, else the owner of the session; None: no row yet."""
    if caller.user_id is not None:
        owner = find_user(tx, caller)
        return owner.id if owner is not None else None
    if session_id is None:
        return None
    named = SessionRow.tenant == caller.tenant, SessionRow.public_id == session_id
    return tx.scalar(select(SessionRow.owner_id).where(*named))


def _day(now: datetime) -> date:
    return now.astimezone(UTC).date()
