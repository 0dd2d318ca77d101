"""What a conversation is about: what the person plans or works on, or else a few of the conversation's own nouns.

Guarantee: every word comes from the conversation, but for the label "About" where the person only told of themselves.
Steady: what is in the topic leaves it only when something else clearly weighs more, and a topic that a person or a
better model wrote as a phrase is kept.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence, Set

from memory.llm.builtin.personal import Statement
from memory.llm.builtin.refusals import gerund
from memory.llm.builtin.sentences import clip, one_line
from memory.llm.builtin.wording import is_unspaced, runs, stem, stems, tokens, word_set

_WORDS = 3
_PHRASE = 70
_KEPT_BONUS, _GONE_BONUS = 2.0, 0.5
_BEFORE_A_NOUN = word_set(
    "the a an my our your his her their this that these those some new of about for in with from no any own next last"
    " first another each every"
)
# Common words that are no topic, beyond the stop words: verbs, judgements, degrees, times.
_NO_TOPIC = frozenset(
    stem(word)
    for word in word_set(
        "need want love like enjoy hate use make take try help feel look keep start stop put let mean seem work live"
        " move hope plan guess sound believe happen become learn see watch hear turn bring call run read write play"
        " meet pay spend buy leave lose win wait stay share support appreciate agree decide change set add check cause"
        " excite happy sad great good nice amazing awesome cool fun sweet fantastic wonderful incredible inspiring glad"
        " sorry sure hard easy big small little old new young bad better best worse worst long short high low full real"
        " right wrong true different same own other important special favourite favorite proud thankful totally"
        " definitely absolutely maybe perhaps always never often sometimes soon later early late morning afternoon"
        " evening night hour minute second weekend monday tuesday wednesday thursday friday saturday sunday january"
        " february march april june july august september october november december one two three four five six seven"
        " eight nine ten hundred thousand bit couple kinda gonna wanna gotta yep yup wow haha thank thanks hey hello hi"
        " bye guy kid part point idea reason case fact end side everything everyone nothing word question answer"
        " example amount number half name lately luck plenty ton since while because around through during without"
        " within against both either few less least more most such only even back away together asked said told think"
        " thought can't don't didn't isn't wasn't won't doesn't couldn't euro dollar pound max min maximum minimum"
        " finally actually especially recently currently budgeted allergic fine able possible another next first"
        " between pretty crazy super worth passion mental social personal final journey experience dream goal life"
        " world moment memory joy touch yeah feeling chance"
    )
)

# How a plan's text begins where it names an undertaking, and what of it is no part of the topic.
_UNDERTAKING = re.compile(
    r"(?:(?P<do>(?:wants|plans|hoping|planning|going|preparing) to)|(?:planning(?: on| for)?|working on|looking for"
    r"|preparing for|training for|saving(?: up)? for|thinking (?:of|about)|considering|(?P<make>building|developing"
    r"|writing|designing|creating|making|organi[sz]ing|renovating|hosting|launching|starting|migrating|redesigning"
    r"|moving|decided to))|(?:最近|现在)?(?:打算|计划|准备))\s*(?:(?:an?|the|our|my|some)\s+)?(?P<what>.+)",
    re.IGNORECASE,
)
_PERSONAL = frozenset({"identity", "preference", "relationship", "constraint", "work"})


def topic_of(
    previous: str,
    earlier: Sequence[str],
    texts: Sequence[str],
    people: Iterable[str],
    held: Sequence[Statement] = (),
    gone: Set[str] = frozenset(),
) -> str:
    """The topic after `texts` were said.

    `earlier` are the summary's items, `people` those who speak, `held` the statements that hold, `gone`
    the words of those that no longer do.
    """
    plans = [phrase for statement in held if (phrase := _undertaking(statement))]
    parts = [part.strip() for part in previous.split(",") if part.strip()]
    phrased = len(parts) > _WORDS or any(len(part.split()) > 2 or len(part) > 30 for part in parts)
    if previous.startswith(("About ", "关于")):
        parts, phrased = [], False
    if phrased and not all(part.strip() in plans for part in previous.split(";")):
        return previous
    if plans:
        return "; ".join(dict.fromkeys((plans[0], plans[-1])))
    names = [statement.value for statement in held if statement.attribute == "name"]
    personal = gone | {key for one in held if one.category in _PERSONAL for key in stems(one.value)}
    words = _words(parts, earlier, texts, [*people, *names], personal)
    if words or not names:
        return words
    return f"关于{names[-1]}" if is_unspaced(names[-1]) else f"About {names[-1]}"


def _undertaking(statement: Statement) -> str:
    if statement.category not in ("plan", "work"):
        return ""
    text = one_line(statement.text)
    if is_unspaced(text) and statement.category == "plan":
        return clip(re.sub(r"^.*?(?:打算|计划|准备|要|想)", "", text) or text, 30)
    match = _UNDERTAKING.match(text)
    if match is None:
        return ""
    what = match.group("what")
    label, colon, named = what.partition(": ")
    if colon and re.fullmatch(r"(?:[\w-]+ )?(?:project|app|trip|event|thing|side project)", label, re.IGNORECASE):
        what = re.sub(r"^(?:an?|the|our|my)\s+", "", named)
    elif match.group("do"):
        what = gerund(what)
    elif match.group("make") and match.group("make").lower() in ("moving", "renovating", "migrating", "redesigning"):
        what = text
    return clip(what[:1].upper() + what[1:], _PHRASE)


def _words(
    parts: list[str], earlier: Iterable[str], texts: Iterable[str], people: Iterable[str], personal: Set[str]
) -> str:
    called = {word.lower() for person in people for word in tokens(person[:60])}
    called |= {name[:length] for name in called for length in range(3, len(name))}  # Mel for Melanie
    left_out = {stem(name) for name in called} | personal
    weights: defaultdict[str, float] = defaultdict(float)
    shown: dict[str, Counter[str]] = {}
    for share, source in ((0.5, earlier), (1.0, texts)):
        for text in source:
            _weigh(text, share, weights, shown, left_out)
    kept = {_key(part): part for part in parts if _key(part) not in left_out}
    for key, part in kept.items():
        weights[key] += _KEPT_BONUS if weights[key] else _GONE_BONUS
        shown.setdefault(key, Counter())[part] += 1
    # Nothing says where a Chinese word ends; what comes up twice is more likely one.
    weights = defaultdict(float, {key: weight for key, weight in weights.items() if weight > 1 or not is_unspaced(key)})
    best = sorted(weights, key=lambda key: (-weights[key], key))[:_WORDS]
    order = [key for key in kept if key in best] + [key for key in best if key not in kept]
    return ", ".join(kept.get(key) or max(sorted(shown[key]), key=shown[key].__getitem__) for key in order)


def _key(part: str) -> str:
    return part if is_unspaced(part) else " ".join(stem(word.lower()) for word in tokens(part))


def _weigh(
    text: str, share: float, weights: defaultdict[str, float], shown: dict[str, Counter[str]], people: set[str]
) -> None:
    before = ""
    for token in tokens(text[:4000]):
        if is_unspaced(token):
            for piece in (run for run in runs(token[:80]) if 1 < len(run) < 5 and not {run, *stems(run)} & people):
                weights[piece] += share
                shown.setdefault(piece, Counter())[piece] += 1
            continue
        word = token.partition("'")[0]
        lowered = word.lower()
        key = stem(lowered)
        nominal = lowered in _BEFORE_A_NOUN
        if (
            len(word) > 2
            and word.isalpha()
            and not nominal
            and key not in _NO_TOPIC
            and key not in people
            and stems(word)
        ):
            named = word[0].isupper() and before != ""
            if (
                before in _BEFORE_A_NOUN
                or named
                or re.search(r"(?:tion|ment|ness|ship|ing|s)$", lowered)
                or before in ("to", "at", "on", "and")
            ):
                noun = 1.5 if before in _BEFORE_A_NOUN or named else 0.75
                weights[key] += share * noun
                shown.setdefault(key, Counter())[word if named or word.isupper() else lowered] += 1
        before = lowered
