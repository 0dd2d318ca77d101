"""RecapStore: LangGraph's long-term memory, kept by a Recap server.

A query searches by words and meaning, without any set-up: `index`, of a put or of a store, has no effect.  What expires
is not read any more and deleted by the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, cast

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)
from langgraph.store.base import validate_op_namespace as validate

from recap_client.client import Recap

Body = dict[str, Any]


class RecapStore(BaseStore):
    """A BaseStore on a Recap server: one call for a batch, which happens in one transaction.

    With a `user_id` the items are that person's: exported, and erased with them.  `fields` are the paths that queries
    look at, such as `notes[*].text`; none: all texts of a value.  `ttl` is LangGraph's configuration of expiry, of
    which the server does the sweeping.
    """

    supports_ttl = True

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        user_id: str | None = None,
        *,
        fields: Sequence[str] = (),
        ttl: TTLConfig | None = None,
    ) -> None:
        self.ttl_config = ttl
        self._fields = list(fields)
        self._recap = Recap(base_url, api_key, user_id)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """As LangGraph has it: what is read does not see what is written in the same batch, and of several writes to
        one item the last one counts.  Raises RecapError; then nothing was written."""
        given = list(ops)
        for op in given:
            validate(op)
        reads = [(at, op) for at, op in enumerate(given) if not isinstance(op, PutOp)]
        writes = {(op.namespace, op.key): op for op in given if isinstance(op, PutOp)}
        operations = [self._operation(op) for op in (*(op for _, op in reads), *writes.values())]
        results: list[Result] = [None] * len(given)
        if operations:
            answers = self._recap.batch(operations)["results"]
            for (at, op), answer in zip(reads, answers, strict=False):
                results[at] = _result(op, answer)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`, in a thread of its own."""
        return await asyncio.to_thread(self.batch, list(ops))

    def close(self) -> None:
        """Close the connections to the server."""
        self._recap.close()

    def _operation(self, op: Op) -> Body:
        if isinstance(op, GetOp):
            return {"op": "get", "namespace": op.namespace, "key": op.key, "refresh": op.refresh_ttl}
        if isinstance(op, SearchOp):
            return {
                "op": "search",
                "namespace_prefix": op.namespace_prefix,
                "filter": op.filter or {},
                "query": op.query or None,
                "fields": self._fields,
                "limit": op.limit,
                "offset": op.offset,
                "refresh": op.refresh_ttl,
            }
        if isinstance(op, ListNamespacesOp):
            return {"op": "namespaces", **_narrowed(op), "limit": op.limit, "offset": op.offset}
        name = {"namespace": op.namespace, "key": op.key}
        if op.value is None:
            return {"op": "delete", **name}
        expiry = {} if op.ttl is None else {"ttl": op.ttl, "refresh_on_read": True}
        return {"op": "put", **name, "value": dict(op.value), **expiry}


def _narrowed(op: ListNamespacesOp) -> Body:
    wanted: Body = {} if op.max_depth is None else {"max_depth": op.max_depth}
    for condition in op.match_conditions or ():
        if condition.match_type in wanted:
            raise ValueError(f"Recap takes one {condition.match_type} of namespaces, not several.")
        wanted[condition.match_type] = condition.path
    return wanted


def _result(op: Op, answer: Body) -> Result:
    if isinstance(op, SearchOp):
        return [SearchItem(score=item["score"], **_columns(item)) for item in answer["items"]]
    if isinstance(op, GetOp):
        return Item(**_columns(answer["item"])) if answer["item"] is not None else None
    return cast(Result, [tuple(namespace) for namespace in answer["namespaces"]])


def _columns(item: Body) -> Body:
    names = ("key", "value", "created_at", "updated_at")
    return {"namespace": tuple(item["namespace"]), **{name: item[name] for name in names}}
