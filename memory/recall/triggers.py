"""Decide from a message and the texts visible before it whether to search, for what, and with how many tokens.

A search costs time and tokens, so there is none for small talk, and none for a message without keywords.  There is one
for every other message: it refers to the past ("what did we discuss"), or a word points at something not visible ("she"
with nobody before it), or earlier messages may simply matter to it.  When in doubt there is a search: one too many
costs little, and a message that was not recalled costs the person's trust.

Invariants:
- The functions are pure and deterministic, and take linear time: they read the first `READ_CHARS` characters of a
  message, and the last `READ_CHARS` of each visible text (test_triggers).
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from typing import Literal, NamedTuple

from memory.languages import (
    ASKS,
    ENGLISH,
    LANGUAGES,
    MONTHS,
    QUESTION_MARKS,
    TextPattern,
    alternatives,
    pattern,
    table,
    text_pattern,
    vocabulary,
)
from memory.recall.times import READ_CHARS, time_ranges
from search_index.analysis import MAX_TERM, Analysis
from search_index.han import in_both_scripts
from search_index.spelling import UNSPACED

SMALL_TALK_CHARS = 300  # a longer text is no small talk
KEYWORDS_SHOWN = 5  # in a reason
SENTENCE_CHARS = 150  # of a sentence that is taken as one
ALONE_WORDS = 3  # keywords of a question that can be understood alone, or of visible texts that show a topic
PRONOUN_WORDS_MAX = 8  # in a longer message a pronoun is not the subject

# Shares of RECALL_TOKENS.  Excerpts are not billed as cached, so a message that tells more than it asks gets fewer.
# The questions of such a message are searched, and what it tells beside them counts less (`search_index.ranking`).
ALL = 1.0
ALSO_ASKED = 0.4
UNASKED = 1 / 6  # the message asks for nothing, but earlier messages may matter

_APOSTROPHES = str.maketrans("\u2018\u2019\u02bc\u2032", "''''")
_REFERENCE = text_pattern(lambda language: language.references)
_HOW_THINGS_STAND = text_pattern(lambda language: language.how_things_stand)
_LIST_QUESTION = text_pattern(lambda language: language.list_questions)
_CHANGES = text_pattern(lambda language: language.changes)
_POINTER = text_pattern(lambda language: language.pointers)
_PERSON = text_pattern(lambda language: language.persons)
_PEOPLE = text_pattern(lambda language: language.people)
_THING = text_pattern(lambda language: language.things)
_OWN = text_pattern(lambda language: language.own)
_REPLIED = text_pattern(lambda language: language.replied)
_ELSEWHERE = text_pattern(lambda language: language.elsewhere)
_PLACES = table(lambda language: language.places)
_PLACE = text_pattern(lambda language: "|".join(language.places))
_VAGUE = vocabulary(lambda language: language.vague_nouns)
_SMALL_TALK = pattern(lambda language: language.small_talk)
_OPENING = TextPattern(rf"\W*(?:(?:{alternatives(lambda language: language.padding)})\W+)*(?:{_SMALL_TALK.pattern})")
_COURTESIES = vocabulary(lambda language: language.courtesies)
_EMOTICON = re.compile(r"[:;=8xX][-'^]?[)(\]\[DPpOo/\\|*3]+|<3+|[\^>oO;T][_.-]?[\^<oO;T]")
_NO_EMOTICON = re.compile(r"[^\W_xXDPpOoT83]")  # a letter or digit that no emoticon has
_POSSESSIVE = re.compile(r"^['’]s\b")  # after a time: "yesterday's topic"
_ANSWER = re.compile(r"\W*(?:\d{1,2}|[a-zA-Z]|option \w|number \d)\W*", re.IGNORECASE)  # to a choice that was offered
_CLAUSES = re.compile(r"[,;]\s+|\s[–—-]+\s|\s+(?=(?:anyways?|btw)\b)|(?<=anyway)\s+", re.IGNORECASE)
_ASKING_END = re.compile(r"(?<=[.!?…؟।])\s+|(?<=[。！？])|\n+")


POINTING = ("reference", "implicit")  # kinds of messages that point at earlier ones
Kind = Literal[
    "reference", "implicit", "plain", "time", "always", "small_talk", "nothing",  # of a message, see `SearchPlan`
    "off", "session_only", "asked", "latest", "missing",  # of what became of it, see `recall.RecallResult`
]  # fmt: skip
"""Why a turn shows its excerpts, or none.  The page has a sentence for each kind."""


class Trigger(NamedTuple):
    """Kind of a message, by how it points at the past, with the reason in one short sentence.

    kind: "reference" (it refers to the past), "implicit" (it points at something that is not visible), "plain" (it has
    keywords), "small_talk" or "nothing" (it has no keywords).  The last two do not look back: they cause no search.
    """

    kind: Kind
    reason: str

    @property
    def looks_back(self) -> bool:
        return self.kind not in ("small_talk", "nothing")


class SearchPlan(NamedTuple):
    """Search to make, and why: for `text` if there is any, else for messages of the `times` that a message names.

    times_first: the message names nothing but times, so their messages are shown, and `text` is searched if none is.
    kind: of the trigger; or "time" if the message names one, or "always", if that alone causes the search.
    budget_share: of the budget that the excerpts may take; 0 for a message that does not look back.
    dangling: the message refers to something that no visible text shows.
    is_list_question: the message asks for many messages at once, such as their order, number or sum.
    shows_nearest: the best hits are shown, however near they are; else a gate decides (see `relevance`).
    conversation_place: counted from the newest, of the conversation that a message without content means unless `text`
        finds something. 0: the message means none.
    """

    kind: Kind
    reason: str
    budget_share: float = 0.0
    text: str = ""
    times: Sequence[tuple[datetime, datetime]] = ()
    dangling: bool = False
    conversation_place: int = 0
    times_first: bool = False
    is_list_question: bool = False
    shows_nearest: bool = False

    @property
    def points_back(self) -> bool:
        """Return whether the message points at earlier ones."""
        return self.kind in POINTING


class MessageReading:
    """Message that was read once.

    message: its first READ_CHARS.
    asks_how_things_stand, is_list_question: it asks for that in fixed words.
    content: the message without these words. What a question is made of is no word to search for: each that nobody used
        makes all hits seem far off.
    keywords: of the content. asking: the sentences that ask for something; asks_of_change: they ask what was before.
    search_text: the asking sentences of the content, if they can be understood alone; else all of it.
    times: those that the message names, as far as it means the past or the person's own plans.
    names_oneself: it says "I" or "my". is_elsewhere: it speaks of another conversation.
    trigger_alone: how it points at the past by itself.
    pronouns: what it points at if no visible text explains them, each with a function that tells whether a text does.
    """

    def __init__(
        self, message: str, now: datetime, zone: tzinfo, analysis: Analysis, *, has_attachments: bool = False
    ) -> None:
        """Read the first READ_CHARS of a message.  Days begin in `zone`.

        has_attachments: images or files come with it, so "this" is in sight.
        """
        self.message = message = message[:READ_CHARS]
        self.now = now
        self.analysis = analysis
        # Patterns are looked for in one line with plain apostrophes.
        line = " ".join(unicodedata.normalize("NFKC", message).translate(_APOSTROPHES).split())

        # What is said, without the fixed words of some questions.
        how_things_stand = _HOW_THINGS_STAND.search(line)
        of_lists = [match[0] for match in _LIST_QUESTION.finditer(line)]
        self.asks_how_things_stand = how_things_stand is not None
        self.is_list_question = bool(of_lists)
        fixed = [how_things_stand[0], *of_lists] if how_things_stand else of_lists
        content = line if fixed else message
        for phrase in fixed:
            content = content.replace(phrase, " ")
        self.content = content
        self.keywords = list(each_keyword(analysis.without_function_words(content), analysis))

        # What it points at.
        self.names_oneself = _OWN.search(message) is not None
        self.is_elsewhere = _ELSEWHERE.search(message) is not None
        self.pronouns: Sequence[tuple[str, Callable[[str], bool]]] = ()
        if reference := _REFERENCE.search(line) or how_things_stand:
            self.trigger_alone = Trigger("reference", f'refers to the past ("{reference[0].strip(" ,.?!")}")')
        elif pointer := _POINTER.search(line):
            self.trigger_alone = Trigger("implicit", f'points at what was said before ("{pointer[0]}")')
        else:
            is_small_talk = _is_small_talk(line, analysis)
            if not has_attachments:
                self.pronouns = tuple(_pronouns(line, analysis, is_small_talk=is_small_talk))
            self.trigger_alone = Trigger("small_talk", "small talk") if is_small_talk else self._plain_trigger(line)
        # "What's the weather today?" asks about the world.
        is_own = self.names_oneself or self.trigger_alone.kind in POINTING
        self.times = [time for time in time_ranges(message, now, zone) if time.before <= now or is_own]

        # What it asks for.
        in_content = asking(content)
        self.asking = asking(message) if fixed else in_content
        self.asks_of_change = _CHANGES.search(self.asking) is not None
        is_part = len(in_content) < len(content) and stands_alone(in_content, analysis)
        self.search_text = in_content if is_part else content

    def _plain_trigger(self, line: str) -> Trigger:
        """Return the trigger of a message that points at nothing: by whether it has words to look for."""
        if not self.keywords or _ANSWER.fullmatch(line):
            return Trigger("nothing", "has no words to look for")
        return Trigger("plain", f"has words worth looking for: {', '.join(self.keywords[:KEYWORDS_SHOWN])}")

    def trigger(self, visible_texts: Sequence[str]) -> Trigger:
        """Return how the message points at the past.

        visible_texts: of the messages that the prompt shows anyway, the newest last.
        """
        for pronoun, explains in self.pronouns:
            if not any(explains(text[-READ_CHARS:]) for text in visible_texts):
                return Trigger("implicit", f'"{pronoun}" has nothing before it to refer to')
        return self.trigger_alone

    def plan(self, visible_texts: Sequence[str], *, always: bool = False) -> SearchPlan:
        """Decide whether to search earlier messages, for which text and times, and for which share of the budget.

        always: search for everything that has words to look for, and show the nearest.
        """
        trigger = self.trigger(visible_texts)
        looks_back = always or trigger.looks_back
        times = self.times if always or trigger.kind != "small_talk" else []
        if not (looks_back or times):
            return SearchPlan(trigger.kind, trigger.reason)
        reasons = [trigger.reason] if looks_back else []
        reasons += [f'speaks of "{time.phrase}"' for time in times]
        kind: Kind = trigger.kind
        if not trigger.looks_back:
            kind = "time" if times else "always"
        spans = [(time.after, time.before) for time in times if time.after <= self.now]
        points_back = trigger.kind in POINTING
        empty = not times and self._has_no_content(points_back=points_back)
        dangling = (empty or points_back) and (self.is_elsewhere or not _shows_a_topic(visible_texts, self.analysis))
        plan = SearchPlan(kind, ", ".join(reasons), ALL, self.search_text, spans, dangling)
        plan = plan._replace(is_list_question=self.is_list_question, shows_nearest=always)
        if empty and dangling:
            place = 1 if self._place is None else _PLACES[self._place[0].lower()]
            # "left off" would find a left shoe, and "it does not work" every broken thing; "where do I live" is told.
            text = plan.text if trigger.kind == "implicit" and self.is_personal else ""
            return plan._replace(text=text, conversation_place=place)
        if times and self._is_vague_without_times:  # "what did we do yesterday?"
            # "Where are we going in April?" may have been said long before.
            phrases = [time.phrase for time in times if trigger.kind != "reference"]
            named = [phrase for phrase in phrases if any(word.strip(".,") in MONTHS for word in phrase.lower().split())]
            return plan._replace(text=" ".join(named), times_first=True)
        of_past = trigger.kind == "reference" or any(time.phrase in self.asking for time in times)
        if always or of_past or 2 * len(self.asking) >= len(self.message):
            return plan
        return plan._replace(budget_share=ALSO_ASKED if self.asking else UNASKED)

    def _has_no_content(self, *, points_back: bool) -> bool:
        """Return whether the message refers to something that none of its words names: "What did we decide?"

        So does a message that only names the person's own project, topic or chat.
        """
        words = self.keywords
        if words and (points_back or self.is_elsewhere) and self._place is not None:
            words = [word for word in words if word not in self._place[0]]
        refers = points_back or (bool(words) and (self.names_oneself or self.is_elsewhere))
        return refers and _VAGUE.issuperset(map(str.casefold, words))

    @cached_property
    def is_personal(self) -> bool:
        """True if the person's own words are likely to answer (see `role_meant`)."""
        return role_meant(self.message) is not None

    @cached_property
    def _place(self) -> re.Match[str] | None:
        """Words that name a conversation by its place from the newest one ("two chats ago")."""
        return _PLACE.search(self.message)

    @cached_property
    def _is_vague_without_times(self) -> bool:
        """True if the message has only vague words beside the times that it names."""
        text = self.message
        for time in reversed(self.times):
            text = f"{text[: time.start]} {_POSSESSIVE.sub('', text[time.end :])}"
        words = each_keyword(self.analysis.without_function_words(text), self.analysis)
        return _VAGUE.issuperset(map(str.casefold, words))


