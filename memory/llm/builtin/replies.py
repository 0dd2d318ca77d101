"""Reply by quotation: acknowledge statements, answer questions with what the person said, and when.

Invariants (tests/test_builtin_model.py):
- What stands between quotation marks is a part of the prompt, and never the assistant's words.
- Where there is nothing to quote, or a message is not understood, the reply says so, and what the model can do.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from itertools import islice

from memory.llm.builtin.language import asks, is_question, is_small_talk, phrases_for, sought, terms
from memory.llm.builtin.prompt import Prompt, PromptMessage
from memory.llm.builtin.reading import Origin, Statement, sentences
from memory.llm.builtin.record import Noted, Record, record_of
from memory.llm.builtin.tasks import summary
from memory.quoting import one_line
from models.sections import SECTIONS, Sections

QUOTES_MAX, LISTED_MAX, QUOTE_CHARS_MAX = 3, 15, 200
EARLIER_TEXTS_MAX = 3  # that tell the language of a reply
ENOUGH, ENOUGH_IMPERSONAL = 0.4, 0.55  # of a question's words

Words = dict[str, str]


def reply(prompt: Prompt) -> str:
    """Return the reply to a prompt's question, never empty."""
    text = prompt.question
    own = (message.text for message in reversed(prompt.said) if message.role == "user")
    words = phrases_for([text, *islice(own, EARLIER_TEXTS_MAX)])
    parts = [part for part in sentences(text) if _asks_of_two(part) or sought(part) or not is_small_talk(part)]
    record = record_of(prompt)
    if prompt.has_attachments:
        words_alone = replace(prompt, has_attachments=False)
        return "\n\n".join([words["attached"], *([reply(words_alone)] if text.strip() else ())])
    if not parts:
        return _small_talk(text[:300], record, words)
    if asks("keep out", text):
        return words["kept out"]
    if all(asks("forget", part) for part in parts):
        return _forget(text, record, words)
    for kind, phrase in (("standing", "standing"), ("order", "task")):
        if all(asks(kind, part) for part in parts):
            return words[phrase]
    asked = [part for part in parts if asks("who", part) or is_question(part)]
    paragraphs = list[str]()
    if len(asked) < len(parts):
        noted = record.read(PromptMessage(text))
        paragraphs.append(_acknowledged(noted, words) or ("" if asked else words["noted plain"]))
    if any(asks("who", part) for part in asked):
        paragraphs.append(words["who"])
    elif asked:
        sections = summary(record, prompt.summary)
        lines = dict.fromkeys(line for one in asked[:5] for line in _answer(one, record, sections, words))
        paragraphs.append("\n".join(lines) or words["nothing" if record.held else "no statement"])
    return "\n\n".join(filter(None, paragraphs)) or words["fine"]


def _asks_of_two(text: str) -> bool:
    """Return whether a text asks what is known of the person, or who answers."""
    return bool(asks("who", text) or asks("person", text))


def _small_talk(text: str, record: Record, words: Words) -> str:
    if not text.strip():
        return words["empty"]
    if not is_small_talk(text):
        return words["task"]
    if not asks("hello", text):
        return words[next((name for name in ("thanks", "bye") if asks(name, text)), "fine")]
    name = next((one.value for one in reversed(record.held) if one.key == "name"), "")
    return words["hello name"].format(name=clip(name, 40)) if name else words["hello"]


def _forget(text: str, record: Record, words: Words) -> str:
    meant = record.meant(text)
    return words["forget"] if meant is None else words["forget fact"].format(quote=_quotable(meant.text))


def _acknowledged(noted: Sequence[Noted], words: Words) -> str:
    """Say what was noted, what that ends, and ask what could not be told."""
    made = [one.statement for one in noted if one.statement is not None]
    items = dict.fromkeys(clip(_in_mid_sentence(one, words)) for one in made)
    lines = [words["noted"].format(items=words["joint"].join(items))] if items else []
    ended = {old.text: old.quote or old.text for one in noted if one.statement is not None for old in one.ended}
    lines += [words["replaces"].format(quote=_quotable(quote)) for quote in ended.values()]
    for one in noted:
        if one.statement is None:
            options = dict.fromkeys(f'"{_quotable(old.text)}"' for old in one.ended[-QUOTES_MAX:])
            lines.append(words["ask which"].format(items=words["joint"].join(options)) if options else words["ask"])
    return "\n".join(dict.fromkeys(lines))


def _in_mid_sentence(one: Statement, words: Words) -> str:
    if one.category in words:
        return words[one.category].format(option=one.value or one.text)
    text = one_line(one.text).rstrip(".")
    label, colon, value = text.partition(": ")
    if colon and "labelled" in words:  # where nouns begin with a capital letter
        return words["labelled"].format(label=label, value=value)
    text = f"{label.rstrip()} {value}" if colon else text
    return text[:1].lower() + text[1:] if text[1:2].islower() and not text.startswith("I ") else text


