"""A reply by quotation: statements are acknowledged, questions answered with what the person said, and when.

The newest words that answer come first, and nothing is quoted that later words replaced.

Guarantee: what stands between quotation marks is a part of the material, and never the assistant's words; where there
is nothing to quote, the reply says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from memory.llm import ReplyMaterial
from memory.llm.builtin.corrections import corrects
from memory.llm.builtin.digest import summary
from memory.llm.builtin.language import asks, is_question, is_small_talk, phrases_for, sought, terms
from memory.llm.builtin.reading import Origin, Statement, sentences
from memory.llm.builtin.record import Noted, Record
from memory.quoting import one_line
from models.messages import Message
from models.sections import SECTIONS, Sections

MAX_QUOTES, MAX_LISTED = 3, 15
MAX_QUOTE = 200  # characters
ENOUGH, ENOUGH_IMPERSONAL = 0.4, 0.55  # of a question's words


def reply(material: ReplyMaterial) -> str:
    """The reply to the question of `material`, never empty."""
    text = material.question
    words = phrases_for(text)
    parts = [part for part in sentences(text) if asks("who", part) or sought(part) or not is_small_talk(part)]
    recalled = [message for excerpt in material.excerpts for message in excerpt.messages]
    messages = {one.id: one for one in [*recalled, *material.tail] if one.content != text}
    record = Record(material.summary)
    record.take_up(sorted(messages.values(), key=lambda one: (one.created_at, one.position)), material.facts)
    if not parts:
        return _small_talk(text[:300], record, words)
    if all(asks("order", part) for part in parts):
        return words["task"]
    asked = [part for part in parts if asks("who", part) or is_question(part)]
    noted, paragraphs = list[Noted](), list[str]()
    if len(asked) < len(parts):
        noted = record.read(Message(0, "", -1, "user", text, material.now, 0))
        paragraphs.append(_acknowledged(noted, words) or ("" if asked else words["noted plain"]))
    if any(asks("who", part) for part in asked):
        paragraphs.append(words["who"])
    elif asked:
        sections = summary(record, material.summary)
        lines = dict.fromkeys(
            line for one in asked[:5] for line in _answer(one, record, sections, bool(recalled), words)
        )
        paragraphs.append("\n".join(lines) or words["nothing" if record.held else "no statement"])
    return "\n\n".join(filter(None, paragraphs)) or words["fine"]


def _small_talk(text: str, record: Record, words: dict[str, str]) -> str:
    if not text.strip():
        return words["empty"]
    if not is_small_talk(text):
        return words["task"]
    if not asks("hello", text):
        return words[next((name for name in ("thanks", "bye") if asks(name, text)), "fine")]
    name = next((one.value for one in reversed(record.held) if one.key == "name"), "")
    return words["hello name"].format(name=clip(name, 40)) if name else words["hello"]


def _acknowledged(noted: Sequence[Noted], words: dict[str, str]) -> str:
    items = dict.fromkeys(clip(_in_mid_sentence(one, words)) for one, _ in noted)
    gone = [old for _, ended in noted for old in ended if old.source]
    quotes = [(words["day"].format(old.when), _quotable(old.quote or old.text)) for old in gone]
    replaced = dict.fromkeys(words["replaces"].format(date=date, quote=quote) for date, quote in quotes)
    return "\n".join([words["noted"].format(items=words["joint"].join(items)), *replaced]) if items else ""


def _in_mid_sentence(one: Statement, words: dict[str, str]) -> str:
    if one.category in words:
        return words[one.category].format(option=one.value or one.text)
    text = one_line(one.text).rstrip(".").replace(": ", " ", 1)
    return text[:1].lower() + text[1:] if text[1:2].islower() and not text.startswith("I ") else text


def _answer(question: str, record: Record, sections: Sections, recalled: bool, words: dict[str, str]) -> list[str]:
    """The lines that answer a question: what is known, sections of the summary, or quotations."""
    if asks("person", question) and (known := _known(record, sections, words)):
        return known
    names = {section.name for section in SECTIONS if f"section {section.name}" in sought(question)}
    if not asks("overview", question) and not asks("person", question):
        sections = replace(Sections(), **{name: getattr(sections, name) for name in names})
    if lines := sections.lines():
        return [words["summary"], *map(one_line, lines)]
    return _quotes(_found(question, record, recalled), words)


def _known(record: Record, sections: Sections, words: dict[str, str]) -> list[str]:
    lines = list(dict.fromkeys(f"- {clip(one_line(one.text))}" for one in record.held if one.importance > 1))
    excluded = Sections(excluded=sections.excluded).lines()
    return [words["known"], *lines[-MAX_LISTED:], *map(one_line, excluded)] if lines else []


def _found(question: str, record: Record, recalled: bool) -> list[Statement]:
    """What answers a question: the person's own words before those of others and the summary's, the newest first."""
    newest = sorted(record.held, key=lambda one: (one.when, -one.origin))[::-1]
    if not terms(question) and not sought(question):  # "What did I say yesterday?": recall has found the time
        return [one for one in newest if one.origin <= Origin.OWN][:MAX_QUOTES] if recalled else []
    fits = {one: _fit(question, one) for one in newest}
    least = ENOUGH if asks("self", question) else ENOUGH_IMPERSONAL
    close = [one for one in newest if fits[one] >= max(least, 0.8 * max(fits.values()))]
    own = [one for one in close if one.origin <= Origin.OWN]
    best, out = own or [one for one in close if one.origin == close[0].origin], list[Statement]()
    for one in best:
        if not any(one.overlaps(other) or one.text == other.text for other in out):
            out.append(one)
    return out[: 1 if asks("one", question) else MAX_QUOTES]


def _fit(question: str, one: Statement) -> float:
    """How well words answer: up to 1 for their words, more for what is just of the kind that is asked for."""
    kin, theirs = asks("kin", question), asks("kin", " ".join(one.text.split()[:4]))
    names = {term for name in re.findall(r"(?<=[\w,] )[A-Z]\w+", question) for term in terms(name)}
    if not names | set(terms(" ".join(kin))) <= one.words:
        return 0.0
    if not kin and not theirs and not {one.about, one.category}.isdisjoint(sought(question)):
        return 2.0
    wanted, figure = set(terms(question)), asks("figure", one.text)
    of_others = bool(theirs - kin) and bool(asks("own", question))  # where my sister lives is not where I live
    if (asks("amount", question) and not figure) or (of_others and not wanted <= one.words):
        return 0.0
    fit = len(wanted & one.words) / (len(wanted) or 1)
    return fit + 0.3 if fit and figure and (asks("when", question) or asks("amount", question)) else fit


def _quotes(found: Sequence[Statement], words: dict[str, str]) -> list[str]:
    """What was found, as lines."""
    if found and found[0].origin == Origin.SUMMARY:
        return [words["summary"], *(f"- {_quotable(one.text)}" for one in found)]
    alone = len(found) < 2 or found[0].origin == Origin.OTHERS
    lines = []
    for one in found:
        quote, text = _quotable(one.quote or one.text), _quotable(one.text)
        form = words["said" if one.origin == Origin.OTHERS else "told" if alone else "dated"]
        line = form.format(speaker=one_line(one.by)[:60], date=words["day"].format(one.when), quote=quote)
        lines.append(f"{line} ({text})" if corrects(quote) and not set(terms(text)) <= set(terms(quote)) else line)
    return lines if alone else [words["told many"], *(f"- {line}" for line in lines)]


def _quotable(text: str) -> str:
    return clip(one_line(text)).replace('"', "'").replace("“", "‘").replace("”", "’")


def clip(text: str, limit: int = MAX_QUOTE) -> str:
    """`text` up to a limit, cut between words."""
    return text if len(text) <= limit else text[: limit - 1].rpartition(" ")[0] + "…"
