"""Spelling of texts: one form of what looks the same, their words, and the scripts of these."""

import re
import unicodedata
from collections.abc import Sequence
from statistics import mode

from search_index.caches import cached
from search_index.han import SIMPLIFIED

# Scripts written without spaces between words, as ranges of characters: Thai to Burmese, Khmer, kana, bopomofo, Han.
UNSPACED = (
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17d3\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u312f"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
PAIRED = f"{UNSPACED}\uac00-\ud7a3"  # these and Hangul, whose words have endings that are not told apart here
PAIR = re.compile(f"[{PAIRED}]{{2}}")
# A character with the signs written on it, and in Thai and Lao with the vowels that are written before or after it.
_CHARACTER = re.compile("[\u0e40-\u0e44\u0ec0-\u0ec4]?\\w\\W*[\u0e30\u0e32\u0e45\u0eb0\u0eb2]?|\\W+")
PAIRED_RUN, UNSPACED_RUN = re.compile(f"[{PAIRED}]+"), re.compile(f"[{UNSPACED}]+")
# A word: letters and digits, joined by single marks into a compound; C++ and C# keep what tells them from C.
# Vowel signs of the Indic scripts are marks to Unicode, but parts of their words.
_LETTER = "(?:[^\\W_]|[\u0900-\u0963\u0970-\u0dff])"
WORD = re.compile(f"{_LETTER}+(?:['._@&-]{_LETTER}+)*(?:\\+\\+|#(?!\\w))?")
ASCII_WORD = re.compile(r"[A-Za-z0-9]+(?:['._@&-][A-Za-z0-9]+)*(?:\+\+|#(?!\w))?")
# What Hebrew and Arabic are written with or without: vowel points, and the lengthening of a line.
_POINTS = "\u0591-\u05bd\u05bf\u05c1\u05c2\u0640\u064b-\u065f\u0670"
# A word or a run of an unspaced script as it is written, before accents are folded.
WRITTEN_WORD = re.compile(
    f"{PAIRED_RUN.pattern}|(?:{_LETTER}(?<![{PAIRED}])[\u0300-\u036f{_POINTS}]*|['\u2019._@&-](?={_LETTER}))+"
    "(?:\\+\\+|#(?!\\w))?"
)
_ASCII_WRITTEN = re.compile(rf"['._@&-]?{ASCII_WORD.pattern}")
# Ranges of letters of scripts that are not Latin, with the languages in them that are known here.
SCRIPTS = {
    "\u0370-\u03ff": ("el",),
    "\u0400-\u052f": ("ru", "uk"),
    "\u0530-\u058f": ("hy",),
    "\u0590-\u05ff": ("he",),
    "\u0600-\u06ff": ("ar", "fa"),
    "\u0900-\u097f": ("hi",),
    "\u0b80-\u0bff": ("ta",),
    "\uac00-\ud7a3": ("ko",),
    "^\\W\\d_A-Za-z\u00aa-\u024f\u1e00-\u1eff": (),  # all others
}
SCRIPT = re.compile("|".join(f"([{letters}])" for letters in SCRIPTS))
LETTERS = re.compile(f"(?:(?!\\d){_LETTER})+")
# Accents on Latin and Greek letters, stress and the dots of ё on Cyrillic ones, points, and the dot of Hindi letters
# for foreign sounds.
_ACCENTS = re.compile(
    f"(?<=[A-Za-z\u0370-\u03ff])[\u0300-\u036f]+|(?<=[\u0400-\u04ff])[\u0300\u0301]|(?<=[Ее])\u0308|[{_POINTS}\u093c]+"
)
# Normalising takes the square of the length of a run of accents: a long text goes piece by piece, cut at spaces.
_CHUNK = 300
_CHUNKS = re.compile(f".{{1,{_CHUNK - 1}}}\\s|.{{1,{_CHUNK}}}", re.DOTALL)
# Letters that Unicode does not take apart, or that keyboards of Arabic and Persian have two of; digits of other
# scripts; typographic apostrophes and dashes; invisible characters.
_VARIANTS = str.maketrans(
    {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ı": "i"}
    | {"ى": "ي", "ی": "ي", "ک": "ك", "ँ": "ं"}
    | {digit: str(unicodedata.decimal(digit)) for digit in map(chr, range(0x660, 0xE5A)) if digit.isdecimal()}
    | dict.fromkeys("\u2018\u2019\u02bc\u2032\uff07", "'")
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\u200c", "-")  # the last parts endings from words in Persian
    | dict.fromkeys("\u00ad\u200b\u200d\u2060\ufeff", "")
    | SIMPLIFIED
)


def normalised(text: str) -> str:
    """Return one spelling of texts that look the same: compatibility forms, accents, apostrophes and dashes folded."""
    if len(text) > _CHUNK:
        return "".join(map(normalised, _CHUNKS.findall(text)))
    apart = unicodedata.normalize("NFKD", text.translate(_VARIANTS)).translate(_VARIANTS)
    return unicodedata.normalize("NFC", _ACCENTS.sub("", apart))


def folded(text: str) -> str:
    """Return a text in the spelling in which terms are compared, but not stemmed."""
    return (text if text.isascii() else normalised(text)).casefold()


def written_words(text: str) -> list[str]:
    """Return the words of a text as they are written there."""
    return (_ASCII_WRITTEN if text.isascii() else WRITTEN_WORD).findall(text)


def characters(run: str) -> list[str]:
    """Return the characters of a run of an unspaced script, each with the vowels and tones that belong to it."""
    return _CHARACTER.findall(run)


@cached(64)
def languages_of_script(text: str) -> Sequence[str] | None:
    """Return the languages known here of the script that most words of a text are in; None if that is Latin."""
    words = [] if text.isascii() else written_words(text)
    scripts = [match.lastindex or 0 for match in map(SCRIPT.match, words) if match]
    return list(SCRIPTS.values())[mode(scripts) - 1] if 2 * len(scripts) > len(words) else None
