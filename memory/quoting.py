"""Remembered text is data.  This one module has the rules by which all others escape and quote it for a prompt.

Guarantee: remembered text cannot close the block it is quoted in, open another block, start a line of its own, name
another speaker, or contain a mark of a server's chat template.  Angle brackets and ampersands are escaped, also those
that tokenisers fold into ASCII, and with them `<|im_start|>` and `</s>`.  Marks in square brackets are known by their
shape (`[INST]`, `[|user|]`, `]~b]`).  Every line end becomes one newline, indented.

Invisible characters can hide text from a reader and show it to a model.  They are removed, except where they change
what the reader sees, and there one of a kind stays: selectors of emoji and of Mongolian letters, joiners of emoji and
of scripts that join.  Selectors of other letters are removed too: each could carry a byte, and a model reads the same
letter without it.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, tzinfo
from functools import lru_cache
from operator import attrgetter
from typing import Any

from memory import tokens
from models.base import local_time
from models.facts import Fact
from models.messages import Message
from models.sections import Sections
from search_index.caches import ByteLRU

GAP = "..."  # stands for messages that are left out
BLOCKS = ("memory", "chat", "document", "message", "summary", "facts", "profile", "overview", "examples")

_ORDER = attrgetter("valid_from", "id")  # of facts as they were said
_SUMMARY_BLOCKS = ByteLRU(1 << 20)  # with what they were made from, by the ids of sessions
_LINE_ENDS = "\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"  # besides the newline
_MVS, _ZWNJ, _ZWJ = "\u180e\u200c\u200d"  # Mongolian's vowel separator, zero-width non-joiner and joiner
_USELESS = re.compile(f"[^{_MVS}{_ZWNJ}{_ZWJ}\u180b-\u180d\u180f\ufe0e\ufe0f]+")  # for the shape of anything
_HIDDEN = (
    "\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufff9-\ufffc\U00013430-\U00013440\U00016fe4\U0001d159"
    # and Unicode's Default_Ignorable_Code_Point
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_FLAGS = [  # of England, Scotland and Wales
    "🏴" + "".join(chr(0xE0000 + ord(letter)) for letter in f"{name}\x7f") for name in ("gbeng", "gbsct", "gbwls")
]
_UNSEEN = re.compile(f"{'|'.join(_FLAGS)}|[{_HIDDEN}]+")
_VARIED = (  # what Unicode's emoji-variation-sequences.txt lists beyond ASCII
    "©®‼⁉™ℹ↔-↙↩↪⌚⌛⌨⏏⏩-⏳⏸-⏺Ⓜ▪▫▶◀◻-◾☀-☄☎☑☔☕☘☝☠☢☣☦☪☮☯☸-☺♀♂♈-♓♟♠♣♥♦♨♻♾♿⚒-⚗⚙⚛⚜⚠⚡⚧⚪⚫⚰⚱⚽⚾⛄⛅⛈⛎⛏"
    "⛑⛓⛔⛩⛪⛰-⛵⛷-⛺⛽✂✅✈-✍✏✒✔✖✝✡✨✳✴❄❇❌❎❓-❕❗❣❤➕-➗➡➰➿⤴⤵⬅-⬇⬛⬜⭐⭕〰〽㊗㊙🀄🅰🅱🅾🅿🈂🈚🈯🈷🌍-🌏🌕"
    "🌜🌡🌤-🌬🌶🍸🍽🎓🎖🎗🎙-🎛🎞🎟🎧🎬-🎮🏂🏄🏆🏊-🏎🏔-🏠🏭🏳🏵🏷🐈🐕🐟🐦🐿👁👂👆-👉👍👎👓👪👽💣💰💳💻💿📋📚📟📤-📦📪-📭📷"
    "📹-📻📽🔈🔍🔒🔓🕉🕊🕐-🕧🕯🕰🕳-🕹🖇🖊-🖍🖐🖥🖨🖱🖲🖼🗂-🗄🗑-🗓🗜-🗞🗡🗣🗨🗯🗳🗺😐🚇🚍🚑🚔🚘🚭🚲🚹🚺🚼🛋🛍-🛏🛠-🛥🛩🛰🛳"
)
_SELECTED = re.compile(f"[{_VARIED}][\ufe0e\ufe0f]|[0-9#*]\ufe0f\u20e3|[\u1820-\u18aa][\u180b-\u180d\u180f]")
_EMOJI = re.compile(
    f"[{_VARIED}\U0001f300-\U0001f64f\U0001f680-\U0001f6ff\U0001f7e0-\U0001f7eb"
    "\U0001f900-\U0001f9ff\U0001fa70-\U0001faff]"
)
_CURSIVE = frozenset(["ARABIC", "SYRIAC", "NKO", "MONGOLIAN", "MANDAIC", "PHAGS-PA", "ADLAM", "HANIFI"])
_VIRAMA = 9  # the combining class of the signs that join Indic letters

_ESCAPED = str.maketrans(
    dict.fromkeys("&＆﹠", "&amp;") | dict.fromkeys("<＜﹤", "&lt;") | dict.fromkeys(">＞﹥", "&gt;")
)
_BRACKETS = r"\[\]［］﹇﹈"
_WORD = "(?![A-Za-z ]*[A-Z]{2})[A-Za-z"  # what code (`list[str]`) and links (`[text](address)`) may have in brackets
_BRACKETED = re.compile(
    rf"(?<=[A-Za-z0-9_\])])\[{_WORD}]+\]|\[{_WORD} ]+\](?=\()|[\[［﹇]([^{_BRACKETS}]{{3,100}})(?=[\]］﹈])"
)
_MARK = re.compile(r"\|.*|/?(?=(?:[\d_▁]*[A-Za-z]){3})[A-Za-z\d_▁]+(?:-\d+)?", re.S)  # |user|, /INST, gMASK, img-1
_TILDE = re.compile(  # ]~b], [e~[
    rf"([{_BRACKETS}][^~～{_BRACKETS}]{{0,12}})[~～](?=[^{_BRACKETS}]{{0,12}}[{_BRACKETS}])"
)
_ORDINARY = re.compile(  # text with nothing to remove or escape, as nearly all text is
    r"[\t\n !-%'-;=?-Z\\^-~\xa0-\xac\xae-\u034e\u0370-\u058f"
    r"\u2010-\u2027\u3000-\u3163\u3165-\ud7ff\uff01\uff08-\uff1b\uff1f]*"
)
# What a person quotes: fenced or indented code, lines, and a mail from its header to the last paragraph.
_ASIDE = re.compile(
    r"^(```|~~~).*?(?:^\1[^\n]*$|\Z)|^[ \t]*>[^\n]*$|^(?: {4}|\t)(?![ \t]*[-*+•\d])[^\n]*$|```.*?(?:```|\Z)"
    r"|^(?:From|Von|De|Da|Van|Od): [^\n]*\n(?:[\w-]+: ?[^\n]*\n)+(?:[^\n]++|(?!\n\s*\n[^\n]*\Z)\n\s*+)*+",
    re.M | re.S,
)
# The blocks as they are read again: by the built-in model, which knows only what its prompt shows.
MEMORY_BLOCK = re.compile(r'(?:\A|\n\n)<memory now="([\d-]{10})[^"\n]*">\n(.*?)</memory>(?:\n\n|\Z)', re.S)
CHAT_BLOCK = re.compile(r'^<chat updated_at="([\d-]+)"[^\n]*>\n(.*?)\n</chat>', re.M | re.S)
DOCUMENT_BLOCK = re.compile(r'^<document title="([^"\n]*)"[^\n]* added="([\d-]+)">\n(.*?)\n</document>', re.M | re.S)
_OPENING = re.compile(rf"<({'|'.join(BLOCKS)})(?: [^<>\n]{{0,4000}})?>\n")


def normalize(text: str) -> str:
    """Return `text` without invisible characters, and with one kind of line end.  Tabs stay."""
    if _ORDINARY.fullmatch(text):
        return text
    return _UNSEEN.sub(_shaping, re.sub(f"\r\n|[{_LINE_ENDS}]", "\n", text))


def _shaping(unseen: re.Match[str]) -> str:
    """Return one selector and one joiner of invisible characters, where they change what is seen; or the flag."""
    run = unseen.group()
    text = unseen.string
    start = unseen.start()
    end = unseen.end()
    if run[0] == "🏴":
        return run
    run = _USELESS.sub("", run)
    return _kept(text[max(0, start - 1) : start], run[:1], run[-1:], text[end : end + 1])


@lru_cache(maxsize=4096)
def _kept(before: str, selector: str, joiner: str, after: str) -> str:
    """Return what stays between two characters."""
    left, right = _cursive(before), _cursive(after)
    joins = {
        _ZWJ: left != right or (_EMOJI.match(before) and _EMOJI.match(after)),
        _ZWNJ: left == "VIRAMA" or "" != left == right,
        _MVS: left == right == "MONGOLIAN",
    }
    selected = _SELECTED.match(before + selector + after)
    return (selector if selected else "") + (joiner if joins.get(joiner) else "")


def _cursive(character: str) -> str:
    """Return the script of a letter that joins its neighbours; "VIRAMA" for the sign that joins others."""
    if not character or unicodedata.combining(character) == _VIRAMA:
        return "VIRAMA" if character else ""
    script = unicodedata.name(character, "").partition(" ")[0]
    fixed = unicodedata.decomposition(character).startswith("<")  # a presentation form
    return script if script in _CURSIVE and unicodedata.category(character)[0] in "LM" and not fixed else ""


def comparable(text: str) -> str:
    """Return a text in the form in which texts are compared: without case, spacing and the final stop."""
    return one_line(text).casefold().rstrip(" .!。")


def one_line(text: str) -> str:
    """Return normalized text on one line."""
    return " ".join(normalize(text).split())


def escape(text: str) -> str:
    """Return `text` as it may stand inside a block."""
    return strip_markup(text).replace("\n", "\n  ")


def strip_markup(text: str) -> str:
    """Return normalized text without markup and without marks of chat templates, in lines of its own."""
    if _ORDINARY.fullmatch(text):
        return text
    return _BRACKETED.sub(_bracketed, _TILDE.sub(r"\1&#126;", normalize(text).translate(_ESCAPED)))


def _bracketed(found: re.Match[str]) -> str:
    """Return a text in brackets; escaped if it has the shape of a mark in any case, spacing, accents and style."""
    name = "".join(unicodedata.normalize("NFKD", found[1] or "").split())
    if not name.isascii():
        name = "".join(char for char in name if unicodedata.category(char)[0] != "M")
    return f"&#91;{found[1]}" if _MARK.fullmatch(name) else found.group()


def attribute(text: str) -> str:
    """Return `text` as it may stand between double quotes."""
    return escape(one_line(text)).replace('"', "&quot;").replace("＂", "&quot;")


def without_blocks(text: str) -> str:
    """Return `text` without blocks of a prompt that were pasted into it: whoever pastes them quotes."""
    last = {name: text.rfind(f"</{name}>") for name in BLOCKS}
    kept: list[str] = []
    at = 0
    for opening in _OPENING.finditer(text):
        name = opening[1]
        if at <= opening.start() and opening.end() <= last[name]:
            kept.append(text[at : opening.start()])
            at = text.index(f"</{name}>", opening.end()) + len(f"</{name}>")
    return "".join([*kept, text[at:]])


def own_words(text: str) -> str:
    """Return a person's text without the lines and blocks that they quote, code, and mails."""
    return _ASIDE.sub("", without_blocks(text)).strip()


