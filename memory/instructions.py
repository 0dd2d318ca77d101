"""Instructions by name for the main model: a person's own, and the tenant's for all of its people.

They stand beside the system prompt, unchanged. A person writes or accepts each version, unless FEEDBACK=auto takes the
mini model's proposals. A person's own instruction takes the place of the tenant's.

Invariant: every version is kept until the instruction is deleted. A version made from feedback goes when a message of
that exchange is erased or replaced, and so do the later versions made from it (test_instructions).
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import unified_diff
from functools import partial
from typing import Any

from memory.access.owners import find_or_make_owner, find_owner
from memory.engine import Engine
from memory.errors import InvalidRequest, NotFound
from memory.languages import content_terms, pattern
from memory.llm.mini_model import INTEGER, TEXT, list_of, object_of
from memory.prompts.prompts import check_name
from memory.store import item_rows
from models import OwnerRow, Transaction
from models.owners import Caller
from models.store import MODEL, OWN, Item, ItemVersion, Namespace, Put
from schemas.instructions import TEXT_CHARS

NAMESPACE, PROPOSALS = (OWN, "instructions"), (OWN, "proposals")
_DENIES = pattern(lambda language: f"stop|{language.negations}" if language.code == "en" else language.negations)
_TEXT = {"type": "string", "maxLength": TEXT_CHARS}
_PLACE = {"type": "array", "prefixItems": [TEXT, INTEGER], "minItems": 2, "maxItems": 2}
LEARNED = "general"  # the instruction that talk adds lines to, and feedback that names none
SHAPE = object_of(text=_TEXT, sources=list_of(_PLACE))
PROPOSAL_SHAPE = object_of(text=_TEXT, reason=TEXT, quote=TEXT)
TOTAL_CHARS = 8_000  # of all instructions of a person or a tenant: every prompt carries them
require_name = partial(check_name, kind="instruction")


@dataclass(frozen=True)
class Proposal:
    """New text for an instruction, which a person may accept. quote: the person's words that it rests on."""

    text: str
    reason: str
    quote: str
    diff: str
    created_at: datetime


@dataclass(frozen=True)
class Instruction:
    """Version of an instruction; version 0 has no text, only a `proposal`.

    author: `person`, `model`, `rollback` or `erasure`. diff: from the version before.
    """

    name: str
    version: int = 0
    text: str = ""
    author: str | None = None
    created_at: datetime | None = None
    of_tenant: bool = False
    diff: str = ""
    proposal: Proposal | None = None


def list_instructions(engine: Engine, caller: Caller) -> list[Instruction]:
    """Return the instructions that the caller's prompts show, with waiting proposals, by name."""
    with engine.database.read() as tx:
        instructions = _shown(engine, tx, caller)
    return [instructions[name] for name in sorted(instructions)]


def get(engine: Engine, caller: Caller, name: str) -> Instruction:
    """Return the instruction that the caller's prompts show under this name. Raises NotFound."""
    with engine.database.read() as tx:
        instruction = _shown(engine, tx, caller).get(name)
    if instruction is None:
        raise not_found(name)
    return instruction


def versions(engine: Engine, caller: Caller, name: str) -> list[Instruction]:
    """Return all versions of the caller's own instruction, newest first. Raises NotFound."""
    with engine.database.read() as tx:
        _, item = _own(engine, tx, caller, name)
        return _versions(name, item_rows.list_versions(tx, item.id))


def put(engine: Engine, caller: Caller, name: str, text: str, expected: int | None = None) -> Instruction:
    """Store a new version, and drop a waiting proposal. expected: the version that it follows.

    Raises InvalidRequest for a bad name and for too much text, and Conflict for another version.
    """
    require_name(name)
    with engine.database.write() as tx:
        owner = find_or_make_owner(tx, caller, engine.now())
        value = {"text": text, "sources": _sources(engine, tx, owner, name)}
        return _write(engine, tx, owner, Put(NAMESPACE, name, value, expected), "person")