def warm_up() -> None:
    """Compile most patterns, so that the first message need not wait."""
    for text in ("What did we decide last week?", "Où en étions-nous hier ?"):  # of ASCII texts, and of others
        MessageReading(text, datetime.now(UTC), UTC, ENGLISH).plan(())


def role_meant(question: str) -> str | None:
    """Return the role whose words are likely to answer: the person's own if they speak of themselves, else None."""
    return "user" if _OWN.search(question) is not None and _REPLIED.search(question) is None else None


def asking(message: str) -> str:
    """Return the sentences of a message that ask for something; of a long one the clauses, if only they do."""
    parts: list[str] = []
    for sentence in _ASKING_END.split(message.strip()):
        is_long = len(sentence) > SENTENCE_CHARS and not ASKS.search(sentence)
        clauses = _CLAUSES.split(sentence) if is_long else []
        parts += clauses if any(map(ASKS.search, clauses)) else [sentence]
    return " ".join(part for part in parts if any(mark in part for mark in QUESTION_MARKS) or ASKS.search(part))


def stands_alone(question: str, analysis: Analysis) -> bool:
    """Return whether a question can be understood without the other sentences of its message."""
    if len(analysis.query_terms(question)) < ALONE_WORDS:
        return False
    pronouns = filter(None, (_PERSON.search(question), _THING.search(question)))
    return all(has_keyword(question[: pronoun.start()], analysis) for pronoun in pronouns)


