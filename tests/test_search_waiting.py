"""What an index keeps in memory, and what others do to it meanwhile, changes nothing in what is found."""

import random
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

import search_index.index
from search_index import RANKING_PROFILES, Hit, Query, SearchIndex, WordLlamaEmbedder
from search_index.caches import sizes
from tests.search_index import T0, WORDS, Rows, found, message, search, seeded

PROFILE = RANKING_PROFILES["context"]
EMBEDDER = WordLlamaEmbedder()
TEXTS = [" ".join(pair) for pair in zip(WORDS[:3], WORDS[3:6], strict=True)] + [f'"{WORDS[0]} {WORDS[1]}" -tiger riv*']


def opened(place: Path | Engine, fusion: str = "weighted") -> SearchIndex:
    """An index as another process has it, which has searched for nothing yet."""
    return SearchIndex(place, profile=replace(PROFILE, fusion=fusion), embedder=EMBEDDER)


def searched(index: SearchIndex, rows: Rows, **narrowed: Any) -> list[list[Hit]]:
    times = [(T0, T0 + timedelta(seconds=20))]
    return [search(index, rows, Query(text, limit=30, operators=True, times=times, **narrowed)) for text in TEXTS]


@pytest.mark.parametrize("seed", range(2))
def test_whatever_others_do_the_same_is_found_as_by_who_never_searched_before(place, tmp_path, seed):
    chance = random.Random(seed)
    fusion = ["weighted", "rrf"][seed]
    rows, warm, other = Rows(*seeded(40, seed)), opened(place, fusion), opened(place)
    for _ in range(24 if isinstance(place, Path) else 12):
        chosen = chance.sample(sorted(rows.documents), min(len(rows.documents), chance.randint(1, 12)))
        match chance.choice(["index", "index", "index", "remove", "session", "drop", "say", "edit", "damage"]):
            case "index":
                rows.index(other, ids=chosen)
            case "remove":  # erased or replaced: the row goes first
                for one in chosen[:2]:
                    rows.documents.pop(one)
                other.remove("ana", message_ids=chosen[:2], scrub=chance.random() < 0.5)
            case "session":
                rows.documents = {i: one for i, one in rows.documents.items() if one.session_id != 3}
                other.remove("ana", session_id=3)
            case "drop":
                other.drop("ana")
            case "say":
                new = message(1000 + chance.randrange(10**6), " ".join(chance.choices(WORDS, k=9)))
                rows.documents[new.message_id] = new
            case "edit":  # no message is ever changed: another takes its place, and the old one is taken out later
                one = rows.documents.pop(chosen[0])
                new = one._replace(
                    message_id=2_000_000 + chance.randrange(10**6), content=" ".join(chance.choices(WORDS, k=5))
                )
                rows.documents[new.message_id] = new
                other.remove("ana", message_ids=[one.message_id], scrub=False)
            case "damage":
                for file in list(tmp_path.glob("*/*.seg"))[:1]:
                    file.write_bytes(file.read_bytes()[::-1])
        exclude = frozenset(chance.sample(sorted(rows.documents), 3))
        expected = searched(opened(place, fusion), Rows(*rows.documents.values()), exclude=exclude)  # all of it waits
        assert searched(opened(place, fusion), rows, exclude=exclude) == expected
        assert searched(warm, rows, exclude=exclude) == expected
        assert searched(warm, rows, exclude=exclude) == expected


def test_of_a_large_index_the_store_chooses_what_is_ranked(place, monkeypatch):
    rows = Rows(*seeded(300), *(message(400 + at, f"the lighthouse keeper {at}", 9) for at in range(3)))
    for first in range(0, 303, 101):
        rows.index(opened(place), ids=sorted(rows.documents)[first : first + 101])
    rows.documents[500] = message(500, "a lighthouse that waits beside a windmill", 9)
    opened(place).remove("ana", message_ids=[400], scrub=False)
    monkeypatch.setattr(search_index.index, "RANKED_WHOLE", 100)
    index = opened(place)
    assert set(found(index, rows, "lighthouse keepers")[:3]) == {401, 402, 500}
    assert found(index, rows, '"lighthouse keeper" -2', operators=True) == [401]
    assert set(found(index, rows, "light* keep*", operators=True)) == {402, 401}
    assert set(found(index, rows, "apple")) <= {one.message_id for one in seeded(300)}
    assert found(index, rows, "-apple", operators=True) == []
    assert found(index, rows, '"a windmill"', operators=True) == [500], "of which the store has none"


