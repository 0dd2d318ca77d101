"""Remembered text is data: the one place that puts it into a prompt.

Guarantee: whatever was said, it cannot close the block it is quoted in, open another, start a line of its own, name
another speaker, or hold what a server's chat template takes for a mark (`<|im_start|>`, `[INST]`).  Angle brackets and
ampersands are escaped, also those that tokenisers fold into ASCII; every kind of line end is one, and indented; and
what Unicode shows nobody is dropped: control characters, overrides of the writing direction, zero-width characters and
tags, which can hide text from a reader and show it to a model.  What makes a letter or an emoji look as it was written
stays: a joiner after a letter that joins, a variation selector after what has variations, the tags of a flag.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import date, datetime

from memory.domain import Excerpt, Fact, Message

GAP = "..."  # where messages of a session are left out
BLOCKS = ("memory", "chat", "message", "summary", "facts")

_LINE_END = re.compile("\r\n?|[\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_JOINERS = "\u200c\u200d"
_VARIATIONS = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
_UNSEEN = re.compile(
    "\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074"
    "|\U000e0077\U000e006c\U000e0073)\U000e007f"  # the flags of England, Scotland and Wales
    "|[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufff9-\ufffb"
    # and Unicode's Default_Ignorable_Code_Point
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_JOINING = re.compile(f"[{_JOINERS}]"), ("Lo", "Mn", "Mc", "So", "Sk")
_VARYING = re.compile(f"[{_VARIATIONS}]"), ("Lo", "So", "Sm", "Po")
_KEYCAP = "\ufe0f\u20e3"

_ESCAPED = (
    {"&": "&amp;", "＆": "&amp;", "﹠": "&amp;"} | dict.fromkeys("<＜﹤", "&lt;") | dict.fromkeys(">＞﹥", "&gt;")
)
_MARK = re.compile(r"[\[［](?=/?[A-Z][A-Z_]{2,}[\]］])")  # [INST], [/INST], [TOOL_CALLS], [SEP]
_ORDINARY = re.compile(  # none of the above, as is most that people say, in any language: seen at ten times the speed
    r"[\t\n !-%'-;=?-Z\\-~\xa0-\xac\xae-\u034e\u0350-\u061b\u061d-\u115e\u1161-\u17b3\u17b6-\u180a\u1810-\u200a"
    r"\u2010-\u2027\u202f-\u205f\u2070-\u3163\u3165-\ud7ff\uff01-\uff05\uff07-\uff1b\uff1d\uff1f-\uff3a\uff3c-\uff9f]*"
)
_OPENING = re.compile(rf"<({'|'.join(BLOCKS)})(?: [^<>\n]{{0,400}})?>\n")


def plain(text: str) -> str:
    """`text` without what nobody would see of it, and with one kind of line end; a tab stays."""
    if _ORDINARY.fullmatch(text):
        return text
    return _UNSEEN.sub(_shown, _LINE_END.sub("\n", text))


def _shown(unseen: re.Match[str]) -> str:
    """What stays of a character that by itself is not seen: whatever shapes the one before it."""
    found, text = unseen.group(), unseen.string
    before = unicodedata.category(text[unseen.start() - 1]) if unseen.start() else ""
    shapes = any(kind.match(found) and before in after for kind, after in (_JOINING, _VARYING))
    return found if len(found) > 1 or shapes or text.startswith(_KEYCAP, unseen.start()) else ""


def one_line(text: str) -> str:
    """`plain` text on one line."""
    return " ".join(plain(text).split())


def escape(text: str) -> str:
    """`text` as it may stand inside a block."""
    if not _ORDINARY.fullmatch(text):
        text = plain(text)
        for character, escaped in _ESCAPED.items():  # "&" first; ten times as fast as `translate` beyond ASCII
            text = text.replace(character, escaped)
        text = _MARK.sub("&#91;", text)
    return text.replace("\n", "\n  ") if "\n" in text else text


def attribute(text: str) -> str:
    """`text` as it may stand between double quotes."""
    return escape(one_line(text)).replace('"', "&quot;").replace("＂", "&quot;")


def without_blocks(text: str) -> str:
    """`text` without what was pasted into it of a prompt's own blocks: they quote, whoever sends them."""
    last = {name: text.rfind(f"</{name}>") for name in BLOCKS}
    kept, at = list[str](), 0
    for opening in _OPENING.finditer(text):
        name = opening[1]
        if at <= opening.start() and opening.end() <= last[name]:
            kept.append(text[at : opening.start()])
            at = text.index(f"</{name}>", opening.end()) + len(f"</{name}>")
    return "".join([*kept, text[at:]])


def stamp(time: datetime) -> str:
    """A time as it is shown to models: UTC, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M")


def message_line(message: Message, number: bool = False, *, on: date | None = None) -> str:
    """One message as a line: when, who, what; with `number` its position first, so that it can be referred to.

    The day is left out where it is `on`, that of what stands before the line.
    """
    said = message.created_at
    prefix = f"[{message.position}] " if number else ""
    day = "" if said.date() == on else f"{said:%Y-%m-%d} "
    return f"{prefix}{day}{undated_line(message)}"


def undated_line(message: Message) -> str:
    """One message as a line that names no day.

    A name stands between quotes: it is told from the role, and from the words, whatever it says.
    """
    said = message.created_at
    name = f' "{attribute(message.name)}"' if message.name else ""
    return f"{said.hour:02}:{said.minute:02} {message.role}{name}: {escape(message.content)}"


def numbered(messages: Iterable[Message]) -> Iterator[str]:
    """Messages as lines with their positions, the first with its day, and each whose day is another."""
    on: date | None = None
    for message in messages:
        yield message_line(message, number=True, on=on)
        on = message.created_at.date()


def chat_block(excerpt: Excerpt) -> str:
    """An excerpt as a block of its own, naming its session and the day of its last message; gaps show as dots."""
    on = updated = excerpt.messages[-1].created_at.date()
    parts: list[str] = []
    for at, message in enumerate(excerpt.messages):
        if at and message.position > excerpt.messages[at - 1].position + 1:
            parts.append(GAP)
        parts.append(message_line(message, on=on))
        on = message.created_at.date()
    lines = "\n".join(parts)
    return f'<chat id="{attribute(excerpt.session_id)}" updated_at="{updated}">\n{lines}\n</chat>'


def spoken(message: Message) -> tuple[str, str]:
    """A stored message word for word: in which role, and how.  Only the person and the assistant speak in their own
    roles; a stored system or tool message is quoted, since remembered text is never an instruction."""
    if message.role in ("user", "assistant"):
        name = one_line(message.name) if message.name else ""
        return message.role, f"{name}: {message.content}" if name else message.content
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
