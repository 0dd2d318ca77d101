"""Remove from long-term memory what was made from erased or refused messages, and from forgotten facts.

Invariant: no document, and no earlier version of one, says what rests on these messages, alone or with others. A
profile loses those values, an instruction those versions, an overview those sentences; any other document goes whole.
A value goes too if it names a message that is no source of its document: an import may have renamed the session
(test_erasing, test_profile, test_overview).
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Select, or_, select

from memory import instructions
from memory.errors import ModelError
from memory.knowledge import overview
from memory.knowledge.fact_writes import delete_with_history
from memory.knowledge.profile import NAMESPACE as PROFILE
from memory.knowledge.profile_patch import Profile
from memory.sessions.refused_messages import mark_refused, reason_of
from memory.store import item_rows
from models import FactRow, ItemRow, MessageRow, Transaction
from models.store import Namespace, Source


def forget_messages(tx: Transaction, messages: Select[int], now: datetime) -> Counter[str]:
    """Remove what rests on these messages; return the number of rows by kind. messages: a query of ids."""
    removed = Counter(items=0, item_versions=0)
    rests = or_(ItemRow.id.in_(item_rows.resting_on(messages)), overview.of_owners(messages))
    for row in tx.execute(item_rows.ITEMS.add_columns(ItemRow.owner_id).where(rests)).all():
        item = item_rows.as_item(row)
        if item.namespace == overview.NAMESPACE:
            removed += overview.forget_sessions(tx, row.owner_id, item, messages, now)
            continue
        stays = _STAYS.get(item.namespace)
        if stays is None:
            removed += item_rows.remove(tx, [item.id])
            continue
        item_rows.remove_sources(tx, item.id, messages)
        others = item_rows.sources_of(tx, [item.id])[item.id]
        removed += item_rows.drop_versions(tx, row.owner_id, item, partial(stays, others), now)
    return removed


def _of_profile(others: Collection[Source], value: Any) -> Any:
    """Return the profile without values whose source is not among the others."""

    def is_removed(source: Mapping[str, Any]) -> bool:
        place = Source(source["session_id"], source["position"])
        return place.session_id is not None and place not in others

    profile = Profile.of(value).without(lambda held: is_removed(held.source))
    return asdict(profile) if profile.document else {}


_STAYS: Mapping[Namespace, Callable[[Collection[Source], Any], Any]] = {
    PROFILE: _of_profile,
    instructions.NAMESPACE: lambda others, value: (
        value if all(Source(*place) in others for place in value["sources"]) else None
    ),
}


def refuse_messages(tx: Transaction, ids: Collection[int], error: ModelError, now: datetime) -> None:
    """Mark messages as refused, and delete the facts that an earlier try took from them.

    The caller holds the session's lock, and asks for the job that takes the messages out of the index.
    """
    mark_refused(tx, ids, error.code, reason_of(error), now)
    delete_with_history(tx, tx.scalars(select(FactRow.id).where(FactRow.source_message_id.in_(ids))), now, "refused")
    forget_messages(tx, select(MessageRow.id).where(MessageRow.id.in_(ids)), now)
