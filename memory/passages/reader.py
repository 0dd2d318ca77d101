"""Read a PDF or an HTML page: a program of its own, which gets the file on stdin and prints JSON.

    python reader.py pdf|html CHARSET SECONDS BYTES CHARACTERS PAGES

It knows nothing of Recap.  Files come from strangers: what takes too long or too much memory ends this process alone,
by the limits that it sets itself before it reads a byte.  Prints `{"title", "pages"}`, or `{"error": code}`.
"""

import json
import re
import sys
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
    """Return the title, and the text as Markdown. charset: none where the library shall guess."""
    from bs4 import BeautifulSoup, Comment, Declaration, ProcessingInstruction
    from bs4.element import PageElement
    from markdownify import MarkdownConverter

    # Word writes conditions, XHTML its version.
    unseen: dict[type[PageElement], type[PageElement]] = {Declaration: Comment, ProcessingInstruction: Comment}
    page = BeautifulSoup(data, "html.parser", from_encoding=charset or None, element_classes=unseen)
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
