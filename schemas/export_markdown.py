"""The export as Markdown, for people to read: the profile and the facts, then each chat with its summary and its words.

Everything that was said or stored is quoted or on one line, so it can't pass for another part of the document.  The
chats can be imported again (see `sources.markdown`); the rest is in the JSON document (see `export`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from memory.longterm import profile
from memory.longterm.patch import Profile
from memory.people.export import Export, SessionRecord
from memory.rendering import one_line, plain, stamp
from memory.sessions.messages import MessageDraft


def markdown_of(export: Export) -> Iterator[str]:
    """The document, piece by piece."""
    yield f"# What Recap has of {one_line(export.user_id)}\n\nAs of {stamp(export.exported_at)}, with times in UTC.\n"
    yield from _listed("Profile", _profile(export))
    yield from _listed("Facts", _facts(export, held=True))
    yield from _listed("Facts that no longer hold", _facts(export, held=False))
    for session in export.sessions:
        yield from _chat(session)


def _listed(title: str, lines: Iterator[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number == 0:
            yield f"\n## {title}\n\n"
        yield f"- {one_line(line)}\n"


def _profile(export: Export) -> Iterator[str]:
    for record in export.items:
        if (record.item.namespace, record.item.key) == (profile.NAMESPACE, profile.KEY):
            values = Profile.of(record.item.value).values()
            yield from (f"{one.name}: {one.value} ({one.source['since'][:10]})" for one in values)


def _facts(export: Export, *, held: bool) -> Iterator[str]:
    for record in export.facts:
        fact = record.fact
        if held and fact.valid_to is None:
            yield f"{fact.text} (since {fact.valid_from:%Y-%m-%d})"
        if not held and fact.valid_to is not None and not fact.merged:
            yield f"{fact.text} ({fact.valid_from:%Y-%m-%d} to {fact.valid_to:%Y-%m-%d})"


def _chat(session: SessionRecord) -> Iterator[str]:
    yield f"\n# {one_line(session.title) or 'Untitled chat'}\n\n{_span(session.created_at, session.updated_at)}\n"
    for message in session.messages:
        if message.erased_at is None:
            yield f"\n## {_said(message)}\n\n{_quoted(message.content)}\n"
    newest = max(session.summaries, key=lambda version: version.version, default=None)
    if newest is not None:
        yield f"\n## Summary, {stamp(newest.created_at)}\n\n{_quoted(str(newest.sections))}\n"


def _span(*times: datetime | None) -> str:
    return " to ".join(dict.fromkeys(stamp(time) for time in times if time is not None))


def _said(message: MessageDraft) -> str:
    name = f" ({one_line(message.name)})" if message.name else ""
    time = f", {stamp(message.created_at)}" if message.created_at else ""
    refused = ", refused by a model server" if message.refused is not None else ""
    return f"{message.role}{name}{time}{refused}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in plain(text).split("\n"))
