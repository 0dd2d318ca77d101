"""Searching through the public door, over real indexes on the disk and in PostgreSQL."""

import random
import resource
import shutil
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import pytest
from sqlalchemy import text

from search_index import NO_INDEX, IndexBusy, SearchIndex
from search_index.caches import sizes
from tests.search_index import Rows, folders, found, message, seeded
from tests.traces import traces


@pytest.fixture
def index(place):
    return SearchIndex(place)


in_files = pytest.mark.parametrize("place", ["whoosh"], indirect=True)


@pytest.fixture(params=["indexed", "pending", "half", "one by one"])
def kept(request, index):
    """Puts rows where they are searched: every behaviour holds for all four."""

    def keep(*documents, owner="ana"):
        rows = Rows(*documents)
        if request.param == "indexed":
            rows.index(index, owner)
        elif request.param == "half":
            rows.index(index, owner, [d.message_id for d in documents[::2]])
        elif request.param == "one by one":
            for document in documents:
                rows.index(index, owner, [document.message_id])
        return rows

    return keep


# What is found


def test_messages_without_a_word_or_with_any_content_can_be_held(index, kept):
    long = " ".join(f"word{i}" for i in range(2_000))
    odd = [message(i, text) for i, text in enumerate(("", "👍", "\x00\ud800", "x" * 100_000, "who are you", long), 1)]
    rows = kept(*odd, message(-7, "negative"), message(2**62, "large"))
    assert found(index, rows, "word1999") == [6]
    assert found(index, rows, "negative large") == [2**62, -7]


def test_a_character_under_thousands_of_marks_can_be_held(index, kept):
    rows = kept(message(1, f"ก{3_000 * chr(0xE49)} สวัสดี"), message(2, "word"))
    assert found(index, rows, "สวัสดี") == [1] and found(index, rows, "word") == [2]


# Adding and taking out


def test_adding_again_changes_nothing(index):
    rows = Rows(*seeded(5))
    first = rows.index(index)
    assert rows.index(index) == first
    assert index.held("ana") == (first, {1, 2, 3, 4, 5})
    assert index.add("ana", [message(5, "something else"), message(6, "tea"), message(6, "coffee")]) == first
    assert index.held("ana") == (first, {1, 2, 3, 4, 5, 6})
    assert found(index, rows, "else") == []


def left(place, word):
    """Whether a message with the word is anywhere in the index."""
    if isinstance(place, Path):
        return traces(place, word)
    with place.connect() as connection:
        return connection.scalar(
            text("SELECT count(*) FROM search_messages WHERE terms @@ to_tsquery('english', :word)"), {"word": word}
        )


def test_removed_messages_leave_no_byte(index, place):
    rows = Rows(*seeded(50), message(90, "sentinelone tea", session_id=9), message(91, "sentineltwo tea", session_id=9))
    generation = rows.index(index)
    rows.index(index)

    assert left(place, "sentinelone")
    index.remove("ana", message_ids=[90, 12345])
    assert not left(place, "sentinelone")
    assert left(place, "sentineltwo")
    index.remove("ana", session_id=9)
    assert not left(place, "sentineltwo")
    assert index.held("ana") == (generation, set(range(1, 51)))
    index.remove("ana", message_ids=range(1, 51))
    assert index.held("ana") == (generation, set())
    assert index.add("ana", [message(90, "back again")]) == generation


# Damage


def write(pattern, content):
    """Damage: other content in the files of that name; None deletes them."""

    def damage(directory):
        for path in list(directory.glob(pattern)):
            path.unlink() if content is None else path.write_bytes(content(path.read_bytes()))

    return damage


