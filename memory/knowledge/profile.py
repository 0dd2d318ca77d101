"""Keep a profile: one document about a person that goes with them from one conversation to the next.

The mini model reads the words that new facts were taken from, and answers with a patch (see `profile_patch`). A
person may patch the profile too, and bring back any version.

Invariants [test_profile, test_erasing]:
- Every version is kept, and nothing of a message that was erased or replaced is left in any of them.
- Only what a person says later changes what they wrote.
"""

import json
import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, Self

from jsonschema import Draft202012Validator, SchemaError
from sqlalchemy import Select

from memory import tokens
from memory.access.owners import find_or_make_owner, get_user, lock_owner, owner_zone
from memory.engine import Engine
from memory.errors import AnswerRefused, InvalidRequest
from memory.knowledge.fact_reads import FACTS, IN_ALL_SESSIONS, read_facts
from memory.knowledge.fact_writes import invalidate
from memory.knowledge.grounding import says
from memory.knowledge.profile_patch import Operation, Profile, Value, apply_patch
from memory.knowledge.rule_set import rules_of
from memory.llm.mini_model import (
    BATCH_TOKENS,
    INTEGER,
    TEXT,
    InvalidAnswer,
    first_object,
    list_of,
    object_of,
    request_for,
)
from memory.paging import Page
from memory.quoting import block, escape, message_lines, one_line
from memory.sessions.messages import INDEXED, MESSAGES
from memory.store import item_rows
from models import FactRow, MessageRow, OwnerRow, Transaction
from models.facts import Fact
from models.jobs import Job, JobRequest
from models.messages import Message, in_zone
from models.owners import Caller
from models.store import MODEL, OWN, Item, ItemVersion, Put
from schemas.profile import OPERATIONS_MAX

log = logging.getLogger(__name__)

NAMESPACE = (OWN, "profile")
KEY = "profile"
SCHEMAS = (OWN, "schemas")  # under the tenant
_SCHEMA_KEYS = {"user": KEY, "space": "space"}  # by the kind of owner
PROFILE_TOKENS = 300  # of the profile in a prompt's prefix, instead of the facts that it contains
BATCH_FACTS_MAX = 40  # that one call of the mini model reads

SCHEMA_BYTES = 16_000
_NOT_IN_SCHEMAS = ("$ref", "$dynamicRef", "pattern", "patternProperties")

LINE_CHARS, LINES_MAX = 200, 40
_LINE = {"type": "string", "minLength": 1, "maxLength": LINE_CHARS}
_LINES = {"type": "array", "items": _LINE, "maxItems": LINES_MAX}
_OF_PERSON = {
    "names": {**_LINES, "description": "what they are called"},
    "pronouns": _LINE,
    "home": {**_LINE, "description": "where they live"},
    "work": {**_LINE, "description": "what they do, and where"},
    "languages": _LINES,
    "people": {**_LINES, "description": "who matters to them, each as name and relation"},
    "likes": _LINES,
    "dislikes": _LINES,
    "health_limits": {**_LINES, "description": "allergies, diets, conditions"},
    "goals": {**_LINES, "description": "what they want to reach in the long run"},
    "about": {**_LINES, "description": "what they wrote about themselves elsewhere"},
    "wishes": {**_LINES, "description": "how they wrote elsewhere that answers should be"},
}
_OF_SPACE = {  # a project, a team, an organisation or an agent
    "names": {**_LINES, "description": "what it is called"},
    "purpose": {**_LINE, "description": "what it is, and what it is for"},
    "people": {**_LINES, "description": "who belongs to it or matters to it, each as name and role"},
    "places": {**_LINES, "description": "where it is, and where its things are kept"},
    "languages": _LINES,
    "means": {**_LINES, "description": "tools, products and methods it works with"},
    "rules": {**_LINES, "description": "what holds for everybody there"},
    "decisions": {**_LINES, "description": "what was decided and still holds"},
    "goals": {**_LINES, "description": "what it wants to reach in the long run"},
    "dates": {**_LINES, "description": "what is due, or happens regularly"},
}
DEFAULT_SCHEMAS: dict[str, dict[str, Any]] = {
    kind: {"type": "object", "additionalProperties": False, "properties": properties}
    for kind, properties in (("user", _OF_PERSON), ("space", _OF_SPACE))
}
OF_SPACE = (
    "This is the profile of a space that several persons share: a project, a team, an organisation, or an agent. In "
    "place of a person, write what is said of the space, whoever says it, and nothing about one of them alone."
)

_OPERATION = {**TEXT, "enum": ["add", "replace", "remove"]}
ANSWER = object_of(patch=list_of(object_of(op=_OPERATION, path=TEXT, value=TEXT, quote=TEXT, source=INTEGER)))


