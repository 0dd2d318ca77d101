"""What words take back: a value that another replaces, an option that is ruled out or put back.

Guarantee: pure; a correction changes only a statement that says what is taken back, or that has a figure of the same
kind about the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from memory.llm.builtin.language import compiled, either, straight, terms
from memory.llm.builtin.statements import Statement
from memory.sections import Excluded

_I = re.IGNORECASE
_CORRECTS, _REFUSES, _REOPENS = (either("changes", name) for name in ("corrects", "refuses", "reopens"))
_WORD = r"[^\s,;:.!?，。！？]+(?:[.,]\d+)*"
_THING = rf"{_WORD}(?: {_WORD}){{0,3}}"
_ARTICLE = r"(?:an? |the |my |our |in |at |on |to |it's |it is |make it |make that |rather |from )*"
_SWAPS = tuple(
    re.compile(pattern, _I)
    for pattern in (
        rf"\bnot {_ARTICLE}(?P<old>{_THING}?),? but {_ARTICLE}(?P<new>{_THING})",
        rf"\bnot {_ARTICLE}(?P<old>{_THING})[,;.] {_ARTICLE}(?P<new>{_THING})[.!]*$",
        rf"(?:^|.*(?:is|was|it's|are|on|in|at|called|named|,|meant?) ){_ARTICLE}(?P<new>{_THING}),? (?:and )?"
        rf"not {_ARTICLE}(?P<old>{_THING})[.!]*$",
        rf"\bsold {_ARTICLE}(?P<old>{_THING}?),? (?:and |then )?(?:I |we )?(?:bought|got) {_ARTICLE}(?P<new>{_THING})",
        rf"\b(?:switched|changed|moved|migrated)\b.*? from (?P<old>{_THING}?) to (?P<new>{_THING})",
        rf"{_ARTICLE}(?P<new>{_THING}?) instead of {_ARTICLE}(?P<old>{_THING})",
        r"不是(?P<old>[^，,。是]{1,20})[，,]?\s*而?是(?P<new>[^，,。！]{1,20})",
    )
)
_CHOICE = re.compile(rf"(?:let's|we'll|I'll) (?:use|go with|take|pick|try) (?P<new>{_THING}?) instead", _I)
_NTH = r"\d{1,2}(?:st|nd|rd|th)?"
_DAY = rf"(?:{_NTH} (?:of )?MONTH|MONTH {_NTH}\b)"
FIGURES = {
    "money": re.compile(
        r"[$€£¥₹]\s?\d[\d.,]*k?"
        r"|\b\d[\d.,]*k?\s?(?:euros?|eur|dollars?|usd|pounds?|gbp|bucks|yuan|[€$£¥])|\d+\s?万?[元块]",
        _I,
    ),
    "date": compiled(
        rf"\b(?:(?:MONTH )?{_NTH} (?:to|until|-|–) {_DAY}|{_DAY} (?:to|until|-|–) {_NTH}\b|{_DAY}"
        r"|(?:next )?WEEKDAY|tomorrow\b"
        r"|(?:the )?\d{1,2}(?:st|nd|rd|th)\b|MONTH)|\d{1,2}月\d{1,2}[号日]"
    ),
    "time": re.compile(r"(?<=at )\d{1,2}(?::\d\d)?(?: ?[ap]m)?\b|\b\d{1,2}(?::\d\d| ?[ap]m\b)|\bnoon\b", _I),
    "count": re.compile(r"(?<![\w$€£¥:.,])\d+(?:[.,:]\d+)*k?\b(?! ?[ap]m)"),
}  # fmt: skip
_OF_A_KIND = frozenset(
    terms("date dates day time price cost number amount make say change move push raise say total max people")
)


def corrects(sentence: str) -> bool:
    """Whether a sentence says that it takes something back."""
    return _CORRECTS.search(straight(sentence)) is not None


def corrected(sentence: str, held: Sequence[Statement]) -> tuple[int, Statement] | None:
    """The place of the statement in `held` that a sentence changes, and what it says then."""
    bare = straight(sentence)
    for pattern in _SWAPS:
        match = pattern.search(bare)
        old, new = (match["old"].strip(), match["new"].strip()) if match else ("", "")
        for place in reversed(range(len(held))):
            if old and (
                changed := _with(
                    held[place], rf"(?<!\w){re.escape(old)}(?!\w)|{re.escape(old)}(?=[\u4e00-\u9fff])", new, sentence
                )
            ):
                return place, changed
    if match := _CHOICE.search(bare):
        for place in reversed(range(len(held))):
            if held[place].key.startswith(("use for", "decision")):
                return place, _with(held[place], re.escape(held[place].value), match["new"], sentence) or held[place]
    return _other_figure(sentence, held) if corrects(sentence) else None


def _other_figure(sentence: str, held: Sequence[Statement]) -> tuple[int, Statement] | None:
    """The statement about the same thing that has another figure of the same kind; about "it", the last with one."""
    figures = _figures(straight(sentence))
    about = {word for word in terms(_without(sentence, figures)) if word not in _OF_A_KIND}
    best: tuple[int, int] | None = None
    for place in range(len(held)):
        theirs = _figures(held[place].text)
        shared = about & set(terms(held[place].text))
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
    text = re.sub(old, lambda _: new, statement.text, count=1, flags=_I)
    if text.casefold() == statement.text.casefold():
        return None
    return replace(
        statement, text=text, value=re.sub(old, lambda _: new, statement.value, count=1, flags=_I), quote=quote
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
    if re.fullmatch(r"(?:it|that|this|them|to|you|he|she)\b.*", option, _I):
        return None
    return Excluded(option, reason.removeprefix("因为").strip(" .!。"))


def reopening(clause: str) -> str:
    """The option that a clause puts back, or ""."""
    match = _REOPENS.fullmatch(clause)
    return next(filter(None, match.groups()), "") if match else ""
