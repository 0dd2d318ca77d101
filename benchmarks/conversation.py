"""Recorded conversations with questions about them, and generated notes, for the benchmarks.

    {"messages": [{"id", "session", "created_at", "name"?, "role"?, "content", "caption"?}, ...],
     "questions": [{"question", "answer", "evidence": [ids], "category", "kind"?, "asked_at"?}, ...],
     "stated_facts"?: ["..."]}

Without roles, the first speaker is the user, the other one the assistant.  The categories are those of LoCoMo: 1 the
answer is spread over several messages, 2 the answer is a time, 3 the answer needs reasoning, 4 the answer is in one
message.  Questions of other categories have no answer in the conversation.

The files that LoCoMo (github.com/snap-research/locomo, `locomo10.json` or a file for each conversation), REALTALK
(github.com/danny911kr/REALTALK, a file for each conversation), LongMemEval (github.com/xiaowu0162/LongMemEval,
`longmemeval_*.json`, a conversation for each question) and BEAM (github.com/mohammadtavakoli78/BEAM, a folder for each
conversation, which is named by its `chat.json`) publish are read too.
"""

import json
import random
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self

CATEGORIES = {1: "several messages", 2: "a time", 3: "some thought", 4: "one message"}
ANSWERABLE = tuple(CATEGORIES)
NO_ANSWER = "no answer"
_LONGMEMEVAL = {  # its types of questions, by the number of LoCoMo's category that is most like it
    "multi-session": 1,
    "knowledge-update": 1,
    "temporal-reasoning": 2,
    "single-session-preference": 3,
    "single-session-user": 4,
    "single-session-assistant": 4,
}
_BEAM = {  # the same for BEAM; its summaries are of all messages
    "contradiction_resolution": 1,
    "event_ordering": 1,
    "multi_session_reasoning": 1,
    "temporal_reasoning": 2,
    "instruction_following": 3,
    "preference_following": 3,
    "information_extraction": 4,
    "knowledge_update": 4,
    "abstention": 5,
}
_BEAM_ANSWERS = ("answer", "ideal_answer", "ideal_response", "expected_compliance")
_UNDATED = datetime(2024, 1, 1)


@dataclass(frozen=True)
class RecordedMessage:
    external_id: str
    session: str
    role: str
    name: str | None
    content: str
    created_at: str

    def to_import(self) -> dict[str, str | None]:
        """Return the message in the format of `POST /api/sessions/{id}/messages`."""
        return {name: getattr(self, name) for name in ("role", "name", "content", "created_at", "external_id")}


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
    def is_answerable(self) -> bool:
        return self.category in ANSWERABLE