def _answer(question: str, record: Record, sections: Sections, words: Words) -> list[str]:
    """Return the lines that answer a question: what is known, sections of the summary, or quotations."""
    if asks("person", question) and (known := _known(record, sections, words)):
        return known
    names = {section.name for section in SECTIONS if f"section {section.name}" in sought(question)}
    if not asks("overview", question) and not asks("person", question):
        sections = replace(Sections(), **{name: getattr(sections, name) for name in names})
    if lines := sections.lines():
        return [words["summary"], *map(one_line, lines)]
    found = _found(question, record)
    changes = record.changes_after(found) if found else []
    return _quotes(found, words) + [words["later"].format(quote=_quotable(one.text)) for one in changes]


def _known(record: Record, sections: Sections, words: Words) -> list[str]:
    lines = list(dict.fromkeys(f"- {clip(one_line(one.text))}" for one in record.held if one.importance > 1))
    excluded = Sections(excluded=sections.excluded).lines()
    return [words["known"], *lines[-LISTED_MAX:], *map(one_line, excluded)] if lines else []


def _found(question: str, record: Record) -> list[Statement]:
    """Return what answers a question: the person's own words before others' and the summary's, the newest first."""
    newest = sorted(enumerate(record.held), key=lambda entry: (-entry[1].origin, entry[0]))[::-1]
    held = [one for _, one in newest]
    if not terms(question) and not sought(question):  # "What did I say yesterday?": recall has found the time
        return [one for one in held if one.origin <= Origin.OWN and one.day][:QUOTES_MAX] if record.has_recalled else []
    fits = {one: _fit(question, one) for one in held}
    least = ENOUGH if asks("self", question) else ENOUGH_IMPERSONAL
    close = [one for one in held if fits[one] >= max(least, 0.8 * max(fits.values()))]
    own = [one for one in close if one.origin <= Origin.OWN]
    out = list[Statement]()
    for one in own or [one for one in close if one.origin == close[0].origin]:
        if not any(one.overlaps(other) or one.text == other.text for other in out):
            out.append(one)
    return out[: 1 if asks("one", question) else QUOTES_MAX]


def _fit(question: str, one: Statement) -> float:
    """Return how well words answer: up to 1 for their words, more for what is just of the kind that is asked for."""
    kin, theirs = asks("kin", question), asks("kin", " ".join(one.text.split()[:4]))
    names = {term for name in re.findall(r"(?<=[\w,] )[A-Z]\w+", question) for term in terms(name)}
    if not names | set(terms(" ".join(kin))) <= one.words:
        return 0.0
    if one.about == "taste" and bool(asks("dislike", question)) != (one.mark == "-"):
        return 0.0
    if not kin and not theirs and not {one.about, one.category}.isdisjoint(sought(question)):
        return 2.0
    wanted, figure = set(terms(question)), asks("figure", one.text)
    of_others = bool(theirs - kin) and bool(asks("own", question))  # where my sister lives is not where I live
    if (asks("amount", question) and not figure) or (of_others and not wanted <= one.words):
        return 0.0
    fit = len(wanted & one.words) / (len(wanted) or 1)
    return fit + 0.3 if fit and figure and (asks("when", question) or asks("amount", question)) else fit


def _quotes(found: Sequence[Statement], words: Words) -> list[str]:
    """Return what was found, as lines."""
    if found and found[0].origin == Origin.SUMMARY:
        return [words["summary"], *(f"- {_quotable(one.text)}" for one in found)]
    alone = len(found) < 2 or found[0].origin == Origin.OTHERS
    lines = []
    for one in found:
        quote, text = _quotable(one.quote or one.text), _quotable(one.text)
        form = "said" if one.origin == Origin.OTHERS else "told" if alone else "dated"
        day = words["on day"].format(words["day"].format(date.fromisoformat(one.day))) if one.day else ""
        labelled = text != quote and ": " in text and not set(terms(one.value)) >= set(terms(quote))
        line = words[form].format(speaker=one_line(one.by)[:60], on_day=day, quote=quote)
        lines.append(f"{line} ({text})" if labelled else line)
    return lines if alone else [words["told many"], *(f"- {line}" for line in lines)]


def _quotable(text: str) -> str:
    return clip(one_line(text)).replace('"', "'").replace("“", "‘").replace("”", "’")


def clip(text: str, limit: int = QUOTE_CHARS_MAX) -> str:
    """Return the text up to a limit, cut between words."""
    return text if len(text) <= limit else text[: limit - 1].rpartition(" ")[0] + "…"
