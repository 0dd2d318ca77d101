"""What a search keeps for the next one: never more than the truth, never for longer, and within bounds."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from whoosh.filedb.filestore import FileStorage

import search_index.index
import search_index.postings
import search_index.whoosh_index
from search_index import Document, Hit, Query, Recipe, SearchIndex, Told, WordLlamaEmbedder
from search_index.analysis import analysis_for
from tests.searching import WORDS, Rows, found, message, seeded

RECIPE = Recipe(meaning=0.6, neighbours=0.5, session=0.5)
EMBEDDER = WordLlamaEmbedder()
QUERIES = [Query(" ".join(pair), limit=30) for pair in zip(WORDS, WORDS[3:], strict=False)]


def opened(root: Path) -> SearchIndex:
    """An index as another process has it, which has searched for nothing yet."""
    return SearchIndex(root, recipe=RECIPE, embedder=EMBEDDER)


def searched(index: SearchIndex, rows: Rows, **narrowed: Any) -> list[list[Hit]]:
    return [
        index.search("ana", Query(query.text, limit=query.limit, **narrowed), rows.pending) for query in QUERIES[:3]
    ]


@dataclass
class Kept:
    """How much an index keeps: owners and bytes, of what it read and of what waits to be indexed."""

    index: SearchIndex

    def __iter__(self) -> Iterator[int]:
        for cache in (self.index._held, self.index._pending):
            yield from (cache.cache_info().currsize, cache.cache_info().bytes)


# As if nothing were kept


@pytest.mark.parametrize("seed", range(4))
def test_whatever_others_do_meanwhile_the_same_is_found_as_by_who_never_searched_before(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    documents = seeded(40, seed)
    rows, warm, other = Rows(*documents), opened(tmp_path), opened(tmp_path)
    for _ in range(12):
        chosen = chance.sample(sorted(rows.documents), min(len(rows.documents), chance.randint(1, 12)))
        match chance.choice(["index", "index", "index", "remove", "session", "drop", "say", "edit", "damage"]):
            case "index":
                rows.index(other, ids=chosen)
            case "remove":  # erased: the row goes first
                for one in chosen[:2]:
                    rows.documents.pop(one)
                other.remove("ana", message_ids=chosen[:2])
            case "session":
                rows.documents = {i: one for i, one in rows.documents.items() if one.session_id != 3}
                other.remove("ana", session_id=3)
            case "drop":
                other.drop("ana")
            case "say":
                new = message(
                    1000 + len(rows.documents) + chance.randrange(10**6), " ".join(chance.choices(WORDS, k=9))
                )
                rows.documents[new.message_id] = new
            case "edit":  # no message is ever changed; if one were, its row would say so
                one = rows.documents[chosen[0]]
                rows.documents[one.message_id] = one._replace(content=" ".join(chance.choices(WORDS, k=5)))
                rows.held_by.pop(one.message_id, None)
            case "damage":
                for file in list(tmp_path.glob("*/*.seg"))[:1]:
                    file.write_bytes(file.read_bytes()[::-1])
        exclude = frozenset(chance.sample(sorted(rows.documents), 3))
        expected = searched(opened(tmp_path), Rows(*rows.documents.values()), exclude=exclude)  # all of it pending
        assert searched(opened(tmp_path), rows, exclude=exclude) == expected
        assert searched(warm, rows, exclude=exclude) == expected
        assert searched(warm, rows, exclude=exclude) == expected


@pytest.mark.parametrize("postings_from", [1, 40, 10_000])  # all segments have postings, large ones, none
def test_a_large_index_is_read_by_what_is_looked_for_and_ranks_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postings_from: int
) -> None:
    monkeypatch.setattr(search_index.postings, "POSTINGS_FROM", postings_from)
    rows = Rows(*seeded(120))
    for first in range(1, 100, 11):
        rows.index(opened(tmp_path), ids=range(first, first + 11))
    opened(tmp_path).remove("ana", message_ids=range(30, 60))
    for gone in range(30, 60):
        del rows.documents[gone]
    index = opened(tmp_path)
    whole = searched(index, rows)
    monkeypatch.setattr(search_index.whoosh_index, "WHOLE_AT_MOST", 0)
    large = opened(tmp_path)
    assert searched(large, rows) == whole == searched(large, rows)
    assert index._held.cache_info().currsize == 1 and large._held.cache_info().bytes == 0


# What it saves


def test_who_searches_again_opens_no_file_of_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, index = Rows(*seeded(60)), opened(tmp_path)
    rows.index(index, ids=range(1, 41))
    expected = searched(index, rows)

    def opening(*_: Any) -> None:
        raise AssertionError("a file of the index was opened")

    monkeypatch.setattr(FileStorage, "open_file", opening)
    assert searched(index, rows) == expected


def test_what_waits_is_analysed_once_and_again_when_it_is_not_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    analysis = analysis_for("en")
    index, rows = SearchIndex(tmp_path), Rows(message(1, "a red apple"), message(2, "the river"))
    assert found(index, rows, "apple") == [1]
    read: list[str] = []
    terms = analysis.terms

    def noted(text: str, *more: Any, **how: Any) -> list[str]:
        if how.get("singles"):  # of what was said, not of what is asked
            read.append(text)
        return terms(text, *more, **how)

    monkeypatch.setattr(analysis, "terms", noted)
    assert found(index, rows, "river") == [2]
    assert read == []
    rows.documents[2] = message(2, "the apple tree")
    assert found(index, rows, "apple") == [2, 1]
    assert read == ["the apple tree"]
    rows.documents[1] = rows.documents[1]._replace(session_id=7, role="assistant")
    assert found(index, rows, "apple", session_id=7, role="assistant") == [1]
    del rows.documents[2]
    assert found(index, rows, "apple") == [1]


def test_what_was_analysed_for_a_search_is_indexed_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, index, fresh = Rows(*seeded(30)), opened(tmp_path / "one"), opened(tmp_path / "other")
    searched(index, rows, exclude=frozenset({30}))
    rows.documents[7] = message(7, "it was another one")
    terms, read = index._analysis.terms, []

    def noted(text: str, *more: Any, **how: Any) -> list[str]:
        read.append(text)
        return terms(text, *more, **how)

    with monkeypatch.context() as watched:
        watched.setattr(index._analysis, "terms", noted)
        rows.index(index)
    assert read == ["it was another one", rows.documents[30].content]
    indexed = searched(index, rows)
    rows.index(fresh)
    assert indexed == searched(fresh, rows)


def test_what_was_indexed_is_kept_no_more_as_waiting(tmp_path: Path) -> None:
    rows, index = Rows(*seeded(30)), opened(tmp_path)
    before = searched(index, rows)
    *_, analysed = Kept(index)
    rows.index(index, ids=range(1, 30))
    *_, left = Kept(index)
    assert left < analysed / 3
    assert searched(index, rows) == before


class Brief(Rows):
    """Rows that tell what came since, if all that waited before still does, and note how much they told."""

    def __init__(self, *documents: Document) -> None:
        super().__init__(*documents)
        self.told: list[list[int]] = []

    def pending(self, generation: str, as_of: Any = None) -> Told:
        waits = super().pending(generation).documents
        since = as_of is not None and all(one in waits for one in as_of)
        new = [one for one in waits if one not in as_of] if since else waits
        self.told.append([one.message_id for one in new])
        return Told(new, tuple(waits), since)


def test_what_waits_is_told_once(tmp_path: Path) -> None:
    rows, index = Brief(*(message(number, f"apple {number}") for number in (1, 2, 5, 6))), SearchIndex(tmp_path)
    assert found(index, rows, "apple", exclude={5}) == [6, 2, 1]
    rows.documents[7] = message(7, "an apple")
    assert found(index, rows, "apple", exclude={7}) == [6, 5, 2, 1]
    assert found(index, rows, "apple") == [7, 6, 5, 2, 1]
    assert rows.told == [[1, 2, 5, 6], [7], []], "also what was excluded"
    del rows.documents[2]
    assert found(index, rows, "apple", exclude={6}) == [7, 5, 1]
    rows.index(index, ids=[1, 5])
    assert found(index, rows, "apple") == [7, 6, 5, 1]
    assert rows.told[3:] == [[1, 5, 6, 7], [6, 7]]
    index.forget_texts()
    assert found(index, rows, "apple") == [7, 6, 5, 1]
    assert rows.told[5:] == [[6, 7]], "what was told is among the texts that are forgotten"


def test_who_searches_in_small_steps_finds_what_one_finds_who_never_searched_before(tmp_path: Path) -> None:
    chance = random.Random(5)
    warm, rows = opened(tmp_path), Brief(*seeded(12, 5))
    for step in range(30):
        new = message(100 + step, " ".join(chance.choices(WORDS, k=9)))
        rows.documents[new.message_id] = new
        if step % 7 == 3:
            rows.index(opened(tmp_path), ids=chance.sample(sorted(rows.documents), 5))
        if step % 11 == 5:
            gone = chance.choice(sorted(rows.documents))
            del rows.documents[gone]
            opened(tmp_path).remove("ana", message_ids=[gone])
        exclude = frozenset(chance.sample(sorted(rows.documents), chance.randint(0, 4)))
        fresh = opened(tmp_path / f"none {step}")
        assert searched(warm, rows, exclude=exclude) == searched(fresh, Rows(*rows.documents.values()), exclude=exclude)
    assert 1 in map(len, rows.told), "of most steps it was told what was new"


# Damage of what is kept


@pytest.mark.parametrize("harm", ["overwritten", "shortened", "deleted", "contents overwritten", "contents deleted"])
def test_damage_to_what_is_kept_is_noticed_and_put_right(tmp_path: Path, harm: str) -> None:
    rows, index = Rows(*seeded(40), message(41, "lighthouse")), opened(tmp_path)
    before = rows.index(index)
    assert found(index, rows, "lighthouse")[:1] == [41]
    (file,) = next(tmp_path.iterdir()).glob("*.toc" if "contents" in harm else "*.seg")
    if "deleted" in harm:
        file.unlink()
    elif harm == "shortened":
        file.write_bytes(file.read_bytes()[:-50])
    elif harm == "contents overwritten":
        file.write_bytes(b"\xff\x00garbage" * 40)
    else:
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 0x55
        file.write_bytes(content)
    assert found(index, rows, "lighthouse")[:1] == [41]
    assert rows.asked[-1] != before, "the damaged index was put away, and its messages wait again"
    assert rows.index(index) not in (before, "none")
    assert found(index, rows, "lighthouse")[:1] == [41]


def test_no_file_is_held_open_and_no_deleted_one_kept_on_the_disk(tmp_path: Path) -> None:
    rows, index = Rows(*seeded(60)), opened(tmp_path)

    def held_open() -> list[str]:
        files = [str(link.readlink()) for link in list(Path("/proc/self/fd").iterdir()) if link.is_symlink()]
        return [one for one in [*files, *Path("/proc/self/maps").read_text().splitlines()] if str(tmp_path) in one]

    if not Path("/proc/self/maps").exists():
        pytest.skip("only Linux lists them")
    gc.disable()
    try:
        for ids in (range(1, 31), range(31, 51), range(51, 61)):  # the later commits merge what the first wrote
            rows.index(index, ids=ids)
            assert held_open() == []
        index.remove("ana", message_ids=[7])
        assert searched(index, rows) and searched(opened(tmp_path), rows)
        assert held_open() == []
    finally:
        gc.enable()


# Forgetting


def test_forgetting_texts_empties_all_that_is_kept(tmp_path: Path) -> None:
    rows, index = Rows(*seeded(60)), opened(tmp_path)
    rows.index(index, ids=range(1, 41))
    before = searched(index, rows)
    assert all(count > 0 for count in Kept(index))
    index.forget_texts()
    assert list(Kept(index)) == [0, 0, 0, 0]
    assert searched(index, rows) == before


ANOTHER = """
import sys
from datetime import datetime
from pathlib import Path
from search_index import Document, Query, SearchIndex, Told
index = SearchIndex(Path(sys.argv[1]))
def kept():
    return [cache.cache_info().currsize for cache in (index._held, index._pending)]