def _shows_a_topic(visible_texts: Sequence[str], analysis: Analysis) -> bool:
    """Return whether the visible texts have enough words to show what a message refers to."""
    words = 0
    for text in reversed(visible_texts):
        for _ in each_keyword(text[-READ_CHARS:], analysis):
            words += 1
            if words >= ALONE_WORDS:
                return True
    return False


def _is_small_talk(text: str, analysis: Analysis) -> bool:
    """Return whether a text begins with small talk and has no other content; emoji alone are small talk too."""
    if len(text) > SMALL_TALK_CHARS:
        return False
    if _NO_EMOTICON.search(text) is None and not any(map(str.isalnum, _EMOTICON.sub(" ", text))):
        return _EMOTICON.search(text) is not None or any(unicodedata.category(char) in ("So", "Sk") for char in text)
    if not _OPENING.match(text):
        return False
    rest = each_keyword(_SMALL_TALK.sub(" ", text), analysis)
    return all(word.casefold() in _COURTESIES or word.casefold() in MONTHS for word in rest)


def _pronouns(text: str, analysis: Analysis, *, is_small_talk: bool) -> Iterator[tuple[str, Callable[[str], bool]]]:
    """Yield the pronouns that a short text is about and does not explain, each with a test of texts that may.

    In small talk "that" points at nothing.
    """
    if text.count(" ") >= PRONOUN_WORDS_MAX:
        return
    person = _PERSON.search(text)
    if person and not _PEOPLE.search(text[: person.start()]):
        yield person[0], lambda visible: _PEOPLE.search(visible) is not None
    thing = None if is_small_talk else _THING.search(text)
    if thing and text.count(" ", thing.end()) <= 3 and not has_keyword(text[: thing.start()], analysis):
        yield thing[0], lambda visible: has_keyword(visible, analysis)


