"""Check whether a fact that the mini model proposes rests on words of the person.

A small model may quote what nobody said, quote the assistant, invent a figure, or say the opposite of its source.
A proposal is refused unless

    source       it is a message that was shown, was not read before, and is the person's own; where its number is
                 wrong, it is the newest such message that has the quote
    quote        it stands in the source letter by letter (white space, typographic marks and a final stop may differ),
                 as whole words, outside of pasted blocks of a prompt; and it says something, or is the whole message
    numbers      the person said each one, in the source or elsewhere about the same thing, or the fact counts names or
                 figures; or the source changes by its own number ("12 cm shorter") that of the fact that is corrected,
                 else of the statement most like it; dates may be worked out from words like "tomorrow", and from a day
                 and the message's time
    negations    a "not" in the fact has a reason in the source, or stood in a known fact about something that the
                 source does not name; and the fact does not state what the source denies
    names        one of its names, if it has any, stands somewhere in what was shown, or begins as one of the fact that
                 is corrected

A link of a fact is refused unless the person named both of its ends, one of them in the fact's quote.

When in doubt a fact is let through: this is a net for plain inventions, not a judge of paraphrases.  All is pure, and
linear in what was said.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from itertools import pairwise

from memory.knowledge.denials import denied_words, do_negations_agree
from memory.knowledge.entities import key, stored_name, strip_possessive
from memory.languages import (
    CLAUSE_END,
    ENGLISH,
    NEGATION,
    NEGATIVE,
    SENTENCE_END,
    pattern,
    plain_apostrophes,
    shared,
    states,
    table,
    vocabulary,
)
from memory.quoting import comparable, normalize, one_line, strip_markup, without_blocks
from models.facts import SELF, Fact, FactDraft, Relation
from models.messages import Message
from schemas.facts import NAME_CHARS_MAX, TEXT_CHARS_MAX
from search_index.analysis import DEFAULT_ANALYSIS
from search_index.spelling import PAIRED

QUOTE_WORDS_MIN = 3  # for a quote of common words only, or from another message than the draft names
QUOTE_WORDS_PER_MISSING = 4  # of the words of a fact without a quote, one in so many may be missing in what was said
NAME_LETTERS = 4  # by which a name is that of a corrected fact, in another language: Galicia, Galiza

# What counts as said is generous, in all languages; a fact is refused only for a word that can't mean anything else.
NUMBER_WORDS = {
    word.casefold(): number
    for word, number in table(lambda language: {**language.numbers, **language.cardinals}).items()
}
CARDINALS: dict[str, int] = table(lambda language: language.cardinals)
MULTIPLIERS: dict[str, int] = table(lambda language: language.multipliers)
ONE = pattern(lambda language: language.one)
DATE = pattern(lambda language: language.calendar_dates)
RELATIVE_TIME = pattern(lambda language: language.calendar_words)
FACTORS = pattern(lambda language: language.factors)
MONTH_NUMBERS: dict[str, int] = table(lambda language: language.months)
MONTH = pattern(lambda language: "|".join(language.months))
QUARTERS = pattern(lambda language: language.quarters)

_PAIRED = re.compile(f"[{PAIRED}]+")
_UNSPLIT = [word for word in NUMBER_WORDS if "-" in word or (len(word) > 1 and _PAIRED.fullmatch(word))]
_LONGEST_FIRST = "|".join(sorted(_UNSPLIT, key=len, reverse=True))
_NUMBER_PART = re.compile(rf"{_LONGEST_FIRST}|[{PAIRED}]|[^-\s.,;:!?()]+|[^-\s]")
_NUMBER_JOINTS = vocabulary(lambda language: language.number_joints)
_BEFORE_TEENS = (60, 80)  # soixante-quinze
_TOKEN = re.compile(rf"[$€£¥₹]?\d+(?:[.,:/-]\d+)*%?|{_PAIRED.pattern}|[^\W\d_]+(?:'[^\W\d_]+)?")
_ENDLESS = re.compile(r"[^\w\s]{99,}")  # marks and accents without end, which would make normalising quadratic
_EDGES = " .!\"'"  # models add them to quotes
_TYPOGRAPHIC = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": "..."})
_DIGITS = re.compile(
    r"(\d+[.,]\d{1,2}(?=\s?(?:k|m|thousand|million)\b)|\d{1,3}(?:[.,'’\u00a0\u202f]\d{3})+(?!\d)|\d+)(?:\s?(k|m|thousand|million|千|万|萬)(?![^\W\d_]))?",
    re.I,
)
_DECIMAL = re.compile(r"\d+[.,]\d{1,2}")
_AFTERNOON = re.compile(r"\d\s?[ap]\.?m\b|o'?clock|noon|evening|night|下午|晚上|:\d\d", re.I)
_CLOCK = re.compile(r"\b\d{1,2}[:.](?:00|15|30|45)\b")
_LETTERS = re.compile(r"[^\W\d_]+")
_MID_SENTENCE = re.compile(r"[:.!?;(\"“«]\s*[^\W\d_](?![A-Z])")  # where a capital letter does not make a name
_BEFORE_TOLD = re.compile(
    r"^(?:\[F?\d+\]\s*|[-*•]\s+"
    r"|(?:\d{4}-\d\d-\d\d(?: [A-Z][a-z]+)?(?: \d\d:\d\d)?|\d\d:\d\d) (?:user|assistant)(?: \"[^\"]*\")?: "
    r"|(?:the )?(?:user|person) "
    r"|(?:yes|yeah|yep|right|ok|okay|so|well|indeed|exactly|correct|again|still)\s*[,:;.!-]+\s*"
    r"|(?:and |so |but )?(?:as )?(?:you|I|we)(?:'ve| have)? (?:already |just )?(?:told|said|say|mentioned|know|knew"
    r"|remember(?:ed)?|noted|wrote)(?: (?:me|you|us))?(?: (?:before|earlier|already))?(?: that\b)?[\s,:-]*"
    r"|[\"'“«\s]+)+",
    re.I,
)
_AFTER_TOLD = re.compile(
    r"(?:[\s,]*(?:as (?:you|I) (?:said|told (?:me|you)|know|mentioned)(?: (?:before|earlier))?|,\s*(?:right|correct)"
    r"|\(said [\d-]{10}(?: [\d:]{5})?(?: elsewhere|, until [\d-]{10}(?: [\d:]{5})?)?\)|[?!.\"'”»]))+$",
    re.I,
)
_ABOUT_PERSON = frozenset(["user", "person", "they"])  # how statements name the person, who says "I"


class Ungrounded(ValueError):
    """Raised for a proposal that can't become a fact. The message says why, in words that are no secret."""


