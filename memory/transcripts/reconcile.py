"""Reconcile the messages that a client sends with the stored ones: one pure function, `reconcile`.

A client of the OpenAI protocol keeps its own copy of the conversation.  A request brings all of it, or the newest
message alone, or what is left after older messages were dropped, or a conversation in which the person edited a message
or asked for another answer, or the same request again.  The stored line must become the client's conversation, with
nothing twice.  The rules, in the order they are tried:

    carried on   The line is how the list begins: what comes after it is new.
    results      The list ends with results of tools, and what it has before them is how the line ends: they are new.
    unanswered   The list is how the line ends: the same request again, which got no answer.
    only new     A list without an answer of the assistant's, which does not begin as the line does, is no history: its
                 messages are new.  Unless they are the ones that were answered last: then it is the same request again
                 if they are all that was ever asked, if they hold a tool's result, or if the caller knows it
                 (`is_retry`).  Otherwise the person has said the same words again, as one says "next".
    in step      Otherwise list and line are walked side by side.  Where they differ, messages of the client's in the
                 place of *more* stored ones are its abridgement (none at all when it dropped the oldest, a note, a
                 summary of its own), if both go on alike afterwards: what it left out stays stored.  Any other
                 difference is a change: the line ends there and goes on as the list does.  A list with nothing of the
                 line is new: another agent goes on with the person.

Where two cases look the same, nothing is hidden that may be meant to stay: a single message that differs from all is
new, and no edit of the first, unless the client always sends its conversation from the start (`is_complete`); a message
deleted in the client stays stored.

An erased message keeps its place in the line.  What the client still has there is that message, if the role fits, and
is not stored again.  But a place is no evidence that two conversations are alike, and a client's newest message is
never taken for an erased one.

Two messages are the same when role, words, calls and attachments are, whatever the white space.  An assistant's words
may come back without its thinking, with the name of a character before them, or shortened at the end.  A person's may
not: shortening is how one edits them.

The line's last reply, sent shortened, is what the person heard or read of it before they went on: it takes the place of
the whole one.  A person's last message, whose answer nobody had, and which comes with more words, is the same message.

Guarantee: `line[:plan.keep] + sent[plan.new:]` ends with the list's last message, and holds no message of it twice.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from memory.llm.thoughts import without_thoughts
from memory.transcripts.persons_words import split_speaker
from search_index.spelling import UNSPACED

SHORTENED_MIN = 40  # characters by which the beginning of an answer is known
NOTES_MAX = 32  # of a client's own messages in the place of what it left out; these three bound the work
PLACES_MAX = 64  # places in the line, the latest, where a text is looked for
STRETCH_MAX = 32  # messages after which list and line are known to go on alike
_THINKING = re.compile(  # from the last of several beginnings, so that the time does not grow with their number
    r"<think(?:ing)?>(?:(?!<think).)*?</think(?:ing)?>"
    r'|<details type="reasoning"(?:(?!<details type="reasoning").)*?</details>',
    re.DOTALL,
)
_WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")
_PUNCTUATION = ".,;:!?…-–—\"'()。，、！？；："  # which a transcript has or not
_ELLIPSIS = re.compile(r"\s*(?:…|\.\.\.|\[truncated\])$", re.IGNORECASE)


@dataclass(frozen=True)
class MessageKey:
    """Message as far as it is compared.

    `calls` are its calls of tools, by name and arguments; `attachments` stand for images and files.  `answers` is the
    id of the call that it is the result of; it counts only where a result comes alone, since some clients give calls
    new ids.  Stored, it may be the reply of a turn (`is_reply`), an answer that was interrupted (`cut`), or the place
    of an `erased` message.
    """

    role: str
    text: str
    name: str | None = None
    calls: tuple[tuple[str, str], ...] = ()
    attachments: tuple[str, ...] = ()
    answers: str | None = None
    is_reply: bool = False
    cut: bool = False
    erased: bool = False

    @cached_property
    def words(self) -> str:
        """Return the text with single spaces, and an assistant's without its thinking and name."""
        shown = self.text
        if self.role == "assistant":
            shown = without_thoughts(_THINKING.sub("", shown)) if "<" in shown else shown
            _, shown = split_speaker(shown)
        return " ".join(shown.split())

    def matches(self, stored: "MessageKey") -> bool:
        """Return whether this sent message is that stored one, or may have been if that is erased."""
        if stored.erased:
            return self.role == stored.role
        if (self.role, self.calls, self.attachments) != (stored.role, stored.calls, stored.attachments):
            return False
        if self._is_another_persons(stored):
            return False
        if self.text == stored.text or self.words == stored.words or self._shortened(stored):
            return True
        # The stored words may begin as a name does: "Here is the plan: ...".
        return self.role == "assistant" and self.words == " ".join(stored.text.split()) != ""

    def is_heard_part(self, stored: "MessageKey") -> bool:
        """Return whether that stored reply begins so: the person heard no more. What a program cuts has a mark."""
        if (self.role, self.calls, stored.role, stored.calls) != ("assistant", (), "assistant", ()) or stored.erased:
            return False
        words = self.words.rstrip(" -–—")  # as one writes words that were cut off
        is_beginning = words not in ("", stored.words) and stored.words.startswith(words)
        return is_beginning and not _ELLIPSIS.search(words)

    def completes(self, stored: "MessageKey") -> bool:
        """Return whether this is that stored message understood further: with more words, or written otherwise."""
        if self.erased or stored.erased or (self.role, stored.role) != ("user", "user"):
            return False
        if self._is_another_persons(stored) or self.attachments != stored.attachments:
            return False
        mine = _spoken(self.text)
        theirs = _spoken(stored.text)
        return theirs != [] and mine[: len(theirs)] == theirs and self.words != stored.words

    def _is_another_persons(self, stored: "MessageKey") -> bool:
        return bool(self.name and stored.name) and self.name != stored.name

    def _shortened(self, stored: "MessageKey") -> bool:
        if self.role != "assistant" or len(self.words) >= len(stored.words):
            return False
        words = _ELLIPSIS.sub("", self.words)
        return stored.words.startswith(words) and bool(words) and (stored.cut or len(words) >= SHORTENED_MIN)


