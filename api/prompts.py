"""Prompts."""

from typing import Any

from api.blueprint import ApiBlueprint, current_engine
from api.permissions import tenant, whole_tenant
from schemas import prompts as schema

blueprint = ApiBlueprint("prompts", "The instructions for the models, by name.")


@blueprint.get("/prompts", list_of=schema.Prompt)
def list_prompts() -> dict[str, Any]:
    """List the prompts in use"""
    return {"items": current_engine().prompts.all(tenant())}


@blueprint.get("/prompts/<name>", returns=schema.Prompt)
def get_prompt(name: str) -> Any:
    """Read a prompt"""
    return current_engine().prompts.get(tenant(), name)


@blueprint.put("/prompts/<name>", body=schema.PromptPut, returns=schema.Prompt)
def put_prompt(body: dict[str, Any], name: str) -> Any:
    """Store a new version of a prompt

    `system` begins the main model's prompt. `repair` asks the mini model to correct its answer. Every other name is a
    summary prompt, which may use the variables `first`, `sections` and `max_words`. A template that fails is refused.
    Prompts belong to the whole tenant, so a key of one person can't change them.
    """
    return current_engine().prompts.put(whole_tenant(), name, body["text"])


@blueprint.delete("/prompts/<name>", returns=schema.PromptDeleted)
def delete_prompt(name: str) -> dict[str, Any]:
    """Delete all stored versions of a prompt

    The operator's file or the packaged text of this name is in use again, if there is one. A chat that names a deleted
    prompt is refused; updates of summaries that wait use the default prompt instead.
    """
    return {"name": name, "versions": current_engine().prompts.delete(whole_tenant(), name)}
