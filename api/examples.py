"""Examples."""

from typing import Any

from api.blueprint import ApiBlueprint, Caller, current_engine
from memory import examples
from memory.erasing import erasing
from schemas import examples as schema
from schemas.shapes import OwnerPageQuery, Receipt

blueprint = ApiBlueprint("examples", "Good answers, shown to the main model when a similar message comes.")


@blueprint.post("/examples", body=schema.ExampleCreate, returns=schema.Example, status=201)
def add_example(caller: Caller, body: dict[str, Any]) -> Any:
    """Add an example, or make one of an exchange

    An exchange becomes an example of the session's owner, and goes when one of its messages is erased or replaced. Of
    long messages the beginning is kept, and of calls of tools between them those that have at most 8,000 characters.
    Otherwise the example is the user's or, without a `user_id`, for all people of the tenant. `messages` show how tools
    are called: the user's words, the assistant's calls, the results and the answer.
    """
    if "message_id" in body:
        return examples.add_exchange(current_engine(), caller, **body)
    return examples.add(current_engine(), caller, body["messages"], tags=body["tags"], rating=body["rating"])


@blueprint.get("/examples", query=OwnerPageQuery, page_of=schema.Example)
def list_examples(caller: Caller, query: dict[str, Any]) -> Any:
    """List the examples of a user or, without a `user_id`, those for all of the tenant, newest first"""
    return examples.page(current_engine(), caller, **query)


@blueprint.delete("/examples/<int64:example_id>", returns=Receipt)
def delete_example(caller: Caller, example_id: int) -> Any:
    """Erase an example, for good"""
    return erasing.erase_item_by_id(current_engine(), caller, examples.NAMESPACE, example_id, "example")
