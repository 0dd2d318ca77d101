"""Convert values of other programs' exports to records.

Any field may be missing or of another type: it becomes an empty value then. Characters that can't be stored become
replacement characters.
"""

import hashlib
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from memory.errors import InvalidRequest
from memory.json_values import dict_in
from memory.knowledge.profile import KEY, LINE_CHARS, LINES_MAX, NAMESPACE
from memory.knowledge.profile_patch import Profile
from memory.transcripts.persons_words import words_of_person
from memory.transfer.export import FactRecord, ItemRecord, SessionRecord
from memory.transfer.sources.times import Times
from models.messages import MessageDraft
from models.store import ItemVersion
from schemas.fields import ID, MESSAGE_CHARS_MAX, UNSTORABLE

Record = SessionRecord | FactRecord | ItemRecord
MESSAGE_KEY_CHARS = 250  # of a message's id in its file
_INNER = re.compile(r"<details type=\"(?:reasoning|tool_calls|code_interpreter)\".*?(?:</details>\s*|\Z)", re.DOTALL)
"""What Open WebUI writes into an answer beside the model's words; one that was broken off takes all the rest."""
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_ROLES = {
    **dict.fromkeys(("user", "human", "you", "me"), "user"),
    **dict.fromkeys(
        ("assistant", "ai", "bot", "model", "gpt", "chatgpt", "claude", "gemini", "grok", "copilot"), "assistant"
    ),
}


def text(value: Any) -> str:
    """Return `value` if it is text, as it can be stored, else an empty text."""
    return UNSTORABLE.sub("\ufffd", value).strip() if isinstance(value, str) else ""


def role_of(name: Any) -> str | None:
    """Return the role of a speaker's name; None for others than the person and the assistant."""
    return _ROLES.get(text(name).lower())


def words(content: Any) -> str:
    """Return the text of a message's content: a text, or a list of parts, some of which become placeholders."""
    if not isinstance(content, list):
        return text(content)
    parts = (part if isinstance(part, str) else _part(dict_in(part)) for part in content)
    return text("\n".join(part for part in parts if part.strip()))


def _part(part: Mapping[str, Any]) -> str:
    kind = text(part.get("type"))
    if kind.endswith("text") or not kind:  # not a thought, and not a tool's call or result
        return text(part.get("text")) or text(dict_in(part.get("text")).get("value"))
    return next((f"[{name}]" for name in ("image", "video", "audio", "file") if name in kind), "")


def drafts(role: str, content: str, at: datetime | None, key: str, name: str = "") -> Iterator[MessageDraft]:
    """Yield a message in as many pieces as it takes; none without words of the speaker's. key: its id in the file."""
    key = key[:MESSAGE_KEY_CHARS]
    content = words_of_person(content) if role == "user" else _INNER.sub("", content)
    for number, start in enumerate(range(0, len(content), MESSAGE_CHARS_MAX), 1):
        yield MessageDraft(
            role=role,
            content=content[start : start + MESSAGE_CHARS_MAX],
            name=name[:128] or None,
            created_at=at,
            external_id=key if number == 1 else f"{key}#{number}",
        )


def chat(
    kind: str,
    ids: Iterable[Any],
    title: Any,
    messages: Iterable[MessageDraft],
    began: datetime | None = None,
    updated: datetime | None = None,
) -> SessionRecord:
    """Return a session under the first usable id; else under an id made of its first message's."""
    drafts = tuple(messages)
    usable = (key for key in ids if isinstance(key, str) and ID.fullmatch(key) and not UNSTORABLE.search(key))
    return SessionRecord(
        id=next(usable, None) or f"{kind}-{digest(*(str(draft.external_id) for draft in drafts[:1]))}",
        title=" ".join(text(title).split())[:200],
        system_prompt=None,
        created_at=began,
        updated_at=updated,
        facts_through=0,
        messages=drafts,
        by_external_id=True,
    )


def digest(*parts: str) -> str:
    """Return a short digest of texts, as an id."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def memory(
    statement: str, times: Times, since: Iterable[Any] = (), until: Iterable[Any] = (), ends: Iterable[Any] = ()
) -> FactRecord:
    """Return a statement about the person as a fact without a source, valid from `since`. ends: its `expires_at`.

    Of the values for each time, the first that is one counts.
    """
    begins = times.read(*since) or times.now
    end = times.read(*until)
    expires_at = times.read(*ends)
    return FactRecord(0, statement, begins, times.now, scope="user", valid_to=end, expires_at=expires_at, by_text=True)


def profile(texts: Mapping[str, Any], at: datetime) -> ItemRecord:
    """Return texts by the profile's fields, such as `about`, as the profile of a person who has none yet."""
    document: dict[str, list[str]] = {}
    for field, value in texts.items():
        lines = [part for line in text(value).splitlines() for part in textwrap.wrap(line, LINE_CHARS)]
        if lines:
            document[field] = lines[:LINES_MAX]
    source = {"quote": "", "session_id": None, "position": None, "since": at.isoformat(), "author": "person"}
    content = asdict(Profile(document, {field: [source] * len(lines) for field, lines in document.items()}))
    versions = (ItemVersion(1, content, "person", at),)
    return ItemRecord(0, NAMESPACE, KEY, content, 1, None, False, None, at, at, versions=versions)


def branch(parents: Mapping[str, Any], times: Mapping[str, datetime | None], tip: Any = None) -> list[str]:
    """Return the ids of a tree from its root to `tip`. Above a deleted id, and without a tip, the newest leaf counts.

    parents, times: the parent and the time of each id.
    """
    inner = {parent for parent in parents.values() if isinstance(parent, str)}
    leaves = (key for key in list(parents)[::-1] if key not in inner)
    line: list[str] = []  # from its end
    seen = set[str]()
    for leaf in (tip, *sorted(leaves, key=lambda key: times[key] or _LONG_AGO, reverse=True)):
        key = leaf
        path: dict[str, None] = {}
        while isinstance(key, str) and key in parents and key not in seen:
            path[key] = None
            seen.add(key)
            key = parents[key]
        is_whole = not isinstance(key, str) or key in path  # up to the root, or to a circle
        if is_whole or key not in seen:  # else it branches off what was taken
            line += path
        if path and is_whole:
            break
    return line[::-1]


def refused(code: str, problem: str) -> InvalidRequest:
    return InvalidRequest(code, f"{problem}. Nothing was stored.")
