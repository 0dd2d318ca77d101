"""Facts."""

from typing import Any

from api.blueprint import ApiBlueprint, Caller, current_engine
from memory.erasing import erasing
from memory.knowledge import consolidation, facts
from schemas import facts as schema
from schemas.shapes import Receipt

blueprint = ApiBlueprint("facts", "Statements about a person, ranked, each with its source.")
CONSOLIDATION = "/users/<path:user_id>/consolidation"


@blueprint.get("/facts", query=schema.FactQuery, page_of=schema.Fact)
def list_facts(caller: Caller, query: dict[str, Any]) -> Any:
    """List the facts that are true now, or were true at `as_of`

    With `session_id`, these are the session's facts, and those of its person with the scope `user`.
    """
    return facts.page(current_engine(), caller, **query)


@blueprint.post("/facts", body=schema.FactCreate, returns=schema.Fact, status=201)
def add_fact(caller: Caller, body: dict[str, Any]) -> Any:
    """Add a fact, to one session or to all sessions of a person"""
    return facts.add(current_engine(), caller, **body)


@blueprint.get("/facts/<int64:fact_id>", returns=schema.Fact)
def get_fact(caller: Caller, fact_id: int) -> Any:
    """Read a fact, also one that is no longer true"""
    return facts.get(current_engine(), caller, fact_id)


@blueprint.patch("/facts/<int64:fact_id>", body=schema.FactChange, returns=schema.Fact)
def change_fact(caller: Caller, body: dict[str, Any], fact_id: int) -> Any:
    """Edit or pin a fact

    Where the newest summary has exactly the old text, it gets the new one. The profile loses the old text.
    """
    return facts.change(current_engine(), caller, fact_id, body)


@blueprint.delete("/facts/<int64:fact_id>", query=schema.FactForgetQuery, returns=Receipt)
def forget_fact(caller: Caller, query: dict[str, Any], fact_id: int) -> Any:
    """Forget a fact, with its history

    The facts that it corrected are forgotten too; with `restore`, they become true again instead. Items of the
    newest summaries that say exactly the same go too. The source message stays: to erase the words, erase the message.
    """
    return erasing.erase_fact(current_engine(), caller, fact_id, restore=query["restore"])


@blueprint.post("/facts/forget", body=schema.FactsToForget, returns=Receipt)
def forget_facts(caller: Caller, body: dict[str, Any]) -> Any:
    """Forget up to 1,000 facts, with their history

    Facts that do not exist are skipped, so a call can be repeated safely.
    """
    return erasing.erase_facts(current_engine(), caller, body["ids"])


@blueprint.post("/facts/review", body=schema.FactReview, returns=schema.ReviewedFacts)
def review_facts(caller: Caller, body: dict[str, Any]) -> Any:
    """Accept facts that wait for review, and refuse others

    An accepted fact is true from when it was stated, and takes the place of those that it corrects. A refused one is
    erased; its message stays. Facts that do not wait are skipped. `/api/facts?state=waiting` lists those that do.
    """
    return facts.review(current_engine(), caller, **body)


@blueprint.get("/facts/<int64:fact_id>/history", list_of=schema.FactRevision)
def fact_history(caller: Caller, fact_id: int) -> dict[str, Any]:
    """Read how a fact, and the facts that it corrected, changed"""
    return {"items": facts.history(current_engine(), caller, fact_id)}


@blueprint.get(CONSOLIDATION, list_of=schema.ConsolidationRun)
def list_consolidations(caller: Caller) -> dict[str, Any]:
    """List what jobs closed of a person's facts to bring them together, the newest run first

    Of facts that say the same one stays, and the others are its `proofs`. Facts that a newer one contradicts are
    closed, and so are plans whose day is over.
    """
    return {"items": consolidation.runs(current_engine(), caller)}


@blueprint.post(CONSOLIDATION, status=202)
def consolidate(caller: Caller) -> None:
    """Bring a person's facts together now, in a job

    Where words leave a doubt the mini model decides. It is asked once a day at most.
    """
    consolidation.start(current_engine(), caller)


@blueprint.post(
    f"{CONSOLIDATION}/undo",
    returns=schema.ConsolidationRun,
    errors={404: "Nothing is stored of this person, or no run can be undone."},
)
def undo_consolidation(caller: Caller) -> Any:
    """Undo the newest run: the facts that it closed hold again

    Later runs leave these facts alone. Those that were corrected since stay closed.
    """
    return consolidation.undo(current_engine(), caller)