@dataclass(frozen=True)
class MergePlan:
    """Steps to merge a line: keep its first `keep` messages, let a branch have the others, append `sent[new:]`.

    `places` says where in the list each kept message stands that was sent again: {place in line: place in list}.
    """

    keep: int
    new: int
    places: Mapping[int, int] = field(default_factory=dict)


def reconcile(
    line: Sequence[MessageKey], sent: Sequence[MessageKey], *, is_retry: bool = False, is_complete: bool = False
) -> MergePlan:
    """Plan how `line`, a session's stored messages, becomes the conversation of which a client sent `sent`.

    is_retry: the last request is repeated.
    is_complete: the client never sends only its newest messages.
    """
    plan = _plan(line, sent, is_retry=is_retry, is_complete=is_complete)
    last = plan.keep - 1
    place = plan.places.get(last)
    if place is not None and plan.keep == len(line) and sent[place].is_heard_part(line[last]):
        return MergePlan(last, place, {kept: there for kept, there in plan.places.items() if kept < last})
    return plan


def _plan(line: Sequence[MessageKey], sent: Sequence[MessageKey], *, is_retry: bool, is_complete: bool) -> MergePlan:
    shared = common_prefix(line, sent)
    if shared < len(line):
        called = max((place for place, key in enumerate(sent, 1) if key.role == "assistant"), default=0)
        if called and any(key.role == "tool" for key in sent[called:]) and ends_with(line, len(line), sent[:called]):
            return replace(_once_more(len(line), sent[:called]), new=called)
        if ends_with(line, len(line), sent):
            return _once_more(len(line), sent)
        no_history = not any(key.role == "assistant" for key in sent) and (not shared or len(sent) == 1)
        if no_history and not is_complete:
            return _only_new(line, sent, is_retry=is_retry)
    beginnings: dict[str, list[int]] = defaultdict(list)  # the places in the line where texts begin in one way
    for place, key in enumerate(line[shared:], shared):
        beginnings[_beginning(key)].append(place)
    at = 0
    new = 0
    alike = shared
    places: dict[int, int] = {}
    while True:
        places |= {at + step: new + step for step in range(alike)}
        at += alike
        new += alike
        runs = [
            (common_run(line, sent, there, here), there, here)
            for here in range(new, min(new + NOTES_MAX, len(sent)))
            for there in beginnings.get(_beginning(sent[here]), ())[-PLACES_MAX:]
            if there - at > here - new
        ]
        # The longest run; of some as long the first in the list, and of these the last in the line.
        length, there, here = max(runs, key=lambda run: (run[0], -run[2], run[1]), default=(0, 0, 0))
        if not length:
            return MergePlan(at, new, places) if places or is_complete else MergePlan(len(line), 0)
        at = there
        new = here
        alike = common_prefix(line, sent, at, new)


