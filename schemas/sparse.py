"""Loading what leaves most of itself out.

The idea: a schema asks each of its fields anew what there is to be had when nothing came for it.  Here those defaults
stand ready, and only the fields that something came for are asked.

Guarantee: what is loaded, or refused, is what the schema's own `load` loads or refuses.
"""

from __future__ import annotations

import functools
from typing import Any

from marshmallow import Schema, missing

KEPT = 32  # schemas for the fields that came together: most callers send the same few


class Sparse(Schema):
    """A schema of requests that say little of what they may say.  Without `pre_load`, which might add to it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._names = {field.data_key or name: name for name, field in self.load_fields.items()}
        self._ready = {
            name: field.load_default
            for name, field in self.load_fields.items()
            if not (field.required or field.attribute or field.load_default is missing or callable(field.load_default))
        }
        self._asking = functools.lru_cache(maxsize=KEPT)(self._made_to_ask)

    def load(self, data: Any, **options: Any) -> Any:
        """As `Schema.load`."""
        if type(data) is not dict or options:
            return super().load(data, **options)
        asking = self._asking(frozenset(self._names.keys() & data.keys()))
        return super(Sparse, asking).load(data)

    def _made_to_ask(self, keys: frozenset[str]) -> Sparse:
        """This schema for data that has these of its keys."""
        left_out = {self._names[key] for key in self._names.keys() - keys} & self._ready.keys()
        # An empty `partial` means what None does, and is told at a glance: None might be a generator, for marshmallow.
        asking = type(self)(only=[name for name in self.load_fields if name not in left_out], partial=())
        defaults = {name: self._ready[name] for name in left_out}
        asking.dict_class = lambda: dict(defaults)  # type: ignore[assignment]
        return asking
