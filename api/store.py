"""Store: JSON items under a namespace and a key."""

from typing import Any

from flask import g

from api.blueprint import ApiBlueprint, Caller, current_engine
from memory.erasing import erasing
from models.keys import CHAT, READ
from models.store import Delete, Get, ListNamespaces, Operation, Put, Search
from schemas import store as schema
from schemas.shapes import Receipt

blueprint = ApiBlueprint(
    "store", "JSON items of an application, by namespace and key. Each person has items of their own."
)
CHANGED = "The item is of another version than the call expects. Nothing was stored."


def _run(caller: Caller, *operations: Operation) -> list[Any]:
    return current_engine().items.run(caller, operations)


@blueprint.put("/store/items", body=schema.PutItem, returns=schema.Item, scope=CHAT, errors={409: CHANGED})
def put_item(caller: Caller, body: dict[str, Any]) -> Any:
    """Store an item, in the place of one with its name

    Without a `user_id` it is the tenant's own. With `version` it is stored only if the item was not changed meanwhile.
    """
    return _run(caller, Put(**body))[0]


@blueprint.get("/store/items", query=schema.GetItem, returns=schema.Item)
def get_item(caller: Caller, query: dict[str, Any]) -> Any:
    """Read an item"""
    return current_engine().items.get(caller, Get(**query))


@blueprint.delete("/store/items", query=schema.DeleteItem, returns=Receipt, scope=CHAT, errors={409: CHANGED})
def delete_item(caller: Caller, query: dict[str, Any]) -> Any:
    """Erase an item, for good

    The item is not found from now on. Within a minute or two its words are gone from the database's files.
    """
    return erasing.erase_item(current_engine(), caller, Delete(**query))


@blueprint.post("/store/search", body=schema.SearchItems, returns=schema.Found, scope=READ)
def search_items(caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    """Search items, newest first or by a query

    Of what the filter leaves, a `query` ranks the 1,000 items that were changed last, by words and meaning.
    """
    return {"items": _run(caller, Search(**body))[0]}


@blueprint.get("/store/namespaces", query=schema.NamespaceQuery, returns=schema.NamespaceList)
def list_namespaces(caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """List the namespaces that have items, in alphabetical order"""
    return {"namespaces": _run(caller, ListNamespaces(**query))[0]}


@blueprint.post("/store/batch", body=schema.Batch, returns=schema.Results, scope=CHAT, errors={409: CHANGED})
def run_batch(caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    """Run up to 1,000 operations in one transaction

    Operations run in their order, all or none of them, and each sees the changes of earlier ones. A key needs the scope
    `read` too, unless every operation is put or delete.
    """
    operations = body["operations"]
    if not all(isinstance(operation, Put | Delete) for operation in operations):
        g.principal.require_scope(READ)
    return schema.results_of(operations, _run(caller, *operations))
