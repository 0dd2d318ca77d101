"""The graph of what belongs together."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from memory.knowledge.entities import SELF
from memory.knowledge.graph import DEPTH_MAX
from memory.knowledge.grounding import NAME_CHARS_MAX
from schemas.fields import AS_OF, PageQuery, SessionId, Text, UtcDateTime, about, number, page_of


class GraphQuery(PageQuery):
    session_id = SessionId(load_default=None)
    entity = Text(
        load_default=SELF,
        validate=validate.Length(1, NAME_CHARS_MAX),
        metadata=about("The name to start from: `Ida`, `my sister`, or `user` for the person."),
    )
    depth = number(1, DEPTH_MAX, load_default=1, metadata=about("How many steps away from the entity links may be."))
    as_of = AS_OF


class Entity(Schema):
    """A person, place, organisation or thing."""

    name = fields.String(metadata=about("`user` is the person whose memory it is."))
    kind = fields.String(metadata=about("`person`, `place`, `organisation` or `thing`."))


class Edge(Schema):
    """A relation between two entities, with the fact that it belongs to."""

    subject = fields.Nested(Entity)
    relation = fields.String()
    object = fields.Nested(Entity)
    distance = fields.Integer(metadata=about("1: a link of the entity itself. 2: a link of its neighbours, and so on."))
    fact_id = fields.Integer(attribute="fact.id")
    quote = fields.String(attribute="fact.quote", metadata=about("The words of its source that it rests on."))
    session_id = fields.String(attribute="fact.session_id", allow_none=True)
    source_message_id = fields.Integer(attribute="fact.source_message_id", allow_none=True)
    valid_from = UtcDateTime(attribute="fact.valid_from")
    valid_to = UtcDateTime(attribute="fact.valid_to", allow_none=True, metadata=about("Null while it is true."))


EdgePage = page_of(Edge)
