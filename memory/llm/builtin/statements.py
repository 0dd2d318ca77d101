"""What a person writes, cut into sentences and clauses of their own, and the value of what a clause says.

Guarantee: pure, and linear in the text; sentences and clauses are verbatim parts of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memory.llm.builtin.language import either, straight

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


_ASIDE = re.compile(r"^(```|~~~).*?(?:^\1[^\n]*$|\Z)|^[ \t]*>[^\n]*$", re.M | re.S)
_SENTENCE = re.compile(
    r"(?:[^.!?…。！？；\n]|\.(?=[\w,])|(?<=\b[ap]\.m)\.|(?<=\b(?:Mr|Ms|Dr|St|vs))\.|(?<=\bMrs)\.)+"
    r"(?:[.!?…。！？；]+[\"'”’」』)*_]*(?=\s|$|(?<=[。！？；]))|(?=\n)|$|[.!?…]+)"
)
_BULLET = re.compile(r"\s*(?:[-*+•]|#{1,6}|\d{1,3}[.)])\s+")
_UNSEEN = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]")
_TASK, _LEAD, _JOINT, _OWN, _CARRIED, _TRAIL, _TOGETHER, _TIME, _NOT_MEANT = (
    either("reading", name)
    for name in ("task", "lead", "joint", "own", "carried", "trail", "together", "time", "not_meant")
)


def sentences(content: str) -> list[str]:
    """The writer's own sentences: no code, no quoted lines, no quotations, no text to work on."""
    text = _ASIDE.sub(lambda aside: "\n" * len(aside.group()), content[:MAX_READ])
    out, open_quote = list[str](), False
    for match in _SENTENCE.finditer(text):
        bullet = _BULLET.match(text, match.start(), match.end())
        sentence = text[bullet.end() if bullet else match.start() : match.end()].strip()[:MAX_SENTENCE]
        if _TASK.match(sentence):
            break
        if sentence and not open_quote and not _UNSEEN.search(sentence):
            out.append(sentence)
        if len(re.findall('["“”]', sentence)) % 2:
            open_quote = not open_quote
    return out


def clauses(sentence: str) -> Iterator[tuple[str, str]]:
    """Each clause of a sentence that its writer means: verbatim, and as the patterns read it."""
    bounds = [0, *(place for joint in _JOINT.finditer(straight(sentence)) for place in joint.span()), len(sentence)]
    subject, time = "", ""
    for start, end in zip(bounds[::2], bounds[1::2], strict=True):
        verbatim = sentence[start:end].strip()
        lead = _LEAD.match(straight(verbatim))
        read = straight(verbatim)[lead.end() if lead else 0 :].rstrip(" .!。！,;)*_")
        if when := _TIME.match(read):  # "Next month I have an exam" reads as "I have an exam next month"
            read, time = read[when.end() :], f" {when[1][0].lower()}{when[1][1:]}"
            if not read:
                continue
        read = _TOGETHER.sub("we ", _TRAIL.sub("", read))
        read, verbatim, time = read + time, sentence[:end].strip() if time else verbatim, ""
        if _NOT_MEANT.search(read):
            return  # neither this clause nor what hangs on it
        own = _OWN.match(read)
        if own:
            subject = next(filter(None, own.groups()))
        elif not subject or not (subject[0] == "我" or _CARRIED.match(read)):
            subject = ""
        else:
            read, verbatim = f"{subject}{'' if subject[0] == '我' else ' '}{read}", sentence[:end].strip()
        if read:
            yield verbatim, read
