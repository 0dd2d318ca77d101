"""Rules of what is kept, of a person or the tenant."""

from typing import Any

from api.blueprint import ApiBlueprint, Caller, current_engine
from memory.erasing import erasing
from memory.knowledge import rules
from memory.knowledge.rule_set import RuleSet
from memory.knowledge.rules import LISTED_MAX
from schemas import rules as schema
from schemas.shapes import Receipt

blueprint = ApiBlueprint("rules", "What memory keeps: categories, topics, how long, and what waits for review.")


@blueprint.get("/rules", returns=schema.RulesVersion)
def get_rules(caller: Caller) -> Any:
    """Read the person's rules or, without a user_id, the tenant's, which hold for each person"""
    return rules.get(current_engine(), caller)


@blueprint.put(
    "/rules",
    body=schema.RulesPut,
    returns=schema.RulesVersion,
    slow=True,
    errors={409: "Other rules were stored since `expected_version`, or these close facts and `close` is not there."},
)
def put_rules(caller: Caller, body: dict[str, Any]) -> Any:
    """Store new rules in the place of the ones before

    They hold for what is found from now on. What they keep out of what is stored is closed only with `close`. A
    person's rules can only narrow the tenant's.
    """
    expected, close = body.pop("expected"), body.pop("close")
    return rules.put(current_engine(), caller, RuleSet.of(body), expected, close=close)


@blueprint.delete("/rules", returns=Receipt)
def delete_rules(caller: Caller) -> Any:
    """Erase the rules with all of their versions, for good; what they closed stays closed"""
    return erasing.erase_versions(current_engine(), caller, rules.KEY, [rules.NAMESPACE], rules.not_found())


@blueprint.post("/rules/preview", body=schema.RulesPreviewed, returns=schema.RulesEffect, slow=True)
def preview_rules(caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    """List what rules would close of what is stored; nothing is stored"""
    effect = rules.preview(current_engine(), caller, RuleSet.of(body))
    facts = {"facts": effect.facts[:LISTED_MAX], "fact_count": len(effect.facts)}
    return {**facts, "summaries": len(effect.sessions), "profiles": len(effect.profiles)}


@blueprint.get("/rules/versions", list_of=schema.RulesVersion)
def list_rules_versions(caller: Caller) -> dict[str, Any]:
    """List all versions of the rules, newest first"""
    return {"items": rules.versions(current_engine(), caller)}


@blueprint.post(
    "/rules/rollback",
    body=schema.RulesRollback,
    returns=schema.RulesVersion,
    slow=True,
    errors={409: "The version closes facts and `close` is not there."},
)
def roll_back_rules(caller: Caller, body: dict[str, Any]) -> Any:
    """Bring an earlier version back, as a new version"""
    return rules.rollback(current_engine(), caller, **body)
