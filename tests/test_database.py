"""The database's own promises: what was deleted is in no byte once `scrub` has said so; text is found in any case."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, select, text

from models import Base, Database, OwnerRow, SessionRow

SENTINEL = "Xylozarquon"
OTHERS = "Plainwording"
NOW = "2026-01-01 00:00:00.000000"
SESSION = (
    "INSERT INTO sessions (tenant, public_id, owner_id, title, system_prompt, created_at, updated_at, message_count,"
    " tokens, summary_version, summary_through, facts_through, head_version, head_through, head_tokens)"
    f" VALUES ('default', :id, :owner, :word, :prompt, '{NOW}', '{NOW}', 0, 0, 0, 0, 0, 0, 0, 0)"
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    engine = create_engine(f"sqlite:///{tmp_path / 'recap.db'}")
    made = Database(engine)
    Base.metadata.create_all(engine)
    yield made
    engine.dispose()


def traces(folder: Path) -> dict[str, int]:
    """How often the sentinel is in each file."""
    return {path.name: path.read_bytes().count(SENTINEL.encode()) for path in folder.iterdir()}


def live(database: Database, seed: int) -> None:
    """Eight owners' sessions come and change their size, so that pages split and rows move; the fourth has the word."""
    chance = random.Random(seed)
    with database.write() as tx:
        for owner in range(1, 9):
            tx.execute(text(f"INSERT INTO owners VALUES ({owner}, 'default', 'user', '{owner}', '{NOW}')"))
        words: list[str] = []
        for number in range(600):
            owner = chance.randrange(1, 9)
            word = f"{SENTINEL if owner == 4 else OTHERS} "
            words.append(word)
            values = {
                "id": f"{chance.getrandbits(32):08x}-{word.strip()}-{number}",
                "owner": owner,
                "word": word,
                "prompt": word * chance.choice([0, 5, 20, 80]),
            }
            tx.execute(text(SESSION), values)
            for _ in range(2):
                changed = chance.randrange(len(words))
                prompt = words[changed] * chance.choice([0, 2, 20, 60, 150])
                tx.execute(
                    text("UPDATE sessions SET system_prompt = :prompt WHERE id = :id"),
                    {"prompt": prompt, "id": changed + 1},
                )


def erase(database: Database) -> None:
    with database.write() as tx:
        tx.execute(text("DELETE FROM owners WHERE id = 4"))


def test_what_was_deleted_is_in_no_byte_after_a_scrub(database: Database, tmp_path: Path) -> None:
    """Deleting overwrites a row where it stood last; copies stay where rows were moved from, and in the log."""
    live(database, seed=2)
    assert sum(traces(tmp_path).values()) > 1000, "the scan finds what is there"
    erase(database)
    assert traces(tmp_path)["recap.db-wal"] > 1000, "deleting alone leaves it in the log"
    empty_log(database)
    if traces(tmp_path)["recap.db"] == 0:
        pytest.skip("This SQLite leaves no copies in the pages of this example: only the log was shown to be scrubbed.")
    assert database.scrub()
    assert traces(tmp_path) == dict.fromkeys(traces(tmp_path), 0)
    with database.read() as tx:
        assert tx.scalar(text("PRAGMA integrity_check")) == "ok"
        assert len(tx.scalars(select(SessionRow.id)).all()) > 400, "the others' rows are there"


def empty_log(database: Database) -> None:
    with database.engine.connect() as connection:
        done = connection.connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert done[0] == 0


def test_a_scrub_alone_empties_the_log_too(database: Database, tmp_path: Path) -> None:
    live(database, seed=1)
    erase(database)
    assert database.scrub()
    assert traces(tmp_path) == dict.fromkeys(traces(tmp_path), 0)
    assert (tmp_path / "recap.db-wal").stat().st_size == 0


def test_a_scrub_keeps_ids_and_gives_none_out_again(database: Database) -> None:
    live(database, seed=1)
    with database.read() as tx:
        last = tx.scalar(text("SELECT max(id) FROM sessions"))
        kept = tx.execute(text("SELECT id, public_id FROM sessions WHERE owner_id != 4 ORDER BY id")).all()
    erase(database)
    assert database.scrub()
    with database.write() as tx:
        assert tx.execute(text("SELECT id, public_id FROM sessions ORDER BY id")).all() == kept
        tx.execute(text(SESSION), {"id": "new", "owner": 1, "word": "", "prompt": ""})
        assert tx.scalar(text("SELECT max(id) FROM sessions")) > last


def test_others_read_on_during_a_scrub_and_it_says_what_it_could_not_do(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.database.SCRUB_PAUSES", (0.0, 0.01))
    monkeypatch.setattr("models.database.SCRUB_TIMEOUT_MS", 10)
    live(database, seed=1)
    with database.read() as tx:
        before = len(tx.scalars(select(OwnerRow.id)).all())
        erase(database)
        assert database.scrub() is False
        assert len(tx.scalars(select(OwnerRow.id)).all()) == before, "a snapshot stays what it was"
    assert database.scrub() is True


@pytest.mark.parametrize(("stored", "sought"), [("ÜNAL", "ünal"), ("чай", "ЧАЙ"), ("Ἀθῆναι", "ἀΘῆΝΑΙ"), ("Tea", "tEA")])
def test_text_is_found_in_any_case_and_script(database: Database, stored: str, sought: str) -> None:
    with database.write() as tx:
        tx.execute(text(f"INSERT INTO owners VALUES (1, 'default', 'user', :name, '{NOW}')"), {"name": stored})
    with database.read() as tx:
        assert tx.scalars(select(OwnerRow.name).where(OwnerRow.name.icontains(sought, autoescape=True))).all() == [
            stored
        ]