def rollback(engine: Engine, caller: Caller, name: str, version: int) -> Instruction:
    """Store an earlier version as the newest. Raises NotFound."""
    with engine.database.write() as tx:
        owner, item = _own(engine, tx, caller, name)
        old = item_rows.get_version(tx, item, version).value
        return _write(engine, tx, owner, Put(NAMESPACE, name, old), "rollback")


def decide(engine: Engine, caller: Caller, name: str, *, accept: bool) -> Instruction:
    """Store the proposal as a new version, or drop it. Raises NotFound when none waits."""
    with engine.database.write() as tx:
        owner = find_owner(tx, caller)
        if owner is None or _item(engine, tx, owner, name, PROPOSALS) is None:
            raise NotFound("proposal_not_found", f"No proposal for the instruction {name!r} waits.", param="name")
        if accept:
            return accept_proposal(engine, tx, owner, name, "person")
        _drop_proposal(engine, tx, owner, name)
        return _shown(engine, tx, caller).get(name, Instruction(name))


# -- in a transaction of the caller


def text_of(engine: Engine, tx: Transaction, owner: OwnerRow, name: str) -> str:
    """Return the text that the prompts of an owner, a user or a space, show under this name."""
    return _shown(engine, tx, owner.caller).get(name, Instruction(name)).text


def room(engine: Engine, tx: Transaction, owner: OwnerRow, name: str) -> int:
    """Return the characters that an owner's instruction may have, beside the others."""
    others = (item for item in item_rows.list_items(tx, owner.id, NAMESPACE, engine.now()) if item.key != name)
    return min(TEXT_CHARS, TOTAL_CHARS - sum(len(item.value["text"]) for item in others))


def propose(
    engine: Engine, tx: Transaction, owner: OwnerRow, name: str, proposal: dict[str, str], sources: Collection[int]
) -> bool:
    """Store a proposal, in the place of another one, with the messages that it rests on.

    Return whether it is a new version at once, as with FEEDBACK=auto.
    """
    _drop_proposal(engine, tx, owner, name)
    item_rows.write(tx, owner.id, Put(PROPOSALS, name, proposal), engine.now(), sources=sources)
    is_taken = engine.settings.feedback == "auto"
    if is_taken:
        accept_proposal(engine, tx, owner, name, MODEL)
    return is_taken


def accept_proposal(engine: Engine, tx: Transaction, owner: OwnerRow, name: str, author: str) -> Instruction:
    """Store the waiting proposal as a version, with the sources of both it and the version before."""
    proposal = _item(engine, tx, owner, name, PROPOSALS)
    assert proposal is not None
    places = [[source.session_id, source.position] for source in item_rows.sources_of(tx, [proposal.id])[proposal.id]]
    value = {"text": proposal.value["text"], "sources": [*_sources(engine, tx, owner, name), *places]}
    return _write(engine, tx, owner, Put(NAMESPACE, name, value), author, item_rows.messages_of(tx, proposal))


def learn(engine: Engine, tx: Transaction, owner: OwnerRow, lines: Iterable[tuple[str, str, int]]) -> None:
    """Propose lines that the person asked for, after those that stand or wait, unless one of them says it.

    A line takes the place of one that it contradicts; where there is no room, it is left out.
    lines: each with the person's words that it rests on, and the id of their message.
    """
    waiting = _item(engine, tx, owner, LEARNED, PROPOSALS)
    quotes: list[str] = []
    sources: list[int] = []
    before: str = waiting.value["text"] if waiting is not None else text_of(engine, tx, owner, LEARNED)
    if waiting is not None:
        quotes = [waiting.value["quote"]]
        sources = [*item_rows.messages_of(tx, waiting)]
    text = before
    chars_max = room(engine, tx, owner, LEARNED)
    for line, quote, message_id in lines:
        terms = content_terms(line)
        others = text.splitlines()
        longer = "\n".join([*(old for old in others if not _is_other_value(old, line)), line])
        if len(longer) <= chars_max and all(content_terms(old) != terms for old in others):
            text = longer
            quotes.append(quote)
            sources.append(message_id)
    if text != before:
        proposal = {"text": text, "reason": "Said in a conversation.", "quote": "\n".join(quotes)}
        propose(engine, tx, owner, LEARNED, proposal, sources)


