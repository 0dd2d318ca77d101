"""Rules of what is kept."""

from marshmallow import Schema

from schemas import fields
from schemas.facts import CATEGORY, Fact
from schemas.fields import EXPECTED_VERSION, OPTIONAL
from schemas.shapes import CallerQuery, Input, Rollback

CATEGORIES_MAX, TOPICS_MAX, WORDS_MAX = 40, 20, 200
ABOUT_CHARS, TOPIC_CHARS, WORD_CHARS, DAYS_MAX = 200, 200, 80, 36_500
CLOSE = fields.Boolean(
    **OPTIONAL, about="Whether to close what they keep out of what is stored. Null: 409 if there is anything."
)


class CategoryRule(Input):
    """Rule for the facts of one category, which may be one of your own."""

    name = fields.Text(required=True, validate=CATEGORY)
    keep = fields.Boolean(load_default=True, about="Whether its facts are kept.")
    days = fields.integer(1, DAYS_MAX, **OPTIONAL, about="How long they stay; null: as long as they are true.")
    about = fields.text(
        most=ABOUT_CHARS, load_default="", about="What a category of your own has, in words for the mini model."
    )


class RuleSet(Input):
    """Rules; what they do not name is kept."""

    categories = fields.Items(fields.Nested(CategoryRule), CATEGORIES_MAX, load_default=())
    topics = fields.Items(
        fields.text(1, TOPIC_CHARS),
        TOPICS_MAX,
        load_default=(),
        about="What is kept out, in words that the mini model reads, as `health`.",
    )
    words = fields.Items(
        fields.text(1, WORD_CHARS),
        WORDS_MAX,
        load_default=(),
        about="What is kept out wherever it stands: words, with `*` at either end for any letters, and `#` for a "
        "digit.",
    )
    review = fields.Boolean(
        load_default=False, about="Whether facts that models found wait until somebody accepts them."
    )


class RulesPut(CallerQuery, RuleSet):
    """New rules, and whose they are: without `user_id` the tenant's."""

    expected_version = EXPECTED_VERSION
    close = CLOSE


class RulesRollback(Rollback):
    close = CLOSE


class RulesPreviewed(CallerQuery, RuleSet):
    pass


class RulesVersion(Schema):
    """Version of the rules of a person or a tenant; version 0: nobody has written any."""

    version = fields.Integer()
    rules = fields.Nested(RuleSet, attribute="value")
    in_force = fields.Nested(RuleSet, about="A person's rules together with the tenant's.")
    author = fields.String(allow_none=True)
    created_at = fields.UtcDateTime(allow_none=True)


class ClosedFact(Fact):
    class Meta:
        fields = ("id", "text", "category", "session_id", "valid_from")


class RulesEffect(Schema):
    facts = fields.List(fields.Nested(ClosedFact))
    fact_count = fields.Integer(about="How many facts there are; the list ends at 1,000.")
    summaries = fields.Integer(about="How many summaries would lose lines.")
    profiles = fields.Integer(about="How many profiles and overviews would lose values.")
