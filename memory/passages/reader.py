"""Read a PDF or an HTML page: a program of its own, which gets the file on stdin and prints JSON.

    python reader.py pdf|html CHARSET SECONDS BYTES CHARACTERS PAGES

It knows nothing of Recap, which reads plain text by its `decode`.  Files come from strangers: what takes too long or
too much memory ends this process alone, by the limits that it sets itself before it reads a byte.  Prints
`{"title", "pages"}`, or `{"error": code}`.
"""

import codecs
import json
import re
import sys
from collections import Counter
from contextlib import suppress
from io import BytesIO
from typing import Any

UNSEEN = (
    "script, style, template, noscript, svg, math, iframe, object, select, textarea, [hidden], "
    '[style*="display:none" i], [style*="display: none" i], [style*="visibility:hidden" i], '
    "nav, [role=navigation], [role=banner], [role=contentinfo], [role=search], "
    "button:not(:is(h1, h2, h3, h4, h5, h6) *), "  # a heading's opens what stands below it
    ":is(aside, footer, header:not(:has(h1))):not(:is(main, article, section) *)"
)
MAIN = "main, [role=main]"
MARKUP = ["a", "img", "b", "strong", "i", "em", "span", "font"]  # of which only the text stays
LINES = ["summary", "legend", "address", "label", "center"]  # which the converter would join with what is beside them
POWER = re.compile(r"[-+−]?\d+")
HYPHEN = re.compile(r"(?<=[^\W\d_])[-\xad‐]\n(?=([^\W\d_]))")  # at the end of a printed line
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
FOREIGN = re.compile(r"(?!(.)\1{3})[\xa0-\xff]{4,}")  # a word of another alphabet; western ones mix in ASCII


def codec_of(charset: str) -> str:
    """Return the codec of a text's charset; none for an unknown name."""
    with suppress(LookupError, ValueError):
        name = codecs.lookup(charset).name
        return "" if name in NO_CHARSETS else IN_PRACTICE.get(name, name)
    return ""


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


def read_pdf(data: bytes, _: str, characters: int, pages_max: int) -> dict[str, Any]:
    """Return the title and the text of each page."""
    from pypdf import PdfReader

    reader = PdfReader(BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        return {"error": "encrypted"}
    if len(reader.pages) > pages_max:
        return {"error": "too_long"}
    pages: list[str] = []
    for page in reader.pages:
        pages.append(HYPHEN.sub(lambda end: "" if end[1].islower() else "-", page.extract_text()))
        characters -= len(pages[-1])
        if characters < 0:
            return {"error": "too_long"}
    title = reader.metadata.title if reader.metadata else None
    return {"title": title, "pages": pages}


def read_html(data: bytes, charset: str, characters: int, _: int) -> dict[str, Any]:
    """Return the title, and the text as Markdown."""
    from bs4 import BeautifulSoup, Comment, Declaration, ProcessingInstruction
    from bs4.dammit import EncodingDetector
    from bs4.element import PageElement
    from markdownify import MarkdownConverter

    text = decode(data, charset, EncodingDetector.find_declared_encoding(data, is_html=True) or "")
    # Word writes conditions, XHTML its version.
    unseen: dict[type[PageElement], type[PageElement]] = {Declaration: Comment, ProcessingInstruction: Comment}
    page = BeautifulSoup(text or data, "html.parser", element_classes=unseen)
    title = page.title.get_text() if page.title else None
    for element in [*page.select(UNSEEN), *page.find_all(["head", "title"])]:
        element.decompose()
    for element in page.find_all([*LINES, "sup"]):
        if element.name in LINES:
            element.insert_before("\n")
            element.insert_after("\n")
        elif POWER.fullmatch(element.get_text(strip=True)):  # 10³ is not 103
            element.insert_before("^")
    main = page.select_one(MAIN)
    converter = MarkdownConverter(
        heading_style="ATX", bullets="-", strip=MARKUP, escape_asterisks=False, escape_underscores=False
    )
    text = converter.convert_soup(main if main is not None and main.get_text(strip=True) else page)
    return {"title": title, "pages": [text]} if len(text) <= characters else {"error": "too_long"}


def limit(seconds: int, size: int) -> None:
    """Let the system end this process when it takes more; where there are no such limits, the clock alone does."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def main(kind: str, charset: str, seconds: int, size: int, characters: int, pages: int) -> None:
    limit(seconds, size)
    sys.setrecursionlimit(5_000)
    result = (read_pdf if kind == "pdf" else read_html)(sys.stdin.buffer.read(), charset, characters, pages)
    sys.stdout.buffer.write(json.dumps(result).encode())  # ASCII: a PDF may have unpaired surrogates


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
