"""What words take back: a value that another replaces, an option that is ruled out or put back.

Guarantee: pure; a correction changes only a statement that says what is taken back, or that has a figure of the same
kind about the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from memory.llm.builtin.language import SWAPS, patterns, straight, terms
from memory.llm.builtin.reading import Statement
from memory.sections import Excluded

LONGEST = 160  # characters of a sentence in which one thing takes the place of another
FIGURES = patterns("figures")
_CHANGES = patterns("changes")
_OF_A_KIND = frozenset(
    terms(
        "date dates day time price cost number amount make say change move push raise say total max people let our my"
    )
)

Change = tuple[Statement, Statement]  # what was held, and what it says now


def corrects(sentence: str) -> bool:
    """Whether a sentence says that it takes something back."""
    return _CHANGES["corrects"].search(straight(sentence)) is not None


def swapped(sentence: str, held: Sequence[Statement]) -> Change | None:
    """The statement in `held` of which a sentence says another value in so many words ("Ida, not Ada")."""
    bare = straight(sentence)
    for pattern in SWAPS if len(bare) <= LONGEST else ():
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


# -- options


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
