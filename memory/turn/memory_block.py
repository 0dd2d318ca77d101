"""Make a memory block for an application that calls a model itself: the memory that a turn's prompt would show."""

from dataclasses import dataclass

from memory import tokens
from memory.engine import Engine
from memory.errors import InvalidRequest
from memory.turn.begin import begin_temporary
from memory.turn.context import FRAME_TOKENS, read_context
from memory.turn.memory_report import MemoryReport
from memory.turn.prompt import build_prompt
from memory.turn.request import TurnRequest


@dataclass(frozen=True)
class MemoryBlock:
    """Memory that a prompt would show: its text, its estimated size, and what it was made from."""

    text: str
    tokens: int
    memory: MemoryReport


def memory_block(engine: Engine, request: TurnRequest) -> MemoryBlock:
    """Return the memory for the message of a temporary turn, in at most `request.block_tokens` tokens.

    It is read and built as for a turn; nothing is stored.  A session that the caller does not have counts as a new one.
    Raises LimitReached where a model re-ranks, and InvalidRequest when the request names no owner or the tokens are too
    few for the prefix.
    """
    if request.caller.owner is None and request.session_id is None:
        raise InvalidRequest("owner_needed", "Say whose memory to recall: a user_id, a space or a session_id.")
    turn = begin_temporary(engine, request)
    context = read_context(engine, turn)
    if (always := tokens.estimate(context.prefix.text) + FRAME_TOKENS) > (request.block_tokens or 0):
        raise InvalidRequest(
            "tokens_too_few",
            f"What every prompt shows (instructions, profile, summary, facts) takes about {always} tokens here. "
            "Nothing was changed. Ask for more tokens.",
            param="tokens",
        )
    prompt = build_prompt(engine, turn, context)
    text = "\n\n".join(filter(None, (context.prefix.text, prompt.quoted)))
    return MemoryBlock(text, tokens.estimate(text), prompt.shown)
