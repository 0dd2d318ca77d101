"""The built-in model: rules that need no network and no key, so that Recap can be tried within a minute.

It answers by quoting what the person said (`replies`), digests conversations (`digest`) and fills profiles (`profile`)
by rules; `reading` reads what a person says of themselves.  Only the wiring imports this package.

Guarantee: the same request has the same answer, every request has one, and its words are the conversation's or one of
a small set of fixed phrases.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from memory import tokens
from memory.domain import Usage
from memory.llm import (
    Chunk,
    DigestMaterial,
    FeedbackMaterial,
    Finish,
    ModelRequest,
    Piece,
    ProfileMaterial,
    RankMaterial,
    ReplyMaterial,
)
from memory.llm.builtin.digest import digest
from memory.llm.builtin.feedback import feedback
from memory.llm.builtin.profile import profile
from memory.llm.builtin.replies import reply
from memory.llm.passing import in_chunks

_WORD_GROUP = re.compile(r"\s*(?:\S{1,24}\s*){1,4}")  # of a streamed reply


class BuiltinModel:
    """A `LanguageModel` by rules.  It never raises, holds no state, and may be shared between threads."""

    name = "recap-extractive"
    can_call_tools = False

    def answer(self, request: ModelRequest) -> Iterator[Piece | Chunk | Finish]:
        """Yield the reply, in pieces if streamed, or what is asked for as JSON; then the end."""
        material = request.material
        if isinstance(material, ReplyMaterial):
            text = reply(material)
        else:
            made = _made(material)
            # "<" is escaped: the reader takes "<think>" for a reasoning model's thoughts, and a person may write it.
            text = json.dumps(made, ensure_ascii=False).replace("<", "\\u003c")
        pieces = _WORD_GROUP.findall(text) if request.stream else [text]
        prompt = sum(tokens.estimate_message(message.content) for message in request.messages)
        end = Finish("stop", self.name, Usage(prompt, tokens.estimate(text), estimated=True))
        if request.client is None:
            yield from map(Piece, pieces)
        else:
            yield from in_chunks(pieces, end, request.client, stream=request.stream)
        yield end


def _made(material: DigestMaterial | ProfileMaterial | FeedbackMaterial | RankMaterial) -> dict[str, Any]:
    match material:
        case DigestMaterial():
            return digest(material)
        case ProfileMaterial():
            return profile(material)
        case FeedbackMaterial():
            return feedback(material)
        case RankMaterial():
            return {"best": list(range(1, material.count + 1))}
