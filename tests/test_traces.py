"""The scan that the tests of erasing rest on finds what is there."""

import gzip
import zlib
from datetime import UTC, datetime

from search_index import SearchableText, SearchIndex
from tests.traces import traces


def test_a_word_is_found_however_it_is_written(tmp_path):
    (tmp_path / "plain").write_text("It is xyloZARquon, twice: Xylozarquon.")
    (tmp_path / "wide").write_bytes("Xylozarquon".encode("utf-16"))
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "zlib").write_bytes(b"head" + zlib.compress(b"Xylozarquon " * 50) + b"tail")
    (tmp_path / "deep" / "gzip").write_bytes(b"head" + gzip.compress(b"a Xylozarquon"))
    (tmp_path / "json").write_text('"\\u0078\\u0079"')
    (tmp_path / "none").write_text("xylo zarquon")
    (tmp_path / "xylozarquon.name").touch()
    assert traces(tmp_path, "Xylozarquon") == {
        "plain": 2,
        "wide": 1,
        "deep/zlib": 50,
        "deep/gzip": 1,
        "xylozarquon.name": 1,
    }
    assert traces(tmp_path, "xy")["json"] == 1


def test_a_word_is_found_by_the_number_an_index_has_for_it(tmp_path):
    index = SearchIndex(tmp_path)
    index.add("ana", [SearchableText(1, 1, "user", datetime(2026, 5, 1, tzinfo=UTC), "Xylozarquons are rare.")])
    assert traces(tmp_path, "Xylozarquon"), "by its stem"
    assert not traces(tmp_path, "Quonarxylo")
