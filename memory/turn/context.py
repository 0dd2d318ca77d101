"""Read what the prompt of a turn may show, in one snapshot: prefix, recent messages, facts and excerpts.

Invariant: the new message and the prefix fit CONTEXT_TOKENS and the model's window, or TooLarge is raised
(test_compaction).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from sqlalchemy import Connection

from config import Settings
from memory import tokens
from memory.engine import Engine
from memory.errors import TooLarge
from memory.examples import Example, similar
from memory.knowledge.fact_ranking import Ranking
from memory.knowledge.supersession import superseded_facts
from memory.llm import LanguageModel
from memory.quoting import fit_facts, to_prompt_message
from memory.recall import recall
from memory.recall.recall import MISSING, Findings, PreparedRecall, RecallResult
from memory.recall.search import SearchScope
from memory.sessions.messages import RECENT_MESSAGES, UNSHOWN
from memory.turn.memory_report import MemoryReport, OtherMemory
from memory.turn.other_memories import OtherFindings, OtherOwner, find_others, read_others, select_others
from memory.turn.prefix import Prefix, read_prefix
from memory.turn.request import ATTACHMENT_TOKENS, Turn
from models.facts import Fact
from models.messages import Message

FRAME_TOKENS = 60  # of the tags and notes around quoted memory
WINDOW_SHARE = 0.75  # of a model's window that a prompt may fill; the answer needs the rest
ANALYSED_MAX = 200  # unindexed messages that a turn analyses: after an import thousands wait for the index
VISIBLE_BEFORE = 6  # messages in which "the bug" or "she" may have been named just before
MODEL_SEARCHES: Final = "asked"  # kind of the result in mode `tools`
SEARCHES_REASON = "the model looks back when it wants to"
NO_TOOLS = "the model calls no tools, so the message was read"
FOUND_ELSEWHERE = "what fits stands in another memory"
CLIENT_TOOLS = "the client has tools of its own, so the message was read"


class Context(NamedTuple):
    """Context that a prompt may show beside the new message.

    settings: with the budgets of the conversation's type and of the model's window.
    recent: the recent messages that fit. dropped: how many older ones do not fit.
    tokens: the estimated size of prefix, recent and new messages. full_history_tokens: of a prompt with all messages
    but the `unshown`. unshown: ids of hidden and refused messages.
    scope, other_owners: where to search for earlier messages: in the memory of the session's owner, and of others.
    superseded: facts in whose place others were put, read for a question of change.
    facts, recalled, examples: chosen for the message. other_memories: chosen from the memory of other owners.
    """

    prefix: Prefix
    settings: Settings
    recent: tuple[Message, ...]
    dropped: int
    tokens: int
    full_history_tokens: int
    unshown: frozenset[int]
    scope: SearchScope
    other_owners: Sequence[OtherOwner] = ()
    superseded: Sequence[Fact] = ()
    facts: tuple[Fact, ...] = ()
    recalled: RecallResult = RecallResult()
    examples: tuple[Example, ...] = ()
    other_memories: tuple[OtherMemory, ...] = ()

    @property
    def model_searches(self) -> bool:
        """Return whether the model searches by itself, as in mode `tools`. A continued turn goes on as it began."""
        return self.recalled.kind == MODEL_SEARCHES

    @property
    def visible_texts(self) -> list[str]:
        """Return the texts just before the new message, the newest last."""
        return [message.content for message in self.recent[-VISIBLE_BEFORE:]]


def read_context(engine: Engine, turn: Turn, model: LanguageModel | None = None) -> Context:
    """Read what the prompt may show, in one snapshot, and select from it for the message.  Raises TooLarge."""
    assert turn.session is not None
    model_window = model.window if model is not None else None
    others = find_others(engine, turn.request) if turn.request.also else ()
    if turn.continued_turn is not None:
        with engine.database.connect() as tx:
            context = read_session(tx, engine, turn, model_window)
        return _as_before(context, turn.continued_turn.memory)._replace(other_owners=others)
    assumed = engine.settings
    while True:  # twice at most: the session's type, read below, may have other settings than were assumed
        prepared, mode_reason = _prepare_for_turn(engine, turn, model, assumed)
        generation = engine.index.generation(turn.session.index_key)  # before the rows, so that no message is missed
        with engine.database.connect() as tx:
            context = read_session(tx, engine, turn, model_window, generation)
            settings = context.settings
            is_same_mode = turn.recall_mode(assumed) == turn.recall_mode(settings)
            if not is_same_mode or bool(assumed.recall_tokens) != bool(settings.recall_tokens):
                assumed = settings
                continue
            prepared = replace(prepared, budget=settings.recall_tokens) if prepared.budget else prepared
            findings = recall.search_in_snapshot(engine, tx, context.scope, prepared, context.visible_texts)
            elsewhere = read_others(tx, engine, others, context.visible_texts, prepared) if others else ()
            reads_superseded = (
                prepared.reading.asks_of_change and context.scope.flags.corrected and turn.request.remember
            )
            superseded = superseded_facts(tx, turn.session.owner_id, turn.session.id) if reads_superseded else ()
        context = context._replace(other_owners=others, superseded=superseded)
        context = _choose_for_message(engine, turn, context, prepared, findings, elsewhere)
        return context._replace(recalled=_explained(engine, context, prepared, findings, mode_reason))


def read_session(
    tx: Connection, engine: Engine, turn: Turn, model_window: int | None, generation: str | None = None
) -> Context:
    """Read prefix and recent messages, which do not depend on the new message.  Raises TooLarge.

    generation: of the owner's index, for a search in the same snapshot.
    """
    session, request, new = turn.session, turn.request, turn.new_messages
    assert session is not None
    stored: Sequence[Message] = ()
    if session.id:
        after = {"session": session.id, "after": session.head_through}
        stored = list(map(Message._make, tx.execute(RECENT_MESSAGES, after)))
    new_ids = {message.id for message in new if message.id}
    recent = [*(message for message in stored if message.id not in new_ids), *turn.history]
    prefix = read_prefix(tx, engine, turn, (*recent, *new), generation)
    settings = prefix.settings
    if model_window is not None and model_window * WINDOW_SHARE < settings.context_tokens:
        settings = settings.model_copy(update={"context_tokens": int(model_window * WINDOW_SHARE)})
    transcript = request.transcript
    client_tokens = transcript.conversation.instruction_tokens if transcript is not None else None
    attached = request.attached_tokens if request.sent is not None else 0
    kept, size = _fit_recent(prefix.text, recent, turn, settings, attached, client_tokens)
    rows = tx.execute(UNSHOWN, {"session": session.id}).all() if prefix.has_unshown else ()
    unshown = {message_id: count for message_id, count in rows if message_id not in new_ids}
    unstored = sum(message.tokens for message in (*turn.history, *new) if not message.id) + attached
    images = sum(len((sent.draft.extra or {}).get("attachments", ())) for sent in turn.as_sent.values())
    unstored += ATTACHMENT_TOKENS * images
    instruction_tokens = prefix.instruction_tokens if client_tokens is None else client_tokens
    return Context(
        prefix=prefix,
        settings=settings,
        recent=kept,
        dropped=len(recent) - len(kept),
        tokens=size,
        full_history_tokens=session.tokens - sum(unshown.values()) + unstored + instruction_tokens,
        unshown=frozenset(unshown),
        scope=SearchScope(
            owner_id=session.owner_id,
            owner_key=session.index_key,
            generation=generation,
            unindexed=prefix.unindexed,
            flags=prefix.flags,
            session_row_id=session.id or None,
            only_session=engine.settings.recall_scope == "session",
            exclude=frozenset([*unshown, *(message.id for message in (*kept, *new))]),
            analysed_max=ANALYSED_MAX,
        ),
    )


# -- fitting the recent messages


def _fit_recent(
    prefix: str,
    recent: Sequence[Message],
    turn: Turn,
    settings: Settings,
    attached: int,
    client_tokens: int | None,
) -> tuple[tuple[Message, ...], int]:
    """Return the newest of the recent messages that fit the prompt, and its size with them, without any excerpts.

    All of them fit, unless summaries have failed for long or the window is small.  Half of the room is theirs at least,
    however much excerpts and facts may take.  attached: tokens of the new message's images and files.
    client_tokens: of a client's own instructions; None: it is a person's message.  Raises TooLarge when the prefix and
    a person's new message alone do not fit.
    """
    new = sum(_size(message, turn) for message in turn.new_messages) + attached
    taken = new + (tokens.estimate_message(prefix) if prefix else 0) + (client_tokens or 0)
    room = settings.context_tokens - taken - FRAME_TOKENS
    if room < 0 and client_tokens is None:
        raise TooLarge(
            "message_too_large",
            f"This message has about {new} tokens, and with what is always sent beside it that is more than "
            f"CONTEXT_TOKENS or the model's window allows ({settings.context_tokens}). Nothing was stored. Shorten it, "
            "or raise CONTEXT_TOKENS.",
            param="message",
        )
    room -= min(settings.recall_tokens + settings.fact_tokens, room // 2)
    kept = len(recent)
    while kept and room >= (size := _size(recent[kept - 1], turn)):
        room -= size
        taken += size
        kept -= 1
    return tuple(recent[kept:]), taken


def _size(message: Message, turn: Turn) -> int:
    """Return the tokens of a message in the prompt."""
    if message.id in turn.as_sent:
        return message.tokens + ATTACHMENT_TOKENS * len((message.extra or {}).get("attachments", ()))
    if message.name or message.role not in ("user", "assistant"):
        return tokens.estimate_message(to_prompt_message(message)[1])
    return message.tokens


# -- recall


def _prepare_for_turn(
    engine: Engine, turn: Turn, model: LanguageModel | None, settings: Settings
) -> tuple[PreparedRecall, str]:
    """Prepare recall in the mode in force, which stays "tools" if the model will search by itself.

    Return also why that is not the mode that was asked for; "": it is, or it goes without saying.
    Call it with no transaction open.
    """
    assert turn.session is not None
    request = turn.request
    reason = ""
    mode = turn.recall_mode(settings)
    if mode == "tools":
        transcript = request.transcript
        if transcript is not None and not (request.recall and transcript.takes_tools):  # it may mean tools of its own
            mode, reason = "auto", CLIENT_TOOLS
        elif model is not None and not model.supports_tools:
            mode, reason = "auto", NO_TOOLS
        elif model is None or not (settings.recall_limit and settings.recall_tokens):  # a search would find nothing
            mode = "auto"
    prepared = recall.prepare_recall(
        engine,
        request.message,
        turn.session.index_key,
        engine.now(),
        turn.zone(settings),
        mode=mode,
        budget=settings.recall_tokens,
        has_attachments=bool((turn.new_messages[0].extra or {}).get("attachments")),
    )
    return prepared, reason


def _choose_for_message(
    engine: Engine,
    turn: Turn,
    context: Context,
    prepared: PreparedRecall,
    findings: Findings,
    elsewhere: Sequence[OtherFindings],
) -> Context:
    """Return the context with what is selected for the message.  May call the mini model.

    In mode `tools` there are no excerpts: the model searches by itself.
    """
    question = turn.new_messages[0].content
    prefix = context.prefix
    settings = context.settings
    reading = prepared.reading
    mode = turn.recall_mode(settings)
    if prepared.mode == "tools":
        recalled = RecallResult((), mode, SEARCHES_REASON, MODEL_SEARCHES)
    else:
        recalled = replace(recall.choose_excerpts(engine, findings), mode=mode)
    other_memories: tuple[OtherMemory, ...] = ()
    if elsewhere:
        is_personal = reading.is_personal
        other_memories = select_others(engine, elsewhere, question, settings.fact_tokens, is_personal=is_personal)
    facts = _choose_facts(engine, question, context, prepared, findings, recalled)
    examples: tuple[Example, ...] = ()
    if settings.example_tokens and prefix.has_examples and reading.trigger(context.visible_texts).looks_back:
        examples = similar(engine, turn.request.caller.tenant, context.scope.owner_id, reading.message)
    return context._replace(facts=facts, recalled=recalled, examples=examples, other_memories=other_memories)


def _explained(
    engine: Engine, context: Context, prepared: PreparedRecall, findings: Findings, mode_reason: str
) -> RecallResult:
    """Return what was recalled, with its kind and reason beside the facts and the other memories that are shown."""
    recalled, reading = context.recalled, prepared.reading
    kind, reason = recalled.kind, recalled.reason
    facts = (*context.prefix.facts, *context.facts)
    is_told = bool(facts) and reading.asks_how_things_stand  # "What's left before we ship?"
    if not recalled.excerpts and any(other.excerpts for other in context.other_memories):
        kind, reason = "", FOUND_ELSEWHERE
    elif kind == MISSING and (is_told or Ranking.of(engine).share_words(facts, " ".join(reading.keywords))):
        kind, reason = findings.plan.kind, f"{findings.plan.reason}, but only facts fit"
    return replace(recalled, kind=kind, reason=f"{mode_reason}: {reason}" if mode_reason else reason)


def _choose_facts(
    engine: Engine,
    question: str,
    context: Context,
    prepared: PreparedRecall,
    findings: Findings,
    recalled: RecallResult,
) -> tuple[Fact, ...]:
    """Return the facts beside the message: those that were superseded, then those that hold and the prompt lacks.

    The superseded ones are there for a question of change ("where did I live before?"), in a quarter of FACT_TOKENS;
    those that took their place, and that hold in place of what excerpts say, come before all others.
    """
    ranking = Ranking.of(engine)
    prefix = context.prefix
    now = engine.now()
    fact_tokens = context.settings.fact_tokens
    scored = ranking.by_relevance(ranking.scored(context.superseded, question, now)) if context.superseded else ()
    share = fact_tokens // 4
    superseded, left = fit_facts([fact for fact in scored if ranking.is_used(fact.score)], share)
    spent = share - left
    in_prefix = {fact.id for fact in prefix.facts}
    corrections = {
        fact.id: fact
        for fact in recalled.corrections
        if fact.id not in in_prefix and not prefix.shown.profile.states(fact)
    }
    candidates = {fact.id: fact for fact in prefix.other_facts} | corrections
    visible = {(message.id, message.created_at) for message in context.recent}
    # A fact whose message is visible adds nothing; one that the person edited does, and has the time of the edit.
    unseen = [fact for fact in candidates.values() if (fact.source_message_id, fact.valid_from) not in visible]
    if not unseen:
        return superseded
    first = corrections.keys() | {fact.superseded_by or 0 for fact in superseded}
    budget = ranking.message_budget(question, fact_tokens) - spent
    if findings.plan.points_back and not recalled.excerpts:
        # "Write the release note from what we decided": no message is near enough, but facts may tell it.
        budget += findings.budget
    is_personal = prepared.reading.is_personal
    return superseded + ranking.for_message(unseen, question, budget, now, is_personal=is_personal, first=first)


def _as_before(context: Context, shown: MemoryReport) -> Context:
    """Return the context with the facts, excerpts and examples that the continued turn has `shown`."""
    in_prefix = {fact.id for fact in context.prefix.facts}
    return context._replace(
        facts=tuple(fact for fact in shown.facts if fact.id not in in_prefix),
        recalled=shown.recalled,
        examples=shown.examples,
        other_memories=shown.other_memories,
    )
