"""Damage to the index that shows itself only as other bytes, or as files nobody can read: nothing is missed for it."""

import random
from pathlib import Path

import pytest

from search_index import NO_INDEX, SearchIndex
from tests.search_index import Rows, folders, found, message, seeded


@pytest.fixture
def index(tmp_path):
    return SearchIndex(tmp_path)


def overwrite(file: Path, place: int, chance: random.Random) -> None:
    """Change one byte where it stands."""
    content = bytearray(file.read_bytes())
    content[place] ^= chance.randrange(1, 256)
    file.write_bytes(content)


def column_of(file: Path, message_id: int) -> int:
    """Where a message of session 1 has its numbers."""
    return file.read_bytes().index(message_id.to_bytes(8, "little") + (1).to_bytes(8, "little"))


@pytest.mark.parametrize("seed", range(24))
def test_whichever_byte_is_overwritten_the_same_is_found(tmp_path, seed):
    """Most bytes of a segment are numbers: read on, a wrong one would hide a message, or show another."""
    chance = random.Random(seed)
    index, rows = SearchIndex(tmp_path), Rows(*seeded(30), message(31, "lighthouse"))
    expected = [found(index, rows, text) for text in ("lighthouse", "apple river", "tea")]
    rows.index(index, ids=range(1, 20))
    rows.index(index)
    kind = chance.choice(["*.seg", "*.seg", "*.seg", "*.toc"])
    file = chance.choice(sorted(folders(tmp_path)[0].glob(kind)))
    overwrite(file, chance.randrange(file.stat().st_size), chance)
    assert [found(index, rows, text) for text in ("lighthouse", "apple river", "tea")] == expected


def test_what_was_overwritten_is_noticed_also_after_a_merge(index, tmp_path):
    rows = Rows(*(message(number, "tea") for number in range(1, 40)))
    before = rows.index(index, ids=range(1, 39))
    (file,) = folders(tmp_path)[0].glob("*.seg")
    overwrite(file, column_of(file, 7), random.Random(1))
    rows.index(index, ids=[39])
    index.remove("ana", message_ids=[1])  # which writes all segments anew
    assert index.held("ana") == (NO_INDEX, set())
    assert sorted(found(index, rows, "tea", limit=100)) == list(range(1, 40))
    assert rows.index(index) != before


@pytest.mark.parametrize("what", ["*.seg", "*.toc", "generation"])
def test_an_index_that_cannot_be_read_is_done_without(index, tmp_path, what, caplog):
    rows = Rows(*seeded(30), message(31, "lighthouse"))
    rows.index(index)
    (file,) = folders(tmp_path)[0].glob(what)
    file.unlink()
    file.mkdir()  # opening it fails, as a forbidden file or a failing disk would
    for _ in range(3):
        assert found(index, rows, "lighthouse") == [31]
    assert "can't be read" in caplog.text
    file.rmdir()
    assert found(index, rows, "lighthouse") == [31]
