"""Values of what other programs export, as records.

No field of such a file is certain to be there, or to be of a kind.  What is missing or wrong becomes nothing, and what
can't be stored becomes a replacement character.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from memory.errors import InvalidRequest
from memory.transfer.export import FactRecord, ItemRecord, SessionRecord
from models.facts import Fact
from models.messages import MessageDraft
from schemas.fields import ID, UNSTORABLE
from schemas.sessions import MESSAGE_CHARS_MAX

Record = SessionRecord | FactRecord | ItemRecord
ID_CHARS = 250  # characters of a message's id in its file
_MILLISECONDS = 100_000_000_000  # seconds would be in the year 5138
_ROLES = {
    **dict.fromkeys(("user", "human", "you", "me"), "user"),
    **dict.fromkeys(("assistant", "ai", "bot", "model", "chatgpt", "claude", "gemini"), "assistant"),
}


def mapping(value: Any) -> Mapping[str, Any]:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def objects(value: Any) -> list[Mapping[str, Any]]:
    """The objects in `value`, if it is a list."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """`value` if it is text, as it can be stored."""
    return UNSTORABLE.sub("\ufffd", value).strip() if isinstance(value, str) else ""


def role_of(name: Any) -> str | None:
    """Who speaks: the person or the assistant; None for anybody else."""
    return _ROLES.get(text(name).lower())


def moment(value: Any) -> datetime | None:
    """A time from ISO 8601, or from seconds or milliseconds since 1970."""
    try:
        if isinstance(value, str):
            at = datetime.fromisoformat(value.strip())
            return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        return datetime.fromtimestamp(value / 1000 if value >= _MILLISECONDS else value, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def words(content: Any) -> str:
    """The words of a message's content: a text, or a list of parts, of which some stand for other things."""
    if not isinstance(content, list):
        return text(content)
    parts = (one if isinstance(one, str) else _part(mapping(one)) for one in content)
    return text("\n".join(part for part in parts if part.strip()))


def _part(part: Mapping[str, Any]) -> str:
    kind = text(part.get("type"))
    if kind.endswith("text") or not kind:  # not a thought, and not a tool's call or result
        return text(part.get("text"))
    return next((f"[{name}]" for name in ("image", "video", "audio", "file") if name in kind), "")


def drafts(role: str, content: str, at: datetime | None, id: str, name: str = "") -> Iterator[MessageDraft]:
    """A message with this id in its file, in as many pieces as it takes; none without words."""
    id = id[:ID_CHARS]
    for number, start in enumerate(range(0, len(content), MESSAGE_CHARS_MAX), 1):
        yield MessageDraft(
            role=role,
            content=content[start : start + MESSAGE_CHARS_MAX],
            name=name[:128] or None,
            created_at=at,
            external_id=id if number == 1 else f"{id}#{number}",
        )


def chat(
    kind: str,
    ids: Iterable[Any],
    title: Any,
    messages: Iterable[MessageDraft],
    began: datetime | None = None,
    updated: datetime | None = None,
) -> SessionRecord:
    """A session under the first of the ids that can be one; else under an id made of those of its messages."""
    said = tuple(messages)
    usable = (one for one in ids if isinstance(one, str) and ID.fullmatch(one) and not UNSTORABLE.search(one))
    return SessionRecord(
        id=next(usable, None) or f"{kind}-{digest(*(str(one.external_id) for one in said[:1]))}",
        title=" ".join(text(title).split())[:200],
        system_prompt=None,
        created_at=began,
        updated_at=updated,
        facts_through=0,
        messages=said,
        by_external_id=True,
    )


def digest(*parts: str) -> str:
    """A short digest of texts, for what has no id of its own."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def memory(statement: str, now: datetime, since: Any = None, until: Any = None) -> FactRecord:
    """A statement about the person, which held from `since` on.  It has no source here."""
    fact = Fact(0, statement, moment(since) or now, now, scope="user", valid_to=moment(until))
    return FactRecord(fact, None, (), by_text=True)


def branch(parents: Mapping[str, Any], tip: Any) -> list[str]:
    """The ids from the root of a tree to `tip`, as far as they are known, each once."""
    line = dict[str, None]()
    while isinstance(tip, str) and tip in parents and tip not in line:
        line[tip] = None
        tip = parents[tip]
    return list(line)[::-1]


def refused(code: str, problem: str) -> InvalidRequest:
    return InvalidRequest(code, f"{problem}. Nothing was stored.")