def common_prefix(
    line: Sequence[MessageKey], sent: Sequence[MessageKey], at: int = 0, new: int = 0, most: int | None = None
) -> int:
    """Return how many messages, at `most`, are the same in both from there on."""
    length = 0
    while length != most and at + length < len(line) and new + length < len(sent):
        stored, key = line[at + length], sent[new + length]
        newest = new + length == len(sent) - 1
        if not key.matches(stored) or (newest and stored.erased):
            break
        length += 1
    return length


def common_run(line: Sequence[MessageKey], sent: Sequence[MessageKey], at: int, new: int) -> int:
    """Return how long the two are alike from there; 0 if that does not tell: it takes an answer, and not alone."""
    length = common_prefix(line, sent, at, new, STRETCH_MAX)
    pairs = zip(sent[new : new + length], line[at : at + length], strict=True)
    alike = [key for key, stored in pairs if not stored.erased]
    tells = len(alike) > 1 or at + length == len(line)
    return length if tells and any(key.role != "user" for key in alike) else 0


def is_same_utterance(first: MessageKey, second: MessageKey) -> bool:
    """Return whether one of two messages of a person's is the other, understood further."""
    return first.completes(second) or second.completes(first)


def goes_on(rest: Sequence[MessageKey], sent: Sequence[MessageKey]) -> bool:
    """Return whether a list, without the `rest` of a line from which it goes on, lacks nothing that a person said.

    It may lack the last reply, or the end of it: nobody heard that. A question whose answer nobody had may have more
    words.
    """
    if not rest or not sent or any(key.erased for key in rest):
        return False
    if [key.role for key in rest] == ["assistant"]:
        return sent[0].role == "user" or sent[0].is_heard_part(rest[0])
    return sent[0].completes(rest[0]) and [(key.role, key.cut) for key in rest[1:]] in ([], [("assistant", True)])


def _only_new(line: Sequence[MessageKey], sent: Sequence[MessageKey], *, is_retry: bool) -> MergePlan:
    end = max((place for place, key in enumerate(line, 1) if key.role != "assistant"), default=0)
    if end and goes_on(line[end - 1 :], sent):
        return MergePlan(end - 1, 0)
    is_stored = ends_with(line, end, sent) and all(
        key.answers == stored.answers for key, stored in zip(sent, line[end - len(sent) :], strict=False)
    )
    if is_stored and (is_retry or end == len(sent) or any(key.role == "tool" for key in sent)):
        return _once_more(end, sent)
    return MergePlan(len(line), 0)


def ends_with(line: Sequence[MessageKey], end: int, sent: Sequence[MessageKey]) -> bool:
    """Return whether the messages sent are the line's last ones before its place `end`."""
    first = end - len(sent)
    if first < 0 or line[end - 1].erased:
        return False
    return all(key.matches(stored) for key, stored in zip(sent, line[first:end], strict=True))


def _once_more(end: int, sent: Sequence[MessageKey]) -> MergePlan:
    return MergePlan(end, len(sent), {end - len(sent) + place: place for place in range(len(sent))})


def _spoken(text: str) -> list[str]:
    """Return the words of a text without case and punctuation."""
    return [word for written in _WORD.findall(text.casefold()) if (word := written.strip(_PUNCTUATION))]


def _beginning(key: MessageKey) -> str:
    """Return the beginning by which a shortened answer is known as the whole one."""
    return key.words[: SHORTENED_MIN // 2]
