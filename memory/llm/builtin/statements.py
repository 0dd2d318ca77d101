"""What a sentence does: asks, supposes, reports, needs, limits, rules out, reopens, or simply states.

The rules prefer silence to error: a sentence that might be a question, a supposition or somebody else's words is not
read as a statement.  Guarantee: pure, never raises, and linear, since every sentence that reaches a rule is
bounded (`sentences.MAX_SENTENCE`).  What a rule returns is a part of the sentence as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory.llm.builtin import sentences
from memory.llm.builtin.sentences import Sentence, headed
from memory.llm.builtin.wording import is_unspaced, stems, straight, tokens, word_set
from search_index.caches import cached

_I = re.IGNORECASE

# ---------------------------------------------------------------- questions, suppositions, other people's words

_ASKS = re.compile(
    r"(?:(?:and|but|so|ok|okay|hi|hey|hello|well|also|now|please|then)\b[\s,!.]*)*(?:(?:what|where|when|who|whom|whose"
    r"|why|which|how)(?:'s|'re|'d|'ll)?\s+(?:is|are|am|was|were|do|does|did|can|could|should|shall|will|would|have|has"
    r"|had|much|many|old|long|often|far|about|kind|type|sort|time|day|date|year|month|color|colour|city|country|place"
    r"|my|the|your|our|\w+\s+(?:do|did|is|are|was|am|does|should|can)\b)|(?:what|where|when|who|how)'s\b|(?:do|does|did"
    r"|is|are|am|was|were|can|could|will|would|should|shall|have|has|had|may)(?:n't)?\s+(?:i|you|we|he|she|it|they"
    r"|there|this|that|my|your|our|the|any|anyone|someone)\b)",
    _I,
)
_ASKS_CHINESE = re.compile(
    r"(?:吗|呢|么)[。!！]?$|什么|哪里|哪儿|哪个|哪些|怎么|为什么|多少|几岁|几点|几号|是不是|有没有|谁"
)
_REQUEST = re.compile(
    r"(?:(?:please|so|ok|okay|hi|hey|hello|now|then|and|also|well)\b[\s,!.]*)*(?:(?:can|could|would|will)"
    r" you\s+(?:please\s+)?)?(?:tell me|remind me|show me|list|recall|summari[sz]e|sum up|recap|give me|find|look up"
    r"|search|repeat|what about|how about|let me know|do you (?:know|remember|recall))\b",
    _I,
)
_REQUEST_CHINESE = re.compile(r"(?:请)?(?:告诉我|提醒我|总结|列出|回忆|说说)")
_TASK = re.compile(
    r"(?:(?:please|can you|could you|now|then|ok|okay|hi|hey)\b[\s,]*)*(?:translate|proofread|rewrite|rephrase"
    r"|paraphrase|summari[sz]e|correct|fix|edit|analy[sz]e|explain|review|repeat|role-?play|act as|pretend|write"
    r"|continue|complete|answer|classify|reply|respond|convert|读|翻译|改写|润色|总结)\b[^:：]{0,160}[:：]",
    _I,
)
_ORDER = re.compile(
    r"(?:(?:please|can you|could you|will you|would you|now|then|ok|okay|hi|hey|and|also)\b[\s,]*)*(?:(?:translate"
    r"|proofread|rewrite|rephrase|paraphrase|generate|compose|calculate|compute|solve|draw|draft|debug|refactor"
    r"|implement|brainstorm|invent|role-?play|pretend)\b(?! to\b)|(?:write|create|make|build|code|cook|sing|design"
    r"|suggest|recommend|teach|give|help)\s+(?:me|us|an?|the|some|this|that|my|\d+)\b)|(?:请|帮我|给我)?(?:写一|翻译|生成|画一|解释)"
    r"|(?:please |can you |could you )*explain\b(?! (?:what|why|how|when) (?:i|we)\b)|(?:please )?forget (?:my|what"
    r"|everything|me|that i|all)\b",
    _I,
)
_SUPPOSES = re.compile(
    r"\b(?:if|unless|suppose|supposing|imagine|pretend|assuming|hypothetically|wish|as though|would have|could have)\b"
    r"|\b(?:say|let's say|assume) (?:i|we|that|my)\b|如果|假如|假设|要是|倘若|万一|但愿|假装",
    _I,
)
_SUPPOSES_FIRST = re.compile(
    r"\s*(?:if|unless|suppose|supposing|imagine|pretend|assuming|assume|hypothetically|如果|假如|假设|要是)", _I
)
_REPORTS = re.compile(
    r"\b(?:he|she|they|you|people|everyone|everybody|someone|somebody|nobody|who|it|(?:my|the|our|your|a|his|her)\s+\w+"
    r"|[^\W\d_]{2,})(?:'s|'d| has| had| have| always| just| also| keeps?| even| once)*\s+(?:say|says|said|saying|told"
    r"|tells|thinks?|(?<!second )thought|claims?|claimed|asks?|asked|wrote|writes|believes?|insists?|insisted|assumes?"
    r"|reckons?|suggests?|suggested|mentioned|announced|replied|goes like|was like|joked|jokes|reads|sings|sang)\b"
    r"|\baccording to\b|\b(?:quote|lyrics?|the song|the line)\b|(?:说|告诉我|认为|觉得|以为|声称)",
    _I,
)
_OWN_REPORT = re.compile(
    r"\b(?:i|we)(?:'ve| have| had|'d)?\s+(?:also |just |already )?(?:said|told|thought|think|mentioned|say"
    r"|ask(?:ed)?|wrote|believe)\b|我(?:说|觉得|认为)",
    _I,
)


_SELF = re.compile(r"\b(?:my|our|mine|ours)\b|\b(?<!how do )(?<!how can )(?<!how should )(?:i|we)\b|我|咱", _I)


@cached(4096, longest=500)
def is_question(text: str) -> bool:
    """Whether a sentence asks, with its question mark or without."""
    bare = straight(text).strip().rstrip("\"'”’)）*_ ")
    if bare.endswith(("?", "？", "?!", "？！")):
        return True
    return _ASKS.match(bare) is not None or (is_unspaced(bare) and _ASKS_CHINESE.search(bare) is not None)


def is_about_self(text: str) -> bool:
    """Whether the person speaks of themselves."""
    return _SELF.search(straight(text)) is not None


@cached(4096, longest=500)
def is_request(text: str) -> bool:
    """Whether a sentence asks for something that was said: "remind me where I parked"."""
    bare = straight(text).strip()
    return (
        _REQUEST.match(bare) is not None
        or bare.strip("!. ").lower() in ("help", "帮助")
        or _REQUEST_CHINESE.match(bare) is not None
    )


def is_task(text: str) -> bool:
    """Whether a sentence hands over a text to work on ("Translate this: I live in Rome"): what follows is not said."""
    return _TASK.match(straight(text).strip()) is not None


def is_order(text: str) -> bool:
    """Whether a sentence asks for work that takes more than memory ("Write me a poem")."""
    return _ORDER.match(straight(text).strip()) is not None


def own_statements(parts: Sequence[Sentence]) -> list[Sentence]:
    """The sentences of a message that the person means: no questions, suppositions, quotations or texts to work on."""
    out: list[Sentence] = []
    for sentence in parts:
        if is_task(sentence.text):
            break
        if sentence.quoted or is_question(sentence.text) or is_request(sentence.text):
            continue
        if not _SUPPOSES_FIRST.match(sentence.text):
            out.append(sentence)
    return out


# ---------------------------------------------------------------- clauses


@dataclass(frozen=True)
class Clause:
    """A part of a sentence with one subject and verb.

    `text` is verbatim; `read` is what the rules read: apostrophes straight, lead-in gone, and the subject carried over
    from the clause before where this one has none ("I live in Rome and work at Acme").
    `heading` is what it stands under: "requirement", "constraint" or nothing.
    """

    text: str
    read: str
    heading: str = ""

    @property
    def standing(self) -> bool:
        """Whether the verbatim words stand on their own, with their subject among them."""
        return self.read in straight(self.text)


_LEAD = re.compile(
    r"(?:[\s\"'“‘(*_#>–—-]+|(?:well|actually|no(?=\s*(?:[,!.;:–—-]|$))|nope|yes|yeah|yep|oh|ok|okay|hi|hey|hello|so|and"
    r"|but|also|btw|by the way|anyway|sorry|correction|fyi|to be clear|in fact|honestly|thanks|thank you|hmm|wait|right"
    r" now|these days|nowadays|now|currently|plus|sure|great|cool|wow|as of (?:today|now)|since then|for context|for"
    r" the record|for reference|just so you know|(?:please )?(?:note|remember|keep in mind|bear in mind)(?: that)?|i"
    r" (?:meant|mean)(?: that)?|in the meantime|unfortunately|luckily|turns out|it turns out(?: that)?|good morning"
    r"|good evening|then|first|finally|lol|haha|ah|fun fact|update|please)\b[\s,!.:;–—-]*)+",
    _I,
)
_TRAIL = re.compile(r"(?:[\s,]+(?:btw|by the way|lol|haha|please|pls|though|thanks|actually|fyi|instead|then))+$", _I)
# "We moved: I live in Lyon now" announces what follows; "Title: I live in fear" names a text.
_ANNOUNCES = re.compile(
    r"(?:.*\b(?:i|we|my|our|us|me)\b.*|\W*(?:(?:one|another|big|good|bad|small|quick|some|the|a) )*(?:more thing|thing"
    r"|news|update|note|info|background|context|about me|intro|ps|p\.s\.?|edit|change|answer|reason))\s*$",
    _I,
)
_US = re.compile(
    r"(?:me and my [\w']+(?: (?-i:[A-Z])[\w-]+)?|my [\w']+(?: (?-i:[A-Z])[\w-]+)?,? and (?:I|me))\s+(?=\w)", _I
)
_FIRST = r"(?:I|we|my|our)(?:'\w+)?\b"
_VERBS = (
    r"(?:am|live|work|have|own|like|love|enjoy|prefer|hate|dislike|need|want|moved|study|teach|run|speak|play|was|don't"
    r"|can't|never|plan|must|grew|use|also|currently|now)\b"
)
_JOINT = re.compile(
    rf"(?:\s*[,;–—(]\s*|\s+-{{1,2}}\s+|\s+)(?:and|but|so|plus|though|although|while)\s+(?=(?:also\s+|then\s+"
    rf"|now\s+)?(?:{_FIRST}|let's\b|no\s+(?!longer|more|less|idea|one\b|problem)|it\s|it's|the\s+\w+\s+(?:is|must|has)"
    rf"|{_VERBS}))|\s*[,;–—]\s*(?=(?:so\s+|then\s+)?(?:{_FIRST}|let's\b|it\s+(?:must|has|needs|should)|no later|at most"
    rf"|max\b|(?:(?:the|our|my)\s+)?(?:budget|deadline)\s+(?:is|of)))|\s*[;；]\s*|\s+-{{2}}\s*",
    _I,
)
_COLON = re.compile(rf"\s*:\s+(?=(?:{_FIRST}|let's\b))", _I)
_JOINT_CHINESE = re.compile(r"[，,；;]\s*(?:但是|但|而且|并且|所以|还有|也)?")
_GIVES_REASON, _NO_CHINESE = re.compile(r"因为|.?太|怕"), re.compile(r"不要|不想|不考虑|排除|放弃|不行")
_HAS_SUBJECT = re.compile(
    r"(?:I|we|my|our|let's|it|he|she|they|you|the|this|that|there|no|at|max|budget|deadline)\b", _I
)
_CHINESE_SUBJECT = re.compile(r"(?:其实|不过|不|对了|你好|另外|现在)*[，,、\s]*(我们?)")


def clauses(text: str, heading: str = "") -> Iterator[Clause]:
    """The clauses of a sentence that the writer answers for, in order; it stops where somebody else's words begin."""
    joint = _JOINT_CHINESE if is_unspaced(text) else _JOINT
    kind, rest = headed(text)
    if kind and not rest.strip():
        return
    heading, begin = (kind, len(text) - len(rest)) if kind else (heading, 0)
    bounds = [begin]
    us = _US.match(straight(text), begin)
    for match in joint.finditer(straight(text), us.end() if us else begin):
        if _GIVES_REASON.match(text, match.end()) and _NO_CHINESE.search(text, bounds[-1], match.start()):
            continue
        bounds.extend((match.start(), match.end()))
    colon = _COLON.search(straight(text), begin)
    if colon and _ANNOUNCES.match(straight(text[begin : colon.start()])):
        bounds = sorted([*bounds, colon.start(), colon.end()]) if colon.end() not in bounds else bounds
    bounds.append(len(text))
    subject = ""
    for start, end in zip(bounds[::2], bounds[1::2], strict=True):
        verbatim = text[start:end].strip()
        if not verbatim:
            continue
        read = straight(verbatim)
        lead = _LEAD.match(read)
        if lead:
            read = read[lead.end() :]
        read = _TRAIL.sub("", _US.sub("we ", read.rstrip(" .!。！,;"), count=1))
        if _REPORTS.search(read) and not _OWN_REPORT.search(read):
            return
        if is_unspaced(read):
            own = _CHINESE_SUBJECT.match(read)
            if own:
                subject, read = own.group(1), read[own.start(1) :]
            elif subject and bounds[0] != start:
                read = subject + read
        elif subject and not _HAS_SUBJECT.match(read):
            read = f"{subject} {read}"
        else:
            subject = _carried(read)
        if read and not _SUPPOSES.search(read):
            yield Clause(verbatim, read, heading)


