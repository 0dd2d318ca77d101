"""Instructions by name for the main model: a person's own, and the tenant's for all of its people.

They stand beside the system prompt, as they were written: a person writes or accepts each version, unless
FEEDBACK=auto takes what the mini model proposes.  A person's own instruction takes the place of the tenant's.

Guarantee: every version is kept until the instruction is deleted.  A version that was made from a person's feedback
goes when a message of that exchange is erased or replaced, and so do the later versions that were made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import unified_diff
from typing import Any

from memory.access.owners import find_or_make_owner, find_owner
from memory.errors import InvalidRequest, NotFound
from memory.prompts.prompts import NAME
from memory.store import documents
from models import Database, OwnerRow, Transaction
from models.owners import Caller
from models.store import OWN, Item, ItemVersion, Namespace, Put
from schemas.instructions import TEXT_CHARS

NAMESPACE, PROPOSALS = (OWN, "instructions"), (OWN, "proposals")
TOTAL_CHARS = 8_000  # of all that a person or a tenant has: every prompt carries them


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
            found = self._known(tx, caller)
        return [found[name] for name in sorted(found)]

    def get(self, caller: Caller, name: str) -> Instruction:
        """One of these.  Raises NotFound."""
        with self.database.read() as tx:
            found = self._known(tx, caller).get(name)
        if found is None:
            raise _not_found(name)
        return found

    def versions(self, caller: Caller, name: str) -> list[Instruction]:
        """All versions of the caller's own, newest first.  Raises NotFound."""
        with self.database.read() as tx:
            _, item = self._own(tx, caller, name)
            return _versions(name, documents.list_versions(tx, item.id))

    def put(self, caller: Caller, name: str, text: str, expected: int | None = None) -> Instruction:
        """Store a new version; with `expected` only after that one.  A proposal that waits is dropped.

        Raises InvalidRequest for a bad name and for too much text, and Conflict.
        """
        check_name(name)
        with self.database.write() as tx:
            owner = find_or_make_owner(tx, caller, self.now())
            value = {"text": text, "sources": self._sources(tx, owner, name)}
            return self._write(tx, owner, Put(NAMESPACE, name, value, expected), "person")

    def rollback(self, caller: Caller, name: str, version: int) -> Instruction:
        """Make an earlier version the newest again.  Raises NotFound."""
        with self.database.write() as tx:
            owner, item = self._own(tx, caller, name)
            old = documents.get_version(tx, item, version)
            return self._write(tx, owner, Put(NAMESPACE, name, old.value), "rollback")

    def decide(self, caller: Caller, name: str, *, accept: bool) -> Instruction:
        """Make the proposal a new version, or drop it.  Raises NotFound when none waits."""
        with self.database.write() as tx:
            owner = find_owner(tx, caller)
            if owner is None or self._item(tx, owner, name, PROPOSALS) is None:
                raise NotFound("proposal_not_found", f"No proposal for the instruction {name!r} waits.", param="name")
            if accept:
                return self.accept(tx, owner, name, "person")
            self._drop_proposal(tx, owner, name)
            return self._known(tx, caller).get(name, Instruction(name))

    # -- for the engine's own transactions

    def text_of(self, tx: Transaction, owner: OwnerRow, name: str) -> str:
        """The text that the prompts of an owner, who is a user, show under this name."""
        return self._known(tx, Caller(owner.tenant, owner.user_id)).get(name, Instruction(name)).text

    def room(self, tx: Transaction, owner: OwnerRow, name: str) -> int:
        """The characters that an owner's instruction may have, beside the others."""
        others = (item for item in documents.list_items(tx, owner.id, NAMESPACE, self.now()) if item.key != name)
        return min(TEXT_CHARS, TOTAL_CHARS - sum(len(item.value["text"]) for item in others))

    def propose(self, tx: Transaction, owner: OwnerRow, name: str, proposed: dict[str, str], feedback: Item) -> None:
        """Let a proposal wait, in the place of another one.  It rests on what the feedback rests on."""
        self._drop_proposal(tx, owner, name)
        rests_on = documents.messages_of(tx, feedback)
        documents.write(tx, owner.id, Put(PROPOSALS, name, proposed), self.now(), sources=rests_on)

    def accept(self, tx: Transaction, owner: OwnerRow, name: str, author: str) -> Instruction:
        """Make the proposal that waits a new version, which rests on what it and the version before rest on."""
        proposal = self._item(tx, owner, name, PROPOSALS)
        assert proposal is not None
        places = [[one.session_id, one.position] for one in documents.sources_of(tx, [proposal.id])[proposal.id]]
        value = {"text": proposal.value["text"], "sources": [*self._sources(tx, owner, name), *places]}
        return self._write(tx, owner, Put(NAMESPACE, name, value), author, documents.messages_of(tx, proposal))

    def find(self, tx: Transaction, caller: Caller, name: str) -> list[int]:
        """The ids of the items that the caller's own instruction and its proposal are.  Raises NotFound."""
        owner, item = self._own(tx, caller, name)
        return [one.id for one in (item, self._item(tx, owner, name, PROPOSALS)) if one is not None]

    def _known(self, tx: Transaction, caller: Caller) -> dict[str, Instruction]:
        """What the tenant and then the caller have, by name, with the proposals that wait."""
        found: dict[str, Instruction] = {}
        for owner in filter(None, (find_owner(tx, Caller(caller.tenant)), find_owner(tx, caller))):
            items = documents.list_items(tx, owner.id, NAMESPACE, self.now())
            histories = documents.histories(tx, [item.id for item in items])
            for item in items:
                newest = _versions(item.key, histories[item.id][::-1])[0]
                found[item.key] = replace(newest, of_tenant=owner.kind == "tenant")
            for item in documents.list_items(tx, owner.id, PROPOSALS, self.now()):
                shown, new = found.get(item.key, Instruction(item.key)), item.value
                proposal = Proposal(diff=_diff(shown.text, new["text"]), created_at=item.created_at, **new)
                found[item.key] = replace(shown, proposal=proposal)
        return found

    def _write(
        self, tx: Transaction, owner: OwnerRow, put: Put, author: str, rests_on: Collection[int] = ()
    ) -> Instruction:
        """Store a version, and drop the proposal."""
        if len(put.value["text"]) > self.room(tx, owner, put.key):
            raise InvalidRequest(
                "instructions_too_long",
                f"All instructions of a person, and all of a tenant, may have {TOTAL_CHARS:,} characters together. "
                "Nothing was stored. Shorten or delete some.",
                param="text",
            )
        documents.write(tx, owner.id, put, self.now(), author=author, sources=rests_on)
        self._drop_proposal(tx, owner, put.key)
        return self._known(tx, Caller(owner.tenant, owner.user_id))[put.key]

    def _drop_proposal(self, tx: Transaction, owner: OwnerRow, name: str) -> None:
        waiting = self._item(tx, owner, name, PROPOSALS)
        documents.remove(tx, [waiting.id] if waiting is not None else [])

    def _sources(self, tx: Transaction, owner: OwnerRow, name: str) -> list[Any]:
        """The places of the messages that the owner's instruction was made from."""
        item = self._item(tx, owner, name)
        return item.value["sources"] if item is not None else []

    def _own(self, tx: Transaction, caller: Caller, name: str) -> tuple[OwnerRow, Item]:
        owner = find_owner(tx, caller)
        item = self._item(tx, owner, name) if owner is not None else None
        if owner is None or item is None:
            raise _not_found(name)
        return owner, item

    def _item(self, tx: Transaction, owner: OwnerRow, name: str, namespace: Namespace = NAMESPACE) -> Item | None:
        return documents.read(tx, owner.id, namespace, name, self.now())


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


def _versions(name: str, history: Sequence[ItemVersion]) -> list[Instruction]:
    """The versions in a history, which begins with the newest."""
    texts = [*(str(one.value["text"]) for one in history), ""]
    return [
        Instruction(name, one.version, text, one.author, one.created_at, diff=_diff(old, text))
        for one, text, old in zip(history, texts, texts[1:], strict=False)
    ]


def _diff(old: str, new: str) -> str:
    """What changed from one text to another, in the unified format without its header."""
    return "\n".join(list(unified_diff(old.splitlines(), new.splitlines(), lineterm=""))[2:])
