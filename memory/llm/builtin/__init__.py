"""Built-in model: rules that need no network and no key, so that Recap can be tried within a minute.

`prompt` reads what Recap shows to any model, `language` holds what the rules know of languages, as data.  `reading`
reads what a person says of themselves, and `record` keeps what holds of it all.  From that come answers to a mini
model's tasks (`tasks`) and replies (`replies`).  Only the engine and memory.llm.registry import this package.

Invariant: the same request has the same answer, every request has one, and its words are the conversation's or one of a
small set of fixed phrases (tests/test_builtin_model.py).
"""

import json
import re
from collections.abc import Iterator

from memory import tokens
from memory.llm import ModelRequest, RawChunk, StreamEnd, TextDelta, estimate_prompt
from memory.llm.builtin.prompt import Prompt
from memory.llm.builtin.replies import reply
from memory.llm.builtin.tasks import answer
from memory.llm.openai_form import to_chunks
from models.owners import Usage

_WORD_GROUP = re.compile(r"\s*(?:\S{1,24}\s*){1,4}")  # of a streamed reply


class BuiltinModel:
    """`LanguageModel` by rules.  It never raises, holds no state, and may be shared between threads."""

    name = "recap-extractive"
    supports_tools = False
    window = None
    down = None

    def answer(self, request: ModelRequest) -> Iterator[TextDelta | RawChunk | StreamEnd]:
        """Yield the reply, in pieces if streamed, or what is asked for as JSON; then the end."""
        messages = request.messages
        if request.schema is None:
            text = reply(Prompt.read(messages))
        else:  # "<" is escaped: the reader takes "<think>" for thoughts, and a person may write it
            value = answer(request.schema, messages[0].content, messages[-1].content)
            text = json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")
        pieces = _WORD_GROUP.findall(text) if request.stream else [text]
        usage = Usage(estimate_prompt(request), tokens.estimate(text), estimated=True)
        end = StreamEnd("stop", self.name, usage)
        if request.client is None:
            yield from map(TextDelta, pieces)
        else:
            yield from to_chunks(pieces, end, request.client, stream=request.stream)
        yield end
