"""Split a model's thoughts from its answer, whole or while it streams.

Reasoning models of local servers write their thoughts into the content, as `<think>...</think>` or between other
marks. A server's template may begin the thought itself, and then only the closing mark comes.

A tag is markup at the beginning of a line, and a closing tag at the end of one too. Elsewhere, and in a fenced code
block, it is text: the answer may be about such tags.  So is what ends a model's turn, in an answer that is JSON.
"""

import re
from collections.abc import Iterator

from memory.llm import TextDelta, Thought, text_of

_AIDERS = "thinking-content-7bbeb8e1441453ad999a0bbba8a46d4b"  # in the history that it reads again
_MARKS = {
    **{f"<{name}>": f"</{name}>" for name in ("think", "thinking", "thought", "reasoning", "seed:think", _AIDERS)},
    "[think]": "[/think]",  # Magistral
    "◁think▷": "◁/think▷",  # Kimi-VL
    "<|channel|>analysis<|message|>": "<|channel|>final<|message|>",  # gpt-oss, where the server reads no harmony
}
"""What stands before and after a thought, in lower case."""
_OF_JSON = "<|channel|>final json<|message|>", "<|channel|>final <|constrain|>json<|message|>"
_CLOSING = (*_MARKS.values(), *_OF_JSON)
CLOSING_TAG = re.compile("|".join(map(re.escape, _CLOSING)), re.I)
_CLOSING_TAG_AT_END = re.compile(rf"(?:{CLOSING_TAG.pattern})\s*\Z", re.I)
_ENDS = (
    *("</s>", "<end_of_turn>"),
    *(f"<|{name}|>" for name in ("im_end", "eot_id", "eom_id", "end", "return", "endoftext", "end_of_text")),
)
"""What ends an answer where the server takes it for text; a model that was not stopped there writes another turn."""
_END = re.compile(rf"(?:{'|'.join(map(re.escape, _ENDS))})(?=[ \t]*(?:\n|<\|))", re.I)
_STRIKE = "<s>"  # of HTML: what it opens, `</s>` closes
_CLOSING_OR_END = re.compile("|".join(map(re.escape, (*_CLOSING, *_ENDS))), re.I)
_BARE_OPENING = re.compile("analysis[A-Z]")  # of an answer of gpt-oss, where the server drops the marks
_IMPLICIT_END = re.compile(f"{CLOSING_TAG.pattern}|assistantfinal", re.I)
_OPENING_TAG = re.compile(rf" {{0,3}}(?:{'|'.join(map(re.escape, _MARKS))})", re.I)
_FENCE = re.compile(r" {0,3}(```|~~~)")
_LINE_BEGINNINGS = (*_MARKS, *_CLOSING, "analysis", "```", "~~~")
_BEGINNING_CHARS = max(map(len, _LINE_BEGINNINGS))
_MAYBE_MARKUP = re.compile(r"[<\[`~◁]| \Z")
_HELD_CHARS = _BEGINNING_CHARS + 13  # of a line's end that may be a closing tag with blanks after it


