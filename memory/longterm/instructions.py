"""Instructions by name for the main model: a person's own, and the tenant's for all of its people.

They stand beside the system prompt, as they were written: a person writes or accepts each version, unless
FEEDBACK=auto takes what the mini model proposes.  A person's own instruction takes the place of the tenant's.

Guarantee: every version is kept until the instruction is deleted.  A version that was made from a person's feedback
goes when a message of that exchange is erased or replaced, and so do the later versions that were made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import unified_diff
from typing import Any

from sqlalchemy import select, tuple_

from memory.access.owners import find_owner, make_owner
from memory.domain import Caller
from memory.errors import InvalidRequest, NotFound
from memory.longterm.head import Shown
from memory.prompts.prompts import NAME
from memory.store import documents
from memory.store.values import OWN, Item, Namespace, Put
from models import Database, MessageRow, OwnerRow, SessionRow, Transaction

NAMESPACE, PROPOSALS = (OWN, "instructions"), (OWN, "proposals")
TEXT_CHARS = 4_000  # of one instruction
TOTAL_CHARS = 8_000  # of all that a person or a tenant has: every prompt carries them

Place = Sequence[Any]  # a message's session and position


@dataclass(frozen=True)
class Proposal:
    """A new text for an instruction, and the words of the person that it rests on.  It waits for a person."""

    text: str
    reason: str
    quote: str
    diff: str
    created_at: datetime


@dataclass(frozen=True)
class Instruction:
    """One version of an instruction; version 0 has no text and only a `proposal`.

    `author` is `person`, `model`, `rollback` or `erasure`; `diff` is what changed since the version before.
    """

    name: str
    version: int = 0
    text: str = ""
    author: str | None = None
    created_at: datetime | None = None
    of_tenant: bool = False
    diff: str = ""
    proposal: Proposal | None = None


@dataclass(frozen=True)
class Instructions:
    """Reads and changes instructions on behalf of callers: those of the user, or without one the tenant's."""

    database: Database
    now: Callable[[], datetime]

    def all(self, caller: Caller) -> list[Instruction]:
        """What the caller's prompts show, and what waits for the caller, by name."""
        with self.database.read() as tx:
            owner, tenant = find_owner(tx, caller), find_owner(tx, Caller(caller.tenant))
            proposals = {item.key: item for item in self._items(tx, owner, PROPOSALS)}
            found = {name: Instruction(name, proposal=_proposal(one, "")) for name, one in proposals.items()}
            for one in filter(None, (tenant, owner)):
                for item in self._items(tx, one):
                    found[item.key] = _newest(tx, item, one, proposals.get(item.key))
        return [found[name] for name in sorted(found)]

    def get(self, caller: Caller, name: str) -> Instruction:
        """Raises NotFound."""
        found = next((one for one in self.all(caller) if one.name == name), None)
        if found is None:
            raise _not_found(name)
        return found

    def versions(self, caller: Caller, name: str) -> list[Instruction]:
        """All versions of the caller's own, newest first.  Raises NotFound."""
        with self.database.read() as tx:
            return _versions(tx, self._own(tx, caller, name)[1])

    def put(self, caller: Caller, name: str, text: str, expected: int | None = None) -> Instruction:
        """Store a new version; with `expected` only after that one.  A proposal that waits is dropped.

        Raises InvalidRequest for a bad name and for too much text, and Conflict.
        """
        check_name(name)
        with self.database.write() as tx:
            owner = find_owner(tx, caller) or make_owner(tx, caller, self.now())
            return self._write(tx, owner, name, text, "person", self._sources(tx, owner, name), expected)

    def rollback(self, caller: Caller, name: str, version: int) -> Instruction:
        """Make an earlier version the newest again.  Raises NotFound."""
        with self.database.write() as tx:
            owner, item = self._own(tx, caller, name)
            old = documents.find_version(tx, item, version).value
            return self._write(tx, owner, name, old["text"], "rollback", old["sources"])

    def decide(self, caller: Caller, name: str, *, accept: bool) -> Instruction:
        """Make the proposal a new version, or drop it.  Raises NotFound when none waits."""
        with self.database.write() as tx:
            owner = find_owner(tx, caller)
            waiting = next((item for item in self._items(tx, owner, PROPOSALS) if item.key == name), None)
            if owner is None or waiting is None:
                raise NotFound("proposal_not_found", f"No proposal for the instruction {name!r} waits.", param="name")
            documents.remove(tx, [waiting.id])
            if accept:
                self.take(tx, owner, name, waiting.value, "person")
        return next((one for one in self.all(caller) if one.name == name), Instruction(name))

    # -- for the engine's own transactions

    def text_of(self, tx: Transaction, owner: OwnerRow, name: str) -> str:
        """The text that the owner's prompts show under this name."""
        texts = (
            item.value["text"]
            for one in (owner, find_owner(tx, Caller(owner.tenant)))
            for item in self._items(tx, one)
            if item.key == name
        )
        return next(texts, "")

    def room(self, tx: Transaction, owner: OwnerRow, name: str) -> int:
        """The characters that the owner's other instructions leave to one of this name."""
        return TOTAL_CHARS - sum(len(item.value["text"]) for item in self._items(tx, owner) if item.key != name)

    def propose(self, tx: Transaction, owner: OwnerRow, name: str, proposed: dict[str, Any]) -> None:
        """Let a proposal wait, in the place of another one for this instruction."""
        documents.remove(tx, self._waiting(tx, owner, name))
        rests_on = _ids(tx, owner.id, proposed["sources"])
        documents.write(tx, owner.id, Put(PROPOSALS, name, proposed), self.now(), sources=rests_on)

    def take(self, tx: Transaction, owner: OwnerRow, name: str, proposed: dict[str, Any], author: str) -> None:
        """Make a proposal a new version, which rests on what the version before rests on too."""
        sources = [*self._sources(tx, owner, name), *proposed["sources"]]
        self._write(tx, owner, name, proposed["text"], author, sources)

    def find(self, tx: Transaction, caller: Caller, name: str) -> list[int]:
        """The ids of the items that the caller's own instruction and its proposal are.  Raises NotFound."""
        owner, item = self._own(tx, caller, name)
        return [item.id, *self._waiting(tx, owner, name)]

    def _write(
        self,
        tx: Transaction,
        owner: OwnerRow,
        name: str,
        text: str,
        author: str,
        sources: Sequence[Place],
        expected: int | None = None,
    ) -> Instruction:
        """Store a version, which rests on the messages at these places."""
        if len(text) > self.room(tx, owner, name):
            raise InvalidRequest(
                "instructions_too_long",
                f"All instructions of a person, and all of a tenant, may have {TOTAL_CHARS:,} characters together. "
                "Nothing was stored. Shorten or delete some.",
                param="text",
            )
        put = Put(NAMESPACE, name, {"text": text, "sources": sources}, expected)
        rests_on = _ids(tx, owner.id, sources)
        item = documents.write(tx, owner.id, put, self.now(), author=author, sources=rests_on)
        documents.remove(tx, self._waiting(tx, owner, name))
        return _newest(tx, item, owner, None)

    def _waiting(self, tx: Transaction, owner: OwnerRow, name: str) -> list[int]:
        """The id of the item that the proposal is, if one waits."""
        return [item.id for item in self._items(tx, owner, PROPOSALS) if item.key == name]

    def _own(self, tx: Transaction, caller: Caller, name: str) -> tuple[OwnerRow, Item]:
        owner = find_owner(tx, caller)
        item = next((item for item in self._items(tx, owner) if item.key == name), None)
        if owner is None or item is None:
            raise _not_found(name)
        return owner, item

    def _sources(self, tx: Transaction, owner: OwnerRow, name: str) -> list[Place]:
        """What the newest version rests on."""
        return [place for item in self._items(tx, owner) if item.key == name for place in item.value["sources"]]

    def _items(self, tx: Transaction, owner: OwnerRow | None, namespace: Namespace = NAMESPACE) -> list[Item]:
        return documents.listed(tx, owner.id, namespace, self.now()) if owner is not None else []


