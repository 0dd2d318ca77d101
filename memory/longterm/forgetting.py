"""What goes from long-term memory when messages are erased or replaced, and when facts are forgotten.

Guarantee: no document, and no earlier version of one, says what rests on these messages alone or with others.  A
profile loses those of its values, an instruction those of its versions; any other document goes whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Select, delete, select

from memory.domain import Fact
from memory.facts.grounding import stems
from memory.longterm import instructions
from memory.longterm.patch import Profile
from memory.longterm.profile import KEY, PLACE
from memory.store import documents
from memory.store.values import Item, Put
from models import ItemRow, ItemVersionRow, MessageRow, SessionRow, Transaction


def forget_messages(tx: Transaction, messages: Select[int], now: datetime) -> Counter[str]:
    """Take out of long-term memory what rests on messages, of which this is a query of ids; count what went."""
    ids = set(tx.scalars(messages))
    resting = tx.execute(select(ItemRow.__table__).where(ItemRow.id.in_(documents.resting_on(ids)))).all()
    asked = select(SessionRow.public_id, MessageRow.position).join(SessionRow, SessionRow.id == MessageRow.session_id)
    places = {(session, position) for session, position in tx.execute(asked.where(MessageRow.id.in_(ids)))}
    gone = Counter(items=0, item_versions=0)
    for row in resting:
        item = documents.as_item(row)
        if item.namespace == PLACE:
            gone += _thin(tx, row.owner_id, item, places, now)
        elif item.namespace == instructions.NAMESPACE:
            gone += instructions.forget(tx, row.owner_id, item, places, now)
        else:
            gone += documents.remove(tx, [item.id])
        documents.rest_no_more_on(tx, item.id, ids)
    return gone


def forget_facts(tx: Transaction, owner_id: int, facts: Collection[Fact], now: datetime) -> None:
    """Take the values that say no more than these facts out of the person's profile.  Earlier versions of it stay."""
    item = documents.read(tx, owner_id, PLACE, KEY, now)
    if item is None:
        return
    profile = Profile.of(item.value)
    told = [(fact.valid_from.isoformat(), set(stems(fact.text))) for fact in facts]
    gone = [
        source
        for _, value, source in profile.values()
        if any(source["since"] == since and words.issuperset(stems(str(value))) for since, words in told)
    ]
    if gone:
        left = asdict(profile.without(lambda source: source in gone))
        documents.write(tx, owner_id, Put(PLACE, KEY, left), now, author="erasure")


def _thin(tx: Transaction, owner_id: int, item: Item, places: set[tuple[str, int]], now: datetime) -> Counter[str]:
    """Take the values that rest on messages at these places out of a profile: the versions that had them go."""

    def thinned(value: Any) -> Profile:
        return Profile.of(value).without(lambda source: (source["session_id"], source["position"]) in places)

    versions = documents.versions(tx, item.id)
    left = [one for one in versions if thinned(one.value) == Profile.of(one.value)]
    current = thinned(item.value)
    if len(left) == len(versions) or not (left or current.document):
        return documents.remove(tx, [item.id])  # also an imported profile whose sources can't be told apart
    numbers = {one.version for one in versions} - {one.version for one in left}
    of_item = ItemVersionRow.item_id == item.id
    tx.execute(delete(ItemVersionRow).where(of_item, ItemVersionRow.version.in_(numbers)))
    if item.version in numbers:
        documents.write(tx, owner_id, Put(item.namespace, item.key, asdict(current)), now, author="erasure")
    return Counter(item_versions=len(numbers))
