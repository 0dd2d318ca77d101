"""Keywords: the words of a text that are worth searching for, best first.

They are shown to people as the reason for a search, and say whether a message has anything to look for at all.  There
is no parser: words fall out because they are on a list (function words, generic verbs, time words, vague nouns), and
rank by their shape (quoted, a name, a technical term, a number).  A word on no list stays, whatever its language.

Guarantee: every keyword stands in the text after NFKC, and has terms in `search_index.analysis`, which owns what is
indexed.  Pure, linear, never raises.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from memory.languages import analysis_in
from memory.languages.en import STOP_WORDS
from search_index.analysis import MAX_TERM, Analysis
from search_index.remembered import remembered

ENGLISH = analysis_in("en")
terms = ENGLISH.terms

QUOTED, NAMED, COUNTED, PLAIN = range(4)
"""How much a keyword is worth: what was quoted, names and technical terms, numbers, any other word."""

MAX_NAME = 4  # words that are read as one name; a longer run of capitals is a title

# Function words that the index keeps, since they are also names ("will", "may"): out, unless capitalised in a sentence.
_FUNCTION = """
    will shall might may us i'm mine yours hers ours theirs myself yourself himself herself itself ourselves themselves
    because cause cuz while though although until till unless since whether during between among within without about
    above below over under up down out off away back through across around along against toward towards onto upon per
    via despite except plus versus vs via both each every all either neither nor own same other others another else
    more most less least few fewer many much enough several any some none no not never ever only even just also too
    very really quite rather pretty almost already still yet again once twice often always usually sometimes maybe
    perhaps probably possibly actually basically simply exactly especially definitely certainly surely obviously
    honestly literally anyway though however therefore instead otherwise besides then than now here there everywhere
    somewhere anywhere nowhere somehow kinda sorta gonna wanna gotta lemme dunno one ones two etc eg ie ago
    u ur r n y im id ill ive youre youve dont didnt wanna pls plz please ok okay yes yeah yep yup no nope nah oh ah
    hi hello hey hiya bye goodbye thanks thank thx ty cheers welcome sorry lol lmao haha hahaha hehe hmm hm wow ugh
    btw fyi tbh imo idk well so sure right alright nice cool great good better best bad worse worst fine perfect
    awesome amazing okay lovely glad happy able possible likely important interesting useful helpful quick quickly easy
    easily hard difficult simple simpler big bigger small smaller short shorter long longer new old different similar
    certain various whole full real true wrong correct soon kindly first second third next last previous previously
    earlier recent recently lately later latest finally meanwhile like worth further apart together am pm
"""
# Generic verbs, in their forms; after an article or a possessive they are nouns ("my work", "the plan") and stay.
_VERBS = """
    make want need get give come take put let look seem feel try help ask use find keep happen explain describe show
    mean remember recall remind mention discuss talk speak suggest recommend advise refer decide agree believe guess
    suppose wonder hope wish love hate enjoy prefer understand forget leave start stop begin continue become turn work
    run play call bring send add set change fix check read write move live stay learn buy pay hear meet follow provide
    include consider create allow plan answer reply repeat share compare choose pick handle solve finish list summarize
    summarise rewrite rephrase expand elaborate clarify sound mind care wait deal appear bother expect manage notice
    realize realise say tell know think draw sit stand hold translate
"""
_VERB_FORMS = """
    be been being is are was were am do does did doing done have has had having go goes went gone going see sees saw
    seen seeing said told knew known thought made got gotten gave given came took taken felt kept meant spoke spoken
    found understood forgot forgotten left began begun became ran brought sent wrote written bought paid heard met
    chose chosen stood held
"""
_NOUN_FORMS = "meeting meetings setting settings feeling feelings buying checking living workers playing mindset"
_VAGUE = """
    thing things thingy stuff something anything everything nothing someone somebody anyone anybody everyone everybody
    nobody way ways lot lots bit bits kind kinds sort sorts part parts place places people person persons guy guys man
    question questions answer answers idea ideas point points fact reason reasons example examples case cases option
    options detail details info information conversation conversations discussion discussions suggestion suggestions
    recommendation recommendations advice tip tips couple bunch number rest matter matters difference topic word words
    message messages context update updates situation end list whatever whichever