def _carried(read: str) -> str:
    match = re.match(r"(I|we)(?:'\w+)?\b", read, _I)
    return match.group(1) if match else ""


# ---------------------------------------------------------------- needs and limits

_SOCIAL = (
    r"(?:to )?(?:say|tell|ask|thank|know|hear|share|admit|be honest|head|get going|get back|catch|see you|talk|chat|let"
    r" you|hug|congratulate|show you|wish|think|agree|believe|remind|sleep|go(?: now)?$|run$|you\b|your\b|it\b|that\b"
    r"|this\b$)"
)
_NEED = re.compile(
    rf"(?!he\b|she\b|you\b)(?:[\w-]+ ){{1,3}}must (?:be able to|support|allow|run|work|handle) .{{2,}}|(?:I|we)(?:'ll|"
    rf" will| would|'d)?\s+(?:really |just |also |still |definitely |only )*(?:need|require|must|have to|want|like to"
    rf" have|prefer to have|insist on|(?:'ve )?got to)\s+(?!{_SOCIAL}).{{3,}}|.{{0,80}}\b(?:it|this|they|the \w+(?:"
    rf" \w+)?|everything|all \w+|each \w+|every \w+)\s+(?:must (?!have\b|feel\b|add\b|seem\b|mean\b|love\b|be (?:so"
    rf"|very|really|such|amazing|hard|tough|nice|great|fun|awesome|exciting|special|lovely|proud|happy)\b)|has to |have"
    rf" to |needs? to |needs )\s*.{{2,}}|(?:please\s+)?(?:make sure|ensure|avoid|include|use|(?:always|never) (?:use"
    rf"|write|answer|reply|respond|include|call|put|format|make|start|end|give|show|mention)|keep (?:it|them"
    rf"|everything) (?:short|simple|under|below|to|in|brief))\s+.{{3,}}|(?:the |my |our )?(?:main |key |hard"
    rf" )?requirements? (?:is|are)\s+.{{2,}}|.{{1,80}} (?:is|are) (?:required|mandatory)\b.*",
    _I,
)
_NEED_CHINESE = re.compile(r"(?:我们?)?(?:还)?(?:需要|必须|要求|一定要|务必).+")
_POINTS_BACK = re.compile(r"(?<!^)\b(?:it|that|them|this|those)\b", _I)
_BOUND = re.compile(
    r"\b(?:at most|at least|no more than|no less than|not more than|no later than|no earlier than|less than|fewer than"
    r"|up to|under|below|maximum|minimum|max|min|within|limited to|before|by|until|not before|not after|no fewer than"
    r"|budget|spend)\b[^.;]{0,24}?(?:\d|\b(?:one|two|three|four|five|six|ten|twenty|monday|tuesday|wednesday|thursday"
    r"|friday|saturday|sunday|january|february|march|april|may|june|july|august|september|october|november|december"
    r"|tomorrow|tonight|noon|midnight|christmas|easter|the end of|end of)\b)",
    _I,
)
_CANNOT = re.compile(
    r"(?:I|we|it|they|you|the \w+(?: \w+)?)\s+(?:really |also |just |absolutely |definitely )*(?:(?:can't|cannot|can"
    r" not|mustn't|must not|may not|shouldn't|should not|am not allowed to|are not allowed to|'m not allowed"
    r" to)\s+(?:use|eat|drink|afford|spend|exceed|go (?:over|above|beyond|before|after|by)|travel|fly|drive|pay|install"
    r"|run|work|have|be|take|do|need|require|cost|store|share|send|leave|contain|include|depend|change|start|come|make"
    r" it|attend|meet|move|lift|walk|climb|swim)\b(?! (?:more|better|happier|it$|that$|enough)).*|(?:'s|'re|'m| is| are"
    r"| am) not allowed\b.*)|(?!he\b|she\b|you\b)(?:[\w-]+ ){1,3}(?:must not|mustn't|must never|(?:can't|cannot|should"
    r" not|shouldn't) exceed)\b(?! have\b).*|.{0,60}\b(?:without|no) (?:internet|network|cloud|server|database|account"
    r"|meat|gluten|dairy|nuts|sugar|alcohol|javascript|dependenc\w+|downtime|tracking|ads)\b.*",
    _I,
)
_BOUNDED_NAMES = re.compile(
    r".{0,40}\b(?:budget|deadline|limit|maximum|cap|ceiling)\b\s*(?:(?:is|are|was|of|:|=|'s|will be|stays"
    r" at)\s*)+.{1,}",
    _I,
)
_LIMIT_CHINESE = re.compile(r".*(?:最多|至少|不超过|不能|不可以|之前(?:完成|交|要)|预算|截止|不得|以内).*")
_VOWS = re.compile(
    r"\b(?:can't wait|can't believe|can't thank|can't help|can't complain|can't imagine|without a doubt|up to you)\b",
    _I,
)