class Grounding:
    """Checks proposals against what the mini model was shown."""

    def __init__(
        self, messages: Sequence[Message], known: Sequence[str] = (), facts: Sequence[Fact] = (), facts_through: int = 0
    ) -> None:
        """Check against messages, known texts as the summary's lines, and known facts.

        Messages up to position `facts_through` were read for facts before.
        """
        self._messages = messages
        self._known = [*known, *(fact.text for fact in facts)]
        self._facts = {fact.id: fact.text for fact in facts}
        self._facts_through = facts_through

    def check(self, draft: FactDraft) -> Message:
        """Return the message that the draft rests on. Raises Ungrounded."""
        source = self.find_source(draft)
        if not draft.text.strip() or len(draft.text) > TEXT_CHARS_MAX:
            raise Ungrounded("empty or too long")
        content = without_blocks(source.content)
        if not contains_quote(draft.quote, content):
            raise Ungrounded("its quote is not in its source")
        is_whole = _compared(draft.quote).strip(_EDGES) == _compared(content).strip(_EDGES)
        if not (is_whole or len(draft.quote.split()) >= QUOTE_WORDS_MIN or stems(draft.quote)):
            raise Ungrounded("its quote says nothing by itself")
        if not self._are_numbers_known(draft, source, content):
            raise Ungrounded("it has a number that was not said")
        if not (_do_negations_agree(draft.text, draft.quote, content) or self._denies_as_before(draft.text, content)):
            raise Ungrounded("its source says the opposite")
        if not self._are_names_known(draft, content):
            raise Ungrounded("it has a name that was not said")
        return source

    def find_source(self, draft: FactDraft) -> Message:
        """Return the message that the draft names or, as models miscount, the newest other one that has its quote.

        Raises Ungrounded where neither may be a source.
        """
        named = next((message for message in self._messages if message.position == draft.source), None)
        problem = self._problem(named, draft.source)
        if named is not None and problem is None and contains_quote(draft.quote, without_blocks(named.content)):
            return named
        is_long = len(draft.quote.split()) >= QUOTE_WORDS_MIN or _PAIRED.search(draft.quote) is not None
        for message in reversed(self._messages if is_long else ()):
            is_usable = self._problem(message, message.position) is None
            if is_usable and contains_quote(draft.quote, without_blocks(message.content)):
                return message
        if named is None or problem is not None:
            raise Ungrounded(problem)
        return named

    def _problem(self, message: Message | None, number: int) -> str | None:
        """Return why the message of this number can't be a source; None where it can."""
        if message is None:
            return f"no message {number} was shown"
        if message.position <= self._facts_through:
            return f"message {number} was read before"
        if not message.remembered:
            return f"message {number} is not to be remembered"
        return None if message.role == "user" else f"message {number} is not the person's own"

    def links(self, draft: FactDraft, source: Message) -> tuple[Relation, ...]:
        """Return the relations of a grounded draft that the person named, with names as they are stored."""
        content = without_blocks(source.content)
        speaker = source.name or SELF
        relations = []
        for proposed in draft.links:
            ends = stored_name(proposed.subject, speaker), stored_name(proposed.object, speaker)
            relation = replace(proposed, subject=ends[0], object=ends[1])
            others = [strip_possessive(end) for end in {*ends} - {speaker}]
            if (
                key(ends[0]) != key(ends[1])
                and all(0 < len(text) <= NAME_CHARS_MAX for text in (*ends, relation.relation))
                and all(any(named_in(name, text) for text in self._statements) for name in others)
                and any(named_in(name, draft.quote) for name in others)
                and _do_negations_agree(str(relation), draft.quote, content)
            ):
                relations.append(relation)
        return tuple(dict.fromkeys(relations))

    def _are_numbers_known(self, draft: FactDraft, source: Message, content: str) -> bool:
        """Return whether each number stands in the source or in a statement about the same thing, or follows from one.

        One follows from the fact that is corrected, else from the nearest statements, by a number of the source, or
        where the source says that it is twice or half as much.
        """
        text = draft.text
        of_source = _forms(content) | {str(source.created_at.year + years) for years in (-1, 0, 1)}
        of_source |= {str(len(names_in(text))), str(len(_figures(text)))}  # "two children, Leo and Mia"
        numbers = numbers_in(_without_dates_worked_out(text, source, content))
        missing = [forms for forms in numbers if not forms & of_source]
        if not missing:
            return True
        topics = _topics(text)
        corrected = self._corrected_by(draft)
        shared_topics = {other: len(topics & _topics(other)) for other in self._statements if other != content}
        most = max(shared_topics.values(), default=0)
        elsewhere = _all_forms([*corrected, *(other for other, count in shared_topics.items() if count)])
        changed = _all_forms(corrected or [other for other, count in shared_topics.items() if count == most])
        steps = {step for size in map(int, _forms(content)) if size != 1 for step in (size, -size)}  # "a" may mean 1
        is_scaled = FACTORS.search(content) is not None

        def before(number: int) -> set[str]:
            """Return what the number may have been before it was changed."""
            halved_or_doubled = {2 * number, number // 2 if number % 2 == 0 else number} if is_scaled else set()
            return {str(value) for value in halved_or_doubled.union(number + step for step in steps)}

        return all(forms & elsewhere or any(before(int(number)) & changed for number in forms) for forms in missing)

    def _denies_as_before(self, text: str, content: str) -> bool:
        """Return whether the text denies only what known statements deny, and the source does not speak of.

        So a correction keeps the rest of the fact that it corrects.
        """
        denied = denied_words(text)
        known = set[str]().union(*map(denied_words, self._statements))
        return bool(denied) and denied <= known and denied.isdisjoint(stems(content))

    def _are_names_known(self, draft: FactDraft, content: str) -> bool:
        names = names_in(draft.text)
        if not names or draft.text.istitle() or not self._words.isdisjoint(names):
            return True
        words = self._words.union(_words(content))  # without its pasted blocks, the source may have other words
        if "".join(name[0] for name in names) in words or shared(names, words) > 0:
            return True
        beginnings = {name[:NAME_LETTERS] for text in self._corrected_by(draft) for name in names_in(text)}
        return not beginnings.isdisjoint(name[:NAME_LETTERS] for name in names)

    def _corrected_by(self, draft: FactDraft) -> list[str]:
        """Return the texts of the known facts that the draft corrects."""
        return [self._facts[fact_id] for fact_id in draft.supersedes if fact_id in self._facts]

    @cached_property
    def _statements(self) -> list[str]:
        """Return the texts of the person, in these messages or before."""
        own = (without_blocks(message.content) for message in self._messages if message.role == "user")
        return [*own, *self._known]

    @cached_property
    def _words(self) -> frozenset[str]:
        """Return all words that were shown."""
        texts = list(self._known)
        for message in self._messages:
            texts += [message.name or "", message.content]
        return frozenset(word for text in texts for word in _words(text))


def check_restated(text: str, sources: Sequence[str], at: datetime) -> None:
    """Raise Ungrounded for a sentence that says more than its sources. at: the time of the newest source.

    Stricter than a fact's check, since a sentence that is refused costs little: each number and each name stands in the
    texts, and half of its words do. Where the texts deny something, so does the sentence.
    """
    content = "\n".join(sources)
    source = Message.of_person(content, at)
    Grounding([source]).check(FactDraft(text, source.position, without_blocks(content)))
    words = frozenset(_words(content))
    unknown = [name for name in names_in(text) if not shared([name], words)]
    is_german = "de" in ENGLISH.likely_languages(text)  # in which all nouns look like names
    nouns_max = len(names_in(text)) / 2 if is_german else 0
    if len(unknown) > nouns_max:
        raise Ungrounded("it has a name that is not in its sources")
    numerals = [sign for sign in text if sign < "가" and NUMBER_WORDS.get(sign, 1) != 1]  # 三; not 세, see "세상"
    if any(sign not in content for sign in numerals):
        raise Ungrounded("it has a number that is not in its sources")
    if NEGATION.search(plain_apostrophes(content)) and not NEGATIVE.search(plain_apostrophes(text)):
        raise Ungrounded("its sources deny something, and it does not")
    if not says(content, text):
        raise Ungrounded("most of its words are not in its sources")


def says(text: str, statement: str, share: float = 0.5) -> bool:
    """Return whether a text has half of a statement's words, or another share."""
    return states(stems(text), set(stems(statement)), share)


def check_own_words(text: str, quote: str, own: str, beside: Iterable[str], known: str = "") -> None:
    """Raise Ungrounded for an instruction that rests on no quote of the person's own words, or says what they quote.

    own: their words. beside: texts with what else was said, recalled or quoted. known: the instruction as it stands.
    """
    if not quote.strip() or not contains_quote(quote, own):
        raise Ungrounded("its quote is not in the person's own words")
    if strip_markup(text) != text:
        raise Ungrounded("it has markup, which an instruction does not need")
    others = set[tuple[str, str]]().union(*map(_content_pairs, beside)) - _content_pairs(f"{own}\n{known}")
    if not others.isdisjoint(_content_pairs(text)):
        raise Ungrounded("it repeats what was only recalled or quoted")


def words_of(fact: Fact) -> frozenset[str]:
    """Return the text and the quote of a fact in the form that `is_duplicate` compares."""
    return frozenset({comparable(fact.text), comparable(fact.quote)} - {""})


def is_duplicate(text: str, known: Set[str]) -> bool:
    """Return whether a text only repeats known facts: word for word, or framed ("You said I ...")."""
    framed = strip_framing(text)
    known = known | {""}
    parts = filter(str.strip, CLAUSE_END.split(framed))
    return comparable(text) in known or framed in known or all(strip_framing(part) in known for part in parts)


def strip_framing(text: str) -> str:
    """Return `comparable` without the words that frame a repetition ("As I said, ...")."""
    return comparable(_BEFORE_TOLD.sub("", _AFTER_TOLD.sub("", plain_apostrophes(one_line(text)))))


def names_in(text: str) -> list[str]:
    """Return the words that are names by their capital letters in mid-sentence, in small letters."""
    later = words_as_written(DATE.sub(" ", _MID_SENTENCE.sub(lambda start: start.group().lower(), text)))[1:]
    capitals = (word for token in later if (word := token.partition("'")[0])[:1].isupper() and len(word) > 1)
    return [word.lower() for word in capitals if stems(word) and word.lower() not in NUMBER_WORDS]


def named_in(name: str, text: str) -> bool:
    """Return whether a name stands in a text, in any case."""
    return contains_quote(name.casefold(), text.casefold())


def contains_quote(quote: str, content: str) -> bool:
    """Return whether a quote is in a text, as whole words; white space and typographic marks may differ."""
    quote, content = _compared(quote), _compared(content)
    if quote not in content:
        quote = quote.strip(_EDGES)
    if _PAIRED.search(quote):
        return quote in content
    return bool(quote) and re.search(rf"(?:(?<!\w)|(?!\w)){re.escape(quote)}(?:(?!\w)|(?<!\w))", content) is not None


def find_quotes(texts: Collection[str], messages: Iterable[Message]) -> dict[str, tuple[int, str]]:
    """Find the person's own words that say what these texts say: the position of their message, and a quote from it.

    The text itself or its longest sentence stands in the message, or a sentence of the message has nearly all of its
    words.
    """
    if not texts:
        return {}
    contents = [(message.position, without_blocks(message.content)) for message in messages if message.role == "user"]
    parts = [(position, part.strip()) for position, content in contents for part in SENTENCE_END.split(content)]
    sentences = [(position, part, frozenset(stems(part))) for position, part in parts]
    quotes: dict[str, tuple[int, str]] = {}
    for text in texts:
        longest = max(SENTENCE_END.split(text), key=len).strip()
        spoken = (
            (position, part)
            for part in (text, longest)
            for position, content in contents
            if contains_quote(part, content)
        )
        about = set(stems(strip_framing(text))) - _ABOUT_PERSON
        missing_max = min(len(about) - 1, len(about) // QUOTE_WORDS_PER_MISSING)
        best = min(sentences, key=lambda sentence: len(about - sentence[2]), default=(0, "", frozenset()))
        if quote := next(spoken, best[:2] if len(about - best[2]) <= missing_max else None):
            quotes[text] = quote
    return quotes


def _do_negations_agree(text: str, quote: str, content: str) -> bool:
    quote, content = (plain_apostrophes(_compared(part)) for part in (quote, content))
    return do_negations_agree(text, quote.strip(_EDGES), content)


def _compared(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", _ENDLESS.sub(" ", normalize(text))).translate(_TYPOGRAPHIC).split())


def _without_dates_worked_out(text: str, source: Message, content: str) -> str:
    """Remove dates that may be worked out from words like "tomorrow", or from the time of the message."""
    if QUARTERS.search(content):  # "half past seven"
        text = _CLOCK.sub(" ", text)
    if RELATIVE_TIME.search(content):
        return DATE.sub(" ", text)
    named = {str(MONTH_NUMBERS[name.lower()]) for name in MONTH.findall(content)}
    day = source.created_at
    said = _forms(content) | named
    of_that_day = {str(number) for number in (day.year, day.month, day.day)}
    months = {str((day.month + step - 1) % 12 + 1) for step in (-1, 0, 1)}
    years = {str(day.year + step) for step in (-1, 0, 1)}

    def is_worked_out(date: str) -> bool:
        forms = _forms(date)
        return forms <= of_that_day or (not said.isdisjoint(forms) and forms <= said | months | years)  # "on the 5th"

    return DATE.sub(lambda date: " " if is_worked_out(date.group()) else date.group(), text)


def numbers_in(text: str) -> list[set[str]]:
    """Return the numbers that a fact must not invent, each in all its forms."""
    return _figures(text) + [{str(CARDINALS[word])} for word in _words(plain_apostrophes(text)) if word in CARDINALS]


def _forms(text: str) -> set[str]:
    """Return every number that `text` may be understood to say, in every form."""
    folded = plain_apostrophes(text).casefold()
    words = (*_words(folded), *folded.split(), *folded, *filter(folded.__contains__, _UNSPLIT))
    values = {NUMBER_WORDS[word] for word in words if word in NUMBER_WORDS}
    total = 0
    for word in _NUMBER_PART.findall(folded):  # "twenty-five", "treinta y cinco", "ciento veinte"
        number = NUMBER_WORDS.get(word, 0)
        small, large = sorted((number, total))
        may_follow = large >= 20 and (number < total or large < 100)  # also "five and twenty", but not "five hundred"
        if number and may_follow and (large % 10 ** len(str(small)) == 0 or (large in _BEFORE_TEENS and small < 20)):
            number += total
            values.add(number)
        if number or word not in _NUMBER_JOINTS:
            total = number
    if ONE.search(text):
        values.add(1)
    return {str(value) for value in values}.union(*_figures(text))


def _all_forms(texts: Iterable[str]) -> set[str]:
    return set[str]().union(*map(_forms, texts))


def _figures(text: str) -> list[set[str]]:
    """Return the numbers that `text` has in digits, each in all its forms."""
    text = unicodedata.normalize("NFKC", _ENDLESS.sub(" ", normalize(text)))
    afternoon = _AFTERNOON.search(text) is not None
    numbers = []
    for digits, unit in _DIGITS.findall(text):
        multiplier = MULTIPLIERS.get(unit.lower(), 1)
        if unit and _DECIMAL.fullmatch(digits):  # 1.2k; and 2.4 m may be metres, of which somebody says "2.4 long"
            whole = round(float(digits.replace(",", ".")) * multiplier)
            numbers += [{str(int(part)), str(whole)} for part in re.split("[.,]", digits) if int(part)]
            continue
        value = int(re.sub(r"\D", "", digits)[:18])
        forms = {value, value * multiplier}
        if afternoon and value <= 24:
            forms |= {value + 12, value - 12}
        if value:  # else it is the minutes of a full hour, or nothing
            numbers.append({str(form) for form in forms if form > 0})
    return numbers


def _topics(text: str) -> set[str]:
    return {word for word in stems(text) if not any(character.isdigit() for character in word)}


def _words(text: str) -> list[str]:
    return " ".join(_LETTERS.findall(text)).casefold().split()


def words_as_written(text: str) -> list[str]:
    """Return the words and figures of `text`, as they are written."""
    return _TOKEN.findall(plain_apostrophes(text))


def stems(text: str) -> list[str]:
    """Return the words of `text` without endings, in order, and without those that stand in any text."""
    return DEFAULT_ANALYSIS.terms(plain_apostrophes(text))


def _content_pairs(text: str) -> set[tuple[str, str]]:
    """Return the pairs of consecutive content words of a text."""
    return set(pairwise(stems(text)))
