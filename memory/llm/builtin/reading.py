"""What a person says of themselves: sentences and clauses, the statement that a clause makes, and what it takes back.

A row of the languages' tables is tried on a whole clause, and what it captures must be complete: nothing that only its
context explains ("him", "the feeling"), and no loose end ("to read, especially").  A row that would be wrong in one of
ten clauses is left out of the table: the words stay searchable, and no fact is better than a false one.

Guarantee: pure, and linear in the text; sentences and clauses are verbatim parts of it.  A correction takes back only
a statement that says what is taken back, that has a figure or a name of the same kind about the same thing, or that it
says again in most of its words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property

from memory.llm.builtin.language import ROWS, SWAPS, WORDS, asks, compiled, patterns, straight, terms
from memory.sections import Excluded

MAX_READ, MAX_SENTENCE = 20_000, 400
MOST_WORDS = 14  # of an object
LONGEST_SWAP = 160  # characters of a sentence in which one thing takes the place of another


@dataclass(frozen=True, eq=False)
class Statement:
    """What one clause says, and once it is held: when, in which message, and which known facts it ends.

    `key` names what it is about.  By its `mark`, one value of the key holds at a time ("!"), or a later value replaces
    the earlier where the person says that they correct something ("~"), or the value no longer holds ("-").
    `known` is the id of the fact that it was read from, `by` the name of who said it, if that is known.
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
    by: str = ""

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(terms(f"{self.text} {self.quote} {self.key} {self.by}"))

    def overlaps(self, other: Statement) -> bool:
        """Whether one rests on words of the other."""
        mine, theirs = self.quote.casefold(), other.quote.casefold()
        return bool(mine and theirs) and (mine in theirs or theirs in mine)


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
    found = {name: checked(name, part) for name, part in match.groupdict(default="").items() if part}
    if not all(found.values()):
        return None
    parts = {**dict.fromkeys(match.groupdict(), ""), **found}
    value = next((found[name] for name in reversed(found) if name != "k"), found.get("k", ""))
    said = text.format(**parts, K=_third_person(parts.get("k", ""))).strip()
    category, _, importance = kind.partition(" ")
    mark = key[-1] if key[-1] in "!~-" and key != "-" else ""
    key = "" if key == "-" or _READING["long_ago"].search(clause) else key.rstrip("!~-").format(**parts).lower()
    return Statement(said[:1].upper() + said[1:], quote, category, int(importance), key, value, mark)


def checked(name: str, part: str) -> str:
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
    if first.endswith("y") and first not in ("play", "enjoy"):
        return f"{first[:-1]}ies{space}{rest}"
    return f"{'has' if first == 'have' else f'{first}es' if first.endswith('ch') else f'{first}s'}{space}{rest}"


# -- what words take back

Change = tuple[Statement, dict[str, str]]  # what is taken back; its words that do not hold, with what holds instead


def corrects(sentence: str) -> bool:
    """Whether a sentence says that it takes something back."""
    return _CHANGES["corrects"].search(straight(sentence)) is not None


def correction(sentence: str, held: Sequence[Statement], correcting: bool) -> tuple[list[Statement], Statement] | None:
    """What a sentence takes back of what the person said, and what it says instead.  `correcting`: it, or the one
    before it, says that it takes something back."""
    bare, held = straight(sentence), [one for one in held if one.importance]
    change = _swapped(bare, held)
    if change is None and correcting:
        change = _refigured(bare, held) or (_restated(bare, held) if corrects(bare) else None)
    if change is None:
        return None
    best, swaps = change
    ended = [one for one in held if one is best or (one.overlaps(best) and all(_says(one.text, old) for old in swaps))]
    base = max(ended, key=lambda one: (one.importance, one is best))
    made = replace(base, quote=sentence, importance=max(2, base.importance))
    for old, new in swaps.items():
        made = replace(made, text=_put(made.text, old, new), value=_put(made.value, old, new))
    return (ended, made) if made.text.casefold() != base.text.casefold() else None


