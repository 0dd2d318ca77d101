"""What the person rules out, and what they put back.

Guarantee: the option and the reason are parts of the sentence as it was written, but for the ending in "flying".
"""

from __future__ import annotations

import re

from memory.llm.builtin.statements import Clause
from memory.llm.builtin.wording import is_unspaced, word_set
from memory.sections import Excluded

_I = re.IGNORECASE
_X = r"(?P<x>[^,;:!?]{2,100}?)"
_BREAK = r"\s*[,;(–—-]+\s*"
# A reason is given with a "because", or by a clause that simply follows: "X is out, it's too slow".
_BECAUSE = (
    rf"(?:(?:(?:{_BREAK}|\s+)(?:because(?: of)?|since|as (?=it|they|that|we|i\b)|due to)"
    rf"|{_BREAK}(?=(?:it|they|that|there|the|our|my|we|i|too)(?:'\w+)? ))(?P<why>.{{3,160}}))?"
)
_SOCIAL = (
    r"(?:bother|be rude|forget|sound|lose|miss|interrupt|brag|worry|keep you|take|talk|think|say|seem|give"
    r" up|hear|be late|let)\b"
)

_REFUSES = tuple(
    re.compile(pattern + _BECAUSE + r"[\s.!)]*$", _I)
    for pattern in (
        rf"(?:I|we)\s+(?:really |also |just |definitely )*(?:don't|do not|won't|will not|never|wouldn't)"
        rf" (?:want|consider|accept|go with|need)\s+(?!(?:to\s+)?{_SOCIAL})(?:to\s+)?{_X}",
        rf"(?:I|we)(?:'d| would) (?:rather|prefer) (?:not|to avoid)\s+(?!(?:to\s+)?{_SOCIAL})(?:to\s+)?{_X}",
        rf"(?:I|we|let's|let us|please|you can)?\s*(?:also |just |can |should |already )*(?:rule|ruled|ruling)"
        rf" out\s+{_X}",
        rf"(?:I|we)(?:'ve| have)? (?:decided|voted) against\s+{_X}",
        rf"(?:I|we)(?:'m|'re| am| are) (?:not going (?:with|for)|done with|against|not (?:interested in"
        rf"|considering|using))\s+{_X}",
        rf"let's (?:not (?:do|use|go (?:with|for|to))|drop|skip|forget(?: about)?|avoid|exclude)\s+{_X}",
        rf"(?:please )?(?:drop|exclude|rule out|forget about|scrap|anything but|definitely not)\s+{_X}",
        rf"{_X}(?:'s|'re| is| are) (?:also |now |definitely |completely |therefore )*(?:out(?: of the"
        rf" question)?|off the table|not an option|no longer an option|"
        r"ruled out|a no-go|excluded|not acceptable|a dealbreaker)",
        rf"{_X} (?:won't|will not|doesn't|does not) work(?: for (?:me|us))?",
        rf"(?:no|not)\s+(?!(?:problem|worries|idea|way|doubt|matter|wonder|need|thanks|one|longer|later|more"
        rf"|less|really|sure|yet|"
        rf"bad|at all|only|just|much|big|so|too|even|that|the|a|an|my|i|it|in|on|for)\b){_X}(?:,?\s+please)?",
    )
)
_REFUSES_CHINESE = (
    re.compile(
        r"(?:我们?)?(?:不要|不想要?|不考虑|排除|放弃)(?P<x>[^，,。！]{1,40})(?:[，,]\s*(?P<why>(?:因为|.?太|怕).{1,60}))?$"
    ),
    re.compile(r"(?P<x>[^，,。！我]{1,30})(?:不行|不考虑|排除)(?:[，,]?因为(?P<why>.{1,60}))?"),
)
_REOPENS = tuple(
    re.compile(pattern + r"(?:\s+(?:after all|again|now|too|instead))*[\s.!]*$", _I)
    for pattern in (
        rf"(?:let's|let us|we (?:should|could|can)|I(?:'d| would) like to|I want to|please|can we)?\s*(?:also"
        rf" )?(?:reconsider|reopen|revisit|rethink|go back to)\s+{_X}",
        rf"(?:I|we)(?:'ve| have)? changed (?:my|our) minds? (?:about|on)\s+{_X}",
        rf"(?:on second thoughts?,?\s*)?(?:maybe |perhaps )?{_X}(?:'s|'re| is| are| would be) (?:actually |also"
        rf" )?(?:fine|ok|okay|good|acceptable|possible) (?:after all|now|again)",
        rf"on second thoughts?,?\s*{_X} (?:is|are|would be) (?:fine|ok|okay|good|acceptable).*",
        rf"{_X}(?:'s|'re| is| are) back (?:on the table|in(?: play)?|on)",
        rf"(?:maybe |perhaps |let's (?:go with|use|take|do) |I(?:'ll| will) (?:take|go with|use) |we(?:'ll|"
        rf" will) (?:take|go with|use) ){_X} after all",
    )
)
_REOPENS_CHINESE = (
    re.compile(r"(?:我们?)?(?:再|重新)考虑(?:一下)?(?P<x>[^，,。！]{1,40})"),
    re.compile(r"(?P<x>[^，,。！我]{1,30})(?:也可以|还是可以|又可以)"),
)


def refusal(clause: Clause) -> Excluded | None:
    """What a clause rules out, with the reason if it gives one."""
    if reopening(clause) is not None:
        return None
    for pattern in (*_REFUSES_CHINESE, *_REFUSES) if is_unspaced(clause.read) else _REFUSES:
        match = pattern.match(clause.read)
        if match:
            option = _bare(match.group("x"))
            if option and option.lower() not in _EMPTY:
                if _DOING.search(clause.read[: match.start("x")]) and not match.group("x").startswith("use "):
                    option = gerund(option)
                return Excluded(option, (match.group("why") or "").removeprefix("因为").strip(" .!,)"))
    return None


def reopening(clause: Clause) -> str | None:
    """What a clause puts back among the options; "it" and the like stand for the last one ruled out."""
    for pattern in _REOPENS_CHINESE if is_unspaced(clause.read) else _REOPENS:
        match = pattern.match(clause.read)
        if match:
            return _bare(match.group("x"))
    return None


# What follows is a verb in its bare form.
_DOING = re.compile(r"(?:\bto|\b(?:rather|prefer)(?: to)? not|\bto avoid|\blet's not)\s+$", _I)
_EMPTY = word_set(
    "it that this them those these him her you any anything more there everything anymore i we he she they"
)


def _bare(option: str) -> str:
    return re.sub(
        r"^(?:the idea of|using|to use|use|any|going (?:with|to|for))\s+|\s+(?:anymore|any more|any longer"
        r"|please|either|at all|idea|option)$",
        "",
        option.strip(" .!,"),
        flags=_I,
    )


def gerund(phrase: str) -> str:
    """ "fly to Rome" as "flying to Rome"."""
    verb, space, rest = phrase.partition(" ")
    if not verb.isalpha() or verb.endswith("ing") or not verb.islower():
        return phrase
    if verb.endswith("e") and not verb.endswith(("ee", "oe", "be")):
        verb = verb[:-1]
    elif re.fullmatch(r"[^aeiou]*[aeiou][bdgmnpt]", verb):
        verb += verb[-1]
    return f"{verb}ing{space}{rest}"