def get(engine: Engine, caller: Caller, as_of: datetime | None = None) -> ItemVersion:
    """Return the profile as it is or, with `as_of`, was then; version 0 is the empty one that nobody has written.

    Raises NotFound for an unknown person.
    """
    with engine.database.read() as tx:
        return _newest(engine, tx, get_user(tx, caller), as_of)


def versions(engine: Engine, caller: Caller, *, cursor: str | None, limit: int) -> Page[ItemVersion]:
    """Return all versions, newest first. Raises NotFound."""
    with engine.database.read() as tx:
        item = _item(engine, tx, get_user(tx, caller))
        return item_rows.page_of_versions(tx, item, Profile.of, cursor, limit)


def edit(engine: Engine, caller: Caller, patch: Sequence[Operation], expected: int | None = None) -> ItemVersion:
    """Apply a person's JSON Patch, all of it or nothing; with `expected` only to that version.

    It invalidates the facts that say what a replaced or removed value said.
    Raises Conflict, and InvalidRequest for a patch that does not apply or leads out of the schema.
    """
    now = engine.now()
    source = {"quote": "", "session_id": None, "position": None, "since": now.isoformat(), "author": "person"}
    with engine.database.write() as tx:
        owner = find_or_make_owner(tx, caller, now)
        schema = _schema(engine, tx, caller.tenant, owner.kind)
        item = _item(engine, tx, owner)
        item_rows.check_version(KEY, expected, item.version if item is not None else 0)
        profile = before = Profile.of(item and item.value).fitting(schema)
        try:
            for operation in patch:
                profile = profile.patched(operation, source, schema)
        except InvalidAnswer as problem:
            hint = "Nothing was stored. `GET /api/profile/schema` has the fields of a profile."
            raise InvalidRequest("patch_refused", f"{problem} {hint}", param="patch") from None
        rules = rules_of(tx, owner.id, owner.tenant)
        if any(rules.keeps_out(value.text) for value in profile.values() if not before.has(value)):
            raise InvalidRequest("kept_out", "The rules of what is kept keep a new value out. Nothing was stored.")
        _invalidate_facts(tx, owner, before, profile, now)
        return _write(engine, tx, owner, profile, "person")


def rollback(engine: Engine, caller: Caller, version: int) -> ItemVersion:
    """Make what the schema and the rules allow of an earlier version the newest.  Raises NotFound."""
    with engine.database.write() as tx:
        owner = get_user(tx, caller)
        old = Profile.of(item_rows.get_version(tx, _item(engine, tx, owner), version).value)
        schema = _schema(engine, tx, caller.tenant, owner.kind)
        rules = rules_of(tx, owner.id, owner.tenant)
        return _write(engine, tx, owner, old.fitting(schema).kept_by(rules), "rollback")


def refresh(engine: Engine, caller: Caller) -> ItemVersion:
    """Ask for an update now.  Raises NotFound, LimitReached, and InvalidRequest where profiles are off."""
    if engine.settings.profile_mode.mode == "off":
        raise InvalidRequest("profiles_off", "PROFILE_MODE is off on this server, so no profile is updated.")
    with engine.database.write() as tx:
        owner = get_user(tx, caller)
        engine.budgets.check(tx, owner.id)
        engine.job_queue.enqueue(tx, JobRequest("profile", owner.id, owner.tenant, owner.id, force=True))
        return _newest(engine, tx, owner)


def get_schema(engine: Engine, caller: Caller, kind: str) -> dict[str, Any]:
    """Return the schema of the tenant's profiles of this kind of owner, `user` or `space`."""
    with engine.database.read() as tx:
        return _schema(engine, tx, caller.tenant, kind)


