"""A recorded conversation with questions about it, for the benchmarks.

    {"messages": [{"id", "session", "created_at", "name"?, "role"?, "content", "caption"?}, ...],
     "questions": [{"question", "answer", "evidence": [ids], "category", "kind"?, "asked_at"?}, ...],
     "stated_facts"?: ["..."]}

Without roles, the first speaker is the user, the other one the assistant.  The categories are those of LoCoMo: 1 the
answer is spread over several messages, 2 the answer is a time, 3 the answer needs reasoning, 4 the answer is in one
message.  Questions of other categories have no answer in the conversation.  The published files of LoCoMo and
LongMemEval are read too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.published import in_our_format

CATEGORIES = {1: "several messages", 2: "a time", 3: "some thought", 4: "one message"}
ANSWERABLE = tuple(CATEGORIES)
NO_ANSWER = "no answer"


@dataclass(frozen=True)
class Said:
    """A message of the conversation."""

    external_id: str
    session: str
    role: str
    name: str | None
    content: str
    created_at: str

    def to_import(self) -> dict[str, str | None]:
        """The message in the format of `POST /api/sessions/{id}/messages`."""
        return {
            "role": self.role,
            "name": self.name,
            "content": self.content,
            "created_at": self.created_at,
            "external_id": self.external_id,
        }


@dataclass(frozen=True)
class Question:
    """A question, the ids of the messages that answer it, and the answer that its author expects.

    `kind` is the name of its category.  `asked_at` is None if the question says nothing of when it is asked.
    """

    text: str
    evidence: frozenset[str]
    category: int
    answer: str = ""
    kind: str = ""
    asked_at: datetime | None = None

    @property
    def answerable(self) -> bool:
        """Whether the conversation answers it."""
        return self.category in ANSWERABLE


@dataclass(frozen=True)
class Conversation:
    """A conversation and questions about it."""

    name: str
    said: tuple[Said, ...]
    questions: tuple[Question, ...]

    @classmethod
    def load(cls, path: Path) -> list[Conversation]:
        """Read the conversations in the file `path`, with all of their questions.

        Raises ValueError if the file is invalid, and OSError if it cannot be read.
        """
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            return [cls._of(name, one) for name, one in in_our_format(path.stem, data)]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a conversation: {type(error).__name__}: {error}") from error

    @classmethod
    def _of(cls, name: str, data: Mapping[str, Any]) -> Conversation:
        first = data["messages"][0].get("name")
        said = tuple(_said(item, "user" if item.get("name") == first else "assistant") for item in data["messages"])
        questions = tuple(map(_question, data["questions"]))
        known = {one.external_id for one in said}
        lost = sorted(set[str]().union(*(question.evidence for question in questions)) - known)
        if lost:
            raise ValueError(f"evidence names messages that do not exist: {lost}")
        if len(known) < len(said):
            raise ValueError("two messages have the same id")
        return cls(name, said, questions)

    def with_evidence(self, *, unanswerable: bool = False) -> Conversation:
        """The conversation with those questions whose evidence is known; `unanswerable` ones only if asked for."""
        kept = (one for one in self.questions if one.evidence and (unanswerable or one.answerable))
        return replace(self, questions=tuple(kept))

    def asked_at(self, question: Question) -> datetime:
        """When a question is asked: the day after the last message, unless it says something else."""
        last = max(datetime.fromisoformat(one.created_at) for one in self.said)
        return question.asked_at or last + timedelta(days=1)

    @property
    def sessions(self) -> dict[str, list[Said]]:
        """The messages by session, in order."""
        sessions: dict[str, list[Said]] = {}
        for one in self.said:
            sessions.setdefault(one.session, []).append(one)
        return sessions

    def in_first_person(self) -> list[Conversation]:
        """The conversation as each of two speakers would have had it with an assistant, with the questions about them.

        Nobody has a name there.  A question is about the speaker it names first, else about the user: "What did Ana
        buy?" becomes "What did I buy?", and the other one "you".  A conversation without names stays as it is.
        """
        names = list(dict.fromkeys(one.name for one in self.said if one.name is not None))
        if not names:
            return [self]
        user, other = names
        asked: dict[str, list[Question]] = {user: [], other: []}
        for question in self.questions:
            found = re.search(rf"\b(?:{re.escape(user)}|{re.escape(other)})\b", question.text)
            me = found[0] if found else user
            text = question.text
            for name, pronoun, own in ((me, "I", "my"), (other if me == user else user, "you", "your")):
                named = rf"\b{re.escape(name)}"
                text = re.sub(rf"{named}\b", pronoun, re.sub(rf"{named}['\u2019]s\b", own, text))
            asked[me].append(replace(question, text=text))
        return [
            Conversation(
                f"{self.name} as {me}",
                tuple(replace(one, role="user" if one.name == me else "assistant", name=None) for one in self.said),
                tuple(questions),
            )
            for me, questions in asked.items()
        ]

    def user_turns(self, count: int) -> list[str]:
        """The first `count` messages of the user, repeated if the conversation has fewer."""
        own = [one.content for one in self.said if one.role == "user"]
        return [own[number % len(own)] for number in range(count)]


def _said(item: Mapping[str, Any], role: str) -> Said:
    caption = item.get("caption")
    content = f"{item['content']} [photo: {caption}]" if caption else item["content"]
    role = item.get("role", role)
    return Said(str(item["id"]), str(item["session"]), role, item.get("name"), content, item["created_at"])


def _question(item: Mapping[str, Any]) -> Question:
    category, asked_at = item["category"], item.get("asked_at")
    return Question(
        item["question"],
        frozenset(item["evidence"]),
        category,
        str(item.get("answer", "")),
        item.get("kind") or CATEGORIES.get(category, NO_ANSWER),
        datetime.fromisoformat(asked_at) if asked_at else None,
    )
