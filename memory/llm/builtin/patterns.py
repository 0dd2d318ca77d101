"""The statements that clauses make, read by the tables of patterns in the languages' files.

A row is tried on a whole clause, and what it captures must be complete: nothing that only its context explains
("him", "the feeling"), and no loose end ("to read, especially").  A row that would be wrong in one of ten clauses is
left out of the table: the words stay searchable, and no fact is better than a false one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from memory.llm.builtin.language import ROWS, compiled, either
from memory.llm.builtin.statements import Statement, clauses

_ROWS = [(kind, key, text, compiled(pattern)) for kind, key, text, pattern in ROWS]
_FUTURE, _DATE = compiled("FUTURE"), compiled("MONTH|WEEKDAY")
_CUT, _VAGUE, _UNKNOWN_THING, _NO_NAME, _PAST, _LONG_AGO, _WITH_A_FIGURE = (
    either("reading", name)
    for name in ("cut", "vague", "unknown_thing", "no_name", "past", "long_ago", "with_a_figure")
)
MOST_WORDS = 14  # of an object
_LIST = re.compile(r"(?:[^,]+, )+(?:[^,]+,? )?(?:and|or) [^,]+")
_NAME = re.compile(r"[^\W\d_a-z][\w'-]*\.?(?: (?:(?:de|van|von|der|al|da|di|la|le) )?[^\W\d_a-z][\w'-]*){0,3}")
_AFTER_PLACE = re.compile(r"$|,|\.|\s+(?:with|for|since|and|last|this|about|because|two|three|a|on|near|by|next|\d+)\b")
_MORE_THAN_NOUN = re.compile(r"^(?:to|an?|my|our|some|\d+|two|three)\b|[A-Z\"“]")


def _complete(found: str) -> str:
    """The object without what hangs on it; "" where it is none without its context."""
    if not _LIST.fullmatch(found) or len(found) > 90:
        cut = _CUT.search(found)
        found = found[: cut.start()] if cut else found
        if not _LIST.fullmatch(found) and ", " in found:
            found = found.partition(", ")[0]
            found = "" if re.search(r"\b(?:an?|the) \w+$", found) else found  # "a safe, inviting place"
    found = found.strip(" ,.;:!*_'-")
    found = found[1:-1] if found.count('"') == 2 and found[0] == found[-1] == '"' else found
    return found if found and len(found.split()) <= MOST_WORDS and not _VAGUE.search(found) else ""


def _name(found: str) -> str:
    match = _NAME.match(found) or (re.match(r"[a-z][a-z'-]+$", found) if found.islower() else None)
    if match is None or _NO_NAME.match(found) or not re.match(r"$|,| and\b| from\b|\.", found[match.end() :]):
        return ""
    return match.group()


def _place(found: str) -> str:
    match = re.match(rf"(?:the )?(?:{_NAME.pattern})(?:, {_NAME.pattern})?", found)
    if match is None and found.islower():
        match = re.match(r"(?!a |an |my |the |it|that|this|fear|peace)[a-z]+(?: [a-z]+)?$", found)
    if match is None or not _AFTER_PLACE.match(found, match.end()):
        return ""
    return "" if re.match(r"(?:I|My)\b", match.group()) or _DATE.match(match.group()) else match.group()


def _figure(found: str) -> str:
    cut = re.search(
        r"\s*[(;!?]|,\s+(?!\d|and)|\s+(?:because|but|so|and (?:I|we|it)|which|instead|now)\b|\s+[–—-]\s+(?!\d)", found
    )
    found = (found[: cut.start()] if cut else found).strip(" ,.")
    return found if _WITH_A_FIGURE.search(found) and len(found.split()) <= 8 and not _VAGUE.search(found) else ""


def _taste(found: str) -> str:
    found = _complete(found)
    return "" if _UNKNOWN_THING.search(found) else found


def _plan(found: str) -> str:
    verb = _complete(found.removeprefix("to "))
    return found[: found.index(verb)] + verb if verb and _FUTURE.search(verb) else ""


def _past(found: str) -> str:
    found = _complete(found)
    begins = re.match(r"(?:an?|my|two|three|four|five|\d+|[A-Z]|\w+ing)\b", found)
    return found if begins and _PAST.search(found) else ""


def _what(found: str) -> str:
    found = _complete(found)
    return found if _MORE_THAN_NOUN.search(found) and len(found.split()) > 1 else ""


def _capital(found: str) -> str:
    return _name(found) if found[:1].isupper() else ""


_CHECKS: dict[str, Callable[[str], str]] = {
    "v": _complete, "long": _complete, "taste": _taste, "what": _what, "label": _what, "plan": _plan, "past": _past,
    "name": _name, "only": _capital, "place": _place, "figure": _figure, "limit": str, "k": str, "han": str,
}  # fmt: skip


def _third_person(verb: str) -> str:
    first, space, rest = verb.lower().partition(" ")
    if first == "have":
        return f"has{space}{rest}"
    if first.endswith("y") and first not in ("play", "enjoy"):
        return f"{first[:-1]}ies{space}{rest}"
    return f"{first}{'es' if first.endswith('ch') else 's'}{space}{rest}"


def read(sentence: str) -> Iterator[Statement]:
    """The statements that a sentence makes about its writer."""
    for quote, clause in clauses(sentence):
        made = next(filter(None, (_made(row, quote, clause) for row in _ROWS)), None)
        if made is not None:
            yield made


def _made(row: tuple[str, str, str, re.Pattern[str]], quote: str, clause: str) -> Statement | None:
    kind, key, text, pattern = row
    match = pattern.fullmatch(clause)
    if match is None:
        return None
    found = {name: _CHECKS[name](value) for name, value in match.groupdict(default="").items() if value}
    if not all(found.values()):
        return None
    parts = {**dict.fromkeys(match.groupdict(), ""), **found}
    value = next((found[name] for name in reversed(found) if name != "k"), found.get("k", ""))
    said = text.format(**parts, K=_third_person(parts.get("k", ""))).strip()
    category, _, importance = kind.partition(" ")
    mark = key[-1] if key[-1] in "!~-" and key != "-" else ""
    key = "" if key == "-" or _LONG_AGO.search(clause) else key.rstrip("!~-").format(**parts).lower()
    return Statement(said[:1].upper() + said[1:], quote, category, int(importance), key, value, mark)
