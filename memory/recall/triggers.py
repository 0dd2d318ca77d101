"""When to look back: what a message says about the past, read from its words alone.

Looking back costs a search and tokens, so small talk never does, nor a message that says nothing but "go on".
Anything else does: in so many words ("what did we discuss"), by a signal ("you suggested", "my project", "the bug" or
"she" with nothing before it), or because past words may matter to it.  When in doubt a message looks back: a search
too many costs a little, a past that was missed costs the person's trust.  Time references are read elsewhere.

Guarantee: pure and deterministic; a message is read to its first `READ_CHARS` characters, `before` to the last
`BEFORE_CHARS` of each text, so the cost is bounded whatever the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory.languages import analysis_in
from memory.recall.keywords import keywords
from memory.recall.small_talk import COURTEOUS, DOUBLED, is_small_talk, once
from search_index.analysis import Analysis

ENGLISH = analysis_in("en")
terms = ENGLISH.terms
READ_CHARS = 2000  # of a message; what somebody pastes after that says nothing about the past
BEFORE_CHARS = 2000  # of each text before it
KEYWORDS_SHOWN = 5  # in a reason
ALONE_WORDS = 3  # worth looking for, in a question that says by itself what it is about: "what should I pack?" has one
NEAR = 8  # words of a message in which a pronoun is what it is about

_TOLD = (
    "said|says|told|mentioned|discussed|talked|spoke|chatted|explained|suggested|recommended|recomended|advised"
    "|proposed|promised|agreed|decided|described|listed|showed|shared|sent|gave|wrote|asked|answered|covered|named"
    "|called|picked|chose|planned|drafted|went over|went through|came up with|settled on|used|tried|worked on"
    "|looked at|brought up|pointed out|noted|outlined|made|built|found|created|designed|calculated|translated"
    "|summarized|summarised|gave up|sugested|mentionned|discused|metioned|mentoned|reccomended|recommened"
)
_TELL = (
    "say|tell|mention|discuss|talk|speak|chat|explain|suggest|recommend|advise|propose|promise|agree|decide|describe"
    "|list|show|share|send|give|write|ask|answer|cover|name|pick|choose|plan|draft|go over|come up with|settle|solve"
    "|fix|conclude|end up|do|use|make|call|bring up|leave off|learn"
)
_BEFORE = (
    r"(?:earlier|before|previously|already|last time|a while (?:ago|back)|the other day|back then|once|in the past"
    r"|above)"
)
_ONE = r"(?:i|we|you|u|ya)"
_HAD = r"(?:'ve|ve|'d| have| had)?"
_ADVERB = (
    r"(?: (?:already|just|previously|once|originally|also|first|even|never|initially|actually|only|both|ever|all))*"
)
_TALKS = (
    r"(?:chats?|conversations?|convos?|discussions?|talks?|sessions?|messages?|threads?|exchanges?|questions?|answers?"
    r"|suggestions?|recommendations?|advice|plans?|notes?|repl(?:y|ies)|examples?|ideas?|lists?)"
)

# What says in so many words that it is about the past.  Letters written twice count once, in the text and here.
_REFERENCES = (
    rf"(?:(?:what|where|when|who|which|how|why) )?(?:did|have|had|didn'?t|haven'?t"
    rf"|hadn'?t) {_ONE}{_ADVERB} (?:not )?(?:{_TELL}|{_TOLD})",
    rf"(?:as|like|than|what|whatever|everything|anything|all|which|that|where|how|when|because"
    rf"|since) {_ONE}{_HAD}{_ADVERB} (?:{_TOLD})",
    rf"(?:the|that|those|these|this|which|what|any|some|one|ones|every)(?: \w+){{1,4}},? (?:that "
    rf"|which )?{_ONE}{_HAD}{_ADVERB} (?:{_TOLD}|liked|loved|hated|wanted|saw|watched|read|bought|ordered|visited"
    rf"|booked|started|finished|did|had|were|was|played|mention|enjoyed|cooked|went to|worried about|asking about"
    rf"|asked about|talking about|discussing)",
    rf"(?:i|we){_HAD}{_ADVERB} (?:mentioned|discussed|talked about|spoke about|went over|covered|brought up)",
    rf"i{_HAD}{_ADVERB} (?:told|asked|showed|sent|gave) (?:you|u|ya)",
    rf"{_ONE}{_HAD}{_ADVERB} (?:{_TOLD})(?: \w+){{0,4}} {_BEFORE}",
    rf"{_BEFORE},? {_ONE}{_HAD}{_ADVERB} (?:{_TOLD}|were|was)",
    rf"{_ONE} (?:were|was) (?:just |already )?(?:telling|talking|discussing|saying|planning|writing|working on"
    rf"|looking at)",
    rf"already (?:{_TOLD}|talked|discussed)",
    r"(?:you|u) (?:still |even |happen to |really )*(?:remember|remem?ber|remeber|rember|rmbr|recall)",
    r"(?:i|we) (?:(?:don'?t|can'?t|cannot|do not|cant|dont) (?:really |quite )?|)(?:remember|recall|forgot"
    r"|forget) (?:what|where|who|how|when|which|if|whether|the|that|you|us|we)",
    r"(?:^|[,.!?] ?)(?:\w+ )?(?:remember|remeber|rember) (?:when|how|what|the|my|me|our|where|who|last|those|us|i told"
    r"|we|that (?:time|one|thing|day|\w+ (?:i|we|you)))",
    r"remind me (?:again )?(?!to\b|at\b|in\b|every|on\b|tomorrow|when i\b)\w+",
    r"(?:refresh|jog) (?:my|your) memory|(?:you|u)(?:'ve)? (?:forgot|forgotten|already know)|did (?:you|u) forget",
    r"(?:last|previous|prior|earlier|past|other|first) (?:few )?" + _TALKS,
    rf"(?:our|your) (?:\w+ )?{_TALKS}|(?:from|in|see|scroll|mentioned|as) (?:the )?(?:above|before|earlier)",
    rf"last time,? (?:{_ONE}|when|it|around)|(?:as|like|than|from|since|about|the) last time|last time[ ?.!]*$"
    rf"|last we (?:spoke|talked)",
    r"same (?:\w+ )?as (?:before|last time|always|usual|previously)|like (?:before|last time|always)|as (?:before"
    r"|always|usual|discussed|mentioned|agreed|promised|said|planned|stated|noted|requested|suggested|per)",
    r"(?:(?:let'?s|we|please|can you|^|[,.!?] ?) ?(?:just |also )?(?:go|get|come|switch|return|circle|back)(?: back)?"
    r"|(?:going|getting|coming|circling) back) to (?:the|our|what|that|those|this|where|when|my (?:question|problem"
    r"|issue|point|first|earlier|original|last|idea|project|other))",
    r"(?:pick|picking|picked) (?:\w+ )?up (?:again |where|from)|(?:left|leave|leaving|stopped|leaved) off"
    r"|where (?:were|was) (?:we|i)\b|(?:continue|resume|continuing) (?:with|from|our|the|where|my|what)|revisit"
    r"|where did we (?:stop|leave|end)",
    r"(?:based on|given|considering|from|according to|per|knowing) (?:everything |all )?(?:what|that|our"
    r"|things)?(?: \w+)? ?(?:i|we|you|u)(?:'ve)? (?:\w+ )?(?:told|said|know|knew|discussed|agreed|mentioned|shared"
    r"|decided|learned|remember)",
    r"(?:know|knew|learn(?:ed)?|remember|recall|noted|saved|stored|got|have) (?:about|of|on) (?:me|my|us|our)\b",
    r"(?:changed|change) my mind about|(?:follow|following)[ -]?up (?:on|to)",
    r"^(?:\w+ ){0,3}(?:what|who|which|where|when|how|why)(?:'?s|'?re)?\b[^.?!]{0,60}\bagain\b[ ,]*(?:please|pls)?\W*$",
    r"(?:send|show|give|tell|explain|share|post|repeat)(?: \w+){1,5} again\b|once more",
    r"refer(?:r?ing|s)? (?:back )?to (?:the|what|my|our|that)|(?:earlier|previously),? (?:in|you|u|i|we)\b|back when",
    rf"(?:was|were|is) (?:it|that|there|this)(?: \w+){{0,6}} {_ONE}{_HAD} (?:{_TOLD})|(?:long time ago|ages ago"
    rf"|back then)",
)
_CHINESE_REFERENCES = (
    r"(?:之前|以前|上次|上回|先前|刚才|刚刚|前面|前几天|那次|当时|早些时候|过去|曾经|最后一次).{0,12}?(?:说|讨论|聊|谈"
    r"|提|讲|推荐|建议|告诉|给|问|发|写|定|决定|答应|介绍|做|买|选|看|列|那|的)|(?:说|讨论|聊|谈|提|提到|讲|推荐|建议"
    r"|告诉|给|问|发|写|介绍|教|列|答应)过",
    r"(?:还|你|您|是否)?记得(?:吗|不|我|你|那|我们|上|之)?|记不记得|忘了(?:吗|我)|提醒我一?下?(?:之前|上次|我们|什么"
    r"|是)",
    r"(?:你|您|我|我们|咱们)(?:说|讨论|聊|推荐|建议|提|提到|告诉我|给我|讲)(?:了|的|到)",
    r"(?:接着|继续|回到)(?:上次|之前|刚才|前面|我们|那个|聊|说|讨论)|(?:跟|和|对)你(?:说|讲|提)|老样子|跟(?:上次"
    r"|之前)一样|像(?:上次|之前)|[你您](?:知道|了解)我",
)

# What points at the past without naming it.
_SUGGESTED = rf"\b(?:you|u){_HAD}{_ADVERB} (?:{_TOLD}|taught|helped|meant|thought|picked)\b"
_SELF = (
    r"\b(?:what|where|who|when|which|how|why)(?:'?s|'?re)?\b(?! (?:do|can|should|would|could|to|must|might|may"
    r"|shall) (?:i|we|to)\b)"
    r"[^.?!]{0,40}?\b(?:am|was|did|do|have|had|were|are) (?:i|we)\b|\b(?:who|how|where|what) (?:do|am"
    r"|did) i\b(?! (?:do|need|have|get|go|make|use|say|fix|set|add|start|know|write|tell|find)\b)|^(?:did|do|have|had"
    r"|was|am) i\b(?! (?:need|have to|really))"
)
_MY = re.compile(r"\b(?:my|our|mine|ours)\b(?: own)?(?:'s)?((?: [\w'-]+){0,3})")
_THE = re.compile(r"\b(?:the|(?:is|was|about|me|see|of|with|did|does|on|to) (?:that|those))((?: [\w'+#-]+){1,4})")
# Nouns that "the" may stand before with nothing said before, or that say nothing with "my".
_COMMON_GROUND = """
    weather internet web world sun moon sky earth sea ocean government president police economy universe radio tv news
    market bus train gym doctor dentist bathroom kitchen beach park cinema us uk eu usa netherlands wedding exam
    difference capital meaning history population god goodness opinion apologies mind behalf self turn late
