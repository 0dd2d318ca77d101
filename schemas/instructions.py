"""Instructions."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from schemas.fields import EXPECTED_VERSION, CallerQuery, Text, UtcDateTime, describe, list_of

TEXT_CHARS = 4_000  # of one instruction
_DIFF = describe("What it changes, as lines of the unified format.")


class Proposal(Schema):
    """New text that waits for a person."""

    text = fields.String()
    reason = fields.String(metadata=describe("The mini model's reason for it."))
    quote = fields.String(metadata=describe("The words of the person that it rests on."))
    diff = fields.String(metadata=_DIFF)
    created_at = UtcDateTime()


class InstructionVersion(Schema):
    """Version of an instruction."""

    name = fields.String()
    version = fields.Integer(metadata=describe("0 where there is only a proposal yet."))
    text = fields.String()
    author = fields.String(allow_none=True, metadata=describe("`model`, `person`, `rollback` or `erasure`."))
    created_at = UtcDateTime(allow_none=True)
    diff = fields.String(metadata=_DIFF)


class Instruction(InstructionVersion):
    """Instruction as it is."""

    of_tenant = fields.Boolean(metadata=describe("Whether it is for all people of the tenant."))
    proposal = fields.Nested(Proposal, allow_none=True)


InstructionList = list_of(Instruction)
InstructionVersionList = list_of(InstructionVersion)


class InstructionPut(CallerQuery):
    text = Text(required=True, validate=[validate.Length(1, TEXT_CHARS), validate.Regexp(r"\s*\S")])
    expected_version = EXPECTED_VERSION


class ProposalDecision(CallerQuery):
    accept = fields.Boolean(required=True)
