"""A call of Recap, as `operations` describes each and a client sends it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Values = Mapping[str, Any]
File = str | os.PathLike[str] | tuple[str, bytes]
"""A path, or the name of a file and what is in it."""
MESSAGE_CHARS = 100_000  # of the words of a message
QUERY_CHARS = 2000  # that a search takes


class Unset:
    """The type of UNSET: a field that is not sent, where None is sent as null."""


UNSET = Unset()


def given(**values: Any) -> dict[str, Any]:
    """Return the values that are not None: for the others the server's defaults hold."""
    return {name: value for name, value in values.items() if value is not None}


def changed(**values: Any) -> dict[str, Any]:
    """Return the values that are not UNSET, None among them."""
    return {name: value for name, value in values.items() if value is not UNSET}


def storable(value: Any) -> Any:
    """Return JSON as Recap stores it: texts have no NUL character, and U+FFFD for half a surrogate pair."""
    if isinstance(value, str):
        return value.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {storable(name): storable(inner) for name, inner in value.items()}
    return list(map(storable, value)) if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class Call:
    """A call.  `path` is that of the OpenAPI document, `ids` has the values of its parameters in braces."""

    method: str
    path: str
    ids: Values = field(default_factory=dict)
    query: Values = field(default_factory=dict)
    body: Any = None
    file: File | None = None  # sent with the fields of the body, as a form
    person: str | None = None  # where the person is named: `path`, `query`, or a field of the body
    user_id: str | None = None  # the person, if the call names one
    key: str | None = None  # the Idempotency-Key of a turn: sent twice, it gets its first answer again
    is_turn: bool = False
    idempotent: bool = False  # sent twice, it does what it does once

    def __post_init__(self) -> None:
        if self.is_turn and self.key is None:
            object.__setattr__(self, "key", str(uuid.uuid4()))  # all attempts of a turn have one

    @property
    def is_repeatable(self) -> bool:
        """Return whether the call may be sent again when nobody knows what became of it."""
        return self.idempotent or self.method == "GET" or self.is_turn