@dataclass(frozen=True)
class Conversation:
    """A conversation and questions about it."""

    name: str
    messages: tuple[RecordedMessage, ...]
    questions: tuple[Question, ...]

    @classmethod
    def load(cls, path: Path) -> "list[Conversation]":
        """Read the conversations in the file `path`, with all of their questions.

        Raises ValueError if the file is invalid, and OSError if it cannot be read.
        """
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if path.name == "chat.json":
                asked = path.with_name("probing_questions") / "probing_questions.json"
                return [cls._read(path.parent.name, _beam(data, json.loads(asked.read_text(encoding="utf-8"))))]
            return [cls._read(name, entry) for name, entry in in_our_format(path.stem, data)]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a conversation: {type(error).__name__}: {error}") from error

    @classmethod
    def _read(cls, name: str, data: Mapping[str, Any]) -> Self:
        first = data["messages"][0].get("name")
        messages = tuple(
            _message(item, "user" if item.get("name") == first else "assistant") for item in data["messages"]
        )
        questions = tuple(map(_question, data["questions"]))
        ids = {message.external_id for message in messages}
        if lost := sorted(set[str]().union(*(question.evidence for question in questions)) - ids):
            raise ValueError(f"evidence names messages that do not exist: {lost}")
        if len(ids) < len(messages):
            raise ValueError("two messages have the same id")
        return cls(name, messages, questions)

    def with_evidence(self, *, unanswerable: bool = False) -> Self:
        """Return the conversation with the questions whose evidence is known; `unanswerable`: also those."""
        kept = (item for item in self.questions if item.evidence and (unanswerable or item.is_answerable))
        return replace(self, questions=tuple(kept))

    def asked_at(self, question: Question) -> datetime:
        """Return when a question is asked: the day after the last message, unless it says something else."""
        last = max(datetime.fromisoformat(message.created_at) for message in self.messages)
        return question.asked_at or last + timedelta(days=1)

    @property
    def sessions(self) -> dict[str, list[RecordedMessage]]:
        """Return the messages by session, in order."""
        sessions: dict[str, list[RecordedMessage]] = {}
        for message in self.messages:
            sessions.setdefault(message.session, []).append(message)
        return sessions

    def in_first_person(self) -> "list[Conversation]":
        """Return the conversation as each of two speakers would have had it with an assistant.

        Nobody has a name there.  Each is asked the questions that name them first, the user also those without a name:
        "What did Ana buy?" becomes "What did I buy?", and the other "you".  Without names nothing changes.
        """
        names = list(dict.fromkeys(message.name for message in self.messages if message.name is not None))
        if not names:
            return [self]
        user, other = names
        about: dict[str, list[Question]] = {user: [], other: []}
        for question in self.questions:
            speaker = re.search(rf"\b(?:{re.escape(user)}|{re.escape(other)})\b", question.text)
            me = speaker[0] if speaker else user
            text = question.text
            for name, pronoun, own in ((me, "I", "my"), (other if me == user else user, "you", "your")):
                word = rf"\b{re.escape(name)}"
                text = re.sub(rf"{word}\b", pronoun, re.sub(rf"{word}['\u2019]s\b", own, text))
            about[me].append(replace(question, text=text))
        return [
            Conversation(
                f"{self.name} as {me}",
                tuple(
                    replace(message, role="user" if message.name == me else "assistant", name=None)
                    for message in self.messages
                ),
                tuple(questions),
            )
            for me, questions in about.items()
        ]


def _message(item: Mapping[str, Any], role: str) -> RecordedMessage:
    caption = item.get("caption")
    content = f"{item['content']} [photo: {caption}]" if caption else item["content"]
    role = item.get("role", role)
    return RecordedMessage(str(item["id"]), str(item["session"]), role, item.get("name"), content, item["created_at"])


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


# -- the published files


def in_our_format(name: str, data: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the conversations in the JSON of a file called `name`, each with a name of its own.

    Raises KeyError, TypeError or ValueError if they are not what their format says.
    """
    for entry in data if isinstance(data, list) else [data]:
        if "haystack_sessions" in entry:
            yield entry["question_id"], _longmemeval(entry)
        elif "qa" in entry:
            yield entry.get("sample_id", name), _locomo(entry)
        else:
            yield name, entry


def _locomo(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Read a conversation of LoCoMo or REALTALK, which has a time and the text as it was sent for each message."""
    talk = entry.get("conversation", entry)
    messages = [
        {
            "id": turn["dia_id"],
            "session": number,
            "created_at": _time(turn.get("date_time") or talk[f"session_{number}_date_time"]),
            "name": turn["speaker"],
            "content": turn["text"] if "text" in turn else turn["clean_text"] or "(photo)",
            "caption": turn.get("blip_caption"),
        }
        for number in sorted(int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key))
        for turn in talk[f"session_{number}"]
    ]
    ids = {message["id"] for message in messages}  # some evidence is misspelt, or several ids in one text
    questions = [
        {**question, "evidence": sorted(ids.intersection(re.split(r"[;\s]+", " ".join(question["evidence"]))))}
        for question in entry["qa"]
    ]
    return {"messages": messages, "questions": questions}


def _time(text: str) -> str:
    """Convert "1:56 pm on 8 May, 2023" (LoCoMo) or "29.12.2023, 22:42:04" (REALTALK) to ISO 8601."""
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y" if " on " in text else "%d.%m.%Y, %H:%M:%S").isoformat()


def _longmemeval(entry: Mapping[str, Any]) -> dict[str, Any]:
    messages, evidence = [], []
    for session, (day, turns) in enumerate(zip(entry["haystack_dates"], entry["haystack_sessions"], strict=True), 1):
        for number, turn in enumerate(turns, 1):
            message = {"id": f"S{session}:{number}", "session": session, "created_at": _moment(day)}
            messages.append({**message, "role": turn["role"], "content": turn["content"]})
            evidence += [message["id"]] if turn.get("has_answer") else []
    unanswerable = entry["question_id"].endswith("_abs")
    question = {
        "question": entry["question"],
        "answer": entry["answer"],
        "evidence": evidence,
        "category": 5 if unanswerable else _LONGMEMEVAL[entry["question_type"]],
        "kind": "abstention" if unanswerable else entry["question_type"],
        "asked_at": _moment(entry["question_date"]),
    }
    return {"messages": messages, "questions": [question]}


