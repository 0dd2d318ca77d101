"""One thing put in another's place: "Ida, not Ada", "Not 800, make it 1,000", "let's say 1,000 instead".

Guarantee: pure; a correction changes only a statement that says the word it takes back, or holds a figure of the same
kind (money, a date, a count) where it names none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from memory.llm.builtin.personal import Statement
from memory.llm.builtin.wording import is_unspaced, stems, straight
from search_index.caches import cached

_I = re.IGNORECASE
_WORD = r"(?:[^\s,;:.!?()\"，。；！？]|(?<=\d)[.,:](?=\d)|\.(?=\w))+"
_THING = rf"{_WORD}(?: {_WORD}){{0,3}}"
_LEAD = (
    r"(?:(?:no|sorry|actually|wait|correction|oops|i meant?|it's|it is|it was|that's|make (?:it|that)"
    r"|rather)\b[\s,:.-]*)*"
)
_NEW_NOT_OLD = re.compile(rf"\s*{_LEAD}(?P<new>{_THING}),? (?:and )?not (?P<old>{_THING})[\s.!]*$", _I)
_NOT_OLD_NEW = re.compile(
    rf"\s*{_LEAD}not (?P<old>{_THING})(?:,| but|, but|;| -| –| —|\.) (?:it's |it is |make (?:it|that) |let's say "
    rf"|rather )?(?P<new>{_THING})[\s.!]*$",
    _I,
)
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b"
)
_FIGURES = {
    "money": re.compile(
        r"[$€£¥₹]\s?\d[\d.,]*\d?k?|\d+(?:[.,]\d+)*k?\s?(?:euros?|eur|dollars?|usd|pounds?|gbp|bucks|yen|yuan|rmb"
        r"|元|块钱?|万元?|[€$£¥]|k\b)",
        _I,
    ),
    "date": re.compile(
        rf"(?:the )?\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}|{_MONTH}(?: (?:the )?\d{{1,2}}(?:st|nd|rd|th)?)?"
        r"|(?:next )?(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|tomorrow|\d{1,2}月\d{1,2}[号日]",
        _I,
    ),
    "count": re.compile(r"\d+(?:[.,:]\d+)*"),
}
_FIGURE = rf"(?:(?:about|around|only|at most|up to|max) )?(?:{'|'.join(kind.pattern for kind in _FIGURES.values())})"
_INSTEAD = re.compile(
    r"(?:^|.*[,;:–—.]\s+|.*\b(?:so|but|and)\s+)(?:(?:no|actually|sorry|ok|okay|hmm|wait|well|on second"
    r" thought)[\s,]+)*(?:let's (?:say|make (?:it|that|this)|do)|make (?:it|that|this)|call it|change (?:it|that|this)"
    r" to|set (?:it|that) to|(?:change|raise|lower|increase|decrease|reduce|move|push|cut|bump|extend) (?:the|my|our|it"
    r"|that)(?: (?P<about>\w+))?(?: back| up| down)* to|(?:sorry,? )?i meant?(?: to say)?|(?:it|that)(?:'s| is) (?:now"
    r"|actually)|(?:it|that) should be)\s+"
    rf"(?P<new>{_FIGURE}(?: [a-z]+)?)(?: instead| then| now| please| max| total| in total| after all)*[\s.!]*$",
    _I,
)
_CHOICE = re.compile(
    rf"(?:(?:no|actually|ok|okay|hmm|wait)[\s,]+)*(?:let's|we'll|I'll|we should) (?:use|go with|take|pick|try) "
    rf"(?P<new>(?!.* for ){_THING}) instead[\s.!]*$",
    _I,
)
_CHINESE = re.compile(
    r"(?:不对?[，,]\s*)?(?:(?:应该)?不是(?P<old>[^，,。是]{1,20})[，,]?\s*(?:而?是|应该是)"
    r"|(?:(?P<about>预算|截止日期|deadline)?[^，,。]{0,4}(?:改成|改为|改到|换成)))\s*(?P<new>[^，,。！]{1,20}?)[了吧啊呗]*[。！!]*$",
    _I,
)
_NO_THING = re.compile(
    r"\b(?:am|is|are|was|were|do|does|did|can|could|will|would|should|may|might|must|have|has|why|if|or|but|and"
    r"|probably|maybe|perhaps|certainly|definitely|course)$",
    _I,
)


@dataclass(frozen=True)
class Correction:
    """Take `old` back and say `new` in its place; without `old`, `new` takes the place of the last figure of its kind.

    `about` is what the figure is of, where it is named ("raise the budget to 1,000").
    """

    old: str
    new: str
    about: str = ""

    def fit(self, statement: Statement) -> int:
        """How likely `statement` is meant, for choosing among several: 0 where it can't be."""
        if self.applied_to(statement) is None:
            return 0
        named = statement.attribute.endswith({"money": "budget", "date": "deadline"}.get(_kind(self.new), "\n"))
        return 2 if named or self.old else 1

    def applied_to(self, statement: Statement) -> Statement | None:
        """The corrected statement, or None where it doesn't say what is taken back."""
        if self.about not in ("", "use") and not set(stems(self.about)) & set(
            stems(f"{statement.text} {statement.attribute}")
        ):
            return None
        pattern = self._old_in(statement)
        if self.about == "use":
            pattern = re.compile(re.escape(statement.value)) if statement.attribute.startswith("use for:") else None
        if pattern is None:
            return None
        text = pattern.sub(lambda _: self.new, statement.text, count=1)
        value = pattern.sub(lambda _: self.new, statement.value, count=1)
        return replace(statement, text=text, value=value)

    def _old_in(self, statement: Statement) -> re.Pattern[str] | None:
        if self.old:
            # The unit may be said again with the new figure: "800 euros", "not 800, 1,000 euros".
            unit = re.sub(r"^\D*[\d.,]*\s*", "", self.new)
            after = rf"(?:\s?{re.escape(unit)})?" if unit else ""
            edges = ("", "") if is_unspaced(self.old) else (r"(?<![^\W\u3400-\u9fff])", r"(?![^\W\u3400-\u9fff])")
            pattern = re.compile(f"{edges[0]}{re.escape(self.old)}{after}{edges[1]}", _I)
            exact = statement.value.lower() == self.old.lower()
            telling = any(character.isupper() or character.isdigit() for character in self.old)
            return pattern if (exact or telling) and pattern.search(statement.text) else None
        kind = _kind(self.new)
        unit = re.sub(r"^[^a-z]*", "", self.new, flags=_I) if kind == "count" else ""
        pattern = re.compile(rf"{_FIGURES[kind].pattern}{f' {re.escape(unit)}' if unit else ''}", _I)
        return pattern if pattern.search(statement.value or statement.text) else None