def in_head(shown: Iterable[Shown]) -> str:
    """The texts that a prompt's head shows, a person's own in the place of the tenant's of the same name."""
    ours = sorted((one for one in shown if one.namespace == NAMESPACE), key=lambda one: not one.of_tenant)
    texts = {one.key: str(one.value["text"]) for one in ours}
    return "\n\n".join(texts[name] for name in sorted(texts))


def _ids(tx: Transaction, owner_id: int, places: Sequence[Place]) -> Sequence[int]:
    """The messages at these places of the owner's sessions."""
    query = select(MessageRow.id).join(SessionRow, SessionRow.id == MessageRow.session_id)
    at = tuple_(SessionRow.public_id, MessageRow.position).in_([tuple(place) for place in places])
    return tx.scalars(query.where(SessionRow.owner_id == owner_id, MessageRow.branch == 0, at)).all()


def _newest(tx: Transaction, item: Item, owner: OwnerRow, waiting: Item | None) -> Instruction:
    version = replace(_versions(tx, item)[0], of_tenant=owner.kind == "tenant")
    return version if waiting is None else replace(version, proposal=_proposal(waiting, version.text))


def _versions(tx: Transaction, item: Item) -> list[Instruction]:
    history = documents.versions(tx, item.id)
    texts = [*(str(one.value["text"]) for one in history), ""]
    return [
        Instruction(item.key, one.version, text, one.author, one.created_at, diff=_diff(old, text))
        for one, text, old in zip(history, texts, texts[1:], strict=False)
    ]


def _proposal(waiting: Item, text: str) -> Proposal:
    new = waiting.value
    return Proposal(new["text"], new["reason"], new["quote"], _diff(text, new["text"]), waiting.created_at)


def _diff(old: str, new: str) -> str:
    """What changed from one text to another, in the unified format without its header."""
    return "\n".join(list(unified_diff(old.splitlines(), new.splitlines(), lineterm=""))[2:])


def check_name(name: str) -> None:
    """Raises InvalidRequest for what can't be an instruction's name."""
    if not NAME.fullmatch(name):
        raise InvalidRequest(
            "bad_instruction_name",
            "An instruction's name is 1 to 64 of a-z, 0-9, - and _, and starts with a letter or a digit. Nothing was "
            "stored.",
            param="name",
        )


def _not_found(name: str) -> NotFound:
    return NotFound("instruction_not_found", f"There is no instruction {name!r}.", param="name")
