"""Report of the memory that a turn showed: `memory` of a reply, stored with the turn and read again.

Invariants:
- It is stored as ids, versions and scores alone, so erasing removes the words from it too (test_explanation).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self
from urllib.parse import quote

from sqlalchemy import case, or_, select

from memory.examples import Example, read_examples
from memory.knowledge.fact_reads import FACTS
from memory.knowledge.overview import OverviewBlock
from memory.knowledge.profile import ProfileBlock
from memory.recall.excerpts import truncate_message
from memory.recall.other_sessions import read_gists
from memory.recall.recall import RecallResult
from memory.sessions.messages import MESSAGES, QUOTABLE
from models import FactRow, ItemRow, ItemVersionRow, MessageRow, OwnerRow, SessionRow, Transaction
from models.facts import Fact, FactScore
from models.messages import Excerpt, Message

_SAME = ("summary_version", "head_version", "type", "state", "tail_messages", "tail_dropped")  # stored unchanged
_VERSIONS = (
    select(ItemVersionRow.item_id, ItemVersionRow.version, ItemVersionRow.value, ItemRow.key, OwnerRow.kind)
    .add_columns(ItemVersionRow.created_at.label("written_at"))
    .join(ItemRow, ItemRow.id == ItemVersionRow.item_id)
    .join(OwnerRow, OwnerRow.id == ItemRow.owner_id)
)


@dataclass(frozen=True)
class RecallToolCall:
    """Model's call of a tool, with the arguments that could be read.

    query: None in a stored report. excerpts: how many it returned. error: the sentence that it returned instead,
    without facts that it quoted.
    """

    name: str
    query: str | None = None
    after: datetime | None = None
    before: datetime | None = None
    limit: int | None = None
    excerpts: int = 0
    error: str | None = None


@dataclass(frozen=True)
class WrittenFact:
    """Fact that the model wrote in a turn.

    action: `remember`, `correct` or `forget`. text: the fact's; None if it was erased since. replaces: the text of the
    corrected fact. undo: the call of the API that undoes the action; None if there is none. A stored report has no
    words of a forgotten fact, and so no `undo`.
    """

    action: str
    fact_id: int
    text: str | None = None
    quote: str | None = None
    replaces: str | None = None
    undo: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, action: str, fact: Fact, replaces: str | None, space: str | None) -> Self:
        """Return the report of a stored fact; deleting the fact undoes the action."""
        where = f"&space={quote(space, safe='')}" if space is not None else ""
        undo = {"method": "DELETE", "path": f"/api/facts/{fact.id}?restore=true{where}"}
        return cls(action, fact.id, fact.text, fact.quote, replaces, undo)


@dataclass(frozen=True)
class ShownText:
    """Text of an item that a prompt showed. kind: `instruction`, or `type` of the conversation."""

    item_id: int
    version: int
    kind: str
    name: str
    text: str
    of_tenant: bool

    @classmethod
    def of(cls, row: Any, kind: str, *, of_tenant: bool) -> Self:
        text = row.value["text" if kind == "instruction" else "prompt"]
        return cls(row.item_id, row.version, kind, row.key, str(text), of_tenant)


@dataclass(frozen=True)
class OtherMemory:
    """Memory of another owner that a prompt showed.  space: its name; None: the person who acts in a space."""

    owner_id: int
    space: str | None
    facts: tuple[Fact, ...] = ()
    excerpts: tuple[Excerpt, ...] = ()


@dataclass(frozen=True)
class MemoryReport:
    """`memory` of a reply.

    summary_version, state: the newest version when the turn began, and whether it was up to date.
    head_version: the version of the summary that the prompt showed (0: none).
    profile, overview, texts, facts, examples: shown in the prompt, facts also by searches of the model. recalled: its
    excerpts, and why these.
    tail_messages: how many recent messages the prompt has. tail_dropped: how many did not fit CONTEXT_TOKENS.
    calls: of Recap's tools by the model; their words are not stored. written: facts that the model wrote with them.
    other_memories: shown from the memory of other owners; all else is of the session and its owner.
    """

    summary_version: int = 0
    head_version: int = 0
    profile: ProfileBlock = ProfileBlock()
    overview: OverviewBlock = OverviewBlock()
    texts: tuple[ShownText, ...] = ()
    type: str | None = None
    state: str = "none"
    facts: tuple[Fact, ...] = ()
    recalled: RecallResult = RecallResult()
    examples: tuple[Example, ...] = ()
    tail_messages: int = 0
    tail_dropped: int = 0
    calls: tuple[RecallToolCall, ...] = ()
    written: tuple[WrittenFact, ...] = ()
    other_memories: tuple[OtherMemory, ...] = ()

    @property
    def has_forgotten(self) -> bool:
        """Return whether the model's tool `forget` forgot something, be it a fact or messages alone."""
        return any(call.name == "forget" and call.error is None for call in self.calls)

    def with_found(self, owner_id: int, found: Iterable[OtherMemory]) -> Self:
        """Return the report with the facts that searches found, each once. owner_id: of the session."""
        own = OtherMemory(owner_id, None, self.facts)
        others = {other.owner_id: other for other in self.other_memories}
        by_owner = {owner_id: own, **others}
        for memory in found:
            before = by_owner.get(memory.owner_id, replace(memory, facts=()))
            known = {fact.id for fact in before.facts}
            new = [fact for fact in memory.facts if fact.id not in known]
            by_owner[memory.owner_id] = replace(before, facts=(*before.facts, *new))
        return replace(self, facts=by_owner.pop(owner_id).facts, other_memories=tuple(by_owner.values()))


