"""Budgets: how many tokens the model calls for an owner may take on a day of UTC.

The calls of the main and the mini model count alike: turns, summaries and previews, also those that failed or were not
stored.  What a turn or a summary took is written in the transaction that stores it.

Guarantee: once an owner has taken DAILY_TOKENS, no worker or node begins anything new for them before the next day.
What has begun ends, so a day may exceed its budget by the calls that were under way.  If a budget cannot be read,
nothing begins.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, time, timedelta

from sqlalchemy import bindparam, select
from sqlalchemy.exc import SQLAlchemyError

from config import Settings
from memory.access.owners import find_or_make_owner, find_owner
from memory.errors import LimitReached
from models import Database, OwnerRow, SessionRow, SpendingRow, Transaction, Upsert
from models.owners import Caller, Usage

log = logging.getLogger(__name__)

LOCK_TIMEOUT_SECONDS = 2.0  # seconds that a charge waits to be written; the client waits as long for its answer

_S = SpendingRow.__table__.c
_SPENT = select(_S.tokens).where(_S.owner_id == bindparam("owner"), _S.day == bindparam("on"))
_ADD = Upsert(SpendingRow, ("owner_id", "day"), lambda new: {"tokens": _S.tokens + new.tokens})


class Budgets:
    """Counts what owners spend, and refuses more than their budget."""

    def __init__(self, settings: Settings, database: Database, now: Callable[[], datetime]) -> None:
        self._most = settings.daily_tokens
        self._database = database
        self._now = now

    def check(self, tx: Transaction, owner_id: int | None) -> None:
        """Raises LimitReached when the owner's day is spent.  An owner without a row (None) has spent nothing."""
        now = self._now()
        if not self._most or owner_id is None or spent_today(tx, owner_id, now) < self._most:
            return
        opens = datetime.combine(now.date() + timedelta(days=1), time(), UTC)
        raise LimitReached(
            "daily_tokens_spent",
            f"The {self._most:,} tokens a day that this server gives a person are spent. Nothing of this request was "
            f"stored. The next day begins at {opens:%Y-%m-%d %H:%M} UTC; send it again then.",
            retry_after=(opens - now).total_seconds(),
        )

    def remaining(self, tx: Transaction, owner_id: int) -> float:
        """The tokens that are left of the owner's day; without DAILY_TOKENS there is no end to them."""
        return self._most - spent_today(tx, owner_id, self._now()) if self._most else math.inf

    def check_caller(self, caller: Caller, session_id: str | None) -> None:
        """`check` in a transaction of its own, for the owner that the caller or the session names."""
        if self._most:
            with self._database.read() as tx:
                self.check(tx, owner_of(tx, caller, session_id))

    def add_usage(self, tx: Transaction, owner_id: int, spent: Sequence[Usage]) -> None:
        """Count what calls took, in the transaction that stores what they were for."""
        tokens = sum(usage.total_tokens for usage in spent)
        if tokens:
            _ADD.execute(tx, [{"owner_id": owner_id, "day": self._now().date(), "tokens": tokens}])

    def add_usage_now(self, owner_id: int, spent: Sequence[Usage]) -> None:
        """Count calls that left nothing to store: a temporary turn, a failed one, a preview.

        Does nothing for an owner who was erased meanwhile.  A failing database is logged: the client gets its answer.
        """
        self._alone(spent, lambda tx: tx.scalar(select(OwnerRow.id).where(OwnerRow.id == owner_id)))

    def add_caller_usage_now(self, caller: Caller, session_id: str | None, spent: Sequence[Usage]) -> None:
        """`add_usage_now` for the owner that the caller or the session names.

        With a budget, a person of whom nothing is stored yet becomes an owner, or their temporary turns would be free.
        """
        self._alone(spent, lambda tx: owner_of(tx, caller, session_id) or self._made(tx, caller))

    def _alone(self, spent: Sequence[Usage], owner: Callable[[Transaction], int | None]) -> None:
        if not any(usage.total_tokens for usage in spent):
            return
        try:
            with self._database.write(LOCK_TIMEOUT_SECONDS) as tx:
                owner_id = owner(tx)
                if owner_id is not None:
                    self.add_usage(tx, owner_id, spent)
        except SQLAlchemyError as error:
            log.error("the tokens of a model call could not be counted", exc_info=error)

    def _made(self, tx: Transaction, caller: Caller) -> int | None:
        if caller.user_id is None or not self._most:
            return None
        return find_or_make_owner(tx, caller, self._now()).id


def spent_today(tx: Transaction, owner_id: int, now: datetime) -> int:
    """The tokens that the owner's model calls took on the day of `now`."""
    return tx.scalar(_SPENT, {"owner": owner_id, "on": now.date()}) or 0


def owner_of(tx: Transaction, caller: Caller, session_id: str | None) -> int | None:
    """The id of the person whom the caller names, else of the session's owner; None if there is no row yet."""
    if caller.user_id is not None:
        owner = find_owner(tx, caller)
        return owner.id if owner is not None else None
    named = SessionRow.tenant == caller.tenant, SessionRow.public_id == session_id
    return tx.scalar(select(SessionRow.owner_id).where(*named))
