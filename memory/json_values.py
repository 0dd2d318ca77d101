"""Values of JSON that another program wrote: what is missing, or of another type, is an empty value."""

import json
from typing import Any


def list_in(value: Any) -> list[Any]:
    """Return an array; an empty one for anything else."""
    return value if isinstance(value, list) else []


def dict_in(value: Any) -> dict[str, Any]:
    """Return an object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def dicts_in(value: Any) -> list[dict[str, Any]]:
    """Return the objects in an array."""
    return [item for item in list_in(value) if isinstance(item, dict)]


def text_in(value: Any) -> str:
    """Return text as databases take it, without NUL and with U+FFFD for half a surrogate pair; "" for no text."""
    if not isinstance(value, str):
        return ""
    if not value.isascii():
        value = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value.replace("\0", "")


def object_in(text: Any) -> dict[str, Any] | None:
    """Return the JSON object that `text` is, as the arguments of a call must be; None for anything else."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