"""
_TIMES = """
    time times today tonight yesterday tomorrow now moment moments second seconds minute minutes hour hours day days
    daily week weeks weekly weekend weekends month months monthly year years yearly decade decades morning mornings
    afternoon afternoons evening evenings night nights noon midnight monday mondays tuesday tuesdays wednesday
    wednesdays thursday thursdays friday fridays saturday saturdays sunday sundays mon tue tues wed thu thur thurs fri
    january february july september october november december jan feb sept oct nov dec date past future present
"""
_MONTH_NAMES = "May|March|April|June|August"  # also people and verbs: months only where a date stands


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _forms(verb: str) -> Iterator[str]:
    """The regular forms of a verb, and some that do not exist."""
    yield from (verb, verb + "s", verb + "es", verb + "ed", verb + "ing")
    if verb.endswith("e"):
        yield from (verb + "d", verb[:-1] + "ing")
    elif verb.endswith("y"):
        yield from (verb[:-1] + "ies", verb[:-1] + "ied")
    else:
        yield from (verb + verb[-1] + "ed", verb + verb[-1] + "ing")


_SOFT = _words(_FUNCTION) - STOP_WORDS
_HARD = _words(_VAGUE) | _words(_TIMES)
_GENERIC = (_words(_VERB_FORMS) | {form for verb in _VERBS.split() for form in _forms(verb)}) - _words(_NOUN_FORMS)
_NOUN_NEXT = _words("my your his her our their its a an the this these those some")

_UNSPACED = "\u0e01-\u0eff\u1000-\u109f\u1780-\u17d3\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u312f"
_UNSPACED += "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_LETTER = f"(?:[^\\W_{_UNSPACED}]|[\u0900-\u0963\u0970-\u0dff])"
_UNIT = (
    r"%|°[CF]?|[kKMGT]i?[Bb]|[kMG]?Hz|k?[gmWV]|kg|mg|cm|mm|km/h|mph|lbs?|oz|ml|ms|px|fps|km|mi|kWh|kcal|bn"
    r"|(?:kilo|centi|milli)?(?:met(?:er|re)|gram|lit(?:er|re))s?|miles?|feet|ft|inch(?:es)?|pounds?|euros?|dollars?"
    r"|cups?"
    r"|[EU]SD|EUR|GBP|percent|degrees|calories|million|billion|thousand|hours?|hrs?|minutes?|mins?|seconds?|days?"
    r"|weeks?"
    r"|months?|years?|people|元|块钱?|万元?|亿|公里|公斤|千克|毫升|厘米|米|斤|岁|度|年|月|日|号|个|次|天|小时|分钟"
)
_QUOTED = (
    rf"(?<![^\W{_UNSPACED}])\"(?P<quote>[^\"\n]{{1,80}})\""
    r"|[“„«](?P<curly>[^“”„«»\n]{1,80})[”»]|`(?P<code>[^`\n]{1,80})`"
    r"|[「『《](?P<corner>[^「」『』《》\n]{1,80})[」』》]"
)
_PATHS = (
    r"(?P<path>https?://[^\s<>\"'`]{1,300}|(?<![\w./~-])(?:~|\.{1,2})?/\w[\w.-]*+(?:/[\w.-]++)*+"
    r"|(?<![\w./~-])[\w-][\w./-]{0,200}?/[\w.-]{0,80}\.[A-Za-z]\w{0,9}(?![\w/]))"
)
_WORDS = (
    # numbers and their units; a number of a date or a version is one word
    rf"(?<![^\W{_UNSPACED}])(?P<number>[$€£¥₹]?\d++(?:[.,:/-]\d++)*+(?:\s?(?:{_UNIT})(?![A-Za-z0-9]))?+(?!{_LETTER}"
    rf"|[_-]{_LETTER}))"
    # words, joined by single marks into a compound, as the index joins them
    rf"|(?P<word>{_LETTER}++(?:(?:['’._@&-]|__|::){_LETTER}++)*+(?:\+\+|\#(?!\w))?)"
    rf"|(?P<unspaced>[{_UNSPACED}]++)"
)
_TOKEN = re.compile(f"{_QUOTED}|{_PATHS}|{_WORDS}")
# The same for a text that has neither quotations nor paths, and for such a one in ASCII: each faster than the last.
_PLAIN_TOKEN, _ASCII_TOKEN = re.compile(_WORDS), re.compile(_WORDS.replace(_LETTER, "[A-Za-z0-9]"))
_MARKED = re.compile(r"[\"“„«`「『《/]")
_NOISE = re.compile(r"\w?[^\w\s]{31,}")  # rules and accents without end: they would make normalising quadratic
_NOISY = re.compile(r"[^\w\s]{31}")
_DATED = re.compile(
    rf"\b(?:in|since|until|till|by|last|next|this|early|late|mid|during|before|after)\s(?:{_MONTH_NAMES})\b"
    rf"|\b(?:{_MONTH_NAMES})(?=\s\d)|(?<=\d\s)(?:{_MONTH_NAMES})\b"
    r"|\b(?:\d+|a|an|two|three|four|five|six|few)\s\w+\sago\b"
)
_MAY_BE_DATED = re.compile(rf"{_MONTH_NAMES}|ago")  # what every date of these has
_CONTRACTION = re.compile(r"['’](?:s|d|m|re|ve|ll)$", re.IGNORECASE)
# What no plain word has: a capital or a digit inside, a mark.  An acronym may also be a word that somebody shouts.
_TECHNICAL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}|\d|[._@&:+#]|\w-\w")
_ACRONYM = re.compile(r"[A-Z]{2,6}s?$")
_NAME = re.compile(r"[^\W\d_](?:['’]?[^\W\d_])*$")
_SENTENCE_END = re.compile(r"[.!?:;\n。！？：；…]")

# Chinese: what is no content.  Characters that are also parts of words go only where they stand alone or lead.
_HAN_FUNCTION = re.compile(
    "(?P<keep>目的地?|了解|和平|和谐|首都|成都|都市|就业|成就|参与|他人|吉他|其他|是非)"
    "|为什么|怎么样|怎么办|是不是|有没有|能不能|可不可以|记不记得|叫什么|什么时候|什么|怎么|怎样|如何|哪里|哪儿|多少"
    "|几个"
    "|哪[个些本家位]|[这那][个些里样次]|[我你您他她它咱]们|大家|自己|一下|一些|一点|一起|一[个只本家封篇条张件首]"
    "|有点|关于|之前"
    "|以前|曾经|刚才|刚刚|后来|然后|现在|最近|今天|昨天|明天|前天|后天|上一?次|下一?次|上个?月|下个?月|[上下本]周"
    "|今年|去年|明年"
    "|早上|晚上|下午|上午|中午|时候|时间|告诉|说过?|提到过?|提过|记得|讨论过?|聊[过了]?|谈[过了]|知道|觉得|认为|想要"
    "|需要|可以|能够"
    "|应该|可能|必须|已经|正在|还是|或者|但是|因为|所以|如果|虽然|不过|而且|以及|帮忙|请问|谢谢|[你您]好|好的|哈+"
    "|推荐|建议|东西"
    "|事情|问题|办法|方法|继续|[我你您他她它咱的了吗呢吧啊呀嘛哦嗯是和与也都就谁请这那很]"
)
_HAN_LEADING = frozenset(
    "在有对把被让给跟从到向为太更最还再又不没会能要想用去来做帮写看找问读买个些么过着得地怎叫好行上下一"
)
_HAN_LED = _words(
    "对象 对话 对比 用户 用法 用途 会议 会员 会计 能力 能量 能源 要求 要点 有效 有限 来源 做法 写作 看法 地址 地图 地铁"
    " 地震 地方 地区 不同 为人 更新 最终 问卷 读者 读书 好友 好处 行业 行程 行李 上海 下载 上传 下雨 上班 下班 个人"
    " 一致 向量 在线 从事 想法 想象 太阳 太太 没收 还款 还原 再见 过敏 过程 过滤 着色 得分 被子 把握 让步 给予 跟踪"
    " 到期 到达 去除 买家 帮助 找回 看病 写信 读取 写入"
)
_HAN_CHARS = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HAN_RUN = re.compile(f"(?P<han>[{_HAN_CHARS}]+)|[^\\s{_HAN_CHARS}]+")


_Found = tuple[int, int, int, bool]
"""What a keyword is worth, its start, its end, and whether it is sure to have terms: in order, the best comes first."""


def keywords(text: str, analysis: Analysis = ENGLISH) -> list[str]:
    """The words worth searching for, in order of worth and then of the text, each once, as they stand in it.

    `analysis` is that of the index they are looked for in; its language's stop words are none, nor are English ones.
    """
    text = unicodedata.normalize("NFKC", _NOISE.sub(" ", text) if _NOISY.search(text) else text)
    distinct: dict[str, tuple[str, bool]] = {}
    for _, start, end, sure in sorted(_found(text)):
        word = text[start:end].strip()
        distinct.setdefault(word.casefold(), (word, sure))
    return [
        word
        for word, sure in distinct.values()
        if (sure or terms(word)) and (analysis is ENGLISH or analysis.terms(word))
    ]


def _found(text: str) -> list[_Found]:
    """What is worth searching for, in the order of the text; names of several words as one: San Francisco."""
    dates = _DATED.finditer(text) if _MAY_BE_DATED.search(text) else ()
    dated = {i for match in dates for i in range(*match.span())}
    shouting = text.isupper()
    found: list[_Found] = []
    article, names, end = False, 0, 0  # whether an article precedes; of how many names the last that was found is made
    token = _TOKEN if _MARKED.search(text) else _ASCII_TOKEN if text.isascii() else _PLAIN_TOKEN
    for match in token.finditer(text):
        kind, before, (start, end) = match.lastgroup or "", end, match.span()
        if kind == "word":
            opens = before == 0 or (text[before:start] != " " and bool(_SENTENCE_END.search(text, before, start)))
            word_of = _word_of if end - start <= MAX_TERM else _word
            rank, length, name, article = word_of(match[0], opens, shouting, article)
            if rank is None or start in dated:
                continue
            if name and 0 < names < MAX_NAME and text[found[-1][2] : start] == " ":
                found[-1] = (rank, found[-1][1], start + length, True)
                names += 1
            else:
                found.append((rank, start, start + length, length < MAX_TERM))
                names = int(name)
            continue
        article, names = False, 0
        if start in dated:
            continue
        if kind == "number":
            found.append((COUNTED, start, end, False))
        elif kind == "unspaced":
            found.extend(_unspaced(match[0], start))
        elif kind == "path":
            found.append((NAMED, start, start + len(match[0].rstrip(".,;:!?)")), False))
        else:
            found.append((QUOTED, *match.span(kind), False))
    return found


class _Word(NamedTuple):
    """What a word in its place is worth, if anything, and how many of its characters count."""

    rank: int | None
    length: int
    name: bool  # capitalised: with its neighbours it may be one name
    article: bool  # after it a generic verb is a noun


def _word(written: str, opens: bool, shouting: bool, noun: bool) -> _Word:
    """A word as it is written; `opens` a sentence, where a capital says nothing; `noun`: an article precedes."""
    word = written if written.isalpha() else _CONTRACTION.sub("", written)
    rank = _rank(word, opens, shouting, noun)
    name = rank == NAMED and bool(_NAME.match(word)) and not _ACRONYM.match(word)
    return _Word(rank, min(len(word), MAX_TERM), name, written.casefold() in _NOUN_NEXT)


_word_of = remembered(8192)(_word)


def _rank(word: str, opens: bool, shouting: bool, noun: bool) -> int | None:
    """What a word is worth, or None where it is not worth searching for or has no terms."""
    lower = word.casefold().replace("’", "'")
    listed = lower in _SOFT or (lower in _GENERIC and not noun)
    if lower in _HARD or not terms(word):
        return None
    if _TECHNICAL.search(word) and not lower.isalpha():
        return NAMED
    if shouting or len(word) == 1:
        return None if listed or (len(word) == 1 and (opens or not word.isupper())) else PLAIN
    if _TECHNICAL.search(word) or (_ACRONYM.match(word) and (not listed or word == "US")):
        return NAMED
    if word[0].isupper() and not opens and not word.isupper():
        return NAMED
    return None if listed else PLAIN


def _unspaced(run: str, start: int) -> Iterator[_Found]:
    """The content of a run without spaces: Chinese by pairs of characters, other scripts by what is left of the run."""
    blank = _HAN_FUNCTION.sub(lambda match: match[0] if match["keep"] else " " * len(match[0]), run)
    for match in _HAN_RUN.finditer(blank):
        at, end = match.span()
        if not match["han"]:
            yield PLAIN, start + at, start + min(end, at + MAX_TERM), False
            continue
        while at < end and blank[at] in _HAN_LEADING and blank[at : at + 2] not in _HAN_LED:
            at += 1
        for first in range(at, max(end - 1, at + 1) if at < end else at):
            yield PLAIN, start + first, start + min(first + 2, end), False
