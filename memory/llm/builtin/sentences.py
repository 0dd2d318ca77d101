"""Where sentences begin and end, and how a piece of one is shown.

Guarantee: every `Sentence.text` is a verbatim substring of the content it was split from, so that it can serve as a
quotation; nothing here raises, whatever the text; the work is linear in the first `MAX_READ` characters and what
lies beyond is not read (a message that long is a pasted document, not somebody speaking).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memory.llm.builtin.wording import word_set
from search_index.caches import cached

MAX_READ = 20_000
MAX_SENTENCE = 400

_END = re.compile(r"[.!?…。！？；]+[\"'”’」』）)\]*_]*")
_FULL_WIDTH = frozenset("。！？；")
_TITLES = word_set("mr mrs ms dr prof st vs e.g i.e eg ie jr sr")
_ABBREVIATIONS = word_set(
    "etc approx no inc ltd fig al ca dept est jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu"
    " fri sat sun"
)
_MARKER = re.compile(r"[ \t]*(?:[-*+•]|#{1,6}|\d{1,3}[.)])[ \t]+")
_UNSHOWN = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]+")
_UNSPEAKABLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]")
_HEADING = re.compile(
    r"\W*(?:(?:our|my|the|some|hard|key|main|other|functional|technical)\s+)*(?:(?P<need>requirements?|needs"
    r"|must[- ]haves?|需求|要求)|(?P<limit>constraints?|limits?|limitations?|限制))\W*[:：]\**",
    re.IGNORECASE,
)
_OPENING, _CLOSING = re.compile(r"[“「『]"), re.compile(r"[”」』]")


@dataclass(frozen=True)
class Sentence:
    """One sentence as it was written; `quoted` when it begins inside somebody's quotation marks.

    `heading` is "requirement" or "constraint" for an item of a list under such a heading.
    """

    text: str
    quoted: bool = False
    heading: str = ""


@cached(512, longest=8_000)
def split(content: str) -> tuple[Sentence, ...]:
    """The sentences of a message that are its writer's own: code, and lines quoted with `>`, are left out."""
    out: list[Sentence] = []
    heading = ""
    for block, listed in _blocks(content[:MAX_READ]):
        kind, rest = headed(block)
        heading = kind if kind and not rest.strip() else heading if listed else ""
        marks, opened = 0, 0
        for text in _sentences(block):
            stripped = text.strip()
            if stripped and not _UNSPEAKABLE.search(stripped):
                quoted = marks % 2 == 1 or opened > 0
                out.extend(Sentence(part, quoted, heading) for part in _bounded(stripped))
            marks += text.count('"')
            opened = max(0, opened + len(_OPENING.findall(text)) - len(_CLOSING.findall(text)))
    return tuple(out)


def headed(text: str) -> tuple[str, str]:
    """ "Requirements: X" as what kind of thing X is said to be, and X."""
    match = _HEADING.match(text)
    if match is None:
        return "", text
    return ("requirement" if match.lastgroup == "need" else "constraint"), text[match.end() :]


def one_line(text: str) -> str:
    """`text` with line breaks, control characters and anything that cannot be encoded collapsed into spaces."""
    return _UNSHOWN.sub(" ", text).strip()


def clip(text: str, limit: int) -> str:
    """`text` in at most `limit` characters, cut at a word's end and marked with an ellipsis."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    space = cut.rfind(" ", limit // 2)
    return (cut[:space] if space > 0 else cut).rstrip(" ,;:-") + "…"


def head_of(text: str, limit: int) -> str:
    """The beginning of `text` in at most `limit` characters: unlike `clip`'s, still a verbatim substring."""
    if len(text) <= limit:
        return text
    space = text.rfind(" ", limit // 2, limit)
    return text[: space if space > 0 else limit].rstrip()


def _blocks(content: str) -> Iterator[tuple[str, bool]]:
    """Paragraphs, and whether each is an item of a list.

    A line goes on into the next only where that one starts in mid-sentence, as wrapped mail does.
    """
    start = end = -1
    fenced = listed = False
    position = 0
    for line in content.splitlines(keepends=True):
        bare = line.strip()
        begin, position = position, position + len(line)
        fence = bare.startswith(("```", "~~~"))
        aside = fence or fenced or bare.startswith(">")
        if fence:
            fenced = not fenced
        marker = _MARKER.match(line)
        goes_on = (
            bare[:1].islower() and not marker and start >= 0 and content[start:end].rstrip()[-1:] not in ".!?:;。！？"
        )
        if aside or not bare or not goes_on:
            if start >= 0:
                yield content[start:end], listed
            start = -1
        if not aside and bare:
            if start < 0:
                listed = marker is not None
                start = begin + (marker.end() if marker else 0)
            end = position
    if start >= 0:
        yield content[start:end], listed


def _sentences(block: str) -> Iterator[str]:
    start = 0
    for match in _END.finditer(block):
        if _ends_here(block, match, start):
            yield block[start : match.end()]
            start = match.end()
    if start < len(block):
        yield block[start:]


def _ends_here(block: str, match: re.Match[str], start: int) -> bool:
    mark = match.group()
    if any(character in _FULL_WIDTH for character in mark):
        return True
    if match.end() < len(block) and not block[match.end()].isspace():
        return False
    if mark == ".":
        before = block[max(start, match.start() - 12) : match.start()].split()
        word = before[-1].lower().lstrip("(\"'") if before else ""
        following = block[match.end() :][:8].lstrip()[:1]
        # "J. Smith" and "e.g. this" go on; a sentence that ends in "I" or in a lone figure does end.
        if word in _TITLES or (len(word) == 1 and word.isalpha() and word != "i"):
            return not following
        if word in _ABBREVIATIONS or "." in word:
            return not (following.islower() or following.isdigit())  # "at 5 p.m. today", "Jan. 5"
    return True


def _bounded(text: str) -> Iterator[str]:
    """Parts of at most MAX_SENTENCE characters, so that no rule ever meets a longer one."""
    while len(text) > MAX_SENTENCE:
        space = text.rfind(" ", MAX_SENTENCE // 2, MAX_SENTENCE)
        cut = space if space > 0 else MAX_SENTENCE
        yield text[:cut].rstrip()
        text = text[cut:].lstrip()
    if text:
        yield text
