"""The prompt: [system, summary, facts][the tail, word for word][what was recalled, and the new message].

Guarantee: it is never larger than CONTEXT_TOKENS by our estimate, and the new message always goes whole.  Everything
before the last message is the same bytes from turn to turn until the tail folds or the person changes what is
remembered; whatever changes by the turn (the clock, excerpts, facts that fit the question) stands in the last message.
Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory import tokens
from memory.domain import Excerpt, Fact, Message, Sections
from memory.errors import TooLarge
from memory.llm import ChatMessage, ReplyMaterial
from memory.quoting import attribute, block, chat_block, escape, fact_line, stamp

FRAME_TOKENS = 60  # of tags and notes around what is quoted


@dataclass(frozen=True)
class View:
    """What a session remembers at the start of a turn, as one consistent reading of the rows.

    `message` is the new one; `tail` the messages before it since the head's summary; `head_facts` stand in the head,
    `other_facts` hold as well but don't.  `history_tokens` is what all messages together would cost.
    """

    owner_id: int
    owner_key: str
    session_row_id: int | None
    system: str
    head_version: int
    summary: Sections
    head_facts: tuple[Fact, ...]
    other_facts: tuple[Fact, ...]
    tail: tuple[Message, ...]
    message: Message
    history_tokens: int


@dataclass(frozen=True)
class ComposedPrompt:
    """A prompt ready to send, what it was made from, and its size by our estimate."""

    messages: tuple[ChatMessage, ...]
    material: ReplyMaterial
    tokens: int


def head(view: View) -> str:
    """The first message's text."""
    return "\n\n".join(
        filter(
            None,
            (
                view.system,
                block("summary", (escape(line) for line in view.summary.lines())),
                block("facts", (fact_line(fact) for fact in view.head_facts)),
            ),
        )
    )


def tail_that_fits(view: View, context_tokens: int, reserved: int) -> tuple[Message, ...]:
    """The newest messages of the tail that fit beside the head, the new message and `reserved` tokens.

    Almost always all of them: only when the mini model has been failing for long is the tail too long to send.
    Raises TooLarge when the head and the new message alone do not fit.
    """
    new = tokens.estimate_message(_verbatim(view.message).content)
    budget = context_tokens - tokens.estimate_message(head(view)) - new - FRAME_TOKENS
    if budget < 0:
        raise TooLarge(
            "message_too_large",
            f"This message has about {new} tokens, and with what is always sent beside it that is more "
            f"than CONTEXT_TOKENS ({context_tokens}) allows. Nothing was stored. Shorten it, or raise CONTEXT_TOKENS.",
            param="message",
        )
    budget -= reserved
    kept: list[Message] = []
    for message in reversed(view.tail):
        budget -= tokens.estimate_message(_verbatim(message).content)
        if budget < 0:
            break
        kept.append(message)
    return tuple(reversed(kept))


def recalled_that_fits(
    view: View, tail: Sequence[Message], excerpts: Sequence[Excerpt], facts: Sequence[Fact], context_tokens: int
) -> tuple[tuple[Excerpt, ...], tuple[Fact, ...]]:
    """As many of the excerpts and facts, the best first, as fit beside head, `tail` and the new message.

    Almost always all: only a new message of nearly CONTEXT_TOKENS leaves less than their own budgets.
    """
    sent = (_verbatim(message).content for message in (*tail, view.message))
    room = context_tokens - tokens.estimate_message(head(view)) - sum(map(tokens.estimate_message, sent)) - FRAME_TOKENS
    kept_facts: list[Fact] = []
    for fact in facts:
        room -= tokens.estimate(fact_line(fact))
        if room < 0:
            break
        kept_facts.append(fact)
    kept_excerpts: list[Excerpt] = []
    for excerpt in excerpts:
        room -= tokens.estimate(chat_block(excerpt))
        if room < 0:
            break
        kept_excerpts.append(excerpt)
    return tuple(kept_excerpts), tuple(kept_facts)


def compose(
    view: View, tail: Sequence[Message], excerpts: Sequence[Excerpt], facts: Sequence[Fact], now: datetime
) -> ComposedPrompt:
    """The prompt of a turn.  `facts` are the ones that fit this message and are not in the head."""
    recalled = "\n".join(
        [
            f'<memory now="{stamp(now)} UTC, {now:%A}">',
            *(chat_block(excerpt) for excerpt in excerpts),
            *filter(None, [block("facts", (fact_line(fact) for fact in facts))]),
            "</memory>",
        ]
    )
    last = ChatMessage("user", f"{recalled}\n\n{_verbatim(view.message).content}")
    messages = tuple(_joined([ChatMessage("system", head(view)), *map(_verbatim, tail), last]))
    return ComposedPrompt(
        messages=messages,
        material=ReplyMaterial(
            question=view.message.content,
            now=now,
            summary=view.summary,
            facts=(*view.head_facts, *facts),
            excerpts=excerpts,
            tail=tail,
        ),
        tokens=sum(tokens.estimate_message(message.content) for message in messages),
    )


def _verbatim(message: Message) -> ChatMessage:
    """A stored message as the model sees it.  Only the person and the assistant speak in their own roles; a stored
    system or tool message is quoted, since remembered text is never an instruction."""
    if message.role in ("user", "assistant"):
        return ChatMessage(message.role, f"{message.name}: {message.content}" if message.name else message.content)
    return ChatMessage("user", f'<message role="{attribute(message.role)}">\n{escape(message.content)}\n</message>')


def _joined(messages: Iterable[ChatMessage]) -> Iterable[ChatMessage]:
    """Neighbours of the same role as one message: some servers insist that user and assistant take turns."""
    waiting: ChatMessage | None = None
    for message in messages:
        if waiting is not None and waiting.role == message.role:
            waiting = ChatMessage(waiting.role, f"{waiting.content}\n\n{message.content}")
            continue
        if waiting is not None:
            yield waiting
        waiting = message
    if waiting is not None:
        yield waiting