def is_need(clause: Clause) -> bool:
    """Whether a clause says what the person needs or what a thing must do."""
    if is_unspaced(clause.read):
        return _NEED_CHINESE.match(clause.read) is not None
    if _NEED.match(clause.read) is None or _VOWS.search(clause.read):
        return False
    # "I want to pass it on" says nothing without what went before.
    return len(stems(clause.read)) > (2 if _POINTS_BACK.search(clause.read) else 0)


def is_limit(clause: Clause) -> bool:
    """Whether a clause sets a bound: an amount, a date, something that must not be."""
    if is_unspaced(clause.read):
        return _LIMIT_CHINESE.match(clause.read) is not None
    read = clause.read
    if _VOWS.search(read):
        return False
    if _CANNOT.match(read) or _BOUNDED_NAMES.match(read):
        return True
    # "I was back by 10" tells of something past; a bound is for what is still to come.
    return _BOUND.search(read) is not None and not _TOLD.search(read)


_TOLD = re.compile(r"\b(?:was|were|had|went|got|did|made|came|took|ran|won|started|\w{3,}ed)\b", _I)

# ---------------------------------------------------------------- figures and conclusions

_FIGURE = re.compile(
    r"\d|\b(?:january|february|march|april|june|july|august|september|october|november|december|monday|tuesday"
    r"|wednesday|thursday|friday|saturday|sunday|hundred|thousand|million|dozen|percent)\b|[$€£¥%]"
    r"|[一二三四五六七八九十百千万]{1,6}(?:个|元|块|天|年|月|号|点|人|次|岁)",
    _I,
)
_CONCLUDES = re.compile(
    r"\b(?:we|i)(?:'ve| have)? (?:decided|agreed|concluded|settled|chose|picked|signed)\b|\bthe (?:decision|conclusion"
    r"|answer|result)s? (?:is|was|are|were)\b|\b(?:in conclusion|it turned out|let's go with|we'll go with|we are going"
    r" with|we're going with)\b|决定|结论|选定",
    _I,
)


