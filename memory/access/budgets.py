"""Budgets: the tokens that model calls for an owner may take on a day of UTC.

Calls of the main and the mini model count alike: turns, summaries and previews, also those that failed or were not
stored.

Invariants:
- Once an owner has taken DAILY_TOKENS, no worker or node begins anything new for them before the next day. Work under
  way ends, so a day may exceed its budget by it (test_budgets).
- Usage is written in the transaction that stores its turn or summary (test_budgets).
- If a budget cannot be read, nothing begins (test_budgets).
"""

import logging
import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, time, timedelta

from sqlalchemy import Connection, bindparam, delete, select
from sqlalchemy.exc import SQLAlchemyError

from config import Settings
from memory.access.owners import find_or_make_owner, find_owner, sessions_named
from memory.errors import LimitReached
from models import Database, OwnerRow, SpendingRow, Transaction, Upsert
from models.owners import Caller, Usage

log = logging.getLogger(__name__)

USAGE_LOCK_SECONDS = 2.0  # seconds that a charge waits to be written; the client waits as long for its answer

_S = SpendingRow.__table__.c
_SPENT = select(_S.tokens).where(_S.owner_id == bindparam("owner"), _S.day == bindparam("on"))
_FORGET = delete(SpendingRow).where(_S.owner_id == bindparam("owner"), _S.day < bindparam("on"))
_O = OwnerRow.__table__.c
_ACTING = select(_O.id).where(
    _O.tenant == bindparam("of_tenant"), _O.kind == "user", _O.name == bindparam("acting", type_=_O.name.type)
)
_ADD = Upsert(SpendingRow, ("owner_id", "day"), lambda new: {"tokens": _S.tokens + new.tokens})


class Budgets:
    """Counts the tokens of owners, and refuses more than their budget."""

    def __init__(self, settings: Settings, database: Database, now: Callable[[], datetime]) -> None:
        self._limit = settings.daily_tokens
        self._database = database
        self._now = now

    def check(self, tx: Transaction | Connection, owner_id: int | None, caller: Caller | None = None) -> None:
        """Raise LimitReached when the owner's day is spent. An owner without a row (None) has spent nothing.

        caller: who begins a turn. In a space the day of the person who acts counts too, or they would get more tokens
        by way of spaces.
        """
        if not self._limit:
            return
        now = self._now()
        owner_ids = [owner_id]
        if caller is not None and caller.space is not None:
            owner_ids.append(tx.scalar(_ACTING, _person(caller)))
        if all(spent_today(tx, owner_id, now) < self._limit for owner_id in owner_ids if owner_id is not None):
            return
        opens = datetime.combine(now.date() + timedelta(days=1), time(), UTC)
        raise LimitReached(
            "daily_tokens_spent",
            f"The {self._limit:,} tokens a day that this server gives a person are spent. Nothing of this request was "
            f"stored. The next day begins at {opens:%Y-%m-%d %H:%M} UTC; send it again then.",
            retry_after=(opens - now).total_seconds(),
        )

    def add_acting_usage(self, tx: Connection, caller: Caller, usage: Usage) -> None:
        """Count a call in a space for the person who acts there too, in the transaction that stores its result."""
        if caller.user_id is None:
            return
        person = tx.scalar(_ACTING, _person(caller))
        if person is None and self._limit:
            with self._database.orm(tx) as rows:
                person = self._new_owner(rows, Caller(caller.tenant, caller.user_id))
        if person is not None:
            self.add_usage(tx, person, [usage])

    def remaining(self, tx: Transaction, owner_id: int) -> float:
        """Return the tokens that are left of the owner's day: infinity without DAILY_TOKENS."""
        return self._limit - spent_today(tx, owner_id, self._now()) if self._limit else math.inf

    def check_caller(self, caller: Caller, session_id: str | None) -> None:
        """Run `check` in a transaction of its own, for the owner that the caller or the session names."""
        if self._limit:
            with self._database.read() as tx:
                self.check(tx, owner_of(tx, caller, session_id), caller)

    def add_usage(self, tx: Transaction | Connection, owner_id: int, usages: Sequence[Usage]) -> None:
        """Count calls in the transaction that stores their result."""
        tokens = sum(usage.total_tokens for usage in usages)
        if tokens:
            _ADD.execute(tx, [{"owner_id": owner_id, "day": self._now().date(), "tokens": tokens}])

    def forget_past_days(self, tx: Transaction | Connection, owner_id: int) -> None:
        """Delete what an owner took on earlier days, which limits nothing any more."""
        tx.execute(_FORGET, {"owner": owner_id, "on": self._now().date()})

    def add_usage_now(self, owner_id: int, usages: Sequence[Usage]) -> None:
        """Count calls without a result to store: a temporary turn, a failed one, a preview.

        Does nothing for an owner who was erased meanwhile. A failing database is logged: the client gets its answer.
        """
        self._add(usages, lambda tx: tx.scalar(select(OwnerRow.id).where(OwnerRow.id == owner_id)))

    def add_caller_usage_now(self, caller: Caller, session_id: str | None, usages: Sequence[Usage]) -> None:
        """Count calls as `add_usage_now` does, for the owner that the caller or the session names.

        With a budget, a person without rows becomes an owner, or their temporary turns would be free.
        """
        self._add(usages, lambda tx: owner_of(tx, caller, session_id) or self._new_owner(tx, caller))
        if caller.space is not None and caller.user_id is not None:
            self.add_caller_usage_now(Caller(caller.tenant, caller.user_id), None, usages)

    def _add(self, usages: Sequence[Usage], owner: Callable[[Transaction], int | None]) -> None:
        if not any(usage.total_tokens for usage in usages):
            return
        try:
            with self._database.write(USAGE_LOCK_SECONDS) as tx:
                owner_id = owner(tx)
                if owner_id is not None:
                    self.add_usage(tx, owner_id, usages)
        except SQLAlchemyError as error:
            log.error("the tokens of a model call could not be counted", exc_info=error)

    def _new_owner(self, tx: Transaction, caller: Caller) -> int | None:
        if caller.owner is None or not self._limit:
            return None
        return find_or_make_owner(tx, caller, self._now()).id


def _person(caller: Caller) -> dict[str, str | None]:
    return {"of_tenant": caller.tenant, "acting": caller.user_id}


def spent_today(tx: Transaction | Connection, owner_id: int, now: datetime) -> int:
    """Return the tokens of the owner's model calls on the day of `now`."""
    return tx.scalar(_SPENT, {"owner": owner_id, "on": now.date()}) or 0


def owner_of(tx: Transaction, caller: Caller, session_id: str | None) -> int | None:
    """Return the id of the caller's space or user, else of the session's owner; None without a row, or with several."""
    if caller.owner is not None:
        owner = find_owner(tx, caller)
        return owner.id if owner is not None else None
    sessions = sessions_named(tx, caller, session_id) if session_id is not None else ()
    return sessions[0].owner_id if len(sessions) == 1 else None
