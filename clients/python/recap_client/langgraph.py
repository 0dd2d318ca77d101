"""RecapStore: LangGraph's long-term memory, kept by a Recap server.

A query searches by words and meaning, without any set-up: the server embeds, so there is no `index` of the store, only
its `fields`.  The `index` of a put has the paths that queries look at in that item; with False no query finds it.  What
expires is not read any more and deleted by the server.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
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

from recap_client import types
from recap_client.calls import QUERY_CHARS, storable
from recap_client.client import Recap

Body = dict[str, Any]
_INT64 = 1 << 63
_WHOLE = {"$": "*"}  # LangGraph's path to all of a value, and the server's


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
        self._fields = [_WHOLE.get(path, path) for path in fields]
        self._recap = Recap(base_url, api_key, user_id)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations in one transaction.  Raises RecapError; then nothing was written.

        As LangGraph has it, reads do not see the writes of the same batch, and of several writes to one item the last
        one counts.
        """
        ops = list(ops)
        for op in ops:
            validate(op)
        reads = [(at, op) for at, op in enumerate(ops) if not isinstance(op, PutOp)]
        writes = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        operations = [self._operation(op) for op in (*(op for _, op in reads), *writes.values())]
        results: list[Result] = [None] * len(ops)
        if operations:
            answers = self._recap.batch(operations)["results"]
            for (at, op), answer in zip(reads, answers, strict=False):
                results[at] = _result(op, answer)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations as `batch` does, in a thread of its own."""
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
                "filter": _sendable(op.filter or {}),
                "query": storable(op.query or "")[:QUERY_CHARS] or None,
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
        paths = {} if op.index is None else {"index": [_WHOLE.get(path, path) for path in op.index or ()]}
        return {"op": "put", **name, "value": storable(op.value), **expiry, **paths}


def _sendable(wanted: Any) -> Any:
    """Return a filter, or a part of it, as JSON that the server takes, with the same meaning.

    A number that JSON or 64 bits cannot hold becomes the nearest float: values are finite.  No value equals NaN, or a
    text with a NUL character or half a surrogate pair.
    """
    if isinstance(wanted, Mapping):
        if _is_in_no_value(wanted.get("$eq")):
            return {"$in": []}
        return {key: _sendable(inner) for key, inner in wanted.items()}
    if isinstance(wanted, list | tuple):
        return list(map(_sendable, wanted))
    if _is_in_no_value(wanted):
        return {"$in": []}
    if isinstance(wanted, int | float) and not -_INT64 <= wanted < _INT64:
        return float(max(-sys.float_info.max, min(wanted, sys.float_info.max)))
    return wanted


def _is_in_no_value(operand: Any) -> bool:
    return (
        math.isnan(operand) if isinstance(operand, float) else isinstance(operand, str) and storable(operand) != operand
    )


def _narrowed(op: ListNamespacesOp) -> Body:
    wanted: Body = {} if op.max_depth is None else {"max_depth": op.max_depth}
    for condition in op.match_conditions or ():
        if condition.match_type in wanted:
            raise ValueError(f"Recap takes one {condition.match_type} of namespaces, not several.")
        wanted[condition.match_type] = condition.path
    return wanted


def _result(op: Op, answer: types.Result) -> Result:
    if isinstance(op, SearchOp):
        return [SearchItem(score=item["score"], **_columns(item)) for item in answer["items"]]
    if isinstance(op, GetOp):
        return Item(**_columns(answer["item"])) if answer["item"] is not None else None
    return cast(Result, [tuple(namespace) for namespace in answer["namespaces"]])


def _columns(item: Mapping[str, Any]) -> Body:
    names = ("key", "value", "created_at", "updated_at")
    return {"namespace": tuple(item["namespace"]), **{name: item[name] for name in names}}