waits = Told([Document(2, 1, "user", datetime(2026, 1, 1), "the secret is a tiger")])
print(*(hit.message_id for hit in index.search("ana", Query("secret"), lambda *_: waits)), kept(), flush=True)
sys.stdin.readline()
index.held("anybody")
print(kept(), flush=True)
"""


def test_another_process_forgets_before_it_looks_into_an_index_again(tmp_path: Path) -> None:
    index = SearchIndex(tmp_path)
    index.add("ana", [message(1, "my secret is an apple")])
    with subprocess.Popen(
        [sys.executable, "-c", ANOTHER, str(tmp_path)],
        cwd=Path(__file__).parent.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdin is not None and other.stdout is not None
        assert other.stdout.readline() == "2 1 [1, 1]\n"
        index.forget_texts()
        other.stdin.write("look again\n")
        other.stdin.flush()
        assert other.stdout.readline() == "[0, 0]\n"


# Bounds


def test_what_is_kept_stays_within_its_bounds_and_what_was_used_last_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Rows(*seeded(40))
    probe = opened(tmp_path)
    rows.index(probe, "owner 0", ids=range(1, 21))
    rows.pending = lambda *_: Told(seeded(40)[20:])  # type: ignore[method-assign]
    probe.search("owner 0", QUERIES[0], rows.pending)
    _, held, _, analysed = Kept(probe)
    monkeypatch.setattr(search_index.index, "HELD_BYTES", 3 * held + held // 2)
    monkeypatch.setattr(search_index.index, "ANALYSED_BYTES", 3 * analysed + analysed // 2)
    index = opened(tmp_path)
    for number in range(1, 8):
        index.add(f"owner {number}", seeded(20))
    answers = [index.search(f"owner {number}", QUERIES[0], rows.pending) for number in range(8)]
    assert len({tuple(hit.message_id for hit in hits) for hits in answers}) == 1 and answers[0]
    assert list(Kept(index)) == [3, 3 * held, 3, 3 * analysed]
    assert index._held.get(str(index._of("owner 7")._path)) is not None
    assert index._pending.get("owner 7") is not None


@pytest.mark.slow
def test_full_caches_take_up_less_than_30_mb(tmp_path: Path) -> None:
    chance = random.Random(1)

    def words(count: int) -> str:  # that nobody said before: nothing is shared
        return " ".join(f"{chance.choice(WORDS)}{chance.randrange(10**9)}x" for _ in range(count))

    index = SearchIndex(tmp_path)
    owners = [f"owner {number}" for number in range(80)]
    index.add(owners[0], [message(number, words(240)) for number in range(50)])
    folder = next(tmp_path.iterdir())
    for owner in owners[1:]:
        Path(index._of(owner)._path).symlink_to(folder)
    gc.collect()
    tracemalloc.start()
    try:
        for owner in owners:
            index.search(owner, Query("apple"), lambda *_: Told([message(number, words(6)) for number in range(150)]))
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    _, held, _, analysed = Kept(index)
    assert held > 0.9 * search_index.index.HELD_BYTES
    assert analysed > 0.9 * search_index.index.ANALYSED_BYTES
    assert analysed < taken and held + taken < 30 * 2**20  # what is held is none of Python's own memory
