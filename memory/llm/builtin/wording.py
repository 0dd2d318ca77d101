"""Words as they are compared: stems, concepts, names, and what makes two items say the same.

Guarantee: pure and linear.  `sameness` is deliberately strict: it looks past articles, filler, case and contractions
and past nothing else, so two items that differ in a number, a negation, a name or a tense never count as one.
Scripts written without spaces are compared by character bigrams.
"""

from __future__ import annotations

import re

from search_index.caches import cached


def word_set(words: str) -> frozenset[str]:
    """The words of a string, as a set."""
    return frozenset(words.split())


_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_TOKEN = re.compile(
    rf"(?:(?<!\w)[-−])?[$€£¥₹]?\d+(?:[.,:/-]\d+)*(?:[%$€£¥₹]|[^\W\d_{_UNSPACED}]+)?|[{_UNSPACED}]+"
    rf"|[^\W_{_UNSPACED}]+(?:'[^\W\d_{_UNSPACED}]+|\+\+|\#)?"
)
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]")
_LETTERS = re.compile(r"[A-Za-z][A-Za-z'’]*")
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_UNSPACED_FILLER = re.compile(
    "什么|哪里|哪儿|哪个|哪些|怎么|为什么|多少|我们|你们|他们|咱们|这个|那个|一个|一下|关于|之前|以前|曾经|告诉|说过|记得|"
    "讨论|聊过|知道|了解|叫|总结|现在|最近|可以|我|你|您|他|她|它|的|了|吗|呢|吧|啊|在|是|和|与|也|都|就|对|有|谁|请"
)
_NEGATIONS = {"can't": "can not", "won't": "will not", "cannot": "can not", "shan't": "shall not"}

_STOP = word_set(
    "a an the this that these those i me my mine myself we us our ours you your yours he him his she her hers it its"
    " they them their theirs who whom whose what which when where why how is am are was were be been being do does did"
    " done doing have has had having will would shall should can could may might must of in on at to for from by with"
    " about into over after before between and or but if then than so as not no nor too very just also really quite"
    " pretty some any all each there here up down out off again ever yet still already now oh ok okay yes yeah well"
    " please s t d ll re ve m let lets get got much many more most lot lots thing things something anything stuff way"
    " kind"
    # words of asking and telling: a question about the past is full of them, and they find nothing
    " tell told say said says saying discuss discussed talk talked talking mention mentioned remember remembered recall"
    " know knew think thought ask asked remind reminded speak chat chatted conversation give gave find go going went"
    " come came yesterday today tomorrow ago last next week month year time day recently lately earlier previously"
    " previous past people person someone anyone everyone exactly again list show explain describe want living"
    " summarize summarise summary recap use using used place places"
)
_IRREGULAR = {
    "bought": "buy", "children": "child", "kids": "child", "kid": "child", "ate": "eat", "eaten": "eat", "ran": "run",
    "met": "meet", "made": "make", "taught": "teach", "spoke": "speak", "spoken": "speak", "wrote": "write",
    "written": "write", "drove": "drive", "chose": "choose", "chosen": "choose", "paid": "pay", "spent": "spend",
    "sold": "sell", "lost": "lose", "won": "win", "left": "leave", "felt": "feel", "grew": "grow", "grown": "grow",
    "wives": "wife", "people": "person", "men": "man", "women": "woman", "mice": "mouse", "feet": "foot",
    "taken": "take", "took": "take", "began": "begin", "flew": "fly", "read": "read", "studied": "study",
    "drank": "drink",
}  # fmt: skip
_CONCEPTS = (
    "live move relocate base reside home",
    "work job employer company employ profession occupation career",
    "allergic allergy intolerant",
    "birthday born birth",
    "like love enjoy prefer favourite favorite fave adore",
    "dislike hate detest",
    "budget cost price spend afford",
    "name call",
    "deadline due",
    "mother mom mum mama",
    "father dad papa",
    "wife husband spouse partner",
    "child son daughter",
    "pet dog cat",
    "car drive vehicle",
    "holiday vacation trip travel",
    "buy purchase",
    "film movie",
    "study learn major degree",
    "colour color",
    "start begin",
    "phone mobile",
    "wedding married marry wed",
)
# What an item may lack or have more of and still say the same.
_FILLER = word_set(
    "a an the really very just quite so also well actually oh ok okay yes yeah please hey hi and but btw basically"
)