"""
_NO_ANTECEDENT = frozenset(_COMMON_GROUND.split())
_DEFINING = "of that which who whose between for called named where when to"  # "the capital of France"
_DEFINED = frozenset(_DEFINING.split())
_PERSON = re.compile(r"\b(?:he|she|him|her|his|hers|he's|she's|hes|shes)\b")
_THING = re.compile(
    r"\b(?:they|them|their|it|that one|those|these|this|that(?! (?:i|we|you|he|she|they|it|the|my|an?)\b))\b"
)
_PEOPLE = re.compile(
    r"\b(?:he|she|him|her|his|mother|mom|mum|father|dad|sister|brother|son|daughter|wife|husband|partner|girlfriend"
    r"|boyfriend|friend|aunt|uncle|cousin|grand\w+|boss|manager|colleague|neighbou?r|teacher|doctor|dentist|landlord"
    r"|roommate|guy|woman|man|girl|boy|baby|kid|child|dog|cat|puppy|kitten|player|president|author|singer|actor"
    r"|actress|king|queen|mr|mrs|ms|dr)\b|\b[A-Z][a-z]+ (?:is|was|has|had|said|says|[a-z]{2,}ed)\b"
)
_CHINESE_SIGNALS = re.compile(
    "我(?:的|家|妈|爸|老板|妻子|丈夫|老婆|老公|女儿|儿子|朋友|叫什么|是谁|住|喜欢|几岁|多大)|那[个本家位件次部条]"
    "|[他她](?:们|怎么|最近|还|现在|好)"
)
_ANSWER = re.compile(r"\W*(?:\d{1,2}|[a-zA-Z]|option \w|number \d)\W*", re.IGNORECASE)


_ASKS = re.compile(
    r"[?？吗呢]|什么|[谁哪几]|怎[么样]|多少|为何|告诉我|"
    r"^\W*(?:(?:please|pls|so|and|but|ok|okay|hey|hi|now|then|well)\W+)*"
    r"(?:what|who|whom|whose|when|where|which|why|how|show|tell|give|list|find|remind|look up|search|repeat|explain"
    r"|describe|summari[sz]e|compare|name|let me (?:know|see)|do|does|did|is|are|was|were|am|can|could|will|would"
    r"|should|have|has)\b",
    re.IGNORECASE,
)


_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")


@dataclass(frozen=True)
class Trigger:
    """What a message says about the past, and why in one short sentence.

    `kind` is "reference" (the past in so many words), "implicit" (it points at something not shown), "plain" (words
    worth looking for), "small_talk", or "nothing" (no words to look for).  The last two don't look back.
    """

    kind: str
    look_back: bool
    reason: str


def asks(message: str) -> bool:
    """Whether a message asks for something, in English or Chinese: to tell people something is to ask for nothing."""
    said = message[:READ_CHARS]
    return "?" in said or _ASKS.search(said) is not None


def asking(message: str) -> str:
    """The sentences of a message that ask for something; none of one that does not."""
    sentences = _SENTENCE_END.split(message[:READ_CHARS].strip()) if asks(message) else ()
    return " ".join([sentence for sentence in sentences if asks(sentence)])


def stands_alone(question: str, analysis: Analysis = ENGLISH) -> bool:
    """Whether a question can be understood without what was told beside it."""
    if len(analysis.query_terms(question)) < ALONE_WORDS or _chinese_signal(question):
        return False
    small = in_small_letters(question)
    pronouns = filter(None, (_PERSON.search(small), _THING.search(small)))
    return all(keywords(question[: pronoun.start()], analysis) for pronoun in pronouns)


def read(message: str, before: Sequence[str], analysis: Analysis = ENGLISH) -> Trigger:
    """Whether `message` looks back.  `before` are the texts the prompt shows anyway, the newest last.

    `analysis` says which words are worth looking for; what points at the past is known in English and Chinese only.
    """
    text = " ".join(unicodedata.normalize("NFKC", message[:READ_CHARS]).translate(_APOSTROPHES).split())
    folded = in_small_letters(once(text))
    phrase = _reference(text, folded)
    if phrase:
        return Trigger("reference", True, f'refers to the past ("{phrase}")')
    if is_small_talk(text):
        return Trigger("small_talk", False, "small talk")
    words = keywords(message[:READ_CHARS], analysis)
    courteous = is_small_talk(text, words) or (bool(words) and all(word.casefold() in COURTEOUS for word in words))
    signal = _signal(text, folded, words, [one[-BEFORE_CHARS:] for one in before], courteous and "?" not in text)
    if signal:
        return Trigger("implicit", True, signal)
    if courteous:
        return Trigger("small_talk", False, "small talk")
    if words and not _ANSWER.fullmatch(text):
        shown = ", ".join(words[:KEYWORDS_SHOWN])
        return Trigger("plain", True, f"has words worth looking for: {shown}")
    return Trigger("nothing", False, "has no words to look for")


_APOSTROPHES = str.maketrans("\u2018\u2019\u02bc\u2032", "''''")
_LIKE_ASCII = str.maketrans("\u0130\u0131\u017f\u212a", "iisk")  # what a pattern that ignores case takes for i, s and k


def in_small_letters(text: str) -> str:
    """A text in small letters, one for one: where a pattern of small letters matches it, it matches the text itself
    with its case ignored, which takes three times as long."""
    return (text if text.isascii() else text.translate(_LIKE_ASCII)).lower()


def _patterns(sources: Sequence[str]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(once, sources))})(?!\w)")


_REFERENCE = _patterns(_REFERENCES)
_CHINESE_REFERENCE = re.compile("|".join(_CHINESE_REFERENCES))
_YOU_SAID = _patterns([_SUGGESTED])
_ABOUT_SELF = _patterns([_SELF])


def _reference(text: str, folded: str) -> str:
    """The words that refer to the past, as they stand in the text; empty if none.  `folded` is the text in small
    letters that are written once."""
    match = _REFERENCE.search(folded)
    if match:
        return _as_written(text, *match.span())
    match = None if text.isascii() else _CHINESE_REFERENCE.search(text)
    return match[0] if match else ""


def _as_written(text: str, start: int, end: int) -> str:
    """The part of a text that lies at `start` to `end` of `once(text)`."""
    dropped = {i for run in DOUBLED.finditer(text) for i in range(run.start() + 1, run.end())}
    kept = [i for i in range(len(text)) if i not in dropped]
    return text[kept[start] : [*kept, len(text)][end]].strip(" ,.?!")


def _signal(text: str, folded: str, words: Sequence[str], before: Sequence[str], courteous: bool) -> str:
    """Why a text points at something that is not shown; empty if it does not.  In a courtesy "that" points at
    nothing."""
    match = _YOU_SAID.search(folded)
    if match:
        return f'points at what was said before ("{_as_written(text, *match.span())}")'
    match = _ABOUT_SELF.search(folded)
    if match:
        return f'asks about the person ("{_as_written(text, *match.span())}")'
    missing = next(_missing(text, words, before), "") or _missing_person(text, before, courteous)
    if missing:
        return f'"{missing}" has nothing before it to refer to'
    match = _chinese_signal(text)
    return f'points at what was said before ("{match[0]}")' if match else ""


def _chinese_signal(text: str) -> re.Match[str] | None:
    return None if text.isascii() else _CHINESE_SIGNALS.search(text)


def _missing(text: str, words: Sequence[str], before: Sequence[str]) -> Iterator[str]:
    """The possessives and definite nouns of a text that no earlier word explains."""
    content = set(" ".join(words).casefold().split())
    small, earlier = in_small_letters(text), in_small_letters("\n".join(before))
    for pattern in (_MY, _THE):
        for match in pattern.finditer(small):
            start, end = match.span(1)
            following = text[start:end].split()
            nouns = []
            for word in following:
                if word.removesuffix("'s").casefold() not in content:
                    break
                nouns.append(word)
            if not nouns or _NO_ANTECEDENT & {noun.casefold() for noun in nouns}:
                continue
            if pattern is _THE and (
                nouns[0].endswith("est")
                or nouns[-1][0].isupper()
                or (len(following) > len(nouns) and following[len(nouns)].casefold() in _DEFINED)
            ):
                continue
            if not _named(nouns[-1].removesuffix("'s"), f"{earlier}\n{small[: match.start()]}"):
                yield " ".join([text[match.start() : start].strip(), *nouns])


def _named(noun: str, small: str) -> bool:
    """Whether a text in small letters has the noun, in any of its forms."""
    stem = (terms(noun) or [noun])[0].removesuffix("i")
    if not (stem.isascii() and stem.isalnum()):
        return re.search(rf"\b{re.escape(stem)}", small, re.IGNORECASE) is not None
    stem = stem.lower()  # nearly always: the same is found, and no pattern has to be made of each noun
    at = small.find(stem)
    while at > 0 and (small[at - 1].isalnum() or small[at - 1] == "_"):
        at = small.find(stem, at + 1)
    return at >= 0


def _missing_person(text: str, before: Sequence[str], courteous: bool) -> str:
    """The pronoun a short text is about, if nobody and nothing before it can be meant."""
    if text.count(" ") >= NEAR:
        return ""
    small = in_small_letters(text)
    match = _PERSON.search(small)
    if match and not any(_PEOPLE.search(earlier) for earlier in (text[: match.start()], *before)):
        return text[match.start() : match.end()]
    match = None if courteous else _THING.search(small)
    if match is None or text.count(" ", match.end()) > 3 or any(map(keywords, (text[: match.start()], *before))):
        return ""
    return text[match.start() : match.end()]