def test_of_a_large_index_each_query_has_its_own_choice(place, monkeypatch):
    rows = Rows(*(message(at, WORDS[at % len(WORDS)], at) for at in range(1, 301)))
    rows.index(opened(place))
    monkeypatch.setattr(search_index.index, "RANKED_WHOLE", 100)
    monkeypatch.setattr(search_index.index, "CANDIDATES", 20)
    monkeypatch.setattr(
        search_index.index, "id", lambda _: 0, raising=False
    )  # as if each array took the last one's place
    index = opened(place)
    for place_of_word, word in enumerate(WORDS):
        assert {at % len(WORDS) for at in found(index, rows, word, limit=3)} == {place_of_word}


def test_of_too_many_messages_that_wait_for_the_index_the_newest_are_found(place, monkeypatch):
    monkeypatch.setattr(search_index.index, "RANKED_WHOLE", 3)
    rows, index = Rows(*(message(at, "the lighthouse keeper") for at in range(1, 6))), opened(place)
    assert set(found(index, rows, "lighthouse")) == {3, 4, 5}
    rows.index(index, ids=[1, 2])
    assert set(found(index, rows, "lighthouse")) == {1, 2, 3, 4, 5}


def test_of_a_large_index_a_filtered_search_chooses_among_what_passes(place, monkeypatch):
    best = [message(at, "the lighthouse keeper", 1) for at in range(1, 200)]
    worse = "somewhere far away there was also a lighthouse, which nobody kept for a long time"
    rare = [
        message(900, worse, 9),
        message(901, worse, role="assistant"),
        message(902, worse, created_at=T0 + timedelta(hours=6)),
        message(903, worse, created_at=T0 - timedelta(hours=6)),
    ]
    rows = Rows(*best, *rare)
    rows.index(opened(place))
    monkeypatch.setattr(search_index.index, "RANKED_WHOLE", 100)
    monkeypatch.setattr(search_index.index, "CANDIDATES", 50)
    for narrowed, expected in (
        ({"session_id": 9}, [900]),
        ({"role": "assistant"}, [901]),
        ({"after": T0 + timedelta(hours=5)}, [902]),
        ({"before": T0 - timedelta(hours=5)}, [903]),
        ({"session_id": 9, "role": "assistant"}, []),
        ({"session_id": 9, "role": "user", "after": T0, "before": T0 + timedelta(hours=1)}, [900]),
    ):
        for text in ("lighthouse keepers", '"a lighthouse" keepers'):
            assert found(opened(place), rows, text, operators=True, **narrowed) == expected, narrowed


ANOTHER = """
import sys
from datetime import datetime
from pathlib import Path
from search_index import SearchableText, Query, SearchIndex, UnindexedMessages
from search_index.caches import sizes
from sqlalchemy import create_engine
index = SearchIndex(create_engine(sys.argv[1]) if "://" in sys.argv[1] else Path(sys.argv[1]))
waits = [SearchableText(2, 1, "user", datetime(2026, 1, 1), "the secret is a tiger")]
unindexed = UnindexedMessages([2], (), lambda _: waits)
hits = index.search("ana", index.prepare(Query("secret")), index.generation("ana"), unindexed)
print(*(hit.message_id for hit in hits), sum(sizes()) > 5, flush=True)
sys.stdin.readline()
index.generation("anybody")
print(sum(sizes()), flush=True)
"""


def test_another_process_clears_its_caches_before_it_looks_into_an_index_again(place):
    index = SearchIndex(place)
    where = str(place) if isinstance(place, Path) else place.url.render_as_string(hide_password=False)
    index.add("ana", [message(1, "my secret is an apple")])
    with subprocess.Popen(
        [sys.executable, "-c", ANOTHER, where],
        cwd=Path(__file__).parent.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdin is not None and other.stdout is not None
        assert other.stdout.readline() == "2 1 True\n"
        index.clear_caches()
        assert sum(sizes()) == 0
        other.stdin.write("look again\n")
        other.stdin.flush()
        assert other.stdout.readline() == "0\n"
