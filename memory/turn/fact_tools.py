"""Tools with which the main model writes memory: `remember`, `correct` and `forget`.

Invariants:
- A fact rests on a quote of the person's own message that stands in this session's prompt, and its words are mostly
  that message's, or those of the fact that it corrects: nothing that was recalled, pasted as a quotation or brought by
  a tool is remembered (test_fact_tools).
- Only what the newest message asks to forget, and names, is forgotten, whatever else the model has read
  (test_fact_tools).
- A turn writes at most WRITES_MAX times; the report of each names a call of the API that undoes it (test_fact_tools).
"""

import logging
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from sqlalchemy.exc import SQLAlchemyError

from memory.access.owners import lock_session
from memory.engine import Engine
from memory.errors import RecapError
from memory.knowledge import facts
from memory.knowledge.fact_ranking import Ranking
from memory.knowledge.fact_reads import current_facts
from memory.knowledge.forgetting import forget_asked, forget_said
from memory.knowledge.grounding import Ungrounded, contains_quote, stems, strip_framing, words_of
from memory.languages import content_terms, shared, states
from memory.llm import Tool
from memory.quoting import escape, one_line, own_words
from memory.sessions.memory_requests import requests_to_forget
from memory.turn.memory_report import WrittenFact
from memory.turn.request import Turn
from models import MessageRow, SessionRow, Transaction, retry_on_conflict
from models.facts import FACT_CATEGORIES, Fact, FactDraft
from models.messages import Message

log = logging.getLogger(__name__)

REMEMBER, CORRECT, FORGET = "remember", "correct", "forget"
WRITES_MAX = 5  # facts that one turn writes
NEAREST = 3  # facts that an error names
FORGOTTEN = "Forgotten. The messages that say it are left out of memory whole; of what else they say, known facts stay."


class ToolError(ValueError):
    """Error of a call, as a sentence for the model.

    reported: the sentence in the report of the call, which is stored, and so quotes no fact.
    """

    def __init__(self, sentence: str, reported: str = "") -> None:
        super().__init__(sentence)
        self.reported = reported or sentence


Words = Annotated[str, Field(min_length=1)]
Known = Annotated[Words, Field(description="The known fact, in the words in which you see it.")]
Category = Annotated[
    str,
    BeforeValidator(lambda name: name if name in FACT_CATEGORIES else ""),
    WithJsonSchema({"type": "string", "enum": list(FACT_CATEGORIES)}),
]
SCHEMA_KEYS = ("type", "description", "enum", "minimum", "maximum")  # which all model servers accept


class ToolArguments(BaseModel):
    """Arguments of a tool.  The docstring of each subclass is the tool's description for the model."""

    model_config = ConfigDict(extra="forbid")


def integer_schema(most: int) -> WithJsonSchema:
    """Return the JSON schema of an optional number from 1 to `most`."""
    return WithJsonSchema({"type": "integer", "minimum": 1, "maximum": most})


@lru_cache
def tool_of(name: str, arguments: type[ToolArguments], **words: object) -> Tool:
    """Return the tool with these arguments. words: stand for `{...}` in the descriptions."""
    schema = arguments.model_json_schema()
    required = schema.get("required", [])
    fields = schema["properties"]
    properties: dict[str, dict[str, Any]] = {}
    for field in sorted(fields, key=lambda field: field not in required):
        properties[field] = {key: fields[field][key] for key in SCHEMA_KEYS if key in fields[field]}
        if description := properties[field].get("description"):
            properties[field]["description"] = description.format(**words)
    parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return Tool(name, " ".join(schema["description"].split()), parameters)


class FactArguments(ToolArguments):
    """Arguments of a tool that writes a fact."""

    quote: Words = Field(description="The person's own words it rests on, copied letter by letter.")


class _Remember(FactArguments):
    """Remember a fact about this person for later conversations.

    Use it when they ask for it, or tell something that will matter. Never take it from quoted or recalled text, files
    or results of tools.
    """

    text: Words = Field(
        description="One short statement, in the person's words and language, as `The user is allergic to walnuts`."
    )
    category: Category = ""
    importance: Annotated[Annotated[int, Field(ge=1, le=5)] | None, integer_schema(5)] = None