def _kind(figure: str) -> str:
    return next((kind for kind, pattern in _FIGURES.items() if pattern.search(figure)), "count")


@cached(4096, longest=160)
def correction(sentence: str) -> Correction | None:
    """The correction that a sentence makes, if it makes one."""
    if len(sentence) > 160:
        return None
    bare = straight(sentence)
    match = _NOT_OLD_NEW.match(bare) or _NEW_NOT_OLD.match(bare) if "not" in bare.lower() else None
    choice = _CHOICE.match(bare)
    if choice:
        return Correction("", choice.group("new"), "use")
    match = match or _INSTEAD.match(bare) or _CHINESE.match(bare)
    if match is None:
        return None
    found = match.groupdict()
    new = re.sub(
        r"^(?:my name is|my name's|i'm|i am|i live in|the \w+ is|my \w+ is|it's|in|at|on)\s+",
        "",
        found["new"],
        flags=_I,
    )
    new = re.sub(r"\s+(?:instead|then|now|please|max|total)$", "", new, flags=_I).strip()
    old = re.sub(r"^(?:in|at|on|for|the)\s+", "", found.get("old") or "", flags=_I)
    if not new or new.lower() == old.lower() or _NO_THING.search(new):
        return None
    if not old and not any(pattern.search(new) for pattern in _FIGURES.values()):
        return None
    return Correction(old, new, (found.get("about") or "").replace("截止日期", "deadline").replace("预算", "budget"))
