"""From a file to its text: plain text and Markdown here, HTML and PDF in a process of their own.

Invariant: whatever a file holds, its text is read within SECONDS and BYTES_MAX, or a sentence says why not; other
requests go on meanwhile (test_documents).
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any, NamedTuple

from memory.errors import InvalidRequest, RecapError, TooLarge
from memory.quoting import normalize, one_line
from schemas.charsets import codec_of, declared_charset, decode
from schemas.documents import MARKDOWN, PDF, PLAIN, SUFFIXES

SECONDS = {"pdf": 20, "html": 10}  # for one file: some 1,000 pages, or 3 MB of tags
BYTES_MAX = 1 << 30  # of memory for one file
CHARS_MAX = 2_000_000  # of text: a book of 700 pages; 3,000 passages, which are ranked with each search
PAGES_MAX = 2_000
PASSAGES_MAX = 10_000  # of many short sections, or of 2,000,000 Chinese characters: a minute of indexing
CONTROLS_MAX = 0.02  # of the characters of a text; a program or a picture has more
AT_ONCE = 2  # files that a process has read at a time; others wait
WAIT_SECONDS = 20.0  # for them
PYTHON = sys.executable

_ROOM = BoundedSemaphore(AT_ONCE)
_CONTROLS = re.compile(r"[\x01-\x08\x0e-\x1a\x1c-\x1f]")
_KEY = r"\w[\w.-]*(?:[ \t]+[\w.-]+){0,2}[ \t]*[:=]"  # of at most three words; a sentence with a colon has more
_FRONT_MATTER = re.compile(rf"(---|\+\+\+)[ \t]*\n(?=\w)((?:(?:{_KEY}.*|[ \t#\-\]}}].*|)\n){{1,200}}?)\1[ \t]*\n")
_TITLE = re.compile(r"^title[ \t]*[:=][ \t]*+([\"']?)(?![>|])(.+)\1[ \t]*$", re.MULTILINE)
_PROBLEMS = {
    "encrypted": "The PDF is protected by a password, so its text can't be read. Nothing was stored. Send one without.",
    "too_long": f"The document has more than {CHARS_MAX:,} characters, {PAGES_MAX:,} pages or {PASSAGES_MAX:,} "
    "passages. Nothing was stored. Send it in parts.",
    "unreadable": "No text could be read in this file: it is damaged, or reading it took too much time or memory. "
    "Nothing was stored. Save it again with another program, or send its text.",
    "empty": "There is no text in this document; a scan has to go through text recognition first. Nothing was stored.",
    "not_text": "The file is no text in a known encoding. Nothing was stored. Save it as UTF-8.",
    "busy": "Too many documents are being read right now. Nothing was stored. Send it again later.",
}


class Extracted(NamedTuple):
    """Text of a document: one for each page of a PDF, else a single one. title: what the file itself says."""

    title: str
    pages: list[str]


def media_type_of(data: bytes, named: str, filename: str) -> str:
    """Return what a file is, by its first bytes, its ending, or what it was sent as. Raises InvalidRequest (415)."""
    if data.startswith(b"%PDF-") and (filename or named not in SUFFIXES.values()):
        return PDF
    suffix = Path(filename).suffix.lower()
    by_name = SUFFIXES.get(suffix)
    if by_name is not None or named in SUFFIXES.values():
        return by_name or named
    if not suffix and named in ("", "application/octet-stream"):
        return PLAIN
    raise InvalidRequest(
        "document_type_unknown",
        f"This is none of the files that can be read: {', '.join(sorted(SUFFIXES))}. Nothing was stored. Save it as "
        "one of these, or send its text.",
        param="file",
        status=415,
    )


def extract(data: bytes, media_type: str, charset: str = "") -> Extracted:
    """Return the text of a file. Raises InvalidRequest and TooLarge, with a sentence that says why it can't be read.

    charset: as the request names it. May wait for other documents, and takes up to SECONDS; no transaction is open.
    """
    charset = codec_of(charset)
    if media_type in (PLAIN, MARKDOWN):
        text = decode(data, charset)
        if text is None or "\x00" in text or (not charset and CONTROLS_MAX * len(text) < len(_CONTROLS.findall(text))):
            raise problem("not_text")
        extracted = Extracted("", [text])
    else:
        if media_type == PDF:
            result = _read_apart(data, "pdf")
        elif (text := decode(data, charset, declared_charset(data))) is not None:
            result = _read_apart(text.encode("utf-8", "replace"), "html", "utf-8")
        else:
            result = _read_apart(data, "html")
        if "error" in result:
            raise problem(result["error"])
        extracted = Extracted(one_line(str(result["title"] or "")), result["pages"])
    if sum(map(len, extracted.pages)) > CHARS_MAX:
        raise problem("too_long")
    pages = list(map(normalize, extracted.pages))
    if media_type == MARKDOWN and (front := _FRONT_MATTER.match(pages[0])):  # what the program that shows it reads
        title = _TITLE.search(front[2])
        extracted = extracted._replace(title=one_line(title[2]) if title else "")
        pages = [pages[0][front.end() :]]
    if not any(page.strip() for page in pages):
        raise problem("empty")
    return extracted._replace(pages=pages)


def _read_apart(data: bytes, kind: str, charset: str = "") -> dict[str, Any]:
    """Return what `reader.py` prints of a file."""
    reader = Path(__file__).with_name("reader.py")
    limits = (SECONDS[kind], BYTES_MAX, CHARS_MAX, PAGES_MAX)
    if not _ROOM.acquire(timeout=WAIT_SECONDS):
        raise problem("busy")
    try:
        command = [PYTHON, "-I", str(reader), kind, charset, *map(str, limits)]
        done = subprocess.run(command, input=data, capture_output=True, timeout=SECONDS[kind] + 5, env={}, check=False)  # nosec B603
    except subprocess.TimeoutExpired:
        raise problem("unreadable") from None
    finally:
        _ROOM.release()
    if done.returncode:
        raise problem("unreadable")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def problem(name: str) -> RecapError:
    if name == "busy":
        return RecapError("documents_busy", _PROBLEMS[name], status=503, retry_after=WAIT_SECONDS)
    kind = TooLarge if name == "too_long" else InvalidRequest
    return kind(f"document_{name}", _PROBLEMS[name], param="file")
