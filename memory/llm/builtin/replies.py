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
from memory.llm.builtin.prompt import ParsedPrompt, PromptLine
from memory.llm.builtin.reading import Origin, Statement, sentences
from memory.llm.builtin.record import Noted, Record, record_of
from memory.llm.builtin.tasks import summary
from memory.quoting import one_line
from models.sections import SECTIONS, Sections

QUOTES_MAX, LISTED_MAX, QUOTE_CHARS_MAX = 3, 15, 200
EARLIER_TEXTS_MAX = 3  # that tell the language of a reply
ENOUGH, ENOUGH_IMPERSONAL = 0.4, 0.55  # of a question's words

Words = dict[str, str]


def reply(prompt: ParsedPrompt) -> str:
    """Return the reply to a prompt's question, never empty."""
    text = prompt.question
    own = (message.text for message in reversed(prompt.messages) if message.role == "user")
    words = phrases_for([text, *islice(own, EARLIER_TEXTS_MAX)])
    parts = [part for part in sentences(text) if _says_something(part)]
    record = record_of(prompt)
    if prompt.has_attachments:
        words_alone = replace(prompt, has_attachments=False)
        return "\n\n".join([words["attached"], *([reply(words_alone)] if text.strip() else ())])
    if not parts:
        return _small_talk(text[:300], words)
    if asks("keep out", text):
        return words["kept out"]
    if all(asks("forget", part) for part in parts):
        return _forget(text, record, words)
    for kind, phrase in (("standing", "standing"), ("order", "task")):
        if all(asks(kind, part) for part in parts):
            return words[phrase]
    questions = [part for part in parts if asks("who", part) or is_question(part)]
    paragraphs: list[str] = []
    if len(questions) < len(parts):
        noted = record.read(PromptLine(text))
        paragraphs.append(_acknowledged(noted, words) or ("" if questions else words["noted plain"]))
    if any(asks("who", part) for part in questions):
        paragraphs.append(words["who"])
    elif questions:
        sections = summary(record, prompt.summary)
        lines = dict.fromkeys(line for question in questions[:5] for line in _answer(question, record, sections, words))
        answer = re.sub(r"(?m)^(- .*\n)(?!- )", r"\1\n", "\n".join(lines))  # in Markdown a list ends at an empty line
        paragraphs.append(answer or words["nothing" if record.valid else "no statement"])
    return "\n\n".join(filter(None, paragraphs)) or words["fine"]


def _says_something(text: str) -> bool:
    return bool(asks("who", text) or asks("person", text) or sought(text)) or not is_small_talk(text)


def _small_talk(text: str, words: Words) -> str:
    if not text.strip():
        return words["empty"]
    if not is_small_talk(text):
        return words["task"]
    if not asks("hello", text):
        return words[next((name for name in ("thanks", "bye") if asks(name, text)), "fine")]
    return words["hello"]


def _forget(text: str, record: Record, words: Words) -> str:
    meant = record.meant(text)
    return words["forget"] if meant is None else words["forget fact"].format(quote=_quotable(meant.text))


def _acknowledged(noted: Sequence[Noted], words: Words) -> str:
    """Say what was noted and what that ends, and ask about changes that do not tell what they change."""
    items: dict[str, None] = {}
    replaced: dict[str, str] = {}
    asked: list[str] = []
    for statement, ended in noted:
        if statement is not None:
            items[clip(_in_mid_sentence(statement, words))] = None
            replaced |= {old.text: old.quote or old.text for old in ended}
            continue
        options = dict.fromkeys(f'"{_quotable(old.text)}"' for old in ended[-QUOTES_MAX:])
        asked.append(words["ask which"].format(items=words["joint"].join(options)) if options else words["ask"])
    lines = [words["noted"].format(items=words["joint"].join(items))] if items else []
    lines += [words["replaces"].format(quote=_quotable(quote)) for quote in replaced.values()]
    return "\n".join(dict.fromkeys([*lines, *asked]))


def _in_mid_sentence(statement: Statement, words: Words) -> str:
    if statement.category in words:
        return words[statement.category].format(option=statement.value or statement.text)
    text = one_line(statement.text).rstrip(".")
    label, colon, value = text.partition(": ")
    if colon and "labelled" in words:  # where nouns begin with a capital letter
        return words["labelled"].format(label=label, value=value)
    text = f"{label.rstrip()} {value}" if colon else text
    return text[:1].lower() + text[1:] if text[1:2].islower() and not text.startswith("I ") else text


