"""Instructions."""

from marshmallow import Schema, validate

from schemas import fields
from schemas.fields import EXPECTED_VERSION, HAS_WORDS
from schemas.shapes import CallerQuery

TEXT_CHARS = 4_000  # of one instruction
_DIFF = "What it changes, as lines of the unified format."


class Proposal(Schema):
    """New text that waits for a person."""

    text = fields.String()
    reason = fields.String(about="The mini model's reason for it.")
    quote = fields.String(about="The words of the person that it rests on.")
    diff = fields.String(about=_DIFF)
    created_at = fields.UtcDateTime()


class InstructionVersion(Schema):
    name = fields.String()
    version = fields.Integer(about="0 where there is only a proposal yet.")
    text = fields.String()
    author = fields.String(allow_none=True, about="`model`, `person`, `rollback` or `erasure`.")
    created_at = fields.UtcDateTime(allow_none=True)
    diff = fields.String(about=_DIFF)


class Instruction(InstructionVersion):
    of_tenant = fields.Boolean(about="Whether it is for all people of the tenant.")
    proposal = fields.Nested(Proposal, allow_none=True)


class InstructionPut(CallerQuery):
    text = fields.Text(required=True, validate=[validate.Length(1, TEXT_CHARS), HAS_WORDS])
    expected_version = EXPECTED_VERSION


class ProposalDecision(CallerQuery):
    accept = fields.Boolean(required=True)
