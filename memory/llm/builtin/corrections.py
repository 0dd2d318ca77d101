"""What a sentence takes back of what was said before, and options ruled out and put back.

Guarantee: pure.  A correction takes back only a statement that says what is taken back, or that has a figure or a name
of the same kind about the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from memory.llm.builtin.language import OF_A_KIND, SWAPS, patterns, straight, terms
from memory.llm.builtin.reading import Origin, Statement
from models.sections import Excluded

_CHANGES, _FIGURES = patterns("changes"), patterns("figures")

Figures = dict[str, list[str]]
Change = tuple[Statement, dict[str, str]]  # what is taken back; its words that do not hold, with what holds instead


def corrects(sentence: str) -> bool:
    """Whether a sentence says that it takes something back."""
    return _CHANGES["corrects"].search(straight(sentence)) is not None


def correction(sentence: str, held: Sequence[Statement]) -> tuple[Statement, list[Statement]] | None:
    """What a sentence says instead of what the person said before, and what it takes back of that."""
    bare, held = straight(sentence), [one for one in held if one.origin != Origin.OTHERS]
    change = _swapped(bare, held) or (_refigured(bare, held) if corrects(bare) else None)
    if change is None:
        return None
    best, swaps = change
    ended = [one for one in held if one is best or (one.overlaps(best) and all(_says(one.text, old) for old in swaps))]
    base = max(ended, key=lambda one: (one.importance, one is best))
    made = replace(base, quote=sentence, importance=max(2, base.importance), origin=Origin.STATED)
    for old, new in swaps.items():
        made = replace(made, text=_put(made.text, old, new), value=_put(made.value, old, new))
    return (made, ended) if made.text.casefold() != base.text.casefold() else None


def _put(text: str, old: str, new: str) -> str:
    """`text` with other words, of which those that follow there already are not told twice ("9,500 euros")."""
    before, *after = re.split(rf"{re.escape(old)}(?: ?[ap]m\b)?", text, maxsplit=1, flags=re.I)
    end = next((place for place in range(len(new)) if after and after[0].startswith(new[place:])), len(new))
    return f"{before}{new[:end]}{after[0]}" if after else text


def _swapped(bare: str, held: Sequence[Statement]) -> Change | None:
    """By a sentence that says in so many words what takes the place of what ("Ida, not Ada")."""
    for pattern in SWAPS:
        if match := pattern.search(bare):
            old, new = match["old"].strip(), match["new"].strip()
            if old[:1].isupper() and new[:1].islower():  # "Nala in the end, not Luna"
                continue
            if found := _closest(bare, [one for one in held if _says(one.text, old)]):
                return found, {old: new}
    return None


def _refigured(bare: str, held: Sequence[Statement]) -> Change | None:
    """By another figure or name of the same kind about the same thing; about "it", the last thing that has one."""
    figures, rest = _figures(bare)
    words = set(terms(_CHANGES["corrects"].sub(" ", rest))) - OF_A_KIND
    about = [one for one in held if figures and (not words or words & one.words)]
    fitting = {one: swaps for one in about if (swaps := _other_figures(bare, figures, words, one))}
    found = _closest(rest, list(fitting))
    return (found, fitting[found]) if found else None


def _other_figures(bare: str, figures: Figures, words: set[str], one: Statement) -> dict[str, str]:
    """The figures and names of a statement that a sentence puts otherwise, each with what the sentence says."""
    theirs, _ = _figures(one.text)
    swaps = dict[str, str]()
    for kind in figures.keys() & theirs.keys():
        new = next((figure for figure in figures[kind] if not _says(one.text, figure)), "")
        olds = [figure for figure in theirs[kind] if not _says(bare, figure)]
        old = max(olds, key=lambda old: len(words & set(terms(one.text.partition(old)[0][-40:]))), default="")
        counted = _counted(new, bare) in (set(), _counted(old, one.text))
        if new and old and (counted if kind != "name" else len(words & one.words) >= 0.6 * len(words) > 0):
            swaps[old] = new
    return swaps


def _counted(figure: str, text: str) -> set[str]:
    """What a figure in a text counts, if that follows it ("40 chairs")."""
    match = re.search(rf"(?<!\w){re.escape(figure)} ([a-z]\w+)", text)
    return set(terms(match[1])) if match else set()


def _closest(words: str, held: Sequence[Statement]) -> Statement | None:
    """The statement that shares most words; of several the more important, then the last."""
    said = set(terms(words))
    return max(reversed(held), key=lambda one: (len(said & one.words), one.importance), default=None)


def _says(text: str, words: str) -> bool:
    words = re.escape(words.removesuffix("s"))
    return re.search(rf"(?<!\w){words}s?(?![\w:])|{words}(?=[\u4e00-\u9fff])", text, re.I) is not None


def _figures(text: str) -> tuple[Figures, str]:
    """The figures and names in a text by their kinds, and the text without them."""
    found: Figures = {}
    for kind, pattern in _FIGURES.items():
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
    return Excluded(option, reason.strip(" .!。"))


def reopening(clause: str) -> str:
    """The option that a clause puts back, or ""."""
    match = _CHANGES["reopens"].fullmatch(clause)
    return next(filter(None, match.groups()), "") if match else ""
