"""Instructions by name, their versions, and proposals for them."""

from __future__ import annotations

from typing import Any

from api.identity import caller
from api.resource import ApiBlueprint, current_engine
from memory.erasing import erasing
from schemas import instructions as schema
from schemas.fields import CallerQuery, Receipt, Rollback

blueprint = ApiBlueprint(
    "instructions", "How the main model should behave: for a person or, without a user_id, for all."
)


@blueprint.get("/instructions", query=CallerQuery, returns=schema.InstructionList)
def list_instructions(query: dict[str, Any]) -> dict[str, Any]:
    """List the instructions that the person's prompts show, and those that have a proposal

    A person's instruction takes the place of the tenant's instruction of the same name.
    """
    return {"items": current_engine().instructions.list_instructions(caller(query["user_id"]))}


@blueprint.get("/instructions/<instruction>", query=CallerQuery, returns=schema.Instruction)
def get_instruction(query: dict[str, Any], instruction: str) -> Any:
    """Read an instruction, and the proposal that waits for it"""
    return current_engine().instructions.get(caller(query["user_id"]), instruction)


@blueprint.put(
    "/instructions/<instruction>",
    body=schema.InstructionPut,
    returns=schema.Instruction,
    errors={409: "The instruction has changed since `expected_version`. Nothing was stored."},
)
def put_instruction(body: dict[str, Any], instruction: str) -> Any:
    """Store a new version of an instruction

    The next prompt shows it beside the system prompt, word for word. A proposal that waits is dropped.
    """
    return current_engine().instructions.put(
        caller(body["user_id"]), instruction, body["text"], body["expected_version"]
    )


@blueprint.delete("/instructions/<instruction>", query=CallerQuery, returns=Receipt)
def delete_instruction(query: dict[str, Any], instruction: str) -> Any:
    """Erase an instruction with all of its versions, for good"""
    engine = current_engine()
    return erasing.erase_documents(engine, caller(query["user_id"]), engine.instructions.find, name=instruction)


@blueprint.get("/instructions/<instruction>/versions", query=CallerQuery, returns=schema.InstructionVersionList)
def list_instruction_versions(query: dict[str, Any], instruction: str) -> dict[str, Any]:
    """List all versions, newest first, each with what it changed"""
    return {"items": current_engine().instructions.versions(caller(query["user_id"]), instruction)}


@blueprint.post("/instructions/<instruction>/rollback", body=Rollback, returns=schema.Instruction)
def roll_back_instruction(body: dict[str, Any], instruction: str) -> Any:
    """Bring an earlier version back, as a new version"""
    return current_engine().instructions.rollback(caller(body["user_id"]), instruction, body["version"])


@blueprint.post("/instructions/<instruction>/proposal", body=schema.ProposalDecision, returns=schema.Instruction)
def decide_proposal(body: dict[str, Any], instruction: str) -> Any:
    """Accept the proposal, which makes it a new version, or refuse it"""
    return current_engine().instructions.decide(caller(body["user_id"]), instruction, accept=body["accept"])