def report_to_stored(report: MemoryReport) -> dict[str, Any]:
    """Return the report as JSON's types, without any remembered words."""
    others = [
        {"owner": other.owner_id, "facts": _stored_facts(other.facts), "excerpts": _stored_excerpts(other.excerpts)}
        for other in report.other_memories
    ]
    return {
        **{name: getattr(report, name) for name in _SAME},
        "profile": [report.profile.item_id, report.profile.version],
        "overview": [report.overview.item_id, report.overview.version],
        "texts": [[shown.item_id, shown.version, shown.kind] for shown in report.texts],
        "mode": report.recalled.mode,
        "reason": report.recalled.reason,
        "kind": report.recalled.kind,
        "calls": [
            {
                **vars(replace(call, query=None)),
                "after": call.after and call.after.isoformat(),
                "before": call.before and call.before.isoformat(),
            }
            for call in report.calls
        ],
        **({"written": [[fact.action, fact.fact_id] for fact in report.written]} if report.written else {}),
        "facts": _stored_facts(report.facts),
        "examples": [example.id for example in report.examples],
        "excerpts": _stored_excerpts(report.recalled.excerpts),
        **({"others": others} if others else {}),
    }


def _stored_facts(facts: Sequence[Fact]) -> list[list[Any]]:
    return [[fact.id, *(round(part, 4) for part in vars(fact.score).values())] for fact in facts]


def _stored_excerpts(excerpts: Sequence[Excerpt]) -> list[dict[str, Any]]:
    return [
        {
            "messages": [message.id for message in excerpt.messages],
            "hits": list(excerpt.hits),
            "score": round(excerpt.score, 4),
            "why": {name: round(part, 4) for name, part in excerpt.why.items()},
            **({"gist": [gist.session_row_id, gist.summary_id, gist.in_full]} if (gist := excerpt.gist) else {}),
            **({"message_tokens": most} if (most := excerpt.message_tokens) else {}),
            **({"starts": [*excerpt.starts.items()]} if excerpt.starts else {}),
        }
        for excerpt in excerpts
    ]


def report_from_stored(tx: Transaction, stored: Mapping[str, Any]) -> MemoryReport:
    """Return a stored report with the words of all rows that still exist."""
    calls = [
        {**call, **{name: datetime.fromisoformat(call[name]) for name in ("after", "before") if call[name]}}
        for call in stored.get("calls", ())
    ]
    same: dict[str, Any] = {name: stored.get(name) for name in _SAME}
    profile, overview, texts = _items(tx, stored)
    return MemoryReport(
        **same,
        profile=profile,
        overview=overview,
        texts=texts,
        facts=_facts(tx, stored["facts"]),
        recalled=RecallResult(
            _excerpts(tx, stored["excerpts"]), stored["mode"], stored["reason"], stored.get("kind", "")
        ),
        examples=read_examples(tx, stored.get("examples", ())),
        calls=tuple(RecallToolCall(**call) for call in calls),
        written=_written(tx, stored.get("written", ())),
        other_memories=_others(tx, stored.get("others", ())),
    )