def block(tag: str, lines: Iterable[str]) -> str:
    """Return escaped lines between tags; nothing when there are no lines."""
    body = "\n".join(lines)
    return tagged(tag, [body]) if body else ""


def tagged(tag: str, lines: Iterable[str], **attributes: object) -> str:
    """Return escaped lines between tags, also when there are none.  The attributes are escaped here."""
    written = "".join(f' {name}="{attribute(str(value))}"' for name, value in attributes.items())
    return "\n".join([f"<{tag}{written}>", *lines, f"</{tag}>"])


def owner_block(space: str | None, blocks: Iterable[str]) -> str:
    """Return the blocks of another memory: of a space or, without its name, of the person who acts in one."""
    lines = filter(None, blocks)
    return tagged("person", lines) if space is None else tagged("space", lines, name=space)


def format_time(time: datetime) -> str:
    """Return a time as models see it, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M")


def message_line(message: Message) -> str:
    """Return a message as a line without its day.  Quotes tell a name from the role and from the words."""
    if message.is_passage:
        page = (message.extra or {}).get("page")
        return f"{f'page {page}' if page else 'text'}: {escape(message.content)}"
    name = f' "{attribute(message.name)}"' if message.name else ""
    return f"{message.created_at:%H:%M} {message.role}{name}: {escape(message.content)}"


def message_lines(messages: Iterable[Message], on: date | None = None, *, numbered: bool = False) -> Iterator[str]:
    """Yield messages as lines: when, who, what.  `GAP` stands for those left out; `numbered` lines have positions.

    The day is left out where it is `on`, the day of the line before.
    """
    last = 0
    for message in messages:
        if numbered:
            number = f"[{message.position}] "
        else:
            number = f"{GAP}\n" if last and message.position > last + 1 else ""
        day = message.created_at.date()
        last = message.position
        date = f"{day} {day:%A} " if numbered else f"{day} "  # whoever works out dates needs the weekday
        yield f"{number}{'' if day == on else date}{message_line(message)}"
        on = day


def to_prompt_message(message: Message) -> tuple[str, str]:
    """Return the role that speaks in a stored message of the prompt, and its words.

    Only the person and the assistant speak in their own roles.  A stored system or tool message is quoted, since
    remembered text is never an instruction.
    """
    if message.role in ("user", "assistant"):
        name = escape(one_line(message.name)) if message.name else ""
        return message.role, f"{name}: {message.content}" if name else message.content
    return "user", quoted(message.role, message.content)


def quoted(role: str, content: str) -> str:
    """Quote a role that must not speak for itself here."""
    return tagged("message", [escape(content)], role=role)


def fact_line(fact: Fact, zone: tzinfo = UTC) -> str:
    """Return a fact as a line, with the time it was said and, if another took its place, the time of that."""
    until = f", until {format_time(local_time(fact.valid_to, zone))}" if fact.superseded_by and fact.valid_to else ""
    return f"- {escape(fact.text)} (said {format_time(local_time(fact.valid_from, zone))}{until})"


def fit_facts(facts: Sequence[Fact], room: int) -> tuple[tuple[Fact, ...], int]:
    """Return the first of these facts whose lines fit into `room` tokens, and the room left."""
    lines, room = tokens.fit_budget(room, map(fact_line, facts))
    return tuple(facts[: len(lines)]), room


def facts_block(facts: Iterable[Fact], zone: tzinfo) -> str:
    """Return facts as a block.  The oldest comes first, as of excerpts."""
    return block("facts", [fact_line(fact, zone) for fact in sorted(facts, key=_ORDER)])


def example_lines(messages: Iterable[tuple[str, str]]) -> str:
    """Return the messages of an example as lines, from who speaks and the words of each."""
    return "\n".join(f"{attribute(speaker)}: {escape(words)}" for speaker, words in messages)


def summary_block(session_id: int, stored: Mapping[str, Any], first: Collection[str]) -> str:
    """Return the block of a session's stored summary, with these sections `first`.

    One like the last of this session is not written anew.
    """
    made_from, text = _SUMMARY_BLOCKS.get(session_id) or (None, "")
    if made_from != (stored, first):
        text = block("summary", map(escape, Sections.from_dict(stored).lines(first)))
        _SUMMARY_BLOCKS.put(session_id, ((stored, first), text), 8 * len(text))
    return text
