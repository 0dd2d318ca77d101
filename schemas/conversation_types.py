"""Types of conversations."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from models.sections import SECTIONS
from models.turns import RECALL_MODES
from schemas.fields import INT32_MAX, OPTIONAL, CallerQuery, Items, Text, describe, integer, list_of, one_of

CUES_MAX, CUE_CHARS, PROMPT_CHARS = 50, 60, 4_000


class Does(Schema):
    """Behaviour of a type; null: as the settings say."""

    cues = Items(
        Text(validate=validate.Length(1, CUE_CHARS)),
        CUES_MAX,
        load_default=(),
        metadata=describe("Words that tell it; of a cue with several words, all have to be in one message."),
    )
    prompt = Text(
        load_default="",
        validate=validate.Length(max=PROMPT_CHARS),
        metadata=describe("Stands beside the system prompt from when the head is chosen anew."),
    )
    recall = one_of(*RECALL_MODES, **OPTIONAL)
    recall_tokens = integer(0, INT32_MAX, **OPTIONAL)
    fact_tokens = integer(0, INT32_MAX, **OPTIONAL)
    example_tokens = integer(0, INT32_MAX, **OPTIONAL)
    emphasis = Items(
        one_of(*(section.name for section in SECTIONS)),
        len(SECTIONS),
        load_default=(),
        metadata=describe("Sections that come first in the summary, from when the head is chosen anew."),
    )


class ConversationType(Does):
    """Purpose that a conversation can have."""

    name = fields.String()
    built_in = fields.Boolean(metadata=describe("Whether it has cue words beside its own."))
    of_tenant = fields.Boolean(metadata=describe("Whether it is for all people of the tenant."))


ConversationTypeList = list_of(ConversationType)


class ConversationTypePut(CallerQuery, Does):
    """Behaviour of a type, and whose it is."""