def _others(tx: Transaction, stored: Sequence[Mapping[str, Any]]) -> tuple[OtherMemory, ...]:
    """Return the shown memory of other owners, without owners that were erased since."""
    ids = [other["owner"] for other in stored]
    there = {row.id: row for row in tx.scalars(select(OwnerRow).where(OwnerRow.id.in_(ids)))} if ids else {}
    return tuple(
        OtherMemory(owner.id, owner.space, _facts(tx, other["facts"]), _excerpts(tx, other["excerpts"]))
        for other in stored
        if (owner := there.get(other["owner"])) is not None
    )


def _items(tx: Transaction, stored: Mapping[str, Any]) -> tuple[ProfileBlock, OverviewBlock, tuple[ShownText, ...]]:
    """Return the profile, the overview and the texts of a stored report, as far as those versions still exist."""
    of_profile, of_overview = stored.get("profile", [0, 0]), stored.get("overview", [0, 0])
    of_texts = stored.get("texts", ())
    ids = {item_id for item_id, *_ in (of_profile, of_overview, *of_texts) if item_id}
    rows = tx.execute(_VERSIONS.where(ItemVersionRow.item_id.in_(ids))) if ids else ()
    there = {(row.item_id, row.version): row for row in rows}
    texts = [
        ShownText.of(row, kind, of_tenant=row.kind == "tenant")
        for item_id, version, kind in of_texts
        if (row := there.get((item_id, version)))
    ]
    profile = there.get(tuple(of_profile))
    person = ProfileBlock.of(profile.item_id, profile.version, profile.value) if profile else ProfileBlock()
    overview = there.get(tuple(of_overview))
    return person, OverviewBlock.of(overview) if overview else OverviewBlock(), tuple(texts)


def _facts(tx: Transaction, stored: list[list[Any]]) -> tuple[Fact, ...]:
    rows = tx.execute(FACTS.where(FactRow.id.in_([fact_id for fact_id, *_ in stored])))
    there = {row.id: Fact(*row) for row in rows}
    return tuple(replace(there[fact_id], score=FactScore(*score)) for fact_id, *score in stored if fact_id in there)


def _written(tx: Transaction, stored: Sequence[tuple[str, int]]) -> tuple[WrittenFact, ...]:
    """Return the facts that a turn wrote; those that were erased since have no words."""
    ids = [fact_id for _, fact_id in stored]
    name_of_space = case((OwnerRow.kind == "space", OwnerRow.name))
    query = FACTS.add_columns(name_of_space).join(OwnerRow, OwnerRow.id == FactRow.owner_id)
    rows = tx.execute(query.where(or_(FactRow.id.in_(ids), FactRow.superseded_by.in_(ids)))).all() if ids else ()
    facts = {fact.id: (fact, space) for *values, space in rows if (fact := Fact(*values))}
    old = {fact.superseded_by: fact.text for fact, _ in facts.values() if fact.superseded_by and not fact.merged}
    return tuple(
        WrittenFact.of(action, facts[id][0], old.get(id), facts[id][1]) if id in facts else WrittenFact(action, id)
        for action, id in stored
    )


def _excerpts(tx: Transaction, stored: list[dict[str, Any]]) -> tuple[Excerpt, ...]:
    ids = [message_id for item in stored for message_id in item["messages"]]
    rows = tx.execute(MESSAGES.add_columns(SessionRow.title).where(MessageRow.id.in_(ids), *QUOTABLE))
    there = {columns[0]: (Message._make(columns), title) for *columns, title in rows}
    gists = read_gists(tx.connection(), [item["gist"] for item in stored if "gist" in item])
    excerpts = []
    for item in stored:
        gist, session_id, title = (gists.get(item["gist"][0]) if "gist" in item else None) or (None, "", "")
        shown = [there[message_id] for message_id in item["messages"] if message_id in there]
        if shown:
            session_id = shown[0][0].session_id
            title = shown[0][1]
        if shown or gist:
            hits = tuple(item["hits"])
            most = item.get("message_tokens")
            starts = dict(item.get("starts", ()))
            messages = tuple(
                truncate_message(message, found=message.id in hits, most=most, start=starts.get(message.id, 0))
                for message, _ in shown
            )
            score, why = item["score"], item["why"]
            excerpts.append(Excerpt(session_id, title, messages, hits, score, why, gist, most, starts))
    return tuple(excerpts)
