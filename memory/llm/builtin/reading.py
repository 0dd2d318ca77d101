"""What a person says of themselves: sentences and clauses, the statement that a clause makes, and what it takes back.

A row of the languages' tables is tried on a whole clause, and what it captures must be complete: nothing that only its
context explains ("him", "the feeling"), and no loose end ("to read, especially").  A row that would be wrong in one of
ten clauses is left out of the table: the words stay searchable, and no fact is better than a false one.

Guarantee: pure, and linear in the text; sentences and clauses are verbatim parts of it.  A correction changes only a
statement that says what is taken back, or that has a figure of the same kind about the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from memory.llm.builtin.language import ROWS, SWAPS, WORDS, compiled, patterns, straight, terms
from memory.sections import Excluded

MAX_READ, MAX_SENTENCE = 20_000, 400
MOST_WORDS = 14  # of an object
LONGEST_SWAP = 160  # characters of a sentence in which one thing takes the place of another


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


_ROWS = [(kind, key, text, compiled(source)) for kind, key, text, source in ROWS]
_READING, _MUST, _NEVER = patterns("reading"), patterns("must"), patterns("never")
_CHANGES, FIGURES = patterns("changes"), patterns("figures")
_OF_A_KIND = frozenset(terms(WORDS["of_a_kind"]))
_ASIDE = re.compile(r"^(```|~~~).*?(?:^\1[^\n]*$|\Z)|^[ \t]*>[^\n]*$", re.M | re.S)
_SENTENCE = re.compile(
    r"(?:[^.!?…。！？；\n]|\.(?=[\w,])|(?<=\b[ap]\.m)\.|(?<=\b(?:Mr|Ms|Dr|St|vs))\.|(?<=\bMrs)\.)+"
    r"(?:[.!?…。！？；]+[\"'”’」』)*_]*(?=\s|$|(?<=[。！？；]))|(?=\n)|$|[.!?…]+)"
)
_BULLET = re.compile(r"\s*(?:[-*+•]|#{1,6}|\d{1,3}[.)])\s+")
_UNSEEN = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]")
_LIST = re.compile(r"(?:[^,]+, )+(?:[^,]+,? )?(?:and|or) [^,]+")
_NAME = re.compile(r"[^\W\d_a-z][\w'-]*\.?(?: (?:(?:de|van|von|der|al|da|di|la|le) )?[^\W\d_a-z][\w'-]*){0,3}")
_HEADS = {"name": _NAME, "place": re.compile(rf"(?:the )?(?:{_NAME.pattern})(?:, {_NAME.pattern})?")}


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
    part = _head(name, part) if name in _HEADS else _figure(part) if name == "figure" else _complete(part)
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


def _head(kind: str, part: str) -> str:
    """The name or the place that a part begins with, if what follows ends it."""
    match = _HEADS[kind].match(part) or (_READING[f"small_{kind}"].match(part) if part.islower() else None)
    return match.group() if match and _READING[f"after_{kind}"].match(part, match.end()) else ""


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


# -- what words take back

Change = tuple[Statement, Statement]  # what was held, and what it says now


def corrects(sentence: str) -> bool:
    """Whether a sentence says that it takes something back."""
    return _CHANGES["corrects"].search(straight(sentence)) is not None


def swapped(sentence: str, held: Sequence[Statement]) -> Change | None:
    """The statement in `held` of which a sentence says another value in so many words ("Ida, not Ada")."""
    bare = straight(sentence)
    for pattern in SWAPS if len(bare) <= LONGEST_SWAP else ():
        match = pattern.search(bare)
        parts = {name: part.strip() for name, part in match.groupdict().items()} if match else {}
        old, new = re.escape(parts.get("old", "")), parts.get("new") or parts.get("bought", "")
        for one in reversed(held) if old else ():
            if changed := _with(one, rf"(?<!\w){old}(?!\w)|{old}(?=[\u4e00-\u9fff])", new, sentence):
                if match and "bought" in parts:  # who drove a Golf may not drive the bike that was bought for it
                    changed = replace(changed, text=match[0][:1].upper() + match[0][1:])
                return one, changed
    if match := _CHANGES["choice"].search(bare):
        for one in reversed(held):
            if one.key.startswith(("use for", "decision")):
                return one, _with(one, re.escape(one.value), match[1], sentence) or one
    return None


def refigured(sentence: str, held: Sequence[Statement]) -> Change | None:
    """The statement about the same thing that has another figure of the same kind; about "it", the last with one."""
    figures = _figures(straight(sentence))
    bare = sentence
    for figure in figures.values():
        bare = bare.replace(figure, " ")
    words, best, most = set(terms(_CHANGES["corrects"].sub(" ", bare))), None, 0
    for one in held:
        theirs, shared = _figures(one.text), len(words & set(terms(one.text)))
        alike = figures.keys() & theirs.keys() or (figures.keys() == {"count"} and "money" in theirs)
        if alike and (shared or words <= _OF_A_KIND) and shared >= most:
            best, most = one, shared
    if best is None:
        return None
    changed, theirs = best, _figures(best.text)
    for kind, figure in figures.items():
        old = re.escape(theirs[kind]) if kind in theirs else r"\d[\d.,]*k?"
        changed = _with(changed, old, figure, sentence) or changed
    return (best, changed) if changed is not best else None


def _figures(text: str) -> dict[str, str]:
    found = dict[str, str]()
    for kind, pattern in FIGURES.items():
        if match := pattern.search(text):
            found[kind] = match.group()
            text = pattern.sub(" ", text)
    return found


def _with(one: Statement, old: str, new: str, quote: str) -> Statement | None:
    unit = re.escape(new.lstrip("$€£¥0123456789.,k "))  # "800 euros", "make it 1,000 euros"
    old = rf"(?:{old})(?: ?{unit})?" if unit and new[-len(unit) - 1 :] != new else old
    text, value = (re.sub(old, lambda _: new, part, count=1, flags=re.I) for part in (one.text, one.value))
    return replace(one, text=text, value=value, quote=quote) if text.casefold() != one.text.casefold() else None


def refusal(clause: str) -> Excluded | None:
    """What a clause rules out, with its reason."""
    match = _CHANGES["refuses"].fullmatch(clause)
    if match is None:
        return None
    option, reason = [*filter(None, match.groups()), ""][:2]
    if doing := re.match(r"to (\w+?)e?\b", option):
        option = f"{doing[1]}ing{option[doing.end() :]}"
    option = re.sub(r"^(?:use|using|go with|any|the idea of) ", "", option)
    if re.fullmatch(r"(?:it|that|this|them|to|you|he|she)\b.*", option, re.I):
        return None
    return Excluded(option, reason.removeprefix("因为").strip(" .!。"))


def reopening(clause: str) -> str:
    """The option that a clause puts back, or ""."""
    match = _CHANGES["reopens"].fullmatch(clause)
    return next(filter(None, match.groups()), "") if match else ""
