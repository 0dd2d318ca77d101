"""Charsets of text files: which one a file is in, by its mark, its label or its letters."""

import codecs
import re
from collections import Counter
from contextlib import suppress

BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
# Of names of hosts and of source code, not of texts: to read some takes the square of their length.
NO_CHARSETS = {"idna", "punycode", "raw-unicode-escape", "unicode-escape"}
# What texts have under these names, as browsers read them: more signs than the standards know, such as the euro's.
IN_PRACTICE = {"iso8859-1": "cp1252", "gb2312": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949"}
WESTERN = "cp1252"
LANGUAGES = (  # Windows' code page, and the letters beyond ASCII of some languages; of equals the first counts
    (WESTERN, "äöüßéèêàâëïç²³£½"),  # German, Dutch
    (WESTERN, "àâæçéèêëîïôùûüœìíòóúá²³£½"),  # French, Italian, Catalan
    (WESTERN, "áàâãçéêíñóôõúü²³£½"),  # Spanish, Portuguese
    (WESTERN, "åäæöøéüèàóáõšž²³£½"),  # of the north
    (WESTERN, "áðéíóúýþæöø²³£½"),  # Icelandic, Faroese
    ("cp1250", "ąćęłńóśźż"),  # Polish
    ("cp1250", "áčďéěíňóřšťúůýž"),  # Czech
    ("cp1250", "áäčďéíľĺňóôŕšťúýž"),  # Slovak
    ("cp1250", "áéíóöőúüű"),  # Hungarian
    ("cp1250", "čćđšž"),  # Croatian, Slovene
    ("cp1250", "ăâîşţ"),  # Romanian
    ("cp1254", "çğıİöşüâîû"),  # Turkish
)
SPANISH_SIGNS = re.compile(rb"(?<!\S)\xbf(?=[^?]{1,200}\?)|(?<=[\dnN])[\xaa\xba](?![a-z])")  # ¿, nº, 2ª
DECLARED = re.compile(rb"""(?:<\?xml[^>]+encoding|<\s*meta[^>]+charset)\s*=\s*["']?([\w.:-]+)""", re.I)
DECLARED_WITHIN = 4096  # bytes
FOREIGN = re.compile(r"(?!(.)\1{3})[\xa0-\xff]{4,}")  # a word of another alphabet; western ones mix in ASCII


def codec_of(charset: str) -> str:
    """Return the codec of a text's charset; none for an unknown name."""
    with suppress(LookupError, ValueError):
        name = codecs.lookup(charset).name
        return "" if name in NO_CHARSETS else IN_PRACTICE.get(name, name)
    return ""


def declared_charset(data: bytes) -> str:
    """Return the charset that an HTML or XML page says it is in; none where it says nothing."""
    declared = DECLARED.search(data[:DECLARED_WITHIN])
    return declared[1].decode("ascii", "ignore") if declared else ""


def decode(data: bytes, *charsets: str) -> str | None:
    """Return text in the encoding that its mark or these say, in UTF-8, or in one of Windows' LANGUAGES; else None."""
    marked = next((name for mark, name in BOMS.items() if data.startswith(mark)), "")
    for name in filter(None, (marked, *map(codec_of, charsets), "utf-8")):
        with suppress(LookupError, UnicodeError):
            return data.decode(name)
    damaged = data.decode("utf-8", "replace")
    if damaged.count("\ufffd") < _count_beyond_ascii(damaged) / 2:
        return damaged
    page = _code_page(data)
    with suppress(UnicodeError):
        text = data.decode(page)
        foreign = sum(len(word[0]) for word in FOREIGN.finditer(text)) if page == WESTERN else 0
        if foreign <= _count_beyond_ascii(text) / 2:
            return text
    return None


def _code_page(data: bytes) -> str:
    """Return the code page with the language that has most of a text's letters; another than WESTERN has nearly all."""
    counts = Counter(SPANISH_SIGNS.sub(b"", data).translate(None, bytes(range(128))))

    def covered(language: tuple[str, str]) -> int:
        page, letters = language
        return sum(counts[byte] for byte in {*f"{letters}{letters.upper()}".encode(page)})

    best = max(LANGUAGES, key=covered)
    page = best[0]
    letters = sum(count for byte, count in counts.items() if bytes([byte]).decode(page, "replace").isalpha())
    return page if covered(best) >= 0.9 * letters else WESTERN


def _count_beyond_ascii(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))