DAMAGE = {
    "half a segment": write("*.seg", lambda content: content[: len(content) // 2]),
    "an empty segment": write("*.seg", lambda _: b""),
    "no segment": write("*.seg", None),
    "garbage contents": write("*.toc", lambda _: b"\xff\x00garbage" * 40),
    "empty contents": write("*.toc", lambda _: b""),
    "no contents": write("*.toc", None),
    "a garbage generation": write("generation", lambda _: b"\xff\x00"),
    "no generation": write("generation", None),
    "no file": write("*", None),
    "no directory": shutil.rmtree,
}


@in_files
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("first", ["search", "add", "remove", "held"])
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # Whoosh does not close a file that it can't read
def test_damage_heals_and_loses_nothing(index, tmp_path, damage, first, caplog):
    rows = Rows(*seeded(30), message(31, "lighthouse"))
    before = rows.index(index)
    damage(folders(tmp_path)[0])
    if first == "search":
        assert found(index, rows, "lighthouse") == [31]
        assert rows.asked[-1] not in (before, *rows.asked[:-1])
    elif first == "add":
        rows.index(index, ids=[1])
    elif first == "remove":
        index.remove("ana", message_ids=[1])
    else:
        assert index.held("ana") == (NO_INDEX, set())
    assert found(index, rows, "lighthouse") == [31]
    after = rows.index(index)
    assert after not in (before, NO_INDEX)
    assert index.held("ana") == (after, set(range(1, 32)))
    rows.asked.clear()
    assert found(index, rows, "lighthouse") == [31]
    assert rows.asked == [after]
    assert len(folders(tmp_path)) == 1
    caplog.clear()  # the errors in it have the files


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


@in_files
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


@in_files
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


def test_an_index_replaced_during_the_search_is_searched_again(index, place):
    other = SearchIndex(place)

    class Replaced(Rows):
        def waiting(self, generation):
            waiting = super().waiting(generation)
            if len(self.asked) == 1:  # another process erases and starts anew, after this one read what waits
                other.drop("ana")
                self.index(other, ids=[2])
            return waiting

    rows = Replaced(message(1, "tea"), message(2, "tea"))
    rows.index(index)
    assert found(index, rows, "tea") == [2, 1]
    assert rows.asked[1:] == [NO_INDEX]


@in_files
def test_a_full_disk_is_not_damage(index):
    rows = Rows(*seeded(200))
    generation = rows.index(index, ids=[1])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            index.add("ana", rows.documents.values())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert index.held("ana") == (generation, {1})
    assert rows.index(index) == generation
    assert index.held("ana") == (generation, set(range(1, 201)))


# Memory


@in_files
def test_what_earlier_turns_left_out_takes_no_memory(index):
    rows = Rows(*seeded(40))
    rows.index(index)
    turns = [frozenset({shown}) for shown in (3, 5, 8)]  # each leaves out what its prompt shows
    assert not any(shown & {*found(index, rows, "apple", exclude=shown)} for shown in turns)
    held = sum(sizes())
    for shown in range(10, 30):
        found(index, rows, "apple", exclude=frozenset({shown}))
    assert sum(sizes()) <= held


@in_files
def test_a_commit_sorts_few_of_its_postings_in_memory(index):
    texts = [message(i, " ".join(f"word{i * 40 + j}" for j in range(120))) for i in range(1, 151)]
    index.analyse_ahead(texts)
    tracemalloc.start()
    try:
        index.add("ana", texts)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


# Many at once


def test_a_writer_that_holds_on_makes_others_give_up(place):
    index = SearchIndex(place, busy_after=0.05)
    rows = Rows(message(1, "tea"), message(2, "tea"))
    generation = rows.index(index, ids=[1])
    begun, over = threading.Event(), threading.Event()

    def documents():  # are read while the owner is held
        begun.set()
        over.wait(10)
        yield rows.documents[1]

    writer = threading.Thread(target=lambda: index.add("ana", documents()))
    writer.start()
    begun.wait(10)
    for change in (
        lambda: rows.index(index, ids=[2]),
        lambda: index.remove("ana", session_id=1),
        lambda: index.drop("ana"),
    ):
        with pytest.raises(IndexBusy):
            change()
    assert found(index, rows, "tea") == [2, 1]
    over.set()
    writer.join()
    assert rows.index(index, ids=[2]) == generation


WRITER = """
import sys
from datetime import datetime
from pathlib import Path
from search_index import SearchableText, SearchIndex
index = SearchIndex(Path(sys.argv[1]))
for first in range(0, 30_000, 3):
    numbers = range(first, first + 3)
    batch = [SearchableText(i, i % 4, "user", datetime(2026, 1, 1), f"tea word{i} " * 5) for i in numbers]
    print(index.add("ana", batch), *(d.message_id for d in batch), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("after", range(1, 9, 2))
def test_killed_in_mid_commit_nothing_reported_is_lost(tmp_path, after):
    program = [sys.executable, "-c", WRITER, str(tmp_path)]
    writer = subprocess.Popen(program, cwd=Path(__file__).parent.parent, stdout=subprocess.PIPE, text=True)
    reported = [writer.stdout.readline().split() for _ in range(1 + 7 * after)]
    threading.Event().wait(after / 2000)  # lands at another point of a commit each time
    writer.kill()
    reported += [line.split() for line in writer.communicate()[0].splitlines() if line.endswith(tuple("0123456789"))]
    index = SearchIndex(tmp_path, busy_after=0.5)
    generation, held = index.held("ana")
    assert {line[0] for line in reported} == {generation}
    assert held >= {int(i) for line in reported[:-1] for i in line[1:]}
    for i in sorted(held)[-3:]:
        assert found(index, Rows(), f"word{i}") == [i]
    assert index.add("ana", [message(99_999, "still writable")]) == generation