def _moment(text: str) -> str:
    """Convert LongMemEval's "2023/05/20 (Sat) 02:21" to ISO 8601."""
    return datetime.strptime(re.sub(r" \(\w+\)", "", text), "%Y/%m/%d %H:%M").isoformat()


def _beam(parts: list[Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Read a conversation of BEAM: its parts are sessions.  A message without a day is of the day of the one before."""
    messages, days = list[dict[str, Any]](), list[datetime]()
    for part in parts:
        for turn in (turn for turns in part["turns"] for turn in turns):
            day = turn.get("time_anchor") or part.get("time_anchor")
            days += [datetime.strptime(day, "%B-%d-%Y")] if day else days[-1:] or [_UNDATED]
            content = re.sub(r"\s*->->[\d,\s]*$", "", turn["content"])
            message = {"id": str(turn["id"]), "session": part["batch_number"], "role": turn["role"], "content": content}
            messages.append({**message, "created_at": (max(days) + timedelta(minutes=len(days))).isoformat()})
    questions = []
    for kind, category in _BEAM.items():
        for question in asked.get(kind, ()):
            source = question.get("source_chat_ids", [])
            if isinstance(source, dict):  # what was told before an update is no evidence of what holds now
                source = source["updated_info"] if kind == "knowledge_update" else list(source.values())
            evidence = sorted(set(re.findall(r"\d+", json.dumps(source))))
            answer = next((question[name] for name in _BEAM_ANSWERS if name in question), "")
            item = {"question": question["question"], "answer": answer, "evidence": evidence}
            questions.append({**item, "category": category, "kind": kind})
    return {"messages": messages, "questions": questions}


# -- generated notes: messages of about 35 words, each with a detail to remember and a question about it
# The same conversation and number give the same note, and within TAGS notes of a conversation each tag is unique.
# Names are built from syllables of varying frequency: with a small vocabulary every search would find every note.

WORDS: dict[str, list[str]] = json.loads(Path(__file__).with_name("notes.json").read_text("utf-8"))
TAGS = 90_000  # of five digits


@dataclass(frozen=True)
class Note:
    """A message of a person, the detail to remember, and two questions about it."""

    text: str
    tag: str  # five digits
    question: str  # its answer is the tag
    reminder: str  # asks by the names in the note


def note(conversation: str, number: int) -> Note:
    """Return the note with that number, from 0."""
    rng = random.Random(f"{conversation}/{number}")  # nosec B311 # the same at each run
    who, name, place = rng.choice(WORDS["who"]), _name(rng, 1), _name(rng, 2)
    thing, label, where = rng.choice(WORDS["thing"]), rng.choice(WORDS["label"]), number + 101
    tag = str(10_000 + (number * 7_919 + zlib.crc32(conversation.encode())) % TAGS)
    did, when, so, kept, ask = (rng.choice(WORDS[kind]) for kind in ("did", "when", "so", "kept", "ask"))
    did, kept = did.format(what=rng.choice(WORDS["what"])), kept.format(label=label, thing=thing, where=where, tag=tag)
    return Note(
        text=f"{who.capitalize()} {name} from {place} {did} {when}, {so}. {kept[0].upper()}{kept[1:]}. {ask}",
        tag=tag,
        question=f"What was the {label} of {thing} {where}?",
        reminder=f"What was it with {name} from {place}?",
    )


def answer(text: str) -> str:
    """Return the scripted model's answer to `text`: about 40 words, always the same for the same text."""
    return WORDS["answers"][zlib.crc32(text.encode()) % len(WORDS["answers"])]


def _name(rng: random.Random, length: int) -> str:
    """Return a name of `length` first syllables and an ending.  Syllables early in the lists are far more frequent."""
    starts, ends = WORDS["starts"], WORDS["ends"]
    name = "".join(starts[int(len(starts) * rng.random() ** 2)] for _ in range(length))
    return name.capitalize() + ends[int(len(ends) * rng.random() ** 2)]