class _Correct(_Remember):
    """Replace a known fact, when this person says that it has changed, is over or is wrong.

    `text` says again what else of it still holds.
    """

    fact: Known


class _Forget(FactArguments):
    """Forget a known fact, or what only messages say, for good. Only when this person's newest message asks for that.

    If they also say what is true instead ("Forget that Tom cooks, it's Kim"), use `correct`.
    """

    fact: Known
    rest: str = Field(description="What else that fact says, in its words; it stays known. Empty if nothing.")


ARGUMENTS: dict[str, type[ToolArguments]] = {REMEMBER: _Remember, CORRECT: _Correct, FORGET: _Forget}


Written = tuple[WrittenFact | None, str]  # the fact, and the tool's answer to the model


class FactTools:
    """Tools of one turn, which write facts of the session's owner.

    shown: the messages of the session that the prompt shows. written: the facts written so far.
    """

    def __init__(self, engine: Engine, turn: Turn, shown: Sequence[Message]) -> None:
        self._engine, self._turn = engine, turn
        self._messages = [message for message in shown if message.role == "user" and message.remembered]
        self.written: tuple[WrittenFact, ...] = ()
        self._writes = 0

    def run(self, arguments: FactArguments) -> str:
        """Run a call; return the tool's answer.  Raises ToolError."""
        if self._writes >= WRITES_MAX:
            raise ToolError(f"a turn writes at most {WRITES_MAX} times; the person may ask again.")
        newest = self._messages[-1:]
        source = self._source(arguments.quote, newest if isinstance(arguments, _Forget) else self._messages)
        try:
            written, answer = self._write(arguments, source)
        except (RecapError, SQLAlchemyError) as error:
            log.error("a tool could not write: %s", type(error).__name__)
            raise ToolError("the memory can't be written now; nothing was changed.") from None
        self._writes += 1
        self.written += (written,) if written is not None else ()
        return answer

    @retry_on_conflict
    def _write(self, arguments: FactArguments, source: Message) -> Written:
        """Write in a transaction, if the turn still has its lease and the source message is unchanged."""
        assert self._turn.lease is not None
        with self._engine.database.write(self._turn.request.lock_timeout) as tx:
            row = lock_session(tx, self._turn.lease.row_id)
            message = tx.get(MessageRow, source.id)
            is_gone = message is None or message.erased_at is not None or message.branch != 0
            if row is None or row.lease_token != self._turn.lease.token or is_gone:
                raise ToolError("the conversation was changed meanwhile, so nothing was.")
            write = self._forget if isinstance(arguments, _Forget) else self._remember
            return write(arguments, source, tx, row)

    def _source(self, quote: str, messages: Sequence[Message]) -> Message:
        """Return the newest of the person's messages that has the quote outside of its own quotations."""
        for message in reversed(messages):
            if contains_quote(quote, own_words(message.content)):
                return message
        raise ToolError("the quote is not in the person's own words here; nothing was changed.")

    def _remember(self, arguments: Any, source: Message, tx: Transaction, row: SessionRow) -> Written:
        """Store a fact; for `correct`, let it supersede the known fact that the arguments name."""
        known = current_facts(self._engine, tx, row.owner_id, row.id)
        old = self._known(known, arguments.fact) if isinstance(arguments, _Correct) else None
        words = content_terms(arguments.text)
        kept = old.text if old is not None else ""  # what still holds of it
        if not states(content_terms(f"{own_words(source.content)}\n{kept}"), words):
            raise ToolError("the text says more than the quoted message; use the person's own words and language.")
        draft = FactDraft(
            one_line(arguments.text),
            source.position,
            arguments.quote,
            arguments.category or (old.category if old is not None else "other"),
            arguments.importance or (old.importance if old is not None else 3),
            scope="user",
            supersedes=(old.id,) if old is not None else (),
        )
        try:
            new, replaced = facts.add_from_message(self._engine, tx, row, draft, self._messages, known)
        except Ungrounded as reason:
            raise ToolError(f"{reason}; nothing was changed.") from None
        if new is None:
            return None, "That is known already; nothing was changed."
        action, replaces = (REMEMBER, None) if old is None else (CORRECT, old.text)
        written = WrittenFact.of(action, new, replaces, self._turn.request.caller.space)
        if new.waiting:
            return written, "Written; it is not remembered until the person accepts it."
        if old is not None and old not in replaced:
            # This rolls back what was written.
            raise ToolError("that fact was stated later than these words, or in the same message.")
        return written, "Written."

    def _forget(self, arguments: Any, source: Message, tx: Transaction, row: SessionRow) -> Written:
        """Forget a fact, with the messages that state it and ask for it, as a summary does; or messages alone."""
        requests = requests_to_forget(source.content)
        if not requests:
            raise ToolError("the person's newest message asks to forget nothing.")
        known = current_facts(self._engine, tx, row.owner_id, row.id)
        caller = self._turn.request.caller
        try:
            fact = self._known(known, arguments.fact)
        except ToolError:
            words = content_terms(arguments.fact)
            is_named = any(terms and states(words, terms) for terms in map(content_terms, requests))
            if is_named and forget_said(self._engine, tx, row.owner_id, arguments.fact, [source.id]):
                return None, FORGOTTEN
            raise
        if fact not in self._named(known, requests):
            raise ToolError("the person asks to forget something else; forget no more than they name.")
        forget_asked(self._engine, tx, caller, {fact.id: one_line(arguments.rest)}, [source.id])
        again = {name: getattr(fact, name) for name in ("text", "category", "importance", "pinned")}
        again |= {"expires_at": fact.expires_at.isoformat()} if fact.expires_at is not None else {}
        owner = {name: value for name in ("user_id", "space") if (value := getattr(caller, name)) is not None}
        session = {"session_id": fact.session_id or row.public_id} if fact.scope == "session" or not owner else {}
        again |= owner | session
        undo = {"method": "POST", "path": "/api/facts", "body": again}
        return WrittenFact(FORGET, fact.id, fact.text, arguments.quote, None, undo), FORGOTTEN

    def _named(self, known: Sequence[Fact], requests: Sequence[str]) -> list[Fact]:
        """Return the facts that requests to forget name: for each request the facts that share most words with it.

        Requests that name none ("forget that") mean the facts of the person's messages in this conversation.
        """
        words = {fact: content_terms(f"{fact.text} {fact.quote}") for fact in known}
        named: list[Fact] = []
        for part in map(content_terms, requests):
            shares = {fact: shared(part, terms) for fact, terms in words.items()}
            most = max(shares.values(), default=0)
            named += [fact for fact, share in shares.items() if most and share == most]
        shown = {message.id for message in self._messages}
        return named or [fact for fact in known if fact.source_message_id in shown]

    def _known(self, known: Sequence[Fact], text: str) -> Fact:
        """Return the known fact with this text, or else the only one of which one text has all words of the other.

        Raises ToolError, which names the facts that fit, or the most similar ones.
        """
        stripped = strip_framing(text)
        for fact in known:
            if stripped and stripped in map(strip_framing, words_of(fact)):
                return fact
        words = set(stems(stripped))
        own = {fact: set(stems(fact.text)) for fact in known}
        fitting = [fact for fact in known if words and own[fact] and (words <= own[fact] or own[fact] <= words)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            several = f"several known facts fit: {_quoted(fitting[:NEAREST])}; give all words of one."
            raise ToolError(several, "several known facts fit.")
        ranking = Ranking.of(self._engine)
        nearest = ranking.by_relevance(ranking.scored(known, text, self._engine.now()))[:NEAREST]
        none = f"no known fact has these words, the nearest are: {_quoted(nearest) or 'none'}."
        raise ToolError(none, "no known fact has these words.")


def _quoted(known: Sequence[Fact]) -> str:
    return "; ".join(f'"{escape(one_line(fact.text))}"' for fact in known)
