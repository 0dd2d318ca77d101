"""Words of facts as they are compared: stems of what a text is about.

Guarantee: pure, and linear in the text.  Scripts that are written without spaces are compared by pairs of characters.
"""

from __future__ import annotations

import re

from search_index.analysis import ENGLISH

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
_TOKEN = re.compile(rf"[$€£¥₹]?\d+(?:[.,:/-]\d+)*%?|{_UNSPACED.pattern}+|[^\W\d_]+(?:'[^\W\d_]+)?")


def is_unspaced(text: str) -> bool:
    """Whether `text` is written, at least in part, without spaces between words (Chinese, Japanese, Thai, Korean)."""
    return _UNSPACED.search(text) is not None


def straight(text: str) -> str:
    """`text` with plain apostrophes, at the same length."""
    return text.replace("’", "'").replace("‘", "'")


def tokens(text: str) -> list[str]:
    """The words and figures of `text`, as they are written."""
    return _TOKEN.findall(straight(text))


def stems(text: str) -> list[str]:
    """What `text` is about, in order: its words without endings, and without those that stand in any text."""
    return ENGLISH.terms(straight(text))


def stem(word: str) -> str:
    """A word without its ending."""
    found = ENGLISH.terms(word)
    return found[0] if found else word
