"""Built-in model: rules that need no network and no key, so that Recap can be tried within a minute.

`prompt` reads the prompt that Recap shows to any model, with the phrases that `language` knows.  `reading` finds the
statements in a person's messages, and `record` keeps those that are valid.  `tasks` makes a mini model's answers of
them, and `replies` the replies.  Only the engine and memory.llm.registry import this package.

Invariant: the same request has the same answer, every request has one, and its words are the conversation's or one of a
small set of fixed phrases (tests/test_builtin_model.py).
"""

import json
import re
from collections.abc import Iterator

from memory import tokens
from memory.llm import ModelRequest, RawChunk, StreamEnd, TextDelta, estimate_prompt
from memory.llm.builtin.prompt import ParsedPrompt
from memory.llm.builtin.replies import reply
from memory.llm.builtin.tasks import answer
from memory.llm.openai_form import to_chunks
from models.owners import Usage

_WORD_GROUP = re.compile(r"\s*(?:\S{1,24}\s*){1,4}")  # of a streamed reply


class BuiltinModel:
    """`LanguageModel` by rules.  It never raises, has no state, and may be shared between threads."""

    name = "recap-extractive"
    supports_tools = False
    window = None
    down = None

    def answer(self, request: ModelRequest) -> Iterator[TextDelta | RawChunk | StreamEnd]:
        """Yield the reply, in pieces if streamed, or the JSON of the request's schema; then the end."""
        messages = request.messages
        if request.schema is None:
            text = reply(ParsedPrompt.read(messages))
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
