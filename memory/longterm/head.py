"""What a prompt's head shows of long-term memory: the documents of all kinds, read by one statement.

Guarantee: from turn to turn a document stays as it was when the head was chosen (`SessionRow.head_at`), so that the
prompt's beginning stays the same.  What a person changed, rolled back or erased since is shown at once.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, bindparam, func, or_, select

from memory.store.documents import below
from memory.store.values import OWN, Namespace
from models import ItemRow, ItemVersionRow, OwnerRow, SessionRow, Transaction

SHOWN = ("instructions", "profile")
"""The kinds whose documents stand in the head: those under ("recap", kind)."""

MODEL = "model"  # the author whose versions wait until the head is chosen again


class Shown(NamedTuple):
    """The version of a document that the head shows.  One of the tenant is for all of its people."""

    namespace: Namespace
    key: str
    value: Any
    version: int
    of_tenant: bool

    @property
    def kind(self) -> str:
        return self.namespace[1]


_I, _V, _O = ItemRow.__table__.c, ItemVersionRow.__table__, OwnerRow.__table__.c
_LATER = _V.alias("later")
_VERSION = (
    select(func.max(_LATER.c.version))
    .where(_LATER.c.item_id == _I.id)
    .where(or_(_LATER.c.created_at <= bindparam("head_at"), _LATER.c.author != MODEL))
)
WHOSE = select(bindparam("owner", type_=BigInteger())).union_all(
    select(_O.id).where(_O.tenant == bindparam("tenant"), _O.kind == "tenant")
)
"""The ids of an `owner` and of the `tenant` itself."""
_DOCUMENTS = (
    select(_I.namespace, _I.key, _V.c.value, _V.c.version, _I.owner_id)
    .join(_V, _V.c.item_id == _I.id)
    .where(_I.owner_id.in_(WHOSE))
    .where(or_(*(below((OWN, kind)) for kind in SHOWN)), _V.c.version == _VERSION.scalar_subquery())
    .order_by(_I.namespace, _I.key, _I.owner_id)
)


def documents_of(tx: Transaction, row: SessionRow) -> list[Shown]:
    """The documents that the head of a session shows, of its owner and of the tenant."""
    named: dict[str, int | str | datetime | None] = {
        "tenant": row.tenant,
        "owner": row.owner_id,
        "head_at": row.head_at,
    }
    return [
        Shown(tuple(namespace.split(".")), key, value, version, owner_id != row.owner_id)
        for namespace, key, value, version, owner_id in tx.execute(_DOCUMENTS, named)
    ]
