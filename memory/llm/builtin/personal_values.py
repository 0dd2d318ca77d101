"""The object of a statement, cut where it ends: "Lyon last spring with my sister" names the place Lyon.

Guarantee: what comes back is a part of what was put in, or nothing where that is no value ("it", "you so much").
"""

from __future__ import annotations

import re

from memory.llm.builtin.wording import word_set

_I = re.IGNORECASE
_STOP = re.compile(
    r"\s*[(;!?–—]|\s+-{1,2}\s|\s*,?\s+\b(?:because|since|but|which|who|although|though|if|unless|while|whereas|cos"
    r"|'cause|cause|any\s?more|any longer|right now|these days|at the moment|for now|nowadays|currently|btw|by the way"
    r"|actually|instead|please|as well|too|again|after all|lately|haha|lol|so (?:i|we|it|that|please)|and (?:i|we|it's"
    r"|that's)|when (?:i|we|it)|as (?:i|we|it))\b|\s*,\s*(?:too|so|please|not|you know|and so|then|thanks"
    r"|and)\b(?=\s*(?:$|,|you|that|it|please|not|I\b|we\b))|\s*[.](?:\s|$)|\s*[\U0001f300-\U0001faff\u2600-\u27bf]",
    _I,
)
_SHORT = re.compile(r"\s*(?:,(?!\d)|:)|\s+(?:and|or|with|near|for|so|in order|then|now|on|since|at|from|to)\s", _I)
_ONE = re.compile(
    r"\s*(?:,(?!\d)|:)|\s+(?:and|so|then|now|just|yesterday|today|last|this|next|since|but|not)\s|\s+(?:now|today"
    r"|yesterday)$",
    _I,
)
_NO_VALUE = re.compile(
    r"(?:i|we|he|she|they|their|his|it|that|this|them|him|her|you|your|yours|what|how|to hear|to see|hearing|seeing"
    r"|these|those|all (?:of )?(?:this|that|it|the)|everything|the (?:idea|sound|way|fact|thought|look|vibe|part)|being"
    r" able|when|where|so much|so|a lot|a bit|one|ones|some|any|me|us|myself|there|here|both|the same|something"
    r"|anything|nothing|one of)\b",
    _I,
)
_PLACE = re.compile(
    r"(?:(?:downtown|central|north(?:ern)?|south(?:ern)?|east(?:ern)?|west(?:ern)?|upstate|the)\s+)?"
    r"[^\W\d_a-z][\w'’.-]*(?:\s+(?:(?:of|de|la|le|les|del|da|do|am|an der|sur|upon|and)\s+)?[^\W\d_a-z][\w'’-]*)*"
    r"(?:,\s*[^\W\d_a-z][\w'’-]+(?:\s+[^\W\d_a-z][\w'’-]*)*)?"
)
_NAME = re.compile(
    r"[^\W\d_a-z][\w'’.-]*(?:\s+(?:(?:de|van|von|der|den|bin|al|da|di|la|le|el|O')\s+)*[^\W\d_a-z][\w'’-]*){0,3}"
)
_CASUAL_NAME = re.compile(r"[^\W\d_][\w'’-]{1,20}(?=$|\s+(?:and|from|but|by)\b|\s*,)")
_CASUAL_PLACE = re.compile(r"[^\W\d_][\w'’-]+(?:\s+[^\W\d_][\w'’-]+)?(?=$|\s+(?:with|and|since|for|now|in)\b|\s*,)")
_NO_PLACE = re.compile(
    r"(?:a|an|my|our|your|his|her|their|fear|hope|peace|constant|denial|this|that|it|one|monday|tuesday|wednesday"
    r"|thursday|friday|saturday|sunday|january|february|march|april|may|june|july|august|september|october|november"
    r"|december|tears|town|person|bed)\b",
    _I,
)
_NO_NAME = word_set(
    "sorry ok okay fine good great happy sad tired here back done sure not so very just glad busy excited ready afraid"
    " going trying christian catholic muslim jewish buddhist hindu jew atheist dutch french greek german european"
    " african asian american i me it what this that called a an the in on from at"
)
_NAMELESS_ENDING = ("ish", "ese", "ean")


def value_of(text: str, kind: str, casual: bool = False) -> str:
    """The value of the given kind (`place`, `name`, `one`, `short`, `list`, `rest`) at the beginning of `text`.

    `casual` when the person writes without capitals, so that none can be expected of a name.
    """
    text = text.strip(" *_\"“”'")
    if kind == "place":
        return _place(text, casual)
    if kind == "name":
        return _name(text, casual)
    if _NO_VALUE.match(text):
        return ""
    stop = _STOP.search(text)
    value = text[: stop.start()] if stop else text
    if kind in ("short", "one"):
        edge = (_SHORT if kind == "short" else _ONE).search(value)
        value = value[: edge.start()] if edge else value
    value = value.strip(' ,.;!*_"“”')
    return value if 0 < len(value) <= 120 else ""


def _place(text: str, casual: bool) -> str:
    if _NO_PLACE.match(text):
        return ""
    match = _PLACE.match(text) or (_CASUAL_PLACE.match(text) if casual else None)
    return match.group().strip(" .,") if match else ""


def _name(text: str, casual: bool) -> str:
    match = _NAME.match(text) or (_CASUAL_NAME.match(text) if casual else None)
    if match is None:
        return ""
    value = match.group().strip(" .,")
    first = value.split()[0].lower()
    return "" if first in _NO_NAME or first.endswith(_NAMELESS_ENDING) else value
