"""What goes from long-term memory when messages are erased or replaced, and when facts are forgotten.

Guarantee: no document, and no earlier version of one, says what rests on these messages alone or with others.  A
profile loses those of its values, an instruction those of its versions; any other document goes whole.  What names a
message that its document does not rest on goes too: an import may have given its session another name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Select

from memory import instructions
from memory.knowledge.profile import NAMESPACE as PROFILE
from memory.knowledge.profile_patch import Profile
from memory.store import documents
from models import ItemRow, Transaction
from models.store import Namespace, Source


def forget_messages(tx: Transaction, messages: Select[int], now: datetime) -> Counter[str]:
    """Take out of long-term memory what rests on messages, of which this is a query of ids; count what went."""
    gone = Counter(items=0, item_versions=0)
    resting = documents.ITEMS.add_columns(ItemRow.owner_id).where(ItemRow.id.in_(documents.resting_on(messages)))
    for row in tx.execute(resting).all():
        item = documents.as_item(row)
        stays = _STAYS.get(item.namespace)
        if stays is None:
            gone += documents.remove(tx, [item.id])
            continue
        documents.remove_sources(tx, item.id, messages)
        others = documents.sources_of(tx, [item.id])[item.id]
        gone += documents.drop_versions(tx, row.owner_id, item, partial(stays, others), now)
    return gone


def _of_profile(others: Collection[Source], value: Any) -> Any:
    """The values that rest on other messages, or on none."""

    def gone(source: Mapping[str, Any]) -> bool:
        place = Source(source["session_id"], source["position"])
        return place.session_id is not None and place not in others

    profile = Profile.of(value).without(gone)
    return asdict(profile) if profile.document else {}


def _of_instruction(others: Collection[Source], value: Any) -> Any:
    """The version, if all of its messages are others."""
    return value if all(Source(*place) in others for place in value["sources"]) else None


_STAYS: Mapping[Namespace, Callable[[Collection[Source], Any], Any]] = {
    PROFILE: _of_profile,
    instructions.NAMESPACE: _of_instruction,
}
