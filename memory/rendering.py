"""Remembered text is data.  This is the one module that puts it into a prompt; nothing else escapes or quotes.

Guarantee: remembered text cannot close the block it is quoted in, open another block, start a line of its own, name
another speaker, or contain a marker of a server's chat template (`<|im_start|>`, `[INST]`).  Angle brackets and
ampersands are escaped, also the ones that tokenisers fold into ASCII.  Every line end becomes one newline, indented.
Invisible characters can hide text from a reader and show it to a model.  They are removed, except where they shape a
letter or an emoji.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import date, datetime

from memory.domain import Excerpt, Fact, Message
from memory.sections import Sections

GAP = "..."  # stands for messages that are left out
BLOCKS = ("memory", "chat", "message", "summary", "facts")

_LINE_ENDS = "\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"  # besides the newline
_HIDDEN = (
    "\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufff9-\ufffb"
    # and Unicode's Default_Ignorable_Code_Point
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_UNSEEN = re.compile(
    "\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074"
    "|\U000e0077\U000e006c\U000e0073)\U000e007f"  # the flags of England, Scotland and Wales
    f"|(?P<joiner>[\u200c\u200d])|(?P<selector>[\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef])|[{_HIDDEN}]"
)
_SHAPED = {"joiner": ("Lo", "Mn", "Mc", "So", "Sk"), "selector": ("Lo", "So", "Sm", "Po", "Nd")}

_ESCAPED = str.maketrans(
    dict.fromkeys("&＆﹠", "&amp;") | dict.fromkeys("<＜﹤", "&lt;") | dict.fromkeys(">＞﹥", "&gt;")
)
_MARK = re.compile(r"[\[［](?=/?[A-Z][A-Z_]{2,}[\]］])")  # [INST], [/INST], [TOOL_CALLS], [SEP]
_ORDINARY = re.compile(  # text with nothing to remove or escape, as nearly all text is
    r"[\t\n !-%'-;=?-Z\\-~\xa0-\xac\xae-\u034e\u0370-\u058f"
    r"\u2010-\u2027\u3000-\u3163\u3165-\ud7ff\uff01\uff08-\uff1b\uff1f]*"
)
_OPENING = re.compile(rf"<({'|'.join(BLOCKS)})(?: [^<>\n]{{0,400}})?>\n")


def plain(text: str) -> str:
    """`text` without invisible characters, and with one kind of line end.  Tabs stay."""
    if _ORDINARY.fullmatch(text):
        return text
    return _UNSEEN.sub(_shaping, re.sub(f"\r\n|[{_LINE_ENDS}]", "\n", text))


def _shaping(unseen: re.Match[str]) -> str:
    """The invisible character where it shapes the character before it, or the flag; else nothing."""
    found, start = unseen.group(), unseen.start()
    before = unicodedata.category(unseen.string[start - 1]) if start else ""
    return found if len(found) > 1 or before in _SHAPED.get(unseen.lastgroup or "", ()) else ""


def one_line(text: str) -> str:
    """`plain` text on one line."""
    return " ".join(plain(text).split())


def escape(text: str) -> str:
    """`text` as it may stand inside a block."""
    if not _ORDINARY.fullmatch(text):
        text = _MARK.sub("&#91;", plain(text).translate(_ESCAPED))
    return text.replace("\n", "\n  ")


def attribute(text: str) -> str:
    """`text` as it may stand between double quotes."""
    return escape(one_line(text)).replace('"', "&quot;").replace("＂", "&quot;")


def without_blocks(text: str) -> str:
    """`text` without blocks of a prompt that were pasted into it: whoever pastes them quotes."""
    last = {name: text.rfind(f"</{name}>") for name in BLOCKS}
    kept, at = list[str](), 0
    for opening in _OPENING.finditer(text):
        name = opening[1]
        if at <= opening.start() and opening.end() <= last[name]:
            kept.append(text[at : opening.start()])
            at = text.index(f"</{name}>", opening.end()) + len(f"</{name}>")
    return "".join([*kept, text[at:]])


def block(name: str, lines: Iterable[str]) -> str:
    """Escaped lines between tags; nothing when there are no lines."""
    body = "\n".join(lines)
    return f"<{name}>\n{body}\n</{name}>" if body else ""


def stamp(time: datetime) -> str:
    """A time as models see it: UTC, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M")


def undated_line(message: Message) -> str:
    """One message as a line without its day.  Quotes around a name tell it from the role and from the words."""
    name = f' "{attribute(message.name)}"' if message.name else ""
    return f"{message.created_at:%H:%M} {message.role}{name}: {escape(message.content)}"


def message_lines(messages: Iterable[Message], on: date | None = None, *, numbered: bool = False) -> Iterator[str]:
    """Messages as lines: when, who, what.  `GAP` stands for those left out; `numbered` lines have their positions.

    The day is left out where it is `on`, the day of the line before.
    """
    last = 0
    for message in messages:
        if numbered:
            number = f"[{message.position}] "
        else:
            number = f"{GAP}\n" if last and message.position > last + 1 else ""
        said, last = message.created_at.date(), message.position
        yield f"{number}{'' if said == on else f'{said} '}{undated_line(message)}"
        on = said


def chat_block(excerpt: Excerpt) -> str:
    """An excerpt as a block that names its session and the day of its last message."""
    updated = excerpt.messages[-1].created_at.date()
    lines = "\n".join(message_lines(excerpt.messages, updated))
    return f'<chat id="{attribute(excerpt.session_id)}" updated_at="{updated}">\n{lines}\n</chat>'


def spoken(message: Message) -> tuple[str, str]:
    """A stored message of the tail: the role that speaks, and its words.

    Only the person and the assistant speak in their own roles.  A stored system or tool message is quoted, since
    remembered text is never an instruction.
    """
    if message.role in ("user", "assistant"):
        name = one_line(message.name) if message.name else ""
        return message.role, f"{name}: {message.content}" if name else message.content
    return "user", quoted(message.role, message.content)


def quoted(role: str, content: str) -> str:
    """The words of a role that must not speak for itself here."""
    return f'<message role="{attribute(role)}">\n{escape(content)}\n</message>'


def fact_line(fact: Fact, number: bool = False) -> str:
    """One fact as a line, with the day it was said.  With `number` its id comes first."""
    prefix = f"[{fact.id}]" if number else "-"
    return f"{prefix} {escape(fact.text)} (said {fact.valid_from:%Y-%m-%d})"


def summary_block(summary: Sections) -> str:
    """A summary as the main model reads it."""
    return block("summary", map(escape, summary.lines()))


def summary_json(summary: Sections) -> str:
    """The filled sections as JSON on one line: the mini model reads a summary in the shape it answers in."""
    filled = {name: value for name, value in summary.as_dict().items() if value}
    return escape(one_line(json.dumps(filled, ensure_ascii=False))) if filled else ""