def has_figure(text: str) -> bool:
    """Whether a text holds a number, an amount or a date."""
    return _FIGURE.search(text) is not None


def concludes(text: str) -> bool:
    """Whether a text says what was decided or found."""
    return _CONCLUDES.search(straight(text)) is not None


# ---------------------------------------------------------------- small talk

_PLEASANTRIES = word_set(
    "hi hello hey hiya yo greetings good morning afternoon evening night thanks thank thx ty cheers bye goodbye cya"
    " ciao see later soon take care ok okay k kk okey great cool nice awesome wow perfect fine sure yes yeah yep yup no"
    " nope lol lmao haha hehe hmm hm oh ah aha yay right got gotcha how what's sounds understood alright indeed exactly"
    " absolutely please sorry test testing ping excellent brilliant wonderful amazing fantastic lovely helpful useful"
    " interesting good appreciated appreciate makes sense fair enough welcome neat sweet np talk well"
)
# Beside a pleasantry these add nothing; alone they are an answer.
_BESIDE = word_set(
    "there you so much very a lot many are is going been have doing up everything you're all that that's this it it's"
    " again and the day i am i'm too really pretty super quite your for help tomorrow tonight next week time to me was"
    " love again just then of now one"
)
_CHINESE_PLEASANTRIES = re.compile(
    r"(?:(?:你好|您好|大家好|谢谢|多谢|感谢|再见|拜拜|好的?|嗯+|早上好|早安?|下午好|晚上好|晚安|嗨|哈+|没问题|没事|明白|知道|收到|"
    r"不错|太[好棒赞]|真[好棒]|厉害|明天见|回头见|下次见|辛苦)[呀啊吧了的你您嘛哦]*[!！。.~～，,\s]*)+$"
)


@cached(4096, longest=200)
def is_small_talk(text: str) -> bool:
    """Whether a text greets, thanks or nods, and says nothing else."""
    words = tokens(sentences.one_line(text[:400]).lower())
    if len(text) > 200 or len(words) > 14:
        return False
    if is_unspaced(text):
        return _CHINESE_PLEASANTRIES.match(text.strip()) is not None
    return all(word in _PLEASANTRIES or word in _BESIDE for word in words) and (
        not words or any(word in _PLEASANTRIES for word in words)
    )


_REMEMBER = re.compile(
    r"(?:(?:please|also|and|ok|okay|hey|hi|btw)\b[\s,]*)*(?:remember|note|keep in mind|bear in mind"
    r"|(?:don't|do not) forget(?: that)?|for the record)\b(?! (?:when|how|the time|to)\b)",
    _I,
)


def asks_to_remember(sentence: str) -> bool:
    """Whether the person asks outright that a sentence be kept."""
    return _REMEMBER.match(straight(sentence)) is not None or sentence.startswith(("记住", "请记住", "记得", "别忘了"))
