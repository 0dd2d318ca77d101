"""The fixed words of the built-in model, in English and Chinese.

They are in one place because the model must know its own replies again: a digest that took "You told me ..." for
news would feed on its own echo.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from search_index.caches import cached

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@dataclass(frozen=True, eq=False)
class Phrases:
    """One language's phrases; the words in braces are filled in."""

    told_one: str
    told_many: str
    said_one: str
    said_many: str
    closest: str
    dated: str
    undated: str
    summary: str
    known: str
    titles: dict[str, str]
    nothing: str
    no_statement: str
    noted: str
    noted_plain: str
    replaces: str
    excluded: str
    reopened: str
    hello: str
    hello_name: str
    thanks: str
    bye: str
    fine: str
    who: str
    empty: str
    task: str
    quotes: str
    join: str


ENGLISH = Phrases(
    told_one="You told me {quote}",
    told_many="You told me:",
    said_one="{speaker} said {quote}",
    said_many="This was said:",
    closest="I am not sure that this is what you mean, but the closest I find is:",
    dated="on {date}: {quote}",
    undated=": {quote}",
    summary="From the summary of this conversation:",
    known="From what you have told me:",
    titles={},
    nothing="I find nothing about that in what you have told me. I am Recap's built-in model: I can only quote"
    " what was said. Connect a language model for real answers.",
    no_statement="You have not told me anything yet. I am Recap's built-in model: tell me something, and I can quote"
    " it when you ask.",
    noted="Noted: {items}.",
    noted_plain="Noted. I keep it word for word; ask me about it any time.",
    replaces="This replaces what you told me on {date}: {quote}",
    excluded="ruled out {option}",
    reopened="back among the options: {option}",
    hello="Hello! Tell me something about yourself or your plans, then ask me about it.",
    hello_name="Hello, {name}! What would you like me to note or to find?",
    thanks="You're welcome.",
    bye="Goodbye. I keep what you told me.",
    fine="All right.",
    who="I am Recap's built-in model. I note what you say and quote it when you ask; I can't do more without"
    " a language model.",
    empty="I did not find any words in that message.",
    task="I am Recap's built-in model: I can only note and quote what was said, so that is beyond me. Connect"
    " a language model for it.",
    quotes='""',
    join="; ",
)
CHINESE = Phrases(
    told_one="你{quote}",
    told_many="你告诉过我：",
    said_one="{speaker}{quote}",
    said_many="有人说过：",
    closest="不确定是不是你要找的，最接近的是：",
    dated="在{date}说过：{quote}",
    undated="说过：{quote}",
    summary="这次对话的摘要：",
    known="你告诉过我的：",
    titles={
        "Topic": "主题",
        "Requirements": "需求",
        "Constraints": "限制",
        "Ruled out": "已排除",
        "Facts and figures": "事实",
        "Open questions": "未决问题",
        "Discussed": "聊过",
    },
    nothing="在你告诉我的内容里没有找到。我是 Recap 的内置模型，只能引用说过的话；接入语言模型后才能真正回答。",
    no_statement="你还没有告诉我任何内容。我是 Recap 的内置模型：告诉我一些事，之后可以问我。",
    noted="记下了：{items}。",
    noted_plain="记下了，我会逐字保留，随时可以问我。",
    replaces="这会取代你在{date}说的：{quote}",
    excluded="排除{option}",
    reopened="重新考虑{option}",
    hello="你好！告诉我一些关于你的事，之后可以问我。",
    hello_name="你好，{name}！要我记下或查找什么？",
    thanks="不客气。",
    bye="再见，我会记住你说的话。",
    fine="好的。",
    who="我是 Recap 的内置模型。我会记下你说的话，并在你问起时引用；要做更多，请接入语言模型。",
    empty="这条消息里没有文字。",
    task="我是 Recap 的内置模型，只能记录和引用说过的话，做不了这件事；请接入语言模型。",
    quotes="“”",
    join="；",
)


def _beginnings(words: Phrases) -> list[str]:
    whole = (
        words.told_many,
        words.said_many,
        words.closest,
        words.summary,
        words.known,
        words.nothing,
        words.no_statement,
    )
    greetings = (words.noted_plain, words.hello, words.bye, words.who, words.empty, words.task)
    filled = (words.noted.format(items="\n"), words.hello_name.format(name="\n"))
    starts = [re.escape(phrase) for phrase in (*whole, *greetings)]
    return starts + [".{1,60}".join(map(re.escape, phrase.rstrip(".。").split("\n"))) for phrase in filled]


_OWN = re.compile(
    "|".join(_beginnings(ENGLISH) + _beginnings(CHINESE)) + r"|(?:You're welcome\.|All right\.|不客气。|好的。)\Z"
    r"|You told me on \d|你在\d{4}年|\S{1,40} said on \d{1,2} \w+ \d{4}: "
)
_EMPTY_HANDED = re.compile(
    r"I find nothing about|You have not told me anything|so that is beyond me|没有找到|还没有告诉我|做不了这件事"
    r"|\b(?:i (?:do not"
    r"|don't) know|i'm not sure|i am not sure|no idea|i can't (?:say|tell)|i cannot (?:say|tell)|not certain|hard to"
    r" say|i (?:do not|don't) have (?:that|any|enough|access)|could you (?:clarify|tell me more|specify)|need more"
    r" (?:information|details)|let me (?:check|think|get back)|i'll (?:check|get back|look into))\b"
    r"|我不知道|不清楚|不确定",
    re.IGNORECASE,
)


@cached(2048, longest=2_000)
def is_own(reply: str) -> bool:
    """Whether a reply was written by the built-in model."""
    return _OWN.match(reply) is not None


def is_empty_handed(reply: str) -> bool:
    """Whether a reply leaves the question where it was."""
    return _EMPTY_HANDED.search(reply[:300].replace("’", "'")) is not None


def day(moment: datetime, words: Phrases) -> str:
    """A date as people write it: "20 November 2026"."""
    if words is CHINESE:
        return f"{moment.year}年{moment.month}月{moment.day}日"
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"