def _answer(question: str, record: Record, sections: Sections, words: Words) -> list[str]:
    """Return the lines that answer a question: facts, sections of the summary, or quotations."""
    if asks("person", question) and (known := _known(record, sections, words)):
        return known
    names = {section.name for section in SECTIONS if f"section {section.name}" in sought(question)}
    if not asks("overview", question) and not asks("person", question):
        sections = replace(Sections(), **{name: getattr(sections, name) for name in names})
    if lines := sections.lines():
        return [words["summary"], *map(one_line, lines)]
    answers = _answers(question, record)
    changes = record.changes_after(answers) if answers else []
    return _quotes(answers, words) + [words["later"].format(quote=_quotable(change.text)) for change in changes]


def _known(record: Record, sections: Sections, words: Words) -> list[str]:
    texts = (statement.text for statement in record.valid if statement.importance > 1)
    lines = list(dict.fromkeys(f"- {clip(one_line(text))}" for text in texts))
    excluded = Sections(excluded=sections.excluded).lines()
    return [words["known"], *lines[-LISTED_MAX:], *map(one_line, excluded)] if lines else []


def _answers(question: str, record: Record) -> list[Statement]:
    """Return the statements that answer a question: the person's own first, then the newest."""
    newest = record.valid[::-1]
    newest.sort(key=lambda statement: statement.origin)
    if not terms(question) and not sought(question):  # "What did I say yesterday?": recall has found the time
        dated = [statement for statement in newest if statement.origin <= Origin.OWN and statement.day]
        return dated[:QUOTES_MAX] if record.has_recalled else []
    fits = {statement: _fit(question, statement) for statement in newest}
    least = ENOUGH if asks("self", question) else ENOUGH_IMPERSONAL
    fitting = [statement for statement, fit in fits.items() if fit >= max(least, 0.8 * max(fits.values()))]
    best = max(Origin.OWN, fitting[0].origin) if fitting else Origin.OWN
    answers: list[Statement] = []
    for statement in fitting:
        is_said = any(statement.overlaps(answer) or statement.text == answer.text for answer in answers)
        if statement.origin <= best and not is_said:
            answers.append(statement)
    return answers[: 1 if asks("one", question) else QUOTES_MAX]


def _fit(question: str, statement: Statement) -> float:
    """Return how well a statement answers: up to 1 for its words, more for the kind that the question asks for."""
    kin, kin_of_statement = asks("kin", question), asks("kin", " ".join(statement.text.split()[:4]))
    names = {term for name in re.findall(r"(?<=[\w,] )[A-Z]\w+", question) for term in terms(name)}
    if not names | set(terms(" ".join(kin))) <= statement.words:
        return 0.0
    if statement.about == "taste" and bool(asks("dislike", question)) != (statement.mark == "-"):
        return 0.0
    if not kin and not kin_of_statement and not {statement.about, statement.category}.isdisjoint(sought(question)):
        return 2.0
    words = set(terms(question))
    # Where my sister lives is not where I live.
    if kin_of_statement - kin and asks("own", question) and not words <= statement.words:
        return 0.0
    return len(words & statement.words) / (len(words) or 1)


def _quotes(answers: Sequence[Statement], words: Words) -> list[str]:
    """Return the lines that quote what answers a question."""
    if answers and answers[0].origin == Origin.SUMMARY:
        return [words["summary"], *(f"- {_quotable(answer.text)}" for answer in answers)]
    if answers and not any(answer.quote for answer in answers):  # facts, in other words than the person's
        return [
            words["known"],
            *(f"- {clip(one_line(answer.text))}{_day(answer, ' ({})', words)}" for answer in answers),
        ]
    alone = len(answers) < 2 or answers[0].origin == Origin.OTHERS
    lines = []
    for answer in answers:
        quote = _quotable(answer.quote or answer.text)
        text = _quotable(answer.text)
        form = "said" if answer.origin == Origin.OTHERS else "told" if alone else "dated"
        day = _day(answer, words["on day"], words)
        labelled = text != quote and ": " in text and not set(terms(answer.value)) >= set(terms(quote))
        line = words[form].format(speaker=one_line(answer.by)[:60], on_day=day, quote=quote)
        lines.append(f"{line} ({text})" if labelled else line)
    return lines if alone else [words["told many"], *(f"- {line}" for line in lines)]


def _day(answer: Statement, form: str, words: Words) -> str:
    try:
        return form.format(words["day"].format(date.fromisoformat(answer.day))) if answer.day else ""
    except ValueError:  # of a block that somebody pasted
        return ""


def _quotable(text: str) -> str:
    return clip(one_line(text)).replace('"', "'").replace("“", "‘").replace("”", "’")


def clip(text: str, limit: int = QUOTE_CHARS_MAX) -> str:
    """Return the text up to a limit, cut between words."""
    return text if len(text) <= limit else text[: limit - 1].rpartition(" ")[0] + "…"
