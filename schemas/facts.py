"""Facts."""

from marshmallow import Schema, validate

from models.facts import FACT_CATEGORIES, SELF
from schemas import fields
from schemas.fields import AS_OF, OPTIONAL, numbers_by_name
from schemas.shapes import CallerQuery, Input, PageQuery

TEXT_CHARS_MAX = 500
NAME_CHARS_MAX = 100  # of an entity or a relation
CATEGORY = fields.Pattern(r"^[a-z0-9][a-z0-9_-]{0,31}$", error="Must be a category: 1 to 32 of a-z, 0-9, - and _.")
_CATEGORY = f"One of {', '.join(FACT_CATEGORIES)}, or a category of the rules (`/api/rules`)."
_TEXT = validate.Length(1, TEXT_CHARS_MAX)
_ACTIONS = (
    "`made`, `edited` or `superseded`; by consolidation `merged`, `contradicted` or `expired`, and `reopened` when it "
    "is undone, or its correction is deleted; `ended` at its `expires_at`; by rules `proposed` and then `accepted`, or "
    "`excluded`."
)
_ENDS = "When it stops being true by itself. Null: never."


class Proof(Schema):
    """Fact that says the same as another one, and was merged into it."""

    id = fields.Integer()
    text = fields.String()
    quote = fields.String(about="The words of its source that it rests on.")
    session_id = fields.String(allow_none=True)
    source_message_id = fields.Integer(allow_none=True)
    valid_from = fields.UtcDateTime()


class Fact(Schema):
    id = fields.Integer()
    text = fields.String()
    category = fields.String()
    importance = fields.Integer()
    scope = fields.String(about="`session`: true in its session. `user`: true in all sessions of the person.")
    session_id = fields.String(allow_none=True)
    source_message_id = fields.Integer(allow_none=True, about="Null if a person or an API call wrote its text.")
    quote = fields.String(about="The words of its source that it rests on. Empty if a person wrote its text.")
    pinned = fields.Boolean()
    recalled_count = fields.Integer(about="How many messages it was relevant to.")
    valid_from = fields.UtcDateTime()
    valid_to = fields.UtcDateTime(allow_none=True, about="Null while it is true.")
    expires_at = fields.UtcDateTime(allow_none=True, about=_ENDS)
    waiting = fields.Boolean(about="It waits for review: no prompt, search or other list has it.")
    superseded_by = fields.Integer(allow_none=True)
    created_at = fields.UtcDateTime()
    proof_count = fields.Function(
        lambda fact: 1 + len(fact.merged_facts), about="How often it was stated.", metadata={"type": "integer"}
    )
    proofs = fields.List(
        fields.Nested(Proof), attribute="merged_facts", about="The facts that were merged into it, newest first."
    )
    score = fields.Function(
        lambda fact: fact.score and vars(fact.score),
        about="Why it has its rank: `total`, the sum of `importance`, `recency`, `use` and `relevance`.",
        metadata={**numbers_by_name("number"), "nullable": True},
    )


class FactQuery(PageQuery):
    session_id = fields.SessionId(load_default=None)
    q = fields.text(0, 200, **OPTIONAL, about="Words, or parts of words, that the text must contain.")
    category = fields.Text(load_default=None, validate=CATEGORY, about=_CATEGORY)
    as_of = AS_OF
    state = fields.one_of(
        *("valid", "waiting"),
        load_default="valid",
        about="`waiting`: facts that wait for review, instead of those that are true.",
    )


class FactCreate(CallerQuery):
    session_id = fields.SessionId(load_default=None)
    text = fields.Text(required=True, validate=_TEXT)
    category = fields.Text(load_default="other", validate=CATEGORY, about=_CATEGORY)
    importance = fields.integer(1, 5, load_default=3)
    pinned = fields.Boolean(load_default=False)
    expires_at = fields.UtcDateTime(**OPTIONAL, about=_ENDS)


class FactChange(Input):
    text = fields.Text(validate=_TEXT)
    category = fields.Text(validate=CATEGORY, about=_CATEGORY)
    importance = fields.integer(1, 5)
    scope = fields.one_of("session", "user")
    pinned = fields.Boolean()
    expires_at = fields.UtcDateTime(allow_none=True, about=_ENDS)


class FactForgetQuery(CallerQuery):
    restore = fields.Boolean(load_default=False, about="The facts that it corrected hold again, and are not forgotten.")


class FactsToForget(CallerQuery):
    ids = fields.Items(fields.integer(1), 1000, least=1, required=True)


class FactReview(CallerQuery):
    accepted = fields.Items(fields.integer(1), 1000, load_default=(), about="Ids of facts that wait.")
    refused = fields.Items(fields.integer(1), 1000, load_default=(), about="Ids of facts that wait.")


class ReviewedFacts(Schema):
    """Numbers of the facts that were accepted, and of those that were refused and erased."""

    accepted = fields.Integer()
    refused = fields.Integer()


class FactRevision(Schema):
    """Fact, or one that it superseded, as it was after a change."""

    fact_id = fields.Integer()
    action = fields.String(about=_ACTIONS)
    author = fields.String(about="`model` or `person`.")
    text = fields.String()
    category = fields.String()
    importance = fields.Integer()
    pinned = fields.Boolean()
    at = fields.UtcDateTime()


class ConsolidationRun(Schema):
    """Numbers of facts that a run closed."""

    at = fields.UtcDateTime()
    merged = fields.Integer()
    contradicted = fields.Integer()
    expired = fields.Integer()


GRAPH_STEPS_MAX = 3


class GraphQuery(PageQuery):
    session_id = fields.SessionId(load_default=None)
    entity = fields.text(
        1,
        NAME_CHARS_MAX,
        load_default=SELF,
        about="The name to start from: `Ida`, `my sister`, or `user` for the person.",
    )
    depth = fields.number(1, GRAPH_STEPS_MAX, load_default=1, about="How many steps away from the entity links may be.")
    as_of = AS_OF


class Entity(Schema):
    name = fields.String(about="`user` is the person whose memory it is.")
    kind = fields.String(about="`person`, `place`, `organisation` or `thing`.")


class Edge(Schema):
    subject = fields.Nested(Entity)
    relation = fields.String()
    object = fields.Nested(Entity)
    distance = fields.Integer(about="1: a link of the entity itself. 2: a link of its neighbours, and so on.")
    fact_id = fields.Integer(attribute="fact.id")
    quote = fields.String(attribute="fact.quote", about="The words of its source that it rests on.")
    session_id = fields.String(attribute="fact.session_id", allow_none=True)
    source_message_id = fields.Integer(attribute="fact.source_message_id", allow_none=True)
    valid_from = fields.UtcDateTime(attribute="fact.valid_from")
    valid_to = fields.UtcDateTime(attribute="fact.valid_to", allow_none=True, about="Null while it is true.")
