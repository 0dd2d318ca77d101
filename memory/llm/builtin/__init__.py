"""The built-in model: rules that need no network and no key, so that Recap can be tried within a minute.

`language` holds what it knows of languages, as data.  `reading` reads what a person says of themselves, `corrections`
what they take back, and `record` keeps what holds of it all.  From that come summaries and facts (`digest`), replies
(`replies`) and profiles (`profile`).  Only the wiring imports this package.

Guarantee: the same request has the same answer, every request has one, and its words are the conversation's or one of
a small set of fixed phrases.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from memory import llm, tokens
from memory.llm.builtin.digest import digest
from memory.llm.builtin.profile import profile
from memory.llm.builtin.replies import reply
from memory.llm.passthrough import to_chunks
from memory.quoting import one_line
from models.owners import Usage

_WORD_GROUP = re.compile(r"\s*(?:\S{1,24}\s*){1,4}")  # of a streamed reply


class BuiltinModel:
    """A `LanguageModel` by rules.  It never raises, holds no state, and may be shared between threads."""

    name = "recap-extractive"
    supports_tools = False
    window = None

    def answer(self, request: llm.ModelRequest) -> Iterator[llm.TextDelta | llm.RawChunk | llm.StreamEnd]:
        """Yield the reply, in pieces if streamed, or what is asked for as JSON; then the end."""
        text = _answer(request.material)
        pieces = _WORD_GROUP.findall(text) if request.stream else [text]
        prompt = llm.estimate_prompt(request)
        end = llm.StreamEnd("stop", self.name, Usage(prompt, tokens.estimate(text), estimated=True))
        if request.client is None:
            yield from map(llm.TextDelta, pieces)
        else:
            yield from to_chunks(pieces, end, request.client, stream=request.stream)
        yield end


def _answer(material: llm.Material) -> str:
    match material:
        case llm.ReplyMaterial():
            return reply(material)
        case llm.DigestMaterial():
            made = digest(material)
        case llm.ProfileMaterial():
            made = profile(material)
        case llm.FeedbackMaterial():  # what the person says becomes the last line of the instruction
            said = one_line(material.feedback)
            text = "\n".join(filter(None, (material.instruction, said)))
            made = {"text": text, "reason": "The person said so.", "quote": said}
        case llm.RankMaterial():
            made = {"best": list(range(1, material.count + 1))}
        case llm.ConsolidationMaterial():  # rules can't tell
            made = {"same": [], "contradicts": []}
    # "<" is escaped: the reader takes "<think>" for a reasoning model's thoughts, and a person may write it.
    return json.dumps(made, ensure_ascii=False).replace("<", "\\u003c")
