"""Feedback: what a person thinks of a reply, and what it changes.

Thumbs up store the exchange as an example, thumbs down remove it. A job lets the mini model read feedback that asks for
a change of an instruction; its answer waits as a proposal or, with FEEDBACK=auto, is a new version at once.

Invariants:
- A proposal rests on the person's own words: its quote stands in them (test_instructions).
- A proposal repeats nothing recalled or quoted. The mini model does not read what the person quotes, and an answer is
  refused when it adds two consecutive content words of the reply or a quotation that are neither in the person's own
  words nor in the instruction (test_instructions).
- Feedback, and what was made of it, goes when a message of the exchange is erased or replaced (test_instructions).
"""

from functools import partial

from memory import examples, instructions
from memory.access.owners import lock_owner
from memory.engine import Engine
from memory.knowledge.grounding import Ungrounded, check_own_words
from memory.llm.mini_model import TEXT, InvalidAnswer, first_object, object_of, request_for
from memory.quoting import block, escape, own_words
from memory.sessions.messages import MESSAGES, QUOTABLE, find_exchange
from memory.store import item_rows
from models import MessageRow, OwnerRow, Transaction
from models.jobs import Job, JobRequest
from models.messages import Message
from models.owners import Caller
from models.store import FEEDBACK, Item, Put
from schemas.examples import BEST
from schemas.feedback import FEEDBACK_CHARS

NAMESPACE = FEEDBACK
WAITING = "waiting"  # for the mini model
EXCHANGE_CHARS = 8_000  # of a message and of a reply, by the mini model
SHAPE = object_of(
    thumbs={"enum": ["up", "down", None]},
    text=TEXT,
    instruction=TEXT,
    state={**TEXT, "not": {"const": WAITING}},  # the mini model does not read imported feedback
    reason=TEXT,
)
ANSWER = object_of(text=TEXT, reason=TEXT, quote=TEXT)


def give(  # noqa: PLR0913 - by keyword, as a body has them
    engine: Engine,
    caller: Caller,
    *,
    session_id: str,
    message_id: int,
    thumbs: str | None,
    text: str,
    instruction: str,
) -> Item:
    """Store a person's feedback on the reply of an exchange, in the place of earlier feedback.

    Earlier thumbs stay until others come, or "none" takes them back. Its `state` is `stored`, `waiting` for the mini
    model, `proposed`, `taken`, `unchanged`, or `refused` for a `reason`. Raises NotFound, and InvalidRequest for a bad
    name and for an exchange that must not be remembered.
    """
    instructions.require_name(instruction)
    with engine.database.write() as tx:
        exchange = find_exchange(tx, caller, session_id, message_id)
        owner = exchange.session.owner
        earlier = item_rows.read(tx, owner.id, NAMESPACE, exchange.key, engine.now())
        if thumbs == "up":
            examples.keep(tx, exchange, engine.now(), rating=BEST)
        elif thumbs is not None:
            examples.drop(tx, exchange, engine.now())
        is_for_model = engine.settings.feedback != "off" and owner.is_named and (text or thumbs == "down")
        standing = earlier.value["thumbs"] if thumbs is None and earlier is not None else thumbs
        value = {
            "thumbs": None if standing == "none" else standing,
            "text": text,
            "instruction": instruction,
            "reason": "",
        }
        value["state"] = WAITING if is_for_model else "stored"
        put = Put(NAMESPACE, exchange.key, value)
        item = item_rows.write(tx, owner.id, put, engine.now(), sources=exchange.ids)
        if is_for_model:
            engine.job_queue.enqueue(tx, JobRequest("feedback", owner.id, owner.tenant, owner.id))
        return item


def run(engine: Engine, job: Job) -> bool:
    """Run the job that reads the first waiting feedback; return whether more waits. Idempotent.

    Raises ModelError, LimitReached.
    """
    with engine.database.read() as tx:
        owner = tx.get(OwnerRow, job.owner_id)
        waiting = _waiting(engine, tx, owner) if owner is not None else []
        if owner is None or not waiting:
            return False
        engine.budgets.check(tx, owner.id)
        item = waiting[0]
        name: str = item.value["instruction"]
        before, room = instructions.text_of(engine, tx, owner, name), instructions.room(engine, tx, owner, name)
        query = MESSAGES.where(MessageRow.id.in_(item_rows.messages_of(tx, item)), *QUOTABLE)
        readable = [Message._make(row) for row in tx.execute(query.order_by(MessageRow.position))]
        prompt = engine.prompts.find(tx, Caller(owner.tenant), "feedback")
    proposed, state, reason = None, "unchanged", ""
    try:
        if len(readable) < 2:
            raise InvalidAnswer("A model server refused the message or the reply, so it was not read.")
        message, reply = readable
        text, thumbs = item.value["text"], item.value["thumbs"]
        own = own_words(message.content)[:EXCHANGE_CHARS], own_words(text)
        parts = {
            "instruction": [before],
            "question": own[:1],
            "reply": [reply.content[:EXCHANGE_CHARS]],
            "feedback": [f"thumbs {thumbs}" if thumbs else "", own[1]],
        }
        blocks = [block(name, map(escape, filter(None, texts))) for name, texts in parts.items()]
        request = request_for(prompt.render(), blocks, ANSWER)
        everything = f"{message.content}\n{reply.content}\n{text}"
        usable = partial(_proposal, before.strip(), "\n".join(own), everything, room)
        proposed = engine.mini.ask(owner.id, request, owner.tenant, usable).value
    except InvalidAnswer as error:
        state = "refused"
        reason = str(error)
    with engine.database.write() as tx:
        row = lock_owner(tx, owner.id)
        waiting = _waiting(engine, tx, row) if row is not None else []
        if row is None or item not in waiting:
            return bool(waiting)  # it was erased, or replaced
        if instructions.text_of(engine, tx, row, name) != before:
            return True
        if proposed is not None:
            is_taken = instructions.propose(engine, tx, row, name, proposed, item_rows.messages_of(tx, item))
            state = "taken" if is_taken else "proposed"
        value = {**item.value, "state": state, "reason": reason}
        item_rows.write(tx, row.id, Put(NAMESPACE, item.key, value), engine.now())
    return len(waiting) > 1


def _waiting(engine: Engine, tx: Transaction, owner: OwnerRow) -> list[Item]:
    items = item_rows.list_items(tx, owner.id, NAMESPACE, engine.now())
    waiting = (item for item in items if item.value["state"] == WAITING)
    return sorted(waiting, key=lambda item: item.updated_at)


def _proposal(before: str, own: str, everything: str, room: int, answer: str) -> dict[str, str] | None:
    """Return the proposal in an answer; None when it changes nothing. Raises InvalidAnswer.

    before: the instruction as it stands. own: the person's own words. everything: the exchange and the feedback with
    what they quote. room: characters that the instruction may have.
    """
    proposal: dict[str, str] = first_object(answer, ANSWER)
    text = proposal["text"].strip()
    if text in ("", before):
        return None
    if len(text) > room:
        raise InvalidAnswer(f"Its `text` has {len(text):,} characters, but this instruction may have {room:,}.")
    added = "\n".join(line for line in text.splitlines() if line not in before.splitlines())
    try:
        check_own_words(added, proposal["quote"], own, [everything], before)
    except Ungrounded as reason:
        raise InvalidAnswer(f"It can't be taken: {reason}.") from None
    return {"text": text, "reason": proposal["reason"][:FEEDBACK_CHARS], "quote": proposal["quote"]}
