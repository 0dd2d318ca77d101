"""A block: what a prompt would show of the memory, for an application that calls a model of its own.

Guarantee: it is admitted, recalled and composed as a turn is, and nothing is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory import tokens
from memory.errors import InvalidRequest
from memory.turn.admission import admit
from memory.turn.prompt import FRAME_TOKENS, compose, look_back
from memory.turn.values import Admitted, MemoryReport, TurnRequest

if TYPE_CHECKING:
    from memory.engine import Engine


@dataclass(frozen=True)
class Block:
    """The text, its estimated size, and what it was made from."""

    text: str
    tokens: int
    memory: MemoryReport


@dataclass(frozen=True)
class Blocks:
    """Makes blocks."""

    engine: Engine

    def make(self, request: TurnRequest) -> Block:
        """What there is for a message of a temporary turn, in at most `request.block_tokens` tokens.

        Raises NotFound for a session that is not the caller's, LimitReached, and InvalidRequest when nobody is named or
        the tokens are too few for what every prompt shows.
        """
        if request.caller.user_id is None and request.session_id is None:
            raise InvalidRequest("owner_needed", "Say whose memory to recall: a user_id or a session_id.")
        admitted = admit(self.engine, request)
        assert isinstance(admitted, Admitted)  # only a stored turn can have ended already
        if (always := tokens.estimate(admitted.head.text) + FRAME_TOKENS) > (request.block_tokens or 0):
            raise InvalidRequest(
                "tokens_too_few",
                f"What every prompt shows (instructions, profile, summary, facts) takes about {always} tokens here. "
                "Nothing was changed. Ask for more tokens.",
                param="tokens",
            )
        prompt = compose(self.engine, admitted, look_back(self.engine, admitted))
        text = "\n\n".join(filter(None, (admitted.head.text, prompt.quoted)))
        return Block(text, tokens.estimate(text), prompt.report)
