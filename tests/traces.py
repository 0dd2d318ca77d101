"""Looking for a word in every byte of a folder: as it is, in UTF-16, as the number that an index has for it, and in
whatever is compressed."""

import zlib
from collections.abc import Iterator
from pathlib import Path

from flask import Flask

from app import engine_of
from search_index.analysis import DEFAULT_ANALYSIS
from search_index.arrays import term_hash

SENTINEL = "Xylozarquon"  # a word that is in nothing else

_ZLIB_BEGINS = tuple(bytes((0x78, level)) for level in (0x01, 0x5E, 0x9C, 0xDA))
_GZIP_BEGINS = b"\x1f\x8b\x08"


def traces(folder: Path, word: str) -> dict[str, int]:
    """In which files of `folder` the word is, in either case, and how often; a name counts as one place."""
    found = {}
    for path in sorted(folder.rglob("*")):
        try:
            content = path.read_bytes() if path.is_file() else b""
        except FileNotFoundError:  # others' files come and go meanwhile
            continue
        count = sum(_count(part, word) for part in (content, *_unpacked(content)))
        count += word.lower() in path.name.lower()
        if count:
            found[path.relative_to(folder).as_posix()] = count
    return found


def traces_of(app: Flask, word: str = SENTINEL) -> dict[str, int]:
    """Return the files of an application's data that the word is in, and how often."""
    return traces(engine_of(app).settings.data_dir, word)


def _count(content: bytes, word: str) -> int:
    hashes = {term_hash(term) for term in DEFAULT_ANALYSIS.terms(word)}
    numbers = [value.to_bytes(8, order, signed=True) for value in hashes for order in ("little", "big")]
    return _spelled(content.lower(), word) + sum(content.count(number) for number in numbers)


def _spelled(content: bytes, word: str) -> int:
    spellings = {word.lower().encode(encoding) for encoding in ("utf-8", "utf-16-le", "utf-16-be")}
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in word.lower()).encode()  # as JSON may write it
    return sum(content.count(spelling) for spelling in (*spellings, escaped))


def _unpacked(content: bytes) -> Iterator[bytes]:
    """Whatever is compressed somewhere in `content`."""
    for begins, bits in (*((magic, 15) for magic in _ZLIB_BEGINS), (_GZIP_BEGINS, 31)):
        at = content.find(begins)
        while at >= 0:
            try:
                yield zlib.decompressobj(bits).decompress(content[at:])
            except zlib.error:  # it only looked like it
                pass
            at = content.find(begins, at + 1)
