"""What a question is after: its content words, the kind of statement that answers it, and how to weigh a candidate.

Guarantee: pure; a candidate that lacks the people a question names never answers it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memory.llm.builtin.personal import Statement
from memory.llm.builtin.wording import names, stem, stems, straight, tokens, word_set
from search_index.caches import cached

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
        (r"\bwhat (?:\w+ )?(?:should|can|do|must)(?:n't|'t| not|not)? (?:i|we) (?:not )?(?:eat|avoid)|\bmy diet\b"
            r"|\bdietary\b"
        r"|\b(?:can|may|should|do)(?:n't|'t)? i (?:eat|have|drink)\b"
        r"|我.{0,3}(?:不能?|能|可以)吃(?:什么|.{1,8}吗)|什么.{0,3}不能吃|忌口",
         ("eat:", "eats:", "diet", "diet:", "allergy:", "health:")),
        (r"\bam i married|\bmy marital|我结婚", ("marital",)),
        (r"\bwhat (?:\w+ )?(?:do|did) i (?:really )?(?:like|love|enjoy|prefer)\b|\bmy (?:hobbies|interests"
        r"|preferences)\b|我.{0,3}喜欢.{0,3}什么", ("taste:",)),
        (r"\bwhat (?:\w+ )?(?:do|don't) i (?:hate|dislike|like)\b|\bwhat (?:do|don't) i (?:not )?like\b", ("taste:",)),
        (r"\b(?:my|our|the) (?:\w+ )?budget\b|\bhow much\b.{0,20}\b(?:i|we) (?:can |may |have to )*(?:spend|afford)\b"
        r"|预算", ("budget",)),
        (r"\bdeadline\b|\bdue(?: date)?\b|\bby when\b|截止|ddl", ("deadline",)),
        (r"\bwhere (?:are|am|do|will) (?:we|i) (?:going|go|travel\w*|head\w*|fly\w*)\b"
        r"|\b(?:my|our|the) (?:plans?|itinerary)\W*$|\bwhat(?:'s| is| are)(?: my| our| the) plans?\b"
        r"|\bwhat am i (?:planning|working on|building)\b|我.{0,4}(?:计划|打算)", ("@plan",)),
        (r"\bwhat languages?\b.*\bi\b", ("speak:", "my:native language")),
    )
)  # fmt: skip
_KIN_NAME = re.compile(
    r"\bmy (?P<a>[\w-]+)'s? (?:first |full )?name\b|\bmy (?P<b>[\w-]+) (?:called|named)\b|\bwho(?:'s| is) my (?:new "
    r"|current )?(?P<e>[\w-]+)\W*$"
    r"|我的?(?P<c>[\u4e00-\u9fff]{1,3}?)(?:的名字)?叫(?:什么|啥)|\bname of my (?P<d>[\w-]+)",
    _I,
)
_OVERVIEW = re.compile(
    r"\b(?:summari[sz]e|sum up|recap)\b(?: (?:this|the|our|my|it|all|project|trip|plan|chat|conversation|discussion|so"
    r" far|everything|please|for me|everything so far))*\W*$"
    r"|总结|聊过什么|聊了(?:些)?什么|说过(?:些)?什么|\bwhere (?:were|did) we(?:"
    r" leave off| stop| left)?\W*$|\bcatch me up\b|\b(?:about|know|remember|told|tell|said|noted|remind"
    r"|recall)\b.*\b(?:me|myself|us|you|so far|everything)\b|\bwho am i\b|\bwhat (?:did|have|were) (?:we|i"
    r"|you)\b.*\b(?:discuss|talk|said?|tell|told|cover|chat|note|do|talking)",
    _I,
)
_ABOUT_PERSON = re.compile(
    r"\bwhat (?:do|did|have) you (?:know|remember|learn\w*|noted?|got|have|recall)\b.{0,12}(?:\babout (?:me|myself|us)"
    r"|\W*$)|\b(?:tell me|everything|all|anything)\b.{0,20}\b(?:know )?about (?:me|myself)\b|\bwho am i to you\b"
    r"|(?:知道"
    r"|了解|记得)我(?:的)?(?:些|哪些)?(?:什么|哪些|多少)|关于我(?:的)?(?:什么|哪些|一切)?|对我了解",
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
            r"\bwhat (?:did|have|has|had) (?:we|i|been) (?:\w+ )?(?:decided?|agreed?|chosen|settled?)\b(?: on| upon| so"
            r" far)*\W*$|\b(?:my|our|the) decisions?\b|决定了什么",
            "requirements constraints excluded",
        ),
        (
            r"\b(?:my|our|the) (?:requirements?|needs)\b|\bwhat (?:do|did) (?:i|we) need\b|我.{0,4}需要什么|需求",
            "requirements",
        ),
        (r"\b(?:my|our|the) (?:constraints?|limits?|limitations)\b|限制", "constraints"),
        (
            r"\b(?:i|we)(?:'ve| have)? (?:rule[ds]? out|exclude[ds]?|reject(?:ed)?)\b|\bruled? out\b|排除了",
            "excluded",
        ),
        (r"\bopen questions?\b|\bunanswered\b|\bstill open\b", "open_questions"),
    )
)
_PAST = re.compile(
    r"\b(?:did|was|were|had|have|told|said|say|tell|talk\w*|discuss\w*|mention\w*)\b|说|聊|告诉|讨论", _I
)
_HELP = re.compile(r"^\W*(?:help|what now|how does this work)\W*$", _I)
_WHEN = re.compile(r"\bwhen\b|\bwhat (?:day|date|time|year|month)\b|什么时候|几号|几点|哪天", _I)
_AMOUNT = re.compile(r"\bhow (?:much|many|long|old|far|often|big|tall)\b|多少|几个", _I)
_MEASURE = re.compile(r"\bhow (?:much|many|long|old|far|often|big|tall)\b", _I)
_DATED = re.compile(
    r"\d|\b(?:yesterday|today|tomorrow|last|next|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january"
    r"|february|march|april|may|june|july|august|september|october|november|december|week|month|year|summer|winter"
    r"|spring|autumn)\b|[天月号周年]",
    _I,
)
_FIGURE = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand|once|twice)\b|[一二三四五六七八九十百千万]",
    _I,
)
# Words that say how a question is put rather than what it is about.
_KINDS = {
    stem(kind): frozenset(map(stem, names.split()))
    for kind, names in {
        "database": "postgresql postgres mysql mariadb sqlite mongodb redis oracle dynamodb firestore supabase db",
        "framework": "django flask fastapi rails react vue angular svelte next spring laravel express",
        "language": "python rust go java javascript typescript kotlin swift ruby php c# c++ scala",
        "laptop": "macbook thinkpad xps surface chromebook", "phone": "iphone pixel galaxy",
        "host": "aws gcp azure heroku render fly hetzner vercel netlify digitalocean",
    }.items()
}  # fmt: skip
_MONEY = re.compile(r"[$€£¥]|\d\s?k\b|\b(?:euros?|dollars?|pounds?|eur|usd|gbp|spend)\b|元|块", _I)
_BY = re.compile(
    r"\b(?:by|before|until|no later than|due|latest)\b.*(?:\d|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day)|之前", _I
)
# The noun in "what's the weather like", "what is the capital of ...", "东京的天气怎么样".
_FOCUS = re.compile(
    r"\b(?:what|which)(?:'s|s| is| was| are| were)? (?:the|a|an) (?:\w+est )?(?P<en>[^\W\d_]+)"
    r"|\b(?:best|good|nice) (?P<good>[a-z]+)|^(?:is|are|was|were) (?!i\b|we\b|my\b|our\b|the\b|it\b|there\b"
    r"|that\b|this\b).*\b(?P<be>\w+)\W*$|有什么(?P<much>好[吃玩看])|的(?P<zh>[\u4e00-\u9fff]{2})(?:怎么样|如何|是什么|是多少|好吗)",
    _I,
)
_FORMAL = frozenset(
    stem(word)
    for word in word_set(
        "kind type sort name live work like age old birthday city country town company eat avoid food drink deadline"
        " due date number size status reason total length amount result point state news details detail difference"
    )
)


@dataclass(frozen=True)
class Question:
    """What is asked, ready to be compared with what was said."""

    text: str
    words: frozenset[str]
    people: frozenset[str]
    sought: tuple[str, ...]
    focus: str = ""

    @property
    def overview(self) -> bool:
        """Whether it asks for everything rather than for something ("What did we talk about?")."""
        match = _OVERVIEW.search(self.text)
        named = match is not None and match.group().lower().startswith(
            ("summar", "sum ", "recap", "where", "catch", "总结", "聊", "说过")
        )
        return match is not None and (named or (not self.words and not self.sought))

    @property
    def about_person(self) -> bool:
        """Whether it asks for all that is known of the person."""
        return _ABOUT_PERSON.search(self.text) is not None

    @property
    def of_the_past(self) -> bool:
        """Whether it asks what was said at some time."""
        return _PAST.search(self.text) is not None

    @property
    def sections(self) -> tuple[str, ...]:
        """The summary's sections it asks for as such ("What have I ruled out?")."""
        return tuple(next((names for pattern, names in _SECTIONS if pattern.search(self.text)), "").split())

    @property
    def about_model(self) -> bool:
        return _ABOUT_MODEL.search(self.text) is not None or _HELP.match(self.text) is not None

    def seeks(self, statement: Statement, exactly: bool = False) -> bool:
        """Whether a statement is of the kind that answers; a plan or a limit by a date may, but not `exactly`."""
        attribute = statement.attribute
        if not exactly and (
            ("@plan" in self.sought and statement.category == "plan")
            or ("budget" in self.sought and statement.category == "constraint" and _MONEY.search(statement.text))
            or ("deadline" in self.sought and statement.category == "constraint" and _BY.search(statement.text))
        ):
            return True
        return bool(attribute) and any(
            attribute == sought
            or (sought.endswith((":", ":name")) and attribute.startswith(sought))
            or (sought in ("budget", "deadline") and attribute.endswith(sought))
            for sought in self.sought
        )

    def specific(self, found: frozenset[str]) -> int:
        """How many of the words that say which of several answers is meant are among those found."""
        return len((self.words - _FORMAL) & found)

    def fit(self, text: str, found: frozenset[str], speaker: str, rarity: dict[str, float]) -> float:
        """How well a sentence answers by its words, 0..1 and a little more for the kind of thing asked for."""
        if self.people and not self.people <= (found | set(words_of(speaker))):
            return 0.0
        kin = next((sought[:-5] for sought in self.sought if sought.endswith(":name")), "")
        if kin and not set(words_of(kin)) <= found:
            return 0.0
        about = self.words - set(words_of(speaker))
        if self.sought:
            # The statement sought was not made; only what else the question says can still find something.
            about -= _FORMAL
        if not about or (self.focus and self.focus not in found):
            return 0.0
        total = sum(rarity.get(word, 1.0) for word in about)
        met = (word for word in about if word in found or _KINDS.get(word, frozenset()) & found)
        score = sum(rarity.get(word, 1.0) for word in met) / total
        if _MEASURE.search(self.text) and not _FIGURE.search(text):
            return 0.0
        if score and _WHEN.search(self.text) and _DATED.search(text):
            score += 0.12
        if score and _AMOUNT.search(self.text) and _FIGURE.search(text):
            score += 0.12
        return score


@cached(2048, longest=500)
def question_of(text: str) -> Question:
    """Read a question."""
    bare = straight(text)
    sought: tuple[str, ...] = ()
    for pattern, attributes in _SOUGHT:
        if pattern.search(bare):
            sought += attributes
    kin = _KIN_NAME.search(bare)
    if kin:
        sought = (f"{next(filter(None, kin.groups())).lower()}:name",)
    # Only names written with a capital inside the question count: a sentence's first word says nothing.
    people = frozenset(words_of(" ".join(names(bare)))) if not bare.isupper() else frozenset()
    return Question(bare, frozenset(stems(bare)), people, sought, _focus(bare))


def _focus(text: str) -> str:
    """The word for what is asked ("the weather", "the capital"), without which nothing answers; "" if formal."""
    match = _FOCUS.search(text)
    found = stems(match.group(match.lastgroup or 0)) if match else []
    return found[0] if found and found[0] not in _FORMAL and found[0] not in _KINDS else ""


def words_of(text: str) -> list[str]:
    return list(stems(text)) or [token.lower() for token in tokens(text)]