def is_unspaced(text: str) -> bool:
    """Whether `text` is written, at least in part, without spaces between words (Chinese, Japanese, Thai, Korean)."""
    return _UNSPACED_RUN.search(text) is not None


def is_chinese(text: str) -> bool:
    """Whether an answer to `text` had better be in Chinese: it begins with Han, or has more of it than other words."""
    begun = text[:2000].lstrip()
    return bool(_HAN.match(begun) or re.search("[，。？！]", begun)) or len(_HAN.findall(begun)) > len(
        _LETTERS.findall(begun)
    )


def straight(text: str) -> str:
    """`text` with typographic apostrophes made plain; of the same length, so that positions still hold."""
    return text.replace("’", "'").replace("‘", "'")


def tokens(text: str) -> list[str]:
    return _TOKEN.findall(straight(text))


@cached(8192, longest=64)
def stem(word: str) -> str:
    """A word without its English endings; forms of one word meet, and so do a few words of one meaning."""
    return _CONCEPT_OF.get(bare := _bare_stem(word), bare)


def runs(token: str) -> list[str]:
    """What is left of a token without spaces when its function words are taken out."""
    return _UNSPACED_FILLER.sub(" ", token).split()


@cached(8192, longest=500)
def stems(text: str) -> tuple[str, ...]:
    """What `text` is about, in order: stems of its content words, bigrams where words have no spaces."""
    out: list[str] = []
    for token in tokens(text):
        if _UNSPACED_RUN.match(token):
            for run in runs(token):
                out.extend(run[i : i + 2] for i in range(max(1, len(run) - 1)))
        else:
            word = token.lower()
            base = word.partition("'")[0]
            if word not in _STOP and base not in _STOP and (len(base) > 1 or base.isdigit()):
                out.append(stem(base))
    return tuple(out)


def names(text: str) -> list[str]:
    """Capitalised words that are not simply the first of the sentence, lowered."""
    found = [token.partition("'")[0] for token in tokens(text)]
    return [w.lower() for w in found[1:] if w[:1].isupper() and w.lower() not in _STOP and len(w) > 1]


@cached(8192, longest=500)
def sameness(text: str) -> tuple[str, ...]:
    """Two texts with the same key say the same."""
    out: list[str] = []
    for token in tokens(text):
        word = token if token.isupper() and len(token) > 1 else token.lower()
        word = _NEGATIONS.get(word, word)
        if word.endswith("n't"):
            word = word[:-3] + " not"
        for tail, full in (("'m", " am"), ("'re", " are"), ("'ve", " have"), ("'ll", " will")):
            if word.endswith(tail):
                word = word[: -len(tail)] + full
        out.extend(part for part in word.split() if part not in _FILLER)
    return tuple(out)


def _bare_stem(word: str) -> str:
    word = _IRREGULAR.get(word, word)
    if not word.isascii():
        # Endings of other inflected scripts: what is left of a long word's beginning is enough to meet its forms.
        return word if len(word) < 6 else word[: max(5, len(word) - 3)]
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes", "zes")):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        base = word[: -len(ending)]
        if word.endswith(ending) and len(base) > 2 and any(vowel in base for vowel in "aeiouy"):
            doubled = base[-1] == base[-2] and base[-1] not in "lsz"
            word = base[:-1] if doubled else base
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


_CONCEPT_OF = {_bare_stem(word): _bare_stem(group.split()[0]) for group in _CONCEPTS for word in group.split()}
