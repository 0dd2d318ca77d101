"""Read a PDF or an HTML page: a program of its own, which gets the file on stdin and prints JSON.

    python reader.py pdf|html SECONDS BYTES CHARACTERS PAGES

It knows nothing of Recap.  Files come from strangers: what takes too long or too much memory ends this process alone,
by the limits that it sets itself before it reads a byte.  Prints `{"title", "pages"}`, or `{"error": code}`.
"""

import json
import re
import sys
from io import BytesIO
from typing import Any

UNSEEN = (
    "script, style, template, noscript, svg, math, iframe, object, button, select, textarea, [hidden], "
    '[style*="display:none" i], [style*="display: none" i], [style*="visibility:hidden" i], '
    "nav, aside, footer, header:not(:has(h1)), [role=navigation], [role=banner], [role=contentinfo], [role=search]"
)
MAIN = "main, [role=main]"
MARKUP = ["a", "img", "b", "strong", "i", "em", "span", "font"]  # of which only the text stays
HYPHEN = re.compile(r"(?<=[^\W\d_])-\n(?=[^\W\d_])")  # at the end of a printed line


def read_pdf(data: bytes, characters: int, pages_max: int) -> dict[str, Any]:
    """Return the title and the text of each page."""
    from pypdf import PdfReader

    reader = PdfReader(BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        return {"error": "encrypted"}
    if len(reader.pages) > pages_max:
        return {"error": "too_long"}
    pages: list[str] = []
    for page in reader.pages:
        pages.append(HYPHEN.sub("", page.extract_text()))
        characters -= len(pages[-1])
        if characters < 0:
            return {"error": "too_long"}
    title = reader.metadata.title if reader.metadata else None
    return {"title": title, "pages": pages}


def read_html(data: bytes, characters: int, _: int) -> dict[str, Any]:
    """Return the title, and the text as Markdown."""
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    page = BeautifulSoup(data, "html.parser")
    title = page.title.get_text() if page.title else None
    for element in [*page.select(UNSEEN), *page.find_all(["head", "title"])]:
        element.decompose()
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


def main(kind: str, seconds: int, size: int, characters: int, pages: int) -> None:
    limit(seconds, size)
    sys.setrecursionlimit(5_000)
    result = (read_pdf if kind == "pdf" else read_html)(sys.stdin.buffer.read(), characters, pages)
    sys.stdout.buffer.write(json.dumps(result).encode())  # ASCII: a PDF may have unpaired surrogates


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
