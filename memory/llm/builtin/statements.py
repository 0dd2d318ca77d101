"""What a person says of themselves, read by a short list of sure patterns.

A pattern reads a whole clause in the first person, and its object must be complete: nothing that only its context
explains ("him", "these"), and no loose end ("to read, especially").  What no pattern reads is no fact.

Guarantee: pure; `quote` is a verbatim part of the text that was read, and the words of `text` are its words, but for
a label such as "Name" and the ending of a verb.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memory.llm.builtin.language import either, straight

_I = re.IGNORECASE
MAX_READ, MAX_SENTENCE = 20_000, 400


@dataclass(frozen=True)
class Statement:
    """What one clause says.

    `key` names what it is about.  By its `mark`, one value of the key holds at a time ("!"), or a later value replaces
    the earlier where the person says that they correct something ("~"), or the value no longer holds ("-").
    """

    text: str
    quote: str
    category: str
    importance: int
    key: str = ""
    value: str = ""
    mark: str = ""

    @property
    def scope(self) -> str:
        """Whether it holds in the person's other conversations too."""
        return "user" if self.category in ("identity", "preference", "relationship", "work") else "session"


# ---------------------------------------------------------------- sentences

_FENCE = re.compile(r"^(```|~~~).*?(?:^\1[^\n]*$|\Z)", re.M | re.S)
_QUOTED_LINE = re.compile(r"^\s*>.*$", re.M)
_SENTENCE = re.compile(
    r"(?:[^.!?…。！？；\n]|\.(?=[\w,])|(?<=\b[ap]\.m)\.|(?<=\b(?:Mr|Ms|Dr|St|vs))\.|(?<=\bMrs)\.)+"
    r"(?:[.!?…。！？；]+[\"'”’」』)*_]*(?=\s|$|(?<=[。！？；]))|(?=\n)|$|[.!?…]+)"
)
_BULLET = re.compile(r"\s*(?:[-*+•]|#{1,6}|\d{1,3}[.)])\s+")


def sentences(content: str) -> list[str]:
    """The writer's own sentences, each verbatim: no code, no quoted lines, no quotations, no text to work on."""
    text = content[:MAX_READ]
    for aside in (_FENCE, _QUOTED_LINE):
        text = aside.sub(lambda found: "\n" * len(found.group()), text)
    out, open_quote = list[str](), False
    for match in _SENTENCE.finditer(text):
        start = match.start()
        if bullet := _BULLET.match(text, start, match.end()):
            start = bullet.end()
        sentence = text[start : match.end()].strip()[:MAX_SENTENCE]
        if _TASK.match(sentence):
            break
        if sentence and not open_quote and not re.search("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]", sentence):
            out.append(sentence)
        if len(re.findall('["“”]', sentence)) % 2:
            open_quote = not open_quote
    return out


# ---------------------------------------------------------------- clauses

_TASK, _LEAD, _JOINT, _TRAIL, _US, _NOT_MEANT, _WHEN = (
    either("clauses", name) for name in ("task", "lead", "joint", "trail", "us", "not_meant", "when")
)
_VERB = (
    r"(?:(?:am|live|have|enjoy|speak|don't|can't)\b"
    r"|(?:work|like|love|hate|need|want|study|play) (?:an?|at|as|for|in|\w+ing)\b)"
)


def clauses(sentence: str) -> Iterator[tuple[str, str]]:
    """Each clause of a sentence that its writer means: verbatim, and as the patterns read it."""
    bounds = [0]
    for joint in _JOINT.finditer(straight(sentence)):
        bounds += [joint.start(), joint.end()]
    bounds.append(len(sentence))
    subject, time = "", ""
    for start, end in zip(bounds[::2], bounds[1::2], strict=True):
        verbatim = sentence[start:end].strip()
        lead = _LEAD.match(straight(verbatim))
        read = straight(verbatim)[lead.end() if lead else 0 :].rstrip(" .!。！,;)*_")
        if when := _WHEN.match(read):  # "Next month I have an exam" reads as "I have an exam next month"
            read, time = read[when.end() :], f" {when[1][0].lower()}{when[1][1:]}"
            if not read:
                continue
        read = _US.sub("we ", _TRAIL.sub("", read))
        read, verbatim, time = read + time, sentence[:end].strip() if time else verbatim, ""
        if _NOT_MEANT.search(read):
            return  # neither this clause nor what hangs on it
        own = re.match(r"(I|we|我们?)(?:'\w+)?(?!\w)", read, _I) or re.match("(我们?)", read)
        carried = re.match(_VERB, read, _I) or (subject.startswith("我") and re.match("[\u4e00-\u9fff]", read))
        if not own and subject and carried:
            read, verbatim = f"{subject}{'' if subject[0] == '我' else ' '}{read}", sentence[:end].strip()
        subject = own[1] if own else ""
        if read:
            yield verbatim, read
