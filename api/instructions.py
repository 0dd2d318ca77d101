"""Instructions by name, their versions, and proposals for them."""

from typing import Any

from api.blueprint import ApiBlueprint, Caller, current_engine
from memory import instructions
from memory.erasing import erasing
from schemas import instructions as schema
from schemas.shapes import Receipt, Rollback

blueprint = ApiBlueprint(
    "instructions", "How the main model should behave: for a person or, without a user_id, for all."
)


@blueprint.get("/instructions", list_of=schema.Instruction)
def list_instructions(caller: Caller) -> dict[str, Any]:
    """List the instructions that the person's prompts show, and those that have a proposal

    A person's instruction takes the place of the tenant's instruction of the same name.
    """
    return {"items": instructions.list_instructions(current_engine(), caller)}


@blueprint.get("/instructions/<instruction>", returns=schema.Instruction)
def get_instruction(caller: Caller, instruction: str) -> Any:
    """Read an instruction, and the proposal that waits for it"""
    return instructions.get(current_engine(), caller, instruction)


@blueprint.put("/instructions/<instruction>", body=schema.InstructionPut, returns=schema.Instruction)
def put_instruction(caller: Caller, body: dict[str, Any], instruction: str) -> Any:
    """Store a new version of an instruction

    The next prompt shows it beside the system prompt, word for word. A proposal that waits is dropped.
    """
    return instructions.put(current_engine(), caller, instruction, **body)


@blueprint.delete("/instructions/<instruction>", returns=Receipt)
def delete_instruction(caller: Caller, instruction: str) -> Any:
    """Erase an instruction with all of its versions, for good"""
    namespaces = (instructions.NAMESPACE, instructions.PROPOSALS)
    missing = instructions.not_found(instruction)
    return erasing.erase_versions(current_engine(), caller, instruction, namespaces, missing, name=instruction)


@blueprint.get("/instructions/<instruction>/versions", list_of=schema.InstructionVersion)
def list_instruction_versions(caller: Caller, instruction: str) -> dict[str, Any]:
    """List all versions, newest first, each with what it changed"""
    return {"items": instructions.versions(current_engine(), caller, instruction)}


@blueprint.post("/instructions/<instruction>/rollback", body=Rollback, returns=schema.Instruction)
def roll_back_instruction(caller: Caller, body: dict[str, Any], instruction: str) -> Any:
    """Bring an earlier version back, as a new version"""
    return instructions.rollback(current_engine(), caller, instruction, **body)


@blueprint.post("/instructions/<instruction>/proposal", body=schema.ProposalDecision, returns=schema.Instruction)
def decide_proposal(caller: Caller, body: dict[str, Any], instruction: str) -> Any:
    """Accept the proposal, which makes it a new version, or refuse it"""
    return instructions.decide(current_engine(), caller, instruction, **body)
