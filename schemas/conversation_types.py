"""Types of conversations."""

from marshmallow import Schema

from models.sections import SECTIONS
from models.turns import RECALL_MODES
from schemas import fields
from schemas.fields import INT32_MAX, OPTIONAL
from schemas.shapes import CallerQuery

CUES_MAX, CUE_CHARS, PROMPT_CHARS = 50, 60, 4_000


class Does(Schema):
    """Behaviour of a type; null: as the settings say."""

    cues = fields.Items(
        fields.text(1, CUE_CHARS),
        CUES_MAX,
        load_default=(),
        about="Words that tell it; of a cue with several words, all have to be in one message.",
    )
    prompt = fields.text(
        most=PROMPT_CHARS, load_default="", about="Stands beside the system prompt, from the next compaction on."
    )
    recall = fields.one_of(*RECALL_MODES, **OPTIONAL)
    recall_tokens = fields.integer(0, INT32_MAX, **OPTIONAL)
    fact_tokens = fields.integer(0, INT32_MAX, **OPTIONAL)
    example_tokens = fields.integer(0, INT32_MAX, **OPTIONAL)
    emphasis = fields.Items(
        fields.one_of(*(section.name for section in SECTIONS)),
        len(SECTIONS),
        load_default=(),
        about="Sections that come first in the summary, from the next compaction on.",
    )


class ConversationType(Does):
    """Purpose that a conversation can have."""

    name = fields.String()
    built_in = fields.Boolean(about="Whether it has cue words beside its own.")
    of_tenant = fields.Boolean(about="Whether it is for all people of the tenant.")


class ConversationTypePut(CallerQuery, Does):
    pass
