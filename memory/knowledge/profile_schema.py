"""The JSON Schemas of profiles: the one that is used unless a tenant sets another, and which others there can be.

A schema is one tree.  A reference could lead to another server or round in circles, and a pattern can take a regular
expression for ever.
"""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft202012Validator, SchemaError

from memory.errors import InvalidRequest

SCHEMA_BYTES = 16_000
_NOT_IN_SCHEMAS = ("$ref", "$dynamicRef", "pattern", "patternProperties")

LINE_CHARS, LINES_MAX = 200, 40
_LINE = {"type": "string", "minLength": 1, "maxLength": LINE_CHARS}
_LINES = {"type": "array", "items": _LINE, "maxItems": LINES_MAX}
DEFAULT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "names": {**_LINES, "description": "what they are called"},
        "pronouns": _LINE,
        "home": {**_LINE, "description": "where they live"},
        "work": {**_LINE, "description": "what they do, and where"},
        "languages": _LINES,
        "people": {**_LINES, "description": "who matters to them, each as name and relation"},
        "likes": _LINES,
        "dislikes": _LINES,
        "health_limits": {**_LINES, "description": "allergies, diets, conditions"},
        "goals": {**_LINES, "description": "what they want to reach in the long run"},
        "about": {**_LINES, "description": "what they wrote about themselves elsewhere"},
        "wishes": {**_LINES, "description": "how they wrote elsewhere that answers should be"},
    },
}


def check_schema(schema: Any) -> None:
    """Raises InvalidRequest for a schema that is none, is not one plain tree, or refuses an empty profile."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        at = "/".join(map(str, error.absolute_path))
        raise _bad_schema(f"It is no JSON Schema (2020-12): the part /{at} is not as the standard says.") from None
    if len(json.dumps(schema)) > SCHEMA_BYTES:
        raise _bad_schema(f"It may have {SCHEMA_BYTES:,} bytes.")
    if found := next((name for name in _NOT_IN_SCHEMAS if f'"{name}":' in json.dumps(schema)), None):
        raise _bad_schema(f"It has {found!r}: a profile's schema is one tree, without references and patterns.")
    if not isinstance(schema, dict) or schema.get("type") != "object" or not Draft202012Validator(schema).is_valid({}):
        raise _bad_schema('Its `type` has to be "object", and an empty profile has to fit it.')


def _bad_schema(reason: str) -> InvalidRequest:
    return InvalidRequest("bad_schema", f"This schema can't be used. {reason} Nothing was changed.", param="schema")
