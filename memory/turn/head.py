"""What a turn reads of the memory at its beginning: what the head of its prompt shows, and what else there is.

Guarantee: one statement reads it all.  From turn to turn a document stays as it was when the head was chosen
(`SessionRow.head_at`), so that the prompt's beginning stays the same.  What a person changed, rolled back or erased
since is shown at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import and_, bindparam, exists, func, literal, or_, select, true

from memory.access.owners import WHOSE
from memory.facts.facts import held, in_scope
from memory.longterm import conversation_types, examples, instructions, profile
from memory.longterm.links import LINKED
from memory.prompts.prompts import SYSTEM_TEXT
from memory.sections import Sections
from memory.sessions.head import summary_state
from memory.sessions.messages import HIDDEN
from memory.store.documents import joined
from memory.store.values import MODEL
from models import FactRow, ItemRow, ItemVersionRow, JobRow, SessionRow, SummaryRow, Transaction

_INSTRUCTIONS, _PROFILE = joined(instructions.NAMESPACE), joined(profile.NAMESPACE)
_TYPES = joined(conversation_types.NAMESPACE)


class Head(NamedTuple):
    """What the head of a session shows, but for its facts, and which other kinds of memory there are.

    `state` is how the summary stands, and `failing` says that its update fails.  `system_text` is the tenant's stored
    system prompt.  Of `instructions` and conversation `types` with one name there is the person's own rather than the
    tenant's.  `profile` is its version and value.  The last four say whether there is anything to ask for: facts of
    this session or of its person, the owner's links, examples of the owner or the tenant, and hidden messages.
    """

    summary: Sections
    state: str
    failing: bool
    system_text: str | None
    instructions: str
    types: dict[str, Any]
    profile: tuple[int, Any] | None
    facts: bool
    links: bool
    examples: bool
    hidden: bool


_S, _J = SummaryRow.__table__.c, JobRow.__table__.c
_I, _V = ItemRow.__table__.c, ItemVersionRow.__table__
_LATER = _V.alias("later")
_VERSION = (
    select(func.max(_LATER.c.version))
    .where(_LATER.c.item_id == _I.id)
    .where(or_(_LATER.c.created_at <= bindparam("head_at"), _LATER.c.author != MODEL))
)
_DOCUMENTS = (
    select(_I.owner_id, _I.namespace, _I.key, _V.c.version, _V.c.value)
    .join(_V, _V.c.item_id == _I.id)
    .where(_I.owner_id.in_(WHOSE), _I.namespace.in_([_INSTRUCTIONS, _PROFILE, _TYPES]))
    .where(_V.c.version == _VERSION.scalar_subquery())
    .subquery()
)
_HEAD = (
    select(_S.sections, _J.state, _J.error, SYSTEM_TEXT, _DOCUMENTS)
    .add_columns(
        exists(select(FactRow.id).where(held(None), in_scope(bindparam("session"), bindparam("owner")))).label("facts"),
        exists(select(FactRow.id).where(*LINKED)).label("links"),
        exists(examples.OF_BOTH).label("examples"),
        exists(HIDDEN).label("hidden"),
    )
    .select_from(select(literal(1)).subquery())  # at least one row
    .outerjoin(SummaryRow, and_(_S.session_id == bindparam("session"), _S.version == bindparam("version")))
    .outerjoin(JobRow, and_(_J.kind == "summary", _J.key == bindparam("key")))
    .outerjoin(_DOCUMENTS, true())
    .order_by(_DOCUMENTS.c.key, _DOCUMENTS.c.owner_id == bindparam("owner"))  # a person's own after the tenant's
)


def read_head(tx: Transaction, row: SessionRow) -> Head:
    """What there is for a turn in this session."""
    named = {"session": row.id, "key": str(row.id), "owner": row.owner_id, "tenant": row.tenant}
    found = tx.execute(_HEAD, {**named, "version": row.head_version, "head_at": row.head_at}).all()
    first = found[0]
    texts = {one.key: str(one.value["text"]) for one in found if one.namespace == _INSTRUCTIONS}
    profiles = [(one.version, one.value) for one in found if one.namespace == _PROFILE]
    return Head(
        summary=Sections.from_dict(first.sections) if first.sections else Sections(),
        state=summary_state(row, first.state),
        failing=first.error is not None,
        system_text=first.system_text,
        instructions="\n\n".join(texts.values()),
        types={one.key: one.value for one in found if one.namespace == _TYPES},
        profile=profiles[-1] if profiles else None,
        facts=first.facts,
        links=first.links,
        examples=first.examples,
        hidden=first.hidden,
    )
