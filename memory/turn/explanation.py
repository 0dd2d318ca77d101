"""Explanation of a turn: what its prompt showed of the memory, as it is stored and read again.

Invariant: it is stored by ids, versions and scores alone, so what is erased later is gone from here too
(test_explanation).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import case, or_, select

from memory.examples import shown
from memory.knowledge.fact_writes import FACTS
from memory.knowledge.overview import OverviewBlock
from memory.knowledge.profile import ProfileBlock
from memory.recall.endings import read_gists
from memory.recall.excerpts import truncate_message
from memory.recall.recall import RecallResult
from memory.sessions.messages import MESSAGES, QUOTABLE
from memory.turn.request import MemoryReport, OtherMemory, RecallToolCall, ShownText, WrittenFact
from models import FactRow, ItemRow, ItemVersionRow, MessageRow, OwnerRow, SessionRow, Transaction
from models.facts import Fact, FactScore
from models.messages import Excerpt, Message

_VERSIONS = (
    select(ItemVersionRow.item_id, ItemVersionRow.version, ItemVersionRow.value, ItemRow.key, OwnerRow.kind)
    .add_columns(ItemVersionRow.created_at.label("written_at"))
    .join(ItemRow, ItemRow.id == ItemVersionRow.item_id)
    .join(OwnerRow, OwnerRow.id == ItemRow.owner_id)
)


def stored_report(report: MemoryReport) -> dict[str, Any]:
    """Return the report as JSON's types, without any remembered words."""
    return {
        "summary_version": report.summary_version,
        "head_version": report.head_version,
        "profile": [report.profile.item_id, report.profile.version],
        "overview": [report.overview.item_id, report.overview.version],
        "texts": [[shown.item_id, shown.version, shown.kind] for shown in report.texts],
        "type": report.type,
        "state": report.state,
        "tail_messages": report.tail_messages,
        "tail_dropped": report.tail_dropped,
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
        **({"written": [[one.action, one.fact_id] for one in report.written]} if report.written else {}),
        "facts": _stored_facts(report.facts),
        "examples": [example.id for example in report.examples],
        "excerpts": _stored_excerpts(report.recalled.excerpts),
        **({"others": list(map(_stored_other, report.others))} if report.others else {}),
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
        }
        for excerpt in excerpts
    ]


def _stored_other(other: OtherMemory) -> dict[str, Any]:
    return {"owner": other.owner_id, "facts": _stored_facts(other.facts), "excerpts": _stored_excerpts(other.excerpts)}


def report_of(tx: Transaction, stored: Mapping[str, Any]) -> MemoryReport:
    """Return a stored report as it was, with the words that are still there."""
    calls = [
        {**call, **{name: datetime.fromisoformat(call[name]) for name in ("after", "before") if call[name]}}
        for call in stored.get("calls", ())
    ]
    profile, overview, texts = _documents(tx, stored)
    return MemoryReport(
        summary_version=stored["summary_version"],
        head_version=stored["head_version"],
        profile=profile,
        overview=overview,
        texts=texts,
        type=stored.get("type"),
        state=stored["state"],
        facts=_facts(tx, stored["facts"]),
        recalled=RecallResult(
            _excerpts(tx, stored["excerpts"]), stored["mode"], stored["reason"], stored.get("kind", "")
        ),
        examples=shown(tx, stored.get("examples", ())),
        tail_messages=stored["tail_messages"],
        tail_dropped=stored["tail_dropped"],
        calls=tuple(RecallToolCall(**call) for call in calls),
        written=_written(tx, stored.get("written", ())),
        others=_others(tx, stored.get("others", ())),
    )


def _others(tx: Transaction, stored: Sequence[Mapping[str, Any]]) -> tuple[OtherMemory, ...]:
    """Return what was shown of other memories, but for those that were erased since."""
    ids = [other["owner"] for other in stored]
    there = {row.id: row for row in tx.scalars(select(OwnerRow).where(OwnerRow.id.in_(ids)))} if ids else {}
    return tuple(
        OtherMemory(owner.id, owner.space, _facts(tx, other["facts"]), _excerpts(tx, other["excerpts"]))
        for other in stored
        if (owner := there.get(other["owner"])) is not None
    )


def _documents(tx: Transaction, stored: Mapping[str, Any]) -> tuple[ProfileBlock, OverviewBlock, tuple[ShownText, ...]]:
    """Return the profile and the other documents of a stored report, in the versions that are still there."""
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
    shown = ProfileBlock.of(profile.item_id, profile.version, profile.value) if profile else ProfileBlock()
    overview = there.get(tuple(of_overview))
    return shown, OverviewBlock.of(overview) if overview else OverviewBlock(), tuple(texts)


def _facts(tx: Transaction, stored: list[list[Any]]) -> tuple[Fact, ...]:
    rows = tx.execute(FACTS.where(FactRow.id.in_([fact_id for fact_id, *_ in stored])))
    there = {row.id: Fact(*row) for row in rows}
    return tuple(replace(there[fact_id], score=FactScore(*score)) for fact_id, *score in stored if fact_id in there)


def _written(tx: Transaction, stored: Sequence[tuple[str, int]]) -> tuple[WrittenFact, ...]:
    """Return the facts that a turn wrote, with the words of those that are still there."""
    ids = [fact_id for _, fact_id in stored]
    columns = case((OwnerRow.kind == "space", OwnerRow.name))
    query = FACTS.add_columns(columns).join(OwnerRow, OwnerRow.id == FactRow.owner_id)
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
    found = []
    for item in stored:
        gist, session_id, title = (gists.get(item["gist"][0]) if "gist" in item else None) or (None, "", "")
        shown = [there[message_id] for message_id in item["messages"] if message_id in there]
        if shown:
            session_id, title = shown[0][0].session_id, shown[0][1]
        if shown or gist:
            messages = tuple(truncate_message(message, found=message.id in item["hits"]) for message, _ in shown)
            found.append(Excerpt(session_id, title, messages, tuple(item["hits"]), item["score"], item["why"], gist))
    return tuple(found)