def _put(text: str, old: str, new: str) -> str:
    """`text` with other words, of which those that follow there already are not told twice ("9,500 euros")."""
    before, *after = re.split(rf"{re.escape(old)}(?: ?[ap]m\b)?", text, maxsplit=1, flags=re.I)
    end = next((place for place in range(len(new)) if after and after[0].startswith(new[place:])), len(new))
    return f"{before}{new[:end]}{after[0]}" if after else text


def _swapped(bare: str, held: Sequence[Statement]) -> Change | None:
    """By a sentence that says in so many words what takes the place of what ("Ida, not Ada")."""
    for match in (pattern.search(bare) for pattern in SWAPS if len(bare) <= LONGEST_SWAP):
        parts = {name: part.strip() for name, part in match.groupdict("").items()} if match else {}
        found = _closest(bare, [one for one in held if _says(one.text, parts["old"])]) if match else None
        if match and found and "bought" in parts:  # who drove a Golf may not drive the bike that was bought for it
            before = found.text.partition(",")[0].rstrip(".")
            return found, {found.text: f"{match[0][:1].upper()}{match[0][1:]} (before: {before})"}
        if found:
            return found, {parts["old"]: parts["new"]}
    return None


def _refigured(bare: str, held: Sequence[Statement]) -> Change | None:
    """By another figure or name of the same kind about the same thing; about "it", the last thing that has one."""
    figures, rest = _figures(bare)
    words, fitting = set(terms(_CHANGES["corrects"].sub(" ", rest))) - _OF_A_KIND, dict[Statement, dict[str, str]]()
    for one in held if figures else ():
        shared = len(words & one.words)
        theirs, _ = _figures(one.value if one.importance == 1 else one.text) if shared or not words else ({}, "")
        if "money" in theirs and "money" not in figures:
            theirs["count"] = [re.sub(r"[^\d.,]", "", theirs["money"][0])]  # "make that 800"
        swaps = dict[str, str]()
        for kind in figures.keys() & theirs.keys():
            new = next((figure for figure in figures[kind] if not _says(one.text, figure)), "")
            olds = [figure for figure in theirs[kind] if not _says(bare, figure)]
            old = max(olds, key=lambda old: len(words & set(terms(one.text.partition(old)[0][-40:]))), default="")
            unit = re.search(rf"(?<!\w){re.escape(new)} ([a-z]\w+)", bare) if kind == "count" else None
            alike = shared >= 0.6 * len(words) > 0 if kind == "name" else not unit or one.words >= set(terms(unit[1]))
            if new and old and alike:
                swaps[old] = new
        if swaps:
            fitting[one] = swaps
    found = _closest(rest, list(fitting))
    return (found, fitting[found]) if found else None


def _restated(bare: str, held: Sequence[Statement]) -> Change | None:
    """By most of the same words ("The party is at Kim's place")."""
    said = _READING["lead"].sub("", bare, count=1).rstrip(" .!")
    words = set(terms(_CHANGES["corrects"].sub(" ", bare))) - _OF_A_KIND
    plain = [one for one in held if not asks("figure", f"{bare} {one.text}") and not asks("kin", bare)]
    alike = [one for one in plain if len(words & one.words) >= max(2, 0.6 * len(words), 0.5 * len(terms(one.text)))]
    found = _closest(bare, alike)
    return (found, {found.text: said[:1].upper() + said[1:]}) if found else None


def _closest(words: str, held: Sequence[Statement]) -> Statement | None:
    """The statement that shares most words; of several the more important, then the last."""
    said = set(terms(words))
    ranks = {one: (len(said & one.words), len(said & set(terms(one.text))), one.importance) for one in reversed(held)}
    return max(ranks, key=ranks.__getitem__, default=None)


def _says(text: str, words: str) -> bool:
    words = re.escape(words.removesuffix("s"))
    return re.search(rf"(?<!\w){words}s?(?![\w:])|{words}(?=[\u4e00-\u9fff])", text, re.I) is not None


def _figures(text: str) -> tuple[dict[str, list[str]], str]:
    """The figures and names in a text by their kinds, and the text without them."""
    found = dict[str, list[str]]()
    for kind, pattern in FIGURES.items():
        if figures := pattern.findall(text):
            found[kind], text = figures, pattern.sub(" ", text)
    return found, text


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
