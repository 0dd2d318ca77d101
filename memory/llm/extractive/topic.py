"""What a conversation is about, in a few of its own nouns.

Guarantee: every word comes from the conversation.  Steady: a word that is in the topic leaves it only when another one
clearly weighs more, and a topic that a person or a better model wrote as a phrase is kept.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from memory.llm.extractive.vocabulary import word_set
from memory.llm.extractive.wording import is_unspaced, stem, stems, tokens

_WORDS = 3
_KEPT_BONUS, _GONE_BONUS = 2.0, 0.5
_BEFORE_A_NOUN = word_set(
    "the a an my our your his her their this that these those some new of about for in with from no any"
    " own next last first"
    " another each every"
)
# Common words that are no topic, beyond the stop words: verbs, judgements, degrees, times.
_NO_TOPIC = frozenset(
    stem(word)
    for word in word_set(
        "need want love like enjoy hate use make take try help feel look keep start stop put let mean seem"
        " work live move hope plan"
        " guess sound believe happen become learn see watch hear turn bring call run read write play meet pay"
        " spend buy leave lose win"
        " wait stay share support appreciate agree decide change set add check cause excite happy sad great"
        " good nice amazing awesome"
        " cool fun sweet fantastic wonderful incredible inspiring glad sorry sure hard easy big small little"
        " old new young bad better best worse"
        " worst long short high low full real right wrong true different same own other important special"
        " favourite favorite proud thankful"
        " totally definitely absolutely maybe perhaps always never often sometimes soon later early late"
        " morning afternoon evening"
        " night hour minute second weekend monday tuesday wednesday thursday friday saturday sunday january"
        " february march april"
        " june july august september october november december one two three four five six seven eight nine"
        " ten hundred thousand bit couple kinda"
        " gonna wanna gotta yep yup wow haha thank thanks hey hello hi bye guy kid part point idea reason"
        " case fact end side"
        " everything everyone nothing word question answer example amount number half name lately luck plenty"
        " ton since while because"
        " around through during without within against both either few less least more most such only even"
        " back away together"
        " asked said told think thought can't don't didn't isn't wasn't won't doesn't couldn't euro dollar"
        " pound max min maximum"
        " minimum finally actually especially recently currently budgeted allergic fine able possible another"
        " next first between"
        " pretty crazy super worth passion mental social personal final journey experience dream goal life"
        " world moment memory joy touch yeah feeling chance"
    )
)


def topic_of(previous: str, earlier: Iterable[str], texts: Iterable[str], people: Iterable[str]) -> str:
    """The topic after `texts` were said; `earlier` are the summary's items, `people` those who speak."""
    parts = [part.strip() for part in previous.split(",") if part.strip()]
    if len(parts) > _WORDS or any(len(part.split()) > 2 or len(part) > 30 for part in parts):
        return previous
    called = {word.lower() for person in people for word in tokens(person[:60])}
    called |= {name[:length] for name in called for length in range(3, len(name))}  # Mel for Melanie
    people_stems = {stem(name) for name in called}
    weights: defaultdict[str, float] = defaultdict(float)
    shown: dict[str, Counter[str]] = {}
    for share, source in ((0.5, earlier), (1.0, texts)):
        for text in source:
            _weigh(text, share, weights, shown, people_stems)
    kept = {_key(part): part for part in parts}
    for key, part in kept.items():
        weights[key] += _KEPT_BONUS if weights[key] else _GONE_BONUS
        shown.setdefault(key, Counter())[part] += 1
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
            for piece in (found for found in stems(token[:80]) if len(found) > 1):
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
