"""What words take back: a value that another replaces, an option that is ruled out or put back.

Guarantee: pure; a correction changes only a statement that says what is taken back, or that has a figure of the same
kind about the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from memory.llm.builtin.language import SWAPS, either, straight, terms
from memory.llm.builtin.statements import Statement
from memory.sections import Excluded

LONGEST = 160  # characters of a sentence in which one thing takes the place of another
_CORRECTS, _REFUSES, _REOPENS = (either("changes", name) for name in ("corrects", "refuses", "reopens"))
_CHOICE = either("reading", "choice")
FIGURES = {kind: either("figures", kind) for kind in ("money", "range", "date", "time", "count")}
_OF_A_KIND = frozenset(
    terms(
        "date dates day time price cost number amount make say change move push raise say total max people let our my"
    )
)


def corrects(sentence: str) -> bool:
    """Whether a sentence says that it takes something back."""
    return _CORRECTS.search(straight(sentence)) is not None


def swapped(sentence: str, held: Sequence[Statement]) -> tuple[int, Statement] | None:
    """The place of the statement in `held` of which a sentence says another value in so many words ("Ida, not Ada"),
    and what it says then."""
    bare = straight(sentence)
    for pattern in SWAPS if len(bare) <= LONGEST else ():
        match = pattern.search(bare)
        parts = {name: part.strip() for name, part in match.groupdict().items()} if match else {}
        old, new = parts.get("old", ""), parts.get("new") or parts.get("bought", "")
        whole = rf"(?<!\w){re.escape(old)}(?!\w)|{re.escape(old)}(?=[\u4e00-\u9fff])"
        for place in reversed(range(len(held))) if match and old else ():
            if changed := _with(held[place], whole, new, sentence):
                if match and "bought" in parts:  # who drove a Golf may not drive the bike that was bought for it
                    changed = replace(changed, text=match[0][:1].upper() + match[0][1:])
                return place, changed
    if match := _CHOICE.search(bare):
        for place in reversed(range(len(held))):
            if held[place].key.startswith(("use for", "decision")):
                return place, _with(held[place], re.escape(held[place].value), match[1], sentence) or held[place]
    return None


def refigured(sentence: str, held: Sequence[Statement]) -> tuple[int, Statement] | None:
    """The statement about the same thing that has another figure of the same kind; about "it", the last with one."""
    figures = _figures(straight(sentence))
    words = set(terms(_without(sentence, figures)))
    about = words - _OF_A_KIND
    best: tuple[int, int] | None = None
    for place in range(len(held)):
        theirs = _figures(held[place].text)
        shared = words & set(terms(held[place].text))
        alike = figures.keys() & theirs.keys() or (figures.keys() == {"count"} and "money" in theirs)
        if alike and (shared or not about) and (best is None or (len(shared), place) >= best):
            best = len(shared), place
    if best is None:
        return None
    changed = held[best[1]]
    theirs = _figures(changed.text)
    for kind, figure in figures.items():
        old = re.escape(theirs[kind]) if kind in theirs else r"\d[\d.,]*k?"
        changed = _with(changed, old, figure, sentence) or changed
    return (best[1], changed) if changed is not held[best[1]] else None


def _figures(text: str) -> dict[str, str]:
    found, rest = dict[str, str](), text
    for kind, pattern in FIGURES.items():
        if match := pattern.search(rest):
            found[kind] = match.group()
            rest = pattern.sub(" ", rest)
    return found


def _without(text: str, figures: dict[str, str]) -> str:
    for figure in figures.values():
        text = text.replace(figure, " ")
    return _CORRECTS.sub(" ", text)


def _with(statement: Statement, old: str, new: str, quote: str) -> Statement | None:
    unit = re.escape(new.lstrip("$€£¥0123456789.,k "))  # "800 euros", "make it 1,000 euros"
    old = rf"(?:{old})(?: ?{unit})?" if unit and new[-len(unit) - 1 :] != new else old
    text = re.sub(old, lambda _: new, statement.text, count=1, flags=re.I)
    if text.casefold() == statement.text.casefold():
        return None
    return replace(
        statement, text=text, value=re.sub(old, lambda _: new, statement.value, count=1, flags=re.I), quote=quote
    )


# ---------------------------------------------------------------- options


def refusal(clause: str) -> Excluded | None:
    """What a clause rules out, with its reason."""
    match = _REFUSES.fullmatch(clause)
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
    match = _REOPENS.fullmatch(clause)
    return next(filter(None, match.groups()), "") if match else ""
