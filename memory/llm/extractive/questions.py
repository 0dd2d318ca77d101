"""What a question is after: its content words, the kind of statement that answers it, and how to weigh a candidate.

Guarantee: pure; a candidate that lacks the people a question names never answers it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memory.llm.extractive.vocabulary import word_set
from memory.llm.extractive.wording import is_chinese, names, stem, stems, straight, tokens

_I = re.IGNORECASE
# The attribute (or its beginning) of the statement that answers, by what is asked.
_SOUGHT = tuple(
    (re.compile(pattern, _I), attributes)
    for pattern, attributes in (
        (r"\bmy (?:full |first |last |own )?name\b|\bwho am i\b|what(?: am| should| do) (?:i|you|they|people)"
        r" (?:called|call me)|\bcall me\b|我叫什么|我的?名字|我是谁", ("name",)),
        (r"\bwhere (?:do|did|am|are) (?:i|we) (?:now |currently |actually )?(?:live|living|based|reside|stay)"
        r"|\bwhere i(?:'m)? (?:live|living|based)|\bwhere (?:did|have) (?:i|we) move|"
         r"\b(?:what|which) (?:city|country|town|place) (?:do|am|are|did) (?:i|we)\b|\bmy (?:city|town|home"
        r"|address)\b|我.{0,4}住(?:在)?(?:哪|什么)|我.{0,3}家在哪|我搬到", ("lives-in", "my:city", "my:address")),
        (r"\bwhere (?:am|are|do|did) (?:i|we) (?:originally )?(?:from|come from|grow up|born)\b|\bmy (?:home"
        r" ?town|nationality|origin)|我(?:是|来自)哪", ("from", "grew-up", "born", "my:nationality", "my:hometown")),
        (r"\bhow old am i\b|\bmy age\b|我(?:今年)?(?:多大|几岁)", ("age",)),
        (r"\bmy birthday\b|\bwhen was i born\b|我.{0,3}生日", ("birthday", "born")),
        (r"\bwhere (?:do|did|am) i work|\bwho(?:m)? (?:do|did) i work for|\bmy (?:employer|company|workplace)\b"
        r"|我在哪.{0,3}(?:工作|上班)", ("employer", "my:company", "my:employer", "job")),
        (r"\bwhat do i do (?:for (?:a living|work)|at work|professionally)|^what do i do\W*$|\bmy (?:job"
        r"|profession|occupation|work)\b|我.{0,3}(?:做什么工作|工作是什么|职业)",
         ("job", "employer", "my:job title", "my:profession")),
        (r"\ballerg|过敏", ("allergy:",)),
        (r"\bwhat (?:should|can|do|must)(?:n't| not|not)? i (?:not )?(?:eat|avoid)|\bmy diet\b|\bdietary\b"
        r"|我.{0,3}不(?:能)?吃什么", ("eat:", "eats:", "diet", "allergy:", "health:")),
        (r"\bam i married|\bmy marital|我结婚", ("marital",)),
        (r"\bwhat (?:\w+ )?(?:do|did) i (?:really )?(?:like|love|enjoy|prefer)\b|\bmy (?:hobbies|interests"
        r"|preferences)\b|我.{0,3}喜欢.{0,3}什么", ("taste:",)),
        (r"\bwhat (?:\w+ )?(?:do|don't) i (?:hate|dislike|like)\b|\bwhat (?:do|don't) i (?:not )?like\b", ("taste:",)),
        (r"\b(?:my|our|the) (?:\w+ )?budget\b|\bhow much (?:can|may|do) (?:i|we) (?:spend|have to spend|afford)"
        r"|预算", ("budget",)),
        (r"\b(?:my|our|the) deadline\b|\bwhen is (?:it|this|that) due\b|截止", ("deadline",)),
        (r"\bwhat languages?\b.*\bi\b", ("speak:", "my:native language")),
    )
)  # fmt: skip
_OVERVIEW = re.compile(
    r"\b(?:about|know|remember|told|tell|said|noted|remind|recall)\b.*\b(?:me|myself|us|you|so far"
    r"|everything)\b|\bwho am i\b"
    r"|\bwhat (?:did|have|were) (?:we|i|you)\b.*\b(?:discuss|talk|said?|tell|told|cover|chat|note|do"
    r"|talking)|\bsummar|\brecap\b|\bsum up\b|我们.*(?:聊|讨论|说)|总结|记得我|了解我|知道我",
    _I,
)
_ABOUT_MODEL = re.compile(
    r"\b(?:who|what) are you\b|\bwhat can you do\b|\byour name\b|\bare you (?:a|an|human|real|chatgpt"
    r"|ai)\b|\bhow do you work\b|你是谁|你叫什么|你能做什么|你是什么",
    _I,
)
_SECTIONS = tuple(
    (re.compile(pattern, _I), section)
    for pattern, section in (
        (
            r"\b(?:my|our|the) (?:requirements?|needs)\b|\bwhat (?:do|did) (?:i|we) need\b|我.{0,4}需要什么|需求",
            "requirements",
        ),
        (r"\b(?:my|our|the) (?:constraints?|limits?|limitations)\b|限制", "constraints"),
        (r"\b(?:i|we)(?:'ve| have)? (?:ruled? out|excluded?|reject(?:ed)?)\b|\bruled out\b|排除了", "excluded"),
        (r"\bopen questions?\b|\bunanswered\b|\bstill open\b", "open_questions"),
    )
)
_HELP = re.compile(r"^\W*(?:help|what now|how does this work)\W*$", _I)
_WHEN = re.compile(r"\bwhen\b|\bwhat (?:day|date|time|year|month)\b|什么时候|几号|几点|哪天", _I)
_AMOUNT = re.compile(r"\bhow (?:much|many|long|old|far|often|big|tall)\b|多少|几个", _I)
_DATED = re.compile(
    r"\d|\b(?:yesterday|today|tomorrow|last|next|monday|tuesday|wednesday|thursday|friday|saturday|sunday"
    r"|january|february|march|april"
    r"|may|june|july|august|september|october|november|december|week|month|year|summer|winter|spring"
    r"|autumn)\b|[天月号周年]",
    _I,
)
_FIGURE = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand|once|twice)\b"
    r"|[一二三四五六七八九十百千万]",
    _I,
)
# Words that say how a question is put rather than what it is about.
_FORMAL = frozenset(
    stem(word) for word in word_set("kind type sort name live work like age old birthday city country town company")
)


@dataclass(frozen=True)
class Question:
    """What is asked, ready to be compared with what was said."""

    text: str
    words: frozenset[str]
    people: frozenset[str]
    sought: tuple[str, ...]
    chinese: bool

    @property
    def overview(self) -> bool:
        """Whether it asks for everything rather than for something ("What do you know about me?")."""
        return not self.words and not self.sought and _OVERVIEW.search(self.text) is not None

    @property
    def section(self) -> str:
        """The summary's section it asks for as such ("What have I ruled out?"), or nothing."""
        return next((section for pattern, section in _SECTIONS if pattern.search(self.text)), "")

    @property
    def about_model(self) -> bool:
        return _ABOUT_MODEL.search(self.text) is not None or _HELP.match(self.text) is not None

    def seeks(self, attribute: str) -> bool:
        return bool(attribute) and any(
            attribute == sought
            or (sought.endswith(":") and attribute.startswith(sought))
            or (sought in ("budget", "deadline") and attribute.endswith(sought))
            for sought in self.sought
        )

    def fit(self, text: str, found: frozenset[str], speaker: str, rarity: dict[str, float]) -> float:
        """How well a sentence answers by its words, 0..1 and a little more for the kind of thing asked for."""
        if self.people and not self.people <= (found | set(words_of(speaker))):
            return 0.0
        about = self.words - set(words_of(speaker))
        if self.sought:
            # The statement sought was not made; only what else the question says can still find something.
            about -= _FORMAL
        if not about:
            return 0.0
        total = sum(rarity.get(word, 1.0) for word in about)
        score = sum(rarity.get(word, 1.0) for word in about if word in found) / total
        if score and _WHEN.search(self.text) and _DATED.search(text):
            score += 0.12
        if score and _AMOUNT.search(self.text) and _FIGURE.search(text):
            score += 0.12
        return score


def question_of(text: str) -> Question:
    """Read a question."""
    bare = straight(text)
    sought: tuple[str, ...] = ()
    for pattern, attributes in _SOUGHT:
        if pattern.search(bare):
            sought += attributes
    # Only names written with a capital inside the question count: a sentence's first word says nothing.
    people = frozenset(words_of(" ".join(names(bare)))) if not bare.isupper() else frozenset()
    return Question(bare, frozenset(stems(bare)), people, sought, is_chinese(text))


def words_of(text: str) -> list[str]:
    return stems(text) or [token.lower() for token in tokens(text)]