def set_schema(engine: Engine, caller: Caller, kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Set it.  Profiles stay as they are; the next change of one drops what the schema refuses.

    Raises InvalidRequest for one that is no JSON Schema, is not one plain tree, or refuses an empty profile.
    """
    check_schema(schema)
    with engine.database.write() as tx:
        owner = find_or_make_owner(tx, Caller(caller.tenant), engine.now())
        item_rows.write(tx, owner.id, Put(SCHEMAS, _SCHEMA_KEYS[kind], schema), engine.now(), author="person")
    return schema


# -- the job


def enqueue_update(engine: Engine, tx: Transaction, owner: OwnerRow) -> None:
    """Ask for an update at its time if facts about the person are new; a session of its own has no profile."""
    when = engine.settings.profile_mode
    if when.is_scheduled and owner.is_named and tx.scalar(_new_facts(owner).limit(1)) is not None:
        engine.job_queue.schedule(tx, when, "profile", owner)


def run(engine: Engine, job: Job) -> bool:
    """Read what facts quote that are new since the last update, as many as one call can read.

    The last try reads one fact, and passes it over if the mini model answers badly, but well about the next one.  A
    fact that a content filter refuses is passed over at once.
    Idempotent. Return whether there are more. Raises ModelError, LimitReached.
    """
    most = 2 if job.is_last_try else BATCH_FACTS_MAX
    with engine.database.read() as tx:
        owner = tx.get(OwnerRow, job.owner_id)
        found = _read_new(tx, owner, most) if owner is not None else []
        if owner is None or not found:
            return False
        engine.budgets.check(tx, owner.id)
        read_through = owner.profile_through
        schema = _schema(engine, tx, owner.tenant, owner.kind)
        item = _item(engine, tx, owner)
        rules, zone = rules_of(tx, owner.id, owner.tenant), owner_zone(tx, owner.id, engine.settings)
        prompt = engine.prompts.find(tx, Caller(owner.tenant), "profile")
    before = Profile.of(item and item.value).fitting(schema)
    about = prompt.render(), OF_SPACE if owner.kind == "space" else "", rules.topics_instruction
    shape = f"The JSON Schema of the profile: {json.dumps(schema, ensure_ascii=False)}"
    instruction = "\n\n".join(filter(None, (*about, shape)))
    document = escape(one_line(json.dumps(before.document, ensure_ascii=False)))

    def blocks(stated: Sequence[tuple[Fact, Message]]) -> Iterator[str]:
        messages = [message._replace(position=number) for number, (_, message) in enumerate(stated, 1)]
        yield block("profile", [document])
        yield block("messages", message_lines(in_zone(messages, zone), numbered=True))
        yield block("facts", (f"[{number}] {escape(fact.text)}" for number, (fact, _) in enumerate(stated, 1)))

    def patched(stated: Sequence[tuple[Fact, Message]], text: str) -> tuple[Profile, set[int]]:
        operations = first_object(text, ANSWER)["patch"][:OPERATIONS_MAX]
        facts, messages = [fact for fact, _ in stated], [message for _, message in stated]
        return apply_patch(before, operations, messages, schema, rules, facts)

    def read(stated: Sequence[tuple[Fact, Message]]) -> tuple[Profile, set[int]]:
        answer = engine.mini.ask_about(
            owner.id,
            stated,
            lambda stated: request_for(instruction, blocks(stated), ANSWER),
            owner.tenant,
            patched,
            replacing="profile",
        )
        return answer or (before, set())

    stated = [min(found, key=lambda pair: pair[0].id)] if job.is_last_try else found
    later = [pair for pair in found if pair not in stated]
    try:
        profile, used = read(stated)
    except AnswerRefused:
        if not later:
            raise
        read(later)  # else it is the model's fault, and all facts wait
        log.warning("a fact is passed over: the mini model always answers badly about it")
        profile, used = before, set()
    with engine.database.write() as tx:
        row = lock_owner(tx, job.owner_id)
        if row is None:
            return False
        is_same = _read_new(tx, row, most) == found and rules_of(tx, row.id, row.tenant) == rules
        if not is_same or row.profile_through != read_through or _item(engine, tx, row) != item:
            return True  # it changed meanwhile: once more
        row.profile_through = max(fact.id for fact, _ in stated)
        if profile != before:
            _write(engine, tx, row, profile, MODEL, used)
        return tx.scalar(_new_facts(row).limit(1)) is not None


# -- rows


def _item(engine: Engine, tx: Transaction, owner: OwnerRow) -> Item | None:
    return item_rows.read(tx, owner.id, NAMESPACE, KEY, engine.now())


def _newest(engine: Engine, tx: Transaction, owner: OwnerRow, as_of: datetime | None = None) -> ItemVersion:
    return item_rows.newest_version(tx, _item(engine, tx, owner), as_of).read(Profile.of)


def _schema(engine: Engine, tx: Transaction, tenant: str, kind: str) -> dict[str, Any]:
    item = item_rows.read_own(tx, Caller(tenant), SCHEMAS, _SCHEMA_KEYS[kind], engine.now())
    return item.value if item is not None else DEFAULT_SCHEMAS[kind]


def _write(
    engine: Engine, tx: Transaction, owner: OwnerRow, profile: Profile, author: str, used: Collection[int] = ()
) -> ItemVersion:
    put = Put(NAMESPACE, KEY, asdict(profile))
    now = engine.now()
    item = item_rows.write(tx, owner.id, put, now, author=author, sources=used)
    return ItemVersion(item.version, profile, author, now)


# -- schemas


def check_schema(schema: Any) -> None:
    """Raise InvalidRequest for a bad JSON Schema, one with references or patterns, or one that refuses {}.

    A reference could lead to another server or round in circles; a pattern can take for ever.
    """
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        at = "/".join(map(str, error.absolute_path))
        raise _bad_schema(f"It is no JSON Schema (2020-12): the part /{at} is not as the standard says.") from None
    if len(json.dumps(schema)) > SCHEMA_BYTES:
        raise _bad_schema(f"It may have {SCHEMA_BYTES:,} bytes.")
    if keyword := next((name for name in _NOT_IN_SCHEMAS if f'"{name}":' in json.dumps(schema)), None):
        raise _bad_schema(f"It has {keyword!r}: a profile's schema is one tree, without references and patterns.")
    if not isinstance(schema, dict) or schema.get("type") != "object" or not Draft202012Validator(schema).is_valid({}):
        raise _bad_schema('Its `type` has to be "object", and an empty profile has to fit it.')


def _bad_schema(reason: str) -> InvalidRequest:
    return InvalidRequest("bad_schema", f"This schema can't be used. {reason} Nothing was changed.", param="schema")


# -- rows and prompts


def _new_facts(owner: OwnerRow) -> Select[Any]:
    """Return a query for facts that no update of the profile has read, with messages which it may read."""
    new = FactRow.id > owner.profile_through, FactRow.owner_id == owner.id
    query = FACTS.join(MessageRow, MessageRow.id == FactRow.source_message_id)
    return query.where(*IN_ALL_SESSIONS, *new, *INDEXED).order_by(FactRow.id)


def _invalidate_facts(tx: Transaction, owner: OwnerRow, before: Profile, after: Profile, now: datetime) -> None:
    """Invalidate the facts that the profile stated before, and does not state any more."""
    stated, states = (ProfileBlock(values=tuple(profile.values())).states for profile in (before, after))
    for fact in read_facts(tx, FactRow.owner_id == owner.id, *IN_ALL_SESSIONS):
        if stated(fact) and not states(fact):
            invalidate(tx, fact.id, now, author="person")


def _read_new(tx: Transaction, owner: OwnerRow, most: int) -> list[tuple[Fact, Message]]:
    """Return the next facts that no update has read, as many as one call can read, each with its message.

    A message has nothing but what its fact quotes: the rest may say what was corrected or forgotten or waits for
    review, or was pasted. The oldest come first.
    """
    facts = [Fact(*row) for row in tx.execute(_new_facts(owner).limit(most))]
    fitting, _ = tokens.fit_budget(BATCH_TOKENS, (fact.quote for fact in facts))
    facts = sorted(facts[: max(1, len(fitting))], key=lambda fact: (fact.valid_from, fact.id))
    of_facts = MESSAGES.where(MessageRow.id.in_([fact.source_message_id for fact in facts]))
    messages = {message.id: message for message in map(Message._make, tx.execute(of_facts))}
    return [(fact, messages[fact.source_message_id or 0]._replace(content=fact.quote)) for fact in facts]


def remove_values(tx: Transaction, owner_id: int, facts: Collection[Fact | FactRow], now: datetime) -> None:
    """Take the values that say no more than these facts out of the person's profile. Earlier versions of it stay."""
    item = item_rows.read(tx, owner_id, NAMESPACE, KEY, now)
    if item is None:
        return
    profile = Profile.of(item.value)
    forgotten = [(fact.valid_from.isoformat(), fact.text) for fact in facts]
    sources = [
        value.source
        for value in profile.values()
        if any(value.source["since"] == since and says(text, str(value.value), share=1) for since, text in forgotten)
    ]
    if sources:
        rest = asdict(profile.without(lambda value: value.source in sources))
        item_rows.write(tx, owner_id, Put(NAMESPACE, KEY, rest), now, author="erasure")


# -- in the prefix of a prompt


@dataclass(frozen=True)
class ProfileBlock:
    """Part of a profile that a prompt's prefix has room for, value by value in the document's order."""

    item_id: int = 0
    version: int = 0
    lines: tuple[str, ...] = ()
    values: tuple[Value, ...] = ()

    @classmethod
    def of(cls, item_id: int, version: int, stored: Any, zone: tzinfo = UTC) -> Self:
        values = Profile.of(stored).values()
        lines, _ = tokens.fit_budget(PROFILE_TOKENS, (value.line(zone) for value in values))
        return cls(item_id, version, tuple(lines), tuple(values[: len(lines)]))

    def states(self, fact: Fact) -> bool:
        """Return whether the prompt states a fact already: a value of the same message has half of its words."""
        since = fact.valid_from.isoformat()
        return any(value.source["since"] == since and says(value.text, fact.text) for value in self.values)
