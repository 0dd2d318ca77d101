"""Items in which Recap keeps memory of its own, such as the profile, as an import brings them.

Invariants:
- An item that its kind would not store is not imported: what reads it relies on its shape (test_import).
- A profile comes in without what the rules here keep out (test_rules).
"""

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from jsonschema import Draft202012Validator
from marshmallow import ValidationError

from memory import conversation_types, examples, feedback, instructions
from memory.errors import InvalidRequest
from memory.knowledge import overview, profile, rule_set
from memory.knowledge.profile_patch import Profile
from memory.recall import unhelpful
from memory.transfer.export import ItemRecord
from schemas.rules import RuleSet

_WITH_HISTORY = {kind.NAMESPACE for kind in (instructions, conversation_types, overview, rule_set)}
_KINDS = (conversation_types, examples, feedback, instructions, overview, unhelpful)
_SHAPES = {kind.NAMESPACE: kind.SHAPE for kind in _KINDS} | {instructions.PROPOSALS: instructions.PROPOSAL_SHAPE}
_STORED_RULES = RuleSet()


def imported_item(record: ItemRecord, rules: rule_set.RuleSet, moved: Callable[[Any], Any]) -> ItemRecord | None:
    """Return an item as it is stored here; None if its kind would not store it.

    moved: returns an overview with the ids that its facts and sessions have here.
    """
    if not _is_well_formed(record):
        return None
    if record.namespace == overview.NAMESPACE:
        return _with_values(record, moved)
    if record.namespace == profile.NAMESPACE:
        return _with_values(record, partial(_kept_of_profile, rules))
    return record


def _is_well_formed(item: ItemRecord) -> bool:
    """Return whether an item and its earlier values have the shape that their kind stores."""
    if item.namespace == rule_set.NAMESPACE:
        is_valid = _are_rules
    elif item.namespace in _SHAPES:
        is_valid = Draft202012Validator(_SHAPES[item.namespace]).is_valid
    else:
        return True
    values = [item.value, *(version.value for version in item.versions)]
    return (bool(item.versions) or item.namespace not in _WITH_HISTORY) and all(map(is_valid, values))


def _are_rules(value: Any) -> bool:
    """Return whether a value is rules that a caller could have stored."""
    try:
        rule_set.check(rule_set.RuleSet.of(_STORED_RULES.load(value)))
    except (ValidationError, InvalidRequest):
        return False
    return True


def _with_values(record: ItemRecord, change: Callable[[Any], Any]) -> ItemRecord:
    """Return an item with what `change` makes of its value and of its earlier ones."""
    versions = tuple(replace(version, value=change(version.value)) for version in record.versions)
    return replace(record, value=change(record.value), versions=versions)


def _kept_of_profile(rules: rule_set.RuleSet, value: Any) -> Any:
    """Return a profile as it is stored, without what the rules keep out; any other value as it is."""
    stored = Profile.of(value)
    kept = stored.kept_by(rules)
    return value if kept == stored else asdict(kept)
