"""Spaces: memory that several persons share."""

from typing import Any

from flask import g

from api.blueprint import ApiBlueprint, current_engine
from memory.spaces import list_spaces as spaces_of
from schemas.shapes import Paged
from schemas.spaces import Space

blueprint = ApiBlueprint("spaces", "Memory that several persons share.")


@blueprint.get("/spaces", query=Paged, page_of=Space)
def list_spaces(query: dict[str, Any]) -> Any:
    """List the spaces that the key opens

    A key of a person, or of spaces alone, opens those that it names. A key of the whole tenant opens every space; those
    are listed that something is stored of, the newest first.
    """
    return spaces_of(current_engine(), g.principal, **query)
