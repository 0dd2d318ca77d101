"""What a person says of themselves: sentences and clauses, and the statement that a clause makes.

A row of the languages' tables is tried on a whole clause, and what it captures must be complete: nothing that only its
context explains ("him", "the feeling"), and no loose end ("to read, especially").  A row that would be wrong in one of
ten clauses is left out of the table: the words stay searchable, and no fact is better than a false one.

Guarantee: pure, and linear in the text; sentences and clauses are verbatim parts of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from memory.llm.builtin.language import ROWS, compiled, patterns, straight

MAX_READ, MAX_SENTENCE = 20_000, 400
MOST_WORDS = 14  # of an object


@dataclass(frozen=True, eq=False)
class Statement:
    """What one clause says, and once it is held: when, in which message, and which known facts it ends.

    `key` names what it is about.  By its `mark`, one value of the key holds at a time ("!"), or a later value replaces
    the earlier where the person says that they correct something ("~"), or the value no longer holds ("-").
    `known` is the id of the fact that it was read from.
    """

    text: str
    quote: str
    category: str = "other"
    importance: int = 1
    key: str = ""
    value: str = ""
    mark: str = ""
    when: datetime = datetime.min.replace(tzinfo=UTC)
    source: int = 0
    known: int | None = None
    supersedes: frozenset[int] = frozenset()

    @property
    def is_fact(self) -> bool:
        return self.importance > 1


_ROWS = [(kind, key, text, compiled(source)) for kind, key, text, source in ROWS]
_READING, _MUST, _NEVER = patterns("reading"), patterns("must"), patterns("never")
_ASIDE = re.compile(r"^(```|~~~).*?(?:^\1[^\n]*$|\Z)|^[ \t]*>[^\n]*$", re.M | re.S)
_SENTENCE = re.compile(
    r"(?:[^.!?…。！？；\n]|\.(?=[\w,])|(?<=\b[ap]\.m)\.|(?<=\b(?:Mr|Ms|Dr|St|vs))\.|(?<=\bMrs)\.)+"
    r"(?:[.!?…。！？；]+[\"'”’」』)*_]*(?=\s|$|(?<=[。！？；]))|(?=\n)|$|[.!?…]+)"
)
_BULLET = re.compile(r"\s*(?:[-*+•]|#{1,6}|\d{1,3}[.)])\s+")
_UNSEEN = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]")
_LIST = re.compile(r"(?:[^,]+, )+(?:[^,]+,? )?(?:and|or) [^,]+")
_NAME = re.compile(r"[^\W\d_a-z][\w'-]*\.?(?: (?:(?:de|van|von|der|al|da|di|la|le) )?[^\W\d_a-z][\w'-]*){0,3}")
_PLACE = re.compile(rf"(?:the )?(?:{_NAME.pattern})(?:, {_NAME.pattern})?")


def sentences(content: str) -> list[str]:
    """The writer's own sentences: no code, no quoted lines, no quotations, no text to work on."""
    text = _ASIDE.sub(lambda aside: "\n" * len(aside.group()), content[:MAX_READ])
    out, open_quote = list[str](), False
    for match in _SENTENCE.finditer(text):
        bullet = _BULLET.match(text, match.start(), match.end())
        sentence = text[bullet.end() if bullet else match.start() : match.end()].strip()[:MAX_SENTENCE]
        if _READING["task"].match(sentence):
            break
        if sentence and not open_quote and not _UNSEEN.search(sentence):
            out.append(sentence)
        if len(re.findall('["“”]', sentence)) % 2:
            open_quote = not open_quote
    return out