class ThoughtSplitter:
    """Splits one answer, which comes in any pieces.

    implicit: the answer begins with a thought that no tag opens, as this model's answers do. Where no closing tag comes
    either, all of it is the answer, and comes at the end.
    """

    def __init__(self, *, implicit: bool = False) -> None:
        self.had_implicit_thought = False
        """Whether a closing tag came without an opening one."""
        self.has_words = self.has_thought = False
        """What the answer has so far."""
        self._implicit = self._thinking = implicit
        self._is_over = self._is_json = self._has_strikes = False
        self._at_line_start = True
        self._ticks = 0  # in the line so far: an odd number opens code
        self._fence = ""
        self._held = ""  # the end of what came, which may be the beginning of a tag
        self._searched = 0  # characters of an implicit thought in which no closing tag begins

    def feed(self, text: str) -> Iterator[TextDelta | Thought]:
        """Take in the next piece, and yield the words and thoughts that it completes.

        A `Thought` that `withdraws` tells that every word before it belongs to the thought.
        """
        if self._is_over:
            return
        if self.has_words and text and not (self._held or self._thinking or _MAYBE_MARKUP.search(text)):
            self._at_line_start = text.endswith("\n")
            self._ticks = 0 if "\n" in text else self._ticks
            yield TextDelta(text)
            return
        text = self._held + text
        self._held = ""
        if not (self.has_words or self.has_thought or self._thinking) and _BARE_OPENING.match(text):
            self._implicit = self._thinking = True
        while text:
            part, text = self._thought(text) if self._thinking else self._answer(text)
            if part is not None:
                yield part
            elif self._held:
                return

    def end(self) -> Iterator[TextDelta | Thought]:
        """Yield the rest of the text. A thought without an end stays a thought."""
        rest = self._held
        self._held = ""
        if self._thinking and not self._implicit:
            part: TextDelta | Thought | None = self._thought_of(rest)
        elif not self._thinking and not self._fence and not self._ticks % 2 and self._is_mark(rest.strip()):
            part = self._withdraw() if CLOSING_TAG.match(rest.strip()) else None
        else:
            self._thinking = False
            part = self._words(rest if self.has_words else rest.lstrip("\r\n"))
        if part is not None:
            yield part

    def _is_mark(self, text: str) -> bool:
        """Return whether a text begins with a mark; `</s>` is none in an answer that strikes words out."""
        mark = _CLOSING_OR_END.match(text)
        return mark is not None and not (self._has_strikes and mark[0].lower() == "</s>")

    def _thought(self, text: str) -> tuple[Thought | None, str]:
        close = (_IMPLICIT_END if self._implicit else CLOSING_TAG).search(text, self._searched)
        if close is None and self._implicit:  # it may be the answer
            self._held, self._searched = text, max(0, len(text) - _BEGINNING_CHARS)
            return None, ""
        self._searched = 0
        if close is None:
            start = _partial_tag(text, _BEGINNING_CHARS)
            text, self._held = text[:start], text[start:]
            return self._thought_of(text), ""
        self.had_implicit_thought |= self._implicit
        self._thinking = self._implicit = False
        self._at_line_start, self._ticks = True, 0
        thought = text[: close.start()]
        return self._thought_of(thought if thought.strip() else ""), text[close.end() :]

    def _answer(self, text: str) -> tuple[TextDelta | Thought | None, str]:
        if self._at_line_start:
            taken = self._line_start(text)
            if taken is not None:
                return taken
            self._at_line_start = False
        line, newline, rest = text.partition("\n")
        self._is_json = self._is_json if self.has_words else line.lstrip().startswith("{")
        self._has_strikes = self._has_strikes or _STRIKE in line.lower()
        ends = () if self._fence or self._is_json else _END.finditer(line + newline)
        end = next((end for end in ends if self._is_mark(end[0])), None)
        if end is not None and (self._ticks + line[: end.start()].count("`")) % 2 == 0:
            self._is_over = True
            return self._words(line[: end.start()]), ""
        tag = _CLOSING_TAG_AT_END.search(line) if newline and not self._fence else None
        if tag is not None and (self._ticks + line[: tag.start()].count("`")) % 2 == 0:
            return self._withdraw(line[: tag.start()]), rest
        if newline:
            self._at_line_start, self._ticks = True, 0
        elif not self._fence:
            start = _partial_tag(line, _HELD_CHARS)
            line, self._held = line[:start], line[start:]
            self._ticks += line.count("`")
        return self._words(line + newline), rest

    def _line_start(self, text: str) -> tuple[Thought | None, str] | None:
        """Return the event of a tag or a blank at the beginning of a line, and the rest; None for words."""
        stripped = text.lstrip("\r\n")
        if not self.has_words and stripped != text:  # blank lines before an answer, or between thought and answer
            return None, stripped
        if not self._fence and (tag := _OPENING_TAG.match(text)):
            self._thinking = True
            return None, text[tag.end() :]
        beginning = text.lstrip(" ")
        if not self._fence and len(text) - len(beginning) < 4 and (tag := CLOSING_TAG.match(beginning)):
            return self._withdraw(), beginning[tag.end() :]
        is_short = len(beginning) <= _BEGINNING_CHARS and len(text) - len(beginning) < 4
        if is_short and any(tag.startswith(beginning.lower()) for tag in _LINE_BEGINNINGS):
            self._held = text
            return None, ""
        if fence := _FENCE.match(text):
            self._fence = "" if self._fence == fence[1] else self._fence or fence[1]
        return None

    def _withdraw(self, before: str = "") -> Thought:
        self.had_implicit_thought = self.has_thought = True
        self.has_words, self._at_line_start, self._ticks = False, True, 0
        return Thought(before, withdraws=True)

    def _thought_of(self, text: str) -> Thought | None:
        self.has_thought |= bool(text)
        return Thought(text) if text else None

    def _words(self, text: str) -> TextDelta | None:
        self.has_words = self.has_words or bool(text.strip())
        return TextDelta(text) if text else None


def _partial_tag(text: str, longest: int) -> int:
    """Return where a tag that closes a thought or ends the answer may begin, cut off by the end of the text.

    It is the text's length if that is nowhere.
    """
    for start in range(max(0, len(text) - longest), len(text)):
        if text[start] in "<[◁":
            tail = text[start:].lower()
            complete = _CLOSING_OR_END.match(tail)
            may_end = tail[complete.end() :].strip() in ("", "<") if complete else False
            if may_end or any(tag.startswith(tail) for tag in (*_CLOSING, *_ENDS, _STRIKE)):
                return start
    return len(text)


def without_thoughts(text: str) -> str:
    """Return a whole answer without its thoughts; the same text where it has none."""
    if not any(mark.search(text) for mark in (CLOSING_TAG, _OPENING_TAG, _BARE_OPENING)):
        return text
    splitter = ThoughtSplitter()
    answer = text_of((*splitter.feed(text), *splitter.end()))
    return answer if answer == text else answer.strip()