def _shown(engine: Engine, tx: Transaction, caller: Caller) -> dict[str, Instruction]:
    """Return the tenant's instructions and the caller's over them, by name, with waiting proposals."""
    shown: dict[str, Instruction] = {}
    for owner in filter(None, (find_owner(tx, Caller(caller.tenant)), find_owner(tx, caller))):
        items = item_rows.list_items(tx, owner.id, NAMESPACE, engine.now())
        histories = item_rows.histories(tx, [item.id for item in items])
        for item in items:
            newest = _versions(item.key, histories[item.id][::-1])[0]
            shown[item.key] = replace(newest, of_tenant=owner.kind == "tenant")
        for item in item_rows.list_items(tx, owner.id, PROPOSALS, engine.now()):
            newest = shown.get(item.key, Instruction(item.key))
            value = item.value
            proposal = Proposal(diff=_diff(newest.text, value["text"]), created_at=item.created_at, **value)
            shown[item.key] = replace(newest, proposal=proposal)
    return shown


def _write(
    engine: Engine, tx: Transaction, owner: OwnerRow, put: Put, author: str, sources: Collection[int] = ()
) -> Instruction:
    """Store a version, and drop a waiting proposal."""
    if len(put.value["text"]) > room(engine, tx, owner, put.key):
        raise InvalidRequest(
            "instructions_too_long",
            f"All instructions of a person, and all of a tenant, may have {TOTAL_CHARS:,} characters together. "
            "Nothing was stored. Shorten or delete some.",
            param="text",
        )
    item_rows.write(tx, owner.id, put, engine.now(), author=author, sources=sources)
    _drop_proposal(engine, tx, owner, put.key)
    return _shown(engine, tx, owner.caller)[put.key]


def _drop_proposal(engine: Engine, tx: Transaction, owner: OwnerRow, name: str) -> None:
    proposal = _item(engine, tx, owner, name, PROPOSALS)
    item_rows.remove(tx, [proposal.id] if proposal is not None else [])


def _sources(engine: Engine, tx: Transaction, owner: OwnerRow, name: str) -> list[Any]:
    """Return the places of the source messages of the owner's instruction."""
    item = _item(engine, tx, owner, name)
    return item.value["sources"] if item is not None else []


def _own(engine: Engine, tx: Transaction, caller: Caller, name: str) -> tuple[OwnerRow, Item]:
    owner = find_owner(tx, caller)
    item = _item(engine, tx, owner, name) if owner is not None else None
    if owner is None or item is None:
        raise not_found(name)
    return owner, item


def _item(engine: Engine, tx: Transaction, owner: OwnerRow, name: str, namespace: Namespace = NAMESPACE) -> Item | None:
    return item_rows.read(tx, owner.id, namespace, name, engine.now())


def _is_other_value(old: str, new: str) -> bool:
    """Return whether two lines say the same but for a name: "Answer in German", "Answer in English"."""
    before, after = content_terms(old), content_terms(new)
    names = [{word.lower() for word in line.split()[1:] if word[:1].isupper()} for line in (old, new)]
    differ = len(before - after) == len(after - before) == 1 and before & after
    return bool(differ and names[0] - names[1] and names[1] - names[0] and not _DENIES.search(f"{old} {new}"))


def not_found(name: str) -> NotFound:
    return NotFound("instruction_not_found", f"There is no instruction {name!r}.", param="name")


def _versions(name: str, history: Sequence[ItemVersion]) -> list[Instruction]:
    """Return the versions of a history, which begins with the newest."""
    texts = [*(str(version.value["text"]) for version in history), ""]
    return [
        Instruction(name, version.version, text, version.author, version.created_at, diff=_diff(old, text))
        for version, text, old in zip(history, texts, texts[1:], strict=False)
    ]


def _diff(old: str, new: str) -> str:
    """Return the changes between two texts in the unified format, without its header."""
    return "\n".join(list(unified_diff(old.splitlines(), new.splitlines(), lineterm=""))[2:])