def clauses(sentence: str) -> Iterator[tuple[str, str]]:
    """Each clause of a sentence that its writer means: verbatim, and as the patterns read it."""
    joints = _READING["joint"].finditer(straight(sentence))
    bounds = [0, *(place for joint in joints for place in joint.span()), len(sentence)]
    subject, time = "", ""
    for start, end in zip(bounds[::2], bounds[1::2], strict=True):
        verbatim = sentence[start:end].strip()
        lead = _READING["lead"].match(straight(verbatim))
        read = straight(verbatim)[lead.end() if lead else 0 :].rstrip(" .!。！,;)*_")
        if when := _READING["time"].match(read):  # "Next month I have an exam" reads as "I have an exam next month"
            read, time = read[when.end() :], f" {when[1][0].lower()}{when[1][1:]}"
            if not read:
                continue
        read = _READING["together"].sub("we ", _READING["trail"].sub("", read))
        read, verbatim, time = read + time, sentence[:end].strip() if time else verbatim, ""
        if _READING["not_meant"].search(read):
            return  # neither this clause nor what hangs on it
        if own := _READING["own"].match(read):
            subject = next(filter(None, own.groups()))
        elif not subject or not (subject[0] == "我" or _READING["carried"].match(read)):
            subject = ""
        else:
            read, verbatim = f"{subject}{'' if subject[0] == '我' else ' '}{read}", sentence[:end].strip()
        if read:
            yield verbatim, read


def statements(sentence: str) -> Iterator[Statement]:
    """The statements that a sentence makes about its writer."""
    for quote, clause in clauses(sentence):
        made = next(filter(None, (_made(row, quote, clause) for row in _ROWS)), None)
        if made is not None:
            yield made


def _made(row: tuple[str, str, str, re.Pattern[str]], quote: str, clause: str) -> Statement | None:
    kind, key, text, source = row
    match = source.fullmatch(clause)
    if match is None:
        return None
    found = {name: _checked(name, part) for name, part in match.groupdict(default="").items() if part}
    if not all(found.values()):
        return None
    parts = {**dict.fromkeys(match.groupdict(), ""), **found}
    value = next((found[name] for name in reversed(found) if name != "k"), found.get("k", ""))
    said = text.format(**parts, K=_third_person(parts.get("k", ""))).strip()
    category, _, importance = kind.partition(" ")
    mark = key[-1] if key[-1] in "!~-" and key != "-" else ""
    key = "" if key == "-" or _READING["long_ago"].search(clause) else key.rstrip("!~-").format(**parts).lower()
    return Statement(said[:1].upper() + said[1:], quote, category, int(importance), key, value, mark)


def _checked(name: str, part: str) -> str:
    """What a group captured, as far as it is complete and of the group's kind; "" where it is not."""
    if name in ("k", "limit", "han"):
        return part
    part = {"name": _name, "place": _place, "figure": _figure}.get(name, _complete)(part)
    must, never = _MUST.get(name), _NEVER.get(name)
    return part if (must is None or must.search(part)) and (never is None or not never.search(part)) else ""


def _complete(part: str) -> str:
    """The object without what hangs on it; "" where it is none without its context."""
    if not _LIST.fullmatch(part) or len(part) > 90:
        cut = _READING["cut"].search(part)
        part = part[: cut.start()] if cut else part
        if not _LIST.fullmatch(part) and ", " in part:
            part = part.partition(", ")[0]
            part = "" if re.search(r"\b(?:an?|the) \w+$", part) else part  # "a safe, inviting place"
    part = part.strip(" ,.;:!*_'-")
    part = part[1:-1] if part.count('"') == 2 and part[0] == part[-1] == '"' else part
    return part if part and len(part.split()) <= MOST_WORDS and not _READING["vague"].search(part) else ""


def _name(part: str) -> str:
    match = _NAME.match(part) or (re.match(r"[a-z][a-z'-]+$", part) if part.islower() else None)
    return match.group() if match and _READING["after_name"].match(part, match.end()) else ""


def _place(part: str) -> str:
    match = _PLACE.match(part) or (_READING["small_place"].match(part) if part.islower() else None)
    return match.group() if match and _READING["after_place"].match(part, match.end()) else ""


def _figure(part: str) -> str:
    cut = _READING["cut_figure"].search(part)
    part = (part[: cut.start()] if cut else part).strip(" ,.")
    return part if len(part.split()) <= 8 and not _READING["vague"].search(part) else ""


def _third_person(verb: str) -> str:
    first, space, rest = verb.lower().partition(" ")
    if first == "have":
        return f"has{space}{rest}"
    if first.endswith("y") and first not in ("play", "enjoy"):
        return f"{first[:-1]}ies{space}{rest}"
    return f"{first}{'es' if first.endswith('ch') else 's'}{space}{rest}"