# -- keywords

_LETTER = f"(?:[^\\W_{UNSPACED}]|[\u0900-\u0963\u0970-\u0dff])"
_TOKEN = re.compile(
    # words, joined by single marks into a compound, as the index joins them; paths and addresses.  Nothing after them
    # can fail, so only their letters are possessive: Python 3.11.2 cuts words where the whole is.
    rf"(?P<word>{_LETTER}++(?:(?:['’._@&-]|__|::|://|/(?=\w)|(?<=\d)[:,](?=\d)){_LETTER}++)*(?:\+\+|\#(?!\w))?)|(?P<unspaced>[{UNSPACED}]++)"
)
_MARKS = re.compile(r"[^\w\s]{31}")
_NOISE = re.compile(r"\w?[^\w\s]{31,}")  # endless marks and accents, which would make normalising quadratic
_CONTRACTION = re.compile(r"['’](?:s|d|m|re|ve|ll)$", re.IGNORECASE)
_TECHNICAL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}|\d|[._@&:+#/]|\w-\w")  # has what no plain word has
_SENTENCE_END = re.compile(r"[.!?:;\n。！？：；…]")
_EN = next(language for language in LANGUAGES if language.code == "en")
_IDLE_WORDS = _EN.idle_words
# The name of a month may be all that a message names: "what did I say about April?"
_TIME_WORDS = vocabulary(lambda language: language.time_words) - MONTHS.keys()
# Most words of a text are one of these, and never worth searching for in small letters.
_FILLERS = _IDLE_WORDS | (_EN.time_words - MONTHS.keys()) | (_EN.stop_words or frozenset())
_GENERIC_VERBS = vocabulary(lambda language: language.generic_verbs)
_DETERMINERS = vocabulary(lambda language: language.determiners)
_IDLE = pattern(lambda language: "|".join(filter(None, (language.particles, language.idle))))
_IDLE_LEADING = in_both_scripts(f"[{''.join(language.idle_leading for language in LANGUAGES)}]")[1:-1]


def has_keyword(text: str, analysis: Analysis) -> bool:
    """Return whether the text has a word worth searching for."""
    return any(True for _ in each_keyword(text, analysis))


def each_keyword(text: str, analysis: Analysis) -> Iterator[str]:
    """Yield the words worth searching for, in the order of the text, each once, as they stand in it (after NFKC).

    They are nouns, names, technical terms and numbers that have terms in the index, whose `analysis` this is.  A run of
    Chinese gives its pairs of characters, as in the index.
    """
    text = _NOISE.sub(" ", text) if _MARKS.search(text) else text
    text = text if text.isascii() else unicodedata.normalize("NFKC", text)
    seen: set[str] = set()
    shouting = text.isupper()
    determined = False
    end = 0
    for match in _TOKEN.finditer(text):
        before = end
        start, end = match.span()
        if match["unspaced"]:
            for pair in _unspaced(match[0]):
                if (lower := pair.casefold()) not in seen and analysis.has_terms(pair) and ENGLISH.has_terms(pair):
                    yield pair
                seen.add(lower)
            determined = False
            continue
        if match[0] in _FILLERS:
            determined = match[0] in _DETERMINERS
            continue
        word = match[0][:MAX_TERM]
        is_plain = word.isalpha() and (len(word) == 1 or word[1:].islower())  # most words are, and need no pattern
        if not is_plain:
            word = _CONTRACTION.sub("", match[0])[:MAX_TERM]
        lower = word.casefold()
        is_name = word[0].isupper() and not shouting and word != "I" and start > 0
        if is_name and (between := text[before:start]) != " ":  # else the word before stands in the same sentence
            is_name = _SENTENCE_END.search(between) is None
        name = is_name or (not is_plain and _TECHNICAL.search(word) is not None)
        idle = lower in _IDLE_WORDS or (lower in _GENERIC_VERBS and not determined)
        determined = lower in _DETERMINERS
        if lower not in _TIME_WORDS and (name or not idle) and lower not in seen:
            seen.add(lower)
            # English stop words are left out of texts in any language.
            if analysis.has_terms(word) and (analysis is ENGLISH or ENGLISH.has_terms(word)):
                yield word


def _unspaced(run: str) -> Iterator[str]:
    """Return the pairs of characters of a run, without its idle words."""
    kept = _IDLE.sub(lambda match: match[0] if match.groupdict().get("keep") else " ", run)
    for part in kept.split():
        content = part.lstrip(_IDLE_LEADING)
        for at in range(max(len(content) - 1, min(len(content), 1))):
            yield content[at : at + 2]
