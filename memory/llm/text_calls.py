"""Find calls of tools that a model writes as text, where its server does not read them.

Models have marks of their own for calls, as `<tool_call>`, `[TOOL_CALLS]` or `<｜DSML｜invoke name="...">`, and some
write nothing but JSON.  What they share is read: the name of a tool that was offered, and its arguments as a JSON
object or as pairs of names and values.

Guarantee: what begins with such a mark is no part of the reply.  JSON or code alone is one only where it begins with a
call of a tool that was offered, or called before in the turn: a program may have a function `remember` too.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from memory.llm import TextDelta, Thought

_MARK = re.compile(
    r"(?<!`)(?:<\|?(?:tool_call|python_tag\|>)|\[TOOL_CALLS\]|<(?:minimax:)?(?:function(?:_call|=)|tool_call|invoke\s)"
    r"|<[|｜‖ ]{1,3}(?:DSML|tool▁call)|<\|channel\|>commentary)"
)
_MAYBE_MARK = re.compile(r"[<\[][^>\]\n]{0,20}\Z")
_ALONE = re.compile(r"\s*(?:```|[{\[])")  # how an answer begins that may be a call and nothing else
_ALONE_CHARS = 120  # in which such an answer names its tool
_NAMES = ("name", "tool", "function")
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_CALL_KEYS = {*_NAMES, *_ARGUMENTS, "type", "id"}
_BEFORE_NAME = rf"""\s*(?:```\w*\s*)?(?:[{{\[][^()]*"(?:{"|".join(_NAMES)})"\s*:\s*"|\[?\s*(?:print\()?(?:\w+\.)*)"""
"""How an answer that is a call and nothing else goes on to the name of its tool: as JSON, or as a call in Python."""
_PAIR = re.compile(  # a value that does not end takes all the rest, so that no other one is looked for there
    r"""<[^<>]{0,80}?parameter(?:=|[^<>]{0,80}?\bname=")(?P<tag>\w+)\b"?[^<>]*>(?P<in_tag>.*?)(?P<tag_end></|\Z)"""
    r"""|<arg_key>\s*(?P<key>\w+)\s*</arg_key>\s*<arg_value>(?P<in_value>.*?)(?P<value_end></arg_value>|\Z)"""
    r"""|\b(?P<word>\w+)\s*=\s*(?P<literal>"(?:[^"\\]|\\.){0,2000}"|[\w.-]+)(?=\s*[,)])""",
    re.S,
)
_WRITTEN_NAME = re.compile(r"""(?:"name"\s*:\s*"|=\s*"?|sep｜>)([A-Za-z_][\w.-]{1,63})""")  # of no tool that is offered
_DECODER = json.JSONDecoder(strict=False)


class TextCalls:
    """Calls in the text of one answer, which comes in any pieces.  names: of the tools that were offered or called."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = "|".join(map(re.escape, names)) or r"\b\B"  # which is nowhere
        self._call_alone = re.compile(rf"""{_BEFORE_NAME}(?:{self._names})["(]""")
        self._call = list[str]()  # the text from the first mark on
        self._has_mark = False  # or it is JSON alone
        self._held = ""  # the end of what came, which may begin a call
        self.has_words = False
        """Whether the answer has text that is no call."""

    def without_calls(self, events: Iterable[TextDelta | Thought]) -> Iterator[TextDelta | Thought]:
        """Yield the events of an answer, without the text that is a call or may become one."""
        for event in events:
            if isinstance(event, Thought):
                if event.withdraws:
                    self._held = ""
                    self.has_words = False
                yield event
            elif self._call:
                self._call.append(event.text)
            else:
                text = self._held + event.text
                words, self._held = self._split(text)
                if words:
                    self.has_words = self.has_words or bool(words.strip())
                    yield TextDelta(words)

    def _split(self, text: str) -> tuple[str, str]:
        """Return the words that begin a text, and the rest, which may begin a call."""
        if mark := _MARK.search(text):
            self._call = [text[mark.start() :]]
            self._has_mark = True
            return text[: mark.start()], ""
        if not self.has_words and _ALONE.match(text):
            if self._call_alone.match(text):
                self._call = [text]
                return "", ""
            if len(text) < _ALONE_CHARS:
                return "", text
        maybe = _MAYBE_MARK.search(text)
        start = maybe.start() if maybe else len(text)
        return text[:start], text[start:]

    def end(self) -> tuple[str, list[tuple[str, str]]]:
        """Return the rest of the words, and the name and arguments of each call."""
        text = "".join(self._call)
        calls = list(self._calls(text))
        if self._has_mark and not calls and (name := _WRITTEN_NAME.search(text)):
            calls = [(name[1], "{}")]
        words = self._held if self._has_mark or calls else text + self._held
        self.has_words = self.has_words or bool(words.strip())
        return words, calls

    def _calls(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield the calls in a text: each name that is known, with the arguments around or after it."""
        names = list(re.finditer(rf"(?<![\w-])(?:{self._names})(?![\w-])", text))
        end = 0
        arguments: Any
        for place, name in enumerate(names):
            if name.start() < end:  # inside the arguments of the call before
                continue
            whole, whole_end = _object(text, text.rfind("{", end, name.start()))
            is_call = self._has_mark or whole.keys() <= _CALL_KEYS
            if is_call and any(whole.get(key) == name[0] for key in _NAMES):
                arguments = next((whole[key] for key in _ARGUMENTS if key in whole), {})
                end = whole_end
                yield name[0], arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
                continue
            end = names[place + 1].start() if place + 1 < len(names) else len(text)
            rest = text[name.end() : end]
            arguments, _ = _object(rest, rest.find("{"))
            arguments = arguments or _pairs(rest)
            if self._has_mark or (rest.startswith("(") and (arguments or rest.startswith("()"))):
                yield name[0], json.dumps(arguments, ensure_ascii=False)


def _pairs(text: str) -> dict[str, str]:
    """Return the arguments that stand one by one in a text."""
    pairs = {}
    for pair in _PAIR.finditer(text):
        if pair["tag_end"] or pair["value_end"] or pair["word"]:  # else the value has no end
            value = (pair["in_tag"] or "").strip() or pair["in_value"] or pair["literal"] or ""
            pairs[pair["tag"] or pair["key"] or pair["word"]] = value.strip('"')
    return pairs


def _object(text: str, start: int) -> tuple[dict[str, Any], int]:
    """Return the JSON object that begins at `start`, and its end; an empty one where none does."""
    try:
        value, end = _DECODER.raw_decode(text, start) if start >= 0 else ({}, 0)
    except (ValueError, RecursionError):
        return {}, 0
    return (value, end) if isinstance(value, dict) else ({}, 0)
