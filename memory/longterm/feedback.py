"""Feedback: what a person thinks of a reply, and what it changes.

Thumbs up make an example of the exchange, thumbs down take it away again.  A job has the mini model read what asks for
a change of an instruction of the person, and by FEEDBACK its answer waits as a proposal or is a new version at once.

Guarantee: a proposal rests on a quote of the person's own words, and repeats nothing that was only recalled or quoted.
The model does not read what a reply repeats of that.  Feedback, and what was made of it, goes when a message of the
exchange is erased or replaced.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select

from config import Settings
from memory.domain import Caller, Message
from memory.facts.grounding import stands_in
from memory.jobs.outbox import JobRequest, Outbox
from memory.llm import FeedbackMaterial
from memory.llm.mini import TEXT, Mini, Unusable, object_of, objects, request_for, without_thinking
from memory.longterm import examples
from memory.longterm.exchanges import find_exchange
from memory.longterm.head import MODEL
from memory.longterm.instructions import TEXT_CHARS, Instructions, check_name
from memory.prompts.prompts import Prompts
from memory.rendering import block, escape, unmarked, without_blocks
from memory.sections import Sections
from memory.sessions.messages import MESSAGES, SAID
from memory.store import documents
from memory.store.values import OWN, Item, Put
from models import (
    Database,
    FactRow,
    ItemRow,
    ItemSourceRow,
    JobRow,
    MessageRow,
    OwnerRow,
    SummaryRow,
    Transaction,
    TurnRow,
)

NAMESPACE = (OWN, "feedback")
FEEDBACK_CHARS = 2_000
MATERIAL_CHARS = 8_000  # of a message and of a reply that the mini model reads
RUN = 4  # words: who has so many in a row from somewhere repeats it
SCHEMA = object_of(text=TEXT, reason=TEXT, quote=TEXT)

_QUOTING = re.compile(r"^[ \t]*>[^\n]*|```.*?(?:```|\Z)", re.M | re.S)  # lines and blocks that a person quotes
_UNSPACED = r"\u0e00-\u0eff\u3040-\u9fff\uac00-\ud7af"  # scripts without spaces, whose characters count as words
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_SENTENCE = re.compile(r"[^.!?。！？\n]*(?:[.!?。！？]+|\n|$)")


@dataclass(frozen=True)
class Feedback:
    """Stores feedback on behalf of callers, and has the mini model read it."""

    settings: Settings
    database: Database
    prompts: Prompts
    outbox: Outbox
    instructions: Instructions
    mini: Mini
    now: Callable[[], datetime]

    def give(
        self, caller: Caller, session_id: str, message_id: int, *, thumbs: str | None, text: str, instruction: str
    ) -> Item:
        """Store what a person thinks of the reply of an exchange, in the place of what they thought before.

        Its `state` is `stored`, `waiting` for the mini model, or what came of it: `proposed`, `taken`, `unchanged`, or
        `refused` for a `reason`.  Raises NotFound, and InvalidRequest for a bad name and for an exchange that is not to
        be remembered.
        """
        check_name(instruction)
        with self.database.write() as tx:
            exchange = find_exchange(tx, caller, session_id, message_id)
            owner = exchange.session.owner
            if thumbs == "up":
                examples.keep(tx, exchange, self.now(), tags=(), rating=examples.BEST)
            elif thumbs == "down" and (example := examples.of_exchange(tx, exchange)) is not None:
                documents.remove(tx, [example.id])
            asks = self.settings.feedback != "off" and owner.kind == "user" and (text or thumbs == "down")
            value = {"thumbs": thumbs, "text": text, "instruction": instruction, "reason": ""}
            value["state"] = "waiting" if asks else "stored"
            resting = ItemRow.id.in_(documents.resting_on([exchange.reply.id]))
            known = tx.execute(documents.ITEMS.where(documents.below(NAMESPACE), resting)).first()
            put = Put(NAMESPACE, known.key if known is not None else uuid.uuid4().hex, value)
            item = documents.write(tx, owner.id, put, self.now(), sources=exchange.ids)
            if asks:
                self.outbox.ask(tx, JobRequest("feedback", owner.id, owner.tenant, owner.id))
            return item

    def run(self, job: JobRow) -> bool:
        """Read the first feedback that waits; whether there is more.  Idempotent.  Raises ModelError, LimitReached."""
        with self.database.read() as tx:
            owner = tx.get(OwnerRow, job.owner_id)
            waiting = self._waiting(tx, owner) if owner is not None else []
            if owner is None or not waiting:
                return False
            self.mini.budgets.check(tx, owner.id)
            item = waiting[0]
            before = self.instructions.text_of(tx, owner, item.value["instruction"])
            room = min(TEXT_CHARS, self.instructions.room(tx, owner, item.value["instruction"]))
            read = _Read.of(tx, item, before, room)
            prompt, repair = (self.prompts.find(tx, Caller(owner.tenant), name) for name in ("feedback", "repair"))
        request = request_for(prompt.render(), read.blocks(), read.material, SCHEMA)
        state, reason, proposed = "unchanged", "", None
        try:
            proposed = self.mini.ask(owner.id, request, repair, read.proposal).made
        except Unusable as problem:
            state, reason = "refused", str(problem)
        with self.database.write() as tx:
            row = tx.get(OwnerRow, owner.id)
            there = self._waiting(tx, row) if row is not None else []
            if row is None or (item.id, item.version) not in [(one.id, one.version) for one in there]:
                return bool(there)  # it was erased, or given anew
            if self.instructions.text_of(tx, row, item.value["instruction"]) != before:
                return True
            if proposed is not None:
                state = self._use(tx, row, item, proposed)
            value = {**item.value, "state": state, "reason": reason}
            documents.write(tx, row.id, Put(NAMESPACE, item.key, value), self.now())
        return len(there) > 1

    def _use(self, tx: Transaction, owner: OwnerRow, item: Item, proposed: dict[str, Any]) -> str:
        """Store what was proposed for a piece of feedback; what became of it."""
        sources = [[source.session_id, source.position] for source in documents.sources_of(tx, [item.id])[item.id]]
        if self.settings.feedback == "auto":
            self.instructions.take(tx, owner, item.value["instruction"], {**proposed, "sources": sources}, MODEL)
            return "taken"
        self.instructions.propose(tx, owner, item.value["instruction"], {**proposed, "sources": sources})
        return "proposed"

    def _waiting(self, tx: Transaction, owner: OwnerRow) -> list[Item]:
        given = documents.listed(tx, owner.id, NAMESPACE, self.now())
        items = [one for one in given if one.value["state"] == "waiting"]
        sources = documents.sources_of(tx, [one.id for one in items])  # imported feedback may have lost them
        return sorted((one for one in items if len(sources[one.id]) == 2), key=lambda one: one.updated_at)


@dataclass(frozen=True)
class _Read:
    """What the mini model reads, and the texts that its answer must not repeat."""

    material: FeedbackMaterial
    own: str
    foreign: str
    room: int  # characters that the instruction may have

    @classmethod
    def of(cls, tx: Transaction, item: Item, before: str, room: int) -> _Read:
        sources = select(ItemSourceRow.message_id).where(ItemSourceRow.item_id == item.id)
        said = MESSAGES.where(MessageRow.id.in_(sources), *SAID).order_by(MessageRow.position)
        message, reply = (Message._make(row) for row in tx.execute(said))
        turn = tx.scalars(select(TurnRow).where(TurnRow.reply_message_id == reply.id)).first()
        session, memory = (turn.session_id, turn.memory or {}) if turn is not None else (0, {})
        asked, judged = (_own_words(text) for text in (message.content, item.value["text"]))
        own = f"{asked}\n{judged}"
        foreign = "\n".join([*_recalled(tx, session, memory), message.content, item.value["text"]])
        # What tools brought, of clients or of ours, is not kept: whatever the reply says may be a quotation then.
        looked = reply.position != message.position + 1 or any(call["excerpts"] for call in memory.get("calls", ()))
        answered = "" if looked else reply.content[:MATERIAL_CHARS]
        kept = "".join(part for part in _SENTENCE.findall(answered) if not _repeats(part, foreign, own))
        material = FeedbackMaterial(before, asked[:MATERIAL_CHARS], kept, item.value["thumbs"], judged)
        return cls(material, own, foreign, room)

    def blocks(self) -> Iterator[str]:
        read = self.material
        thumbs = [f"thumbs {read.thumbs}"] if read.thumbs else []
        parts = {
            "instruction": [read.instruction],
            "question": [read.message],
            "reply": [read.reply],
            "feedback": [*thumbs, read.feedback],
        }
        return (block(name, map(escape, filter(None, it))) for name, it in parts.items())

    def proposal(self, answer: str) -> dict[str, Any] | None:
        """The proposal in an answer; None when it changes nothing.  Raises Unusable."""
        found = (one for *_, one in objects(without_thinking(answer)) if isinstance(one.get("text"), str))
        given = next(found, None)
        if given is None:
            raise Unusable("It holds no complete JSON object with a `text`.")
        text, before = given["text"].strip(), self.material.instruction.strip()
        if text in ("", before):
            return None
        reason, quote = (given.get(name) if isinstance(given.get(name), str) else "" for name in ("reason", "quote"))
        if len(text) > self.room:
            raise Unusable(f"Its `text` has {len(text):,} characters, but this instruction may have {self.room:,}.")
        if not quote.strip() or not stands_in(quote, self.own):
            raise Unusable("Its `quote` is not in the person's own words.")
        known = before.splitlines()
        added = [line for line in text.splitlines() if line not in known]
        if any(unmarked(line) != line for line in added):
            raise Unusable("Its `text` has markup, which an instruction does not need.")
        if any(_repeats(line, self.foreign, f"{self.own}\n{before}") for line in added):
            raise Unusable("Its `text` repeats what was only recalled or quoted.")
        return {"text": text, "reason": reason[:FEEDBACK_CHARS], "quote": quote}


def _own_words(text: str) -> str:
    """What a person says without what they quote."""
    return _QUOTING.sub("", without_blocks(text)).strip()


def _recalled(tx: Transaction, session: int, memory: dict[str, Any]) -> Iterable[str]:
    """What the prompt of a turn showed of earlier talk."""
    shown = SummaryRow.session_id == session, SummaryRow.version == memory.get("head_version", 0)
    for sections in tx.scalars(select(SummaryRow.sections).where(*shown)):
        yield "\n".join(Sections.from_dict(sections).lines())
    messages = [one for excerpt in memory.get("excerpts", ()) for one in excerpt["messages"]]
    facts = [one for one, *_ in memory.get("facts", ())]
    yield from tx.scalars(select(MessageRow.content).where(MessageRow.id.in_(messages)))
    yield from tx.scalars(select(FactRow.text).where(FactRow.id.in_(facts)))
    for example in examples.shown(tx, memory.get("examples", ())):
        yield f"{example.input}\n{example.output}"


def _repeats(text: str, foreign: str, own: str) -> bool:
    """Whether a text has words in a row from `foreign` that `own` does not have."""
    words, theirs, ours = (_WORD.findall(one.casefold()) for one in (text, foreign, own))
    runs = [f" {' '.join(words[at : at + RUN])} " for at in range(max(1, len(words) - RUN + 1))] if words else []
    there, here = f" {' '.join(theirs)} ", f" {' '.join(ours)} "
    return any(run in there and run not in here for run in runs)
