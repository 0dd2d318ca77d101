"""Facts."""

from __future__ import annotations

from typing import Any

from api.blueprint import ID, caller, resource, services
from memory.domain import Fact as FactValue
from memory.paging import Page
from memory.people.erasing import Receipt
from schemas.erasing import FactReceipt, FactsReceipt
from schemas.facts import (
    Fact,
    FactChange,
    FactCreate,
    FactHistory,
    FactPage,
    FactQuery,
    FactsToForget,
)
from schemas.fields import CallerQuery

blueprint = resource("facts", "Ranked statements, each with its source.")
NOT_THERE = "The fact is not there, or belongs to someone else."


@blueprint.get("/facts", errors={404: "The session is not there, or belongs to someone else."})
@blueprint.arguments(FactQuery, location="query")
@blueprint.response(200, FactPage)
def list_facts(query: dict[str, Any]) -> Page[FactValue]:
    """List what holds now, or held at `as_of`

    With `session_id`: the session's facts and those its person has everywhere.
    """
    return services().facts.page(caller(query.pop("user_id")), **query)


@blueprint.post("/facts", errors={404: "The session is not there, or belongs to someone else."})
@blueprint.arguments(FactCreate)
@blueprint.response(201, Fact)
def add_fact(body: dict[str, Any]) -> FactValue:
    """State a fact, for one session or for all of a person's"""
    return services().facts.add(caller(body.pop("user_id")), **body)


@blueprint.patch(f"/facts/{ID % 'fact_id'}", errors={404: NOT_THERE})
@blueprint.arguments(CallerQuery, location="query")
@blueprint.arguments(FactChange)
@blueprint.response(200, Fact)
def change_fact(query: dict[str, Any], body: dict[str, Any], fact_id: int) -> FactValue:
    """Edit or pin a fact"""
    return services().facts.change(caller(query["user_id"]), fact_id, body)


@blueprint.delete(f"/facts/{ID % 'fact_id'}", errors={404: NOT_THERE})
@blueprint.arguments(CallerQuery, location="query")
@blueprint.response(200, FactReceipt)
def forget_fact(query: dict[str, Any], fact_id: int) -> Receipt:
    """Forget a fact, with its history

    Forgotten are also the facts that it took the place of: none of them holds again. The message it came from and the
    summary stay; to erase the words themselves, erase the message.
    """
    return services().erasing.fact(caller(query["user_id"]), fact_id)


@blueprint.post("/facts/forget")
@blueprint.arguments(FactsToForget)
@blueprint.response(200, FactsReceipt)
def forget_facts(body: dict[str, Any]) -> Receipt:
    """Forget up to 1,000 facts, with their history

    Those that are not there are skipped, so a call can be repeated safely.
    """
    return services().erasing.facts(caller(body["user_id"]), body["ids"])


@blueprint.get(f"/facts/{ID % 'fact_id'}/history", errors={404: NOT_THERE})
@blueprint.arguments(CallerQuery, location="query")
@blueprint.response(200, FactHistory)
def fact_history(query: dict[str, Any], fact_id: int) -> dict[str, Any]:
    """Read how a fact, and those it superseded, changed"""
    return {"items": services().facts.history(caller(query["user_id"]), fact_id)}
