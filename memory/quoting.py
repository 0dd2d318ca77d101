"""Remembered text is data: the one place that puts it into a prompt.

Guarantee: whatever was said, it cannot close the block it is quoted in, open another, or start a line of its own.
Angle brackets and ampersands are escaped, line ends inside a message are indented, and control characters (which
can hide text from a reader) are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from memory.domain import Excerpt, Fact, Message

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


GAP = "..."  # where messages of a session are left out


def plain(text: str) -> str:
    """`text` without control, bidirectional-override and zero-width characters; a tab and a line end stay."""
    return _INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def escape(text: str) -> str:
    """`text` as it may stand inside a block."""
    return plain(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\n", "\n  ")


def attribute(text: str) -> str:
    """`text` as it may stand inside a quoted attribute."""
    return escape(text).replace('"', "&quot;").replace("\n", " ")


def stamp(time: datetime) -> str:
    """A time as it is shown to models: UTC, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M")


def message_line(message: Message, number: bool = False) -> str:
    """One message as a line: when, who, what; with `number` its position first, so that it can be referred to."""
    who = f"{message.name} ({message.role})" if message.name else message.role
    prefix = f"[{message.position}] " if number else ""
    return f"{prefix}{stamp(message.created_at)} {attribute(who)}: {escape(message.content)}"


def chat_block(excerpt: Excerpt) -> str:
    """An excerpt as a block of its own, naming its session and when its last message was said; gaps show as dots."""
    updated = stamp(excerpt.messages[-1].created_at)
    parts: list[str] = []
    for at, message in enumerate(excerpt.messages):
        if at and message.position > excerpt.messages[at - 1].position + 1:
            parts.append(GAP)
        parts.append(message_line(message))
    lines = "\n".join(parts)
    return f'<chat id="{attribute(excerpt.session_id)}" updated_at="{updated}">\n{lines}\n</chat>'


def spoken(message: Message) -> tuple[str, str]:
    """A stored message word for word: in which role, and how.  Only the person and the assistant speak in their own
    roles; a stored system or tool message is quoted, since remembered text is never an instruction."""
    if message.role in ("user", "assistant"):
        return message.role, f"{message.name}: {message.content}" if message.name else message.content
    return "user", quoted(message.role, message.content)


def quoted(role: str, content: str) -> str:
    """What somebody said who must not speak here in their own role."""
    return f'<message role="{attribute(role)}">\n{escape(content)}\n</message>'


def fact_line(fact: Fact, number: bool = False) -> str:
    """One fact as a line, with the day it was said; with `number` its id first."""
    prefix = f"[{fact.id}]" if number else "-"
    return f"{prefix} {escape(fact.text)} (said {fact.valid_from:%Y-%m-%d})"


def block(name: str, lines: Iterable[str]) -> str:
    """Already escaped lines between tags; nothing when there are no lines."""
    body = "\n".join(lines)
    return f"<{name}>\n{body}\n</{name}>" if body else ""
