"""Loading what leaves most of itself out.

The idea: a schema asks each of its fields anew what there is to be had when nothing came for it, and does much around
each value that only errors need.  Here the defaults stand ready, and what came is read by its field and nothing else.
Where that refuses something, the schema itself loads all of it, and says what is wrong.

Guarantee: what is loaded, or refused, is what the schema's own `load` loads or refuses.
"""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, ValidationError, missing
from marshmallow.decorators import POST_LOAD, VALIDATES_SCHEMA


class Sparse(Schema):
    """A schema of requests that say little of what they may say.

    It has no hooks but `validates_schema` and `post_load`, and those take what was loaded and nothing else.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        fields = {field.data_key or name: (name, field) for name, field in self.load_fields.items()}
        self._reading = {key: (field.attribute or name, field.deserialize) for key, (name, field) in fields.items()}
        self._asked = {key for key, (_, field) in fields.items() if field.required or callable(field.load_default)}
        self._ready = {
            field.attribute or name: field.load_default
            for key, (name, field) in fields.items()
            if key not in self._asked and field.load_default is not missing
        }
        self._checking = [getattr(self, name) for name, *_ in self._hooks[VALIDATES_SCHEMA]]
        self._making = [getattr(self, name) for name, *_ in self._hooks[POST_LOAD]]

    def load(self, data: Any, **options: Any) -> Any:
        """As `Schema.load`."""
        usual = type(data) is dict and not (options or self.many or self.partial)
        if not usual or not self._asked <= data.keys() <= self._reading.keys():
            return super().load(data, **options)
        loaded: Any = dict(self._ready)
        how = {"many": False, "partial": self.partial, "unknown": self.unknown}
        try:
            for key, value in data.items():
                name, read = self._reading[key]
                loaded[name] = read(value, key, data)
            for check in self._checking:
                check(loaded, **how)
            for make in self._making:
                loaded = make(loaded, **how)
        except ValidationError:
            return super().load(data)
        return loaded
