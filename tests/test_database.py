"""The database's own promises: what was deleted is in no byte once `scrub` has said so; text is found in any case; a
statement that goes to the driver means what it says."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import (
    Column,
    DateTime,
    ForeignKey,
    MetaData,
    Table,
    bindparam,
    create_engine,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import IntegrityError, OperationalError

from models import (
    Base,
    Database,
    OwnerRow,
    SessionRow,
    Statement,
    Transaction,
    session_by_id,
    session_named,
    table_of,
    write_changes,
)
from models.base import UTCDateTime

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


# Statements that go to the driver

_O, _S = table_of(OwnerRow).c, table_of(SessionRow).c
MAKE = Statement(insert(table_of(OwnerRow)))
RENAME = Statement(update(table_of(OwnerRow)).where(_O.id == bindparam("owner")))
NAMED = Statement(select(_O.id).where(_O.name.in_(bindparam("names", expanding=True))).order_by(_O.id))
OTHERS_THAN = Statement(select(_O.id).where(_O.name.not_in(bindparam("names", expanding=True))).order_by(_O.id))
AT = datetime(2026, 5, 1, 9, 30, 0, 123456, tzinfo=timezone(timedelta(hours=3)))


def owner(tx: Transaction, name: str) -> int:
    """The id of a new owner."""
    made: int = tx.execute(MAKE, {"tenant": "default", "kind": "user", "name": name, "created_at": AT}).inserted_id
    return made


def test_a_statement_writes_what_a_row_would(database: Database) -> None:
    made = {"tenant": "default", "public_id": "s", "title": "", "created_at": AT, "updated_at": AT}
    with database.write() as tx:
        first = owner(tx, "ana")
        session = tx.execute(Statement(insert(table_of(SessionRow))), {**made, "owner_id": first, "head_facts": [2, 1]})
    with database.read() as tx:
        row = tx.get_one(SessionRow, session.inserted_id)
        assert (row.owner.name, row.created_at, row.head_facts, row.message_count) == ("ana", AT, [2, 1], 0)
        found = session_by_id(tx, row.id)
        assert found is not None and found.owner.name == "ana"
        columns = [column.key for column in _S]
        assert [getattr(found, name) for name in columns] == [getattr(row, name) for name in columns]
        assert found.created_at.utcoffset() == timedelta(0), "times come back in UTC, and say so"


def test_only_what_was_changed_of_a_row_is_written(database: Database) -> None:
    with database.write() as tx:
        tx.add(SessionRow(tenant="t", public_id="s", owner_id=owner(tx, "ana"), created_at=AT, updated_at=AT))
    with database.write() as tx:
        row = session_named(tx, "t", "s")
        assert row is not None and session_named(tx, "other", "s") is None
        row.title, row.tokens = "Tea", row.tokens + 3
        tx.execute(text("UPDATE sessions SET message_count = 7"))
        write_changes(tx, row, row.id)
    with database.read() as tx:
        row = session_named(tx, "t", "s")
        assert row is not None and (row.title, row.tokens, row.message_count) == ("Tea", 3, 7)


def test_a_statement_takes_lists_of_any_length(database: Database) -> None:
    with database.write() as tx:
        ids = [owner(tx, str(number)) for number in range(9)]
    with database.read() as tx:
        for count in (0, 1, 2, 3, 5, 8, 9):
            names = [str(number) for number in range(count)]
            assert tx.scalars(NAMED, {"names": names}) == ids[:count]
            assert tx.scalars(OTHERS_THAN, {"names": names}) == ids[count:]
        assert tx.scalar(NAMED, {"names": ["nobody"]}) is None
        assert tx.execute(NAMED, {"names": ["3"]}).first().id == ids[3]


def test_a_statement_says_how_many_rows_it_changed(database: Database) -> None:
    with database.write() as tx:
        ana = owner(tx, "ana")
        assert tx.execute(RENAME, {"owner": ana, "name": "bea"}).met == 1
        assert tx.execute(RENAME, {"owner": 99, "name": "bea"}).met == 0
        assert tx.scalars(NAMED, {"names": ["ana", "bea"]}) == [ana]


def test_a_statement_fails_as_others_do_and_a_part_can_fail_alone(database: Database) -> None:
    with database.write() as tx:
        owner(tx, "ana")
        with pytest.raises(IntegrityError), tx.begin_nested():
            owner(tx, "ana")
        ben = owner(tx, "ben")
    with pytest.raises(IntegrityError), database.write() as tx:
        owner(tx, "cleo")
        owner(tx, "ana")
    with database.read() as tx:
        assert tx.scalars(NAMED, {"names": ["ana", "ben", "cleo"]}) == [1, ben], (
            "and the failed transaction left nothing"
        )
    with pytest.raises(OperationalError, match="no such table"), database.write() as tx:
        tx.execute(text("DROP TABLE owners"))
        owner(tx, "ana")


# Transactions


def test_who_closes_last_leaves_nothing_but_the_file(database: Database, tmp_path: Path) -> None:
    live(database, seed=1)
    assert (tmp_path / "recap.db-wal").stat().st_size
    database.close()
    assert [file.name for file in tmp_path.iterdir()] == ["recap.db"]


@pytest.fixture
def promised(database: Database) -> Statement:
    """To insert a row of a table whose owner may be missing until its transaction commits."""
    owners = table_of(OwnerRow)
    table = Table(
        "promised", MetaData(), Column("owner", ForeignKey(owners.c.id, deferrable=True, initially="DEFERRED"))
    )
    table.create(database.engine)
    return Statement(insert(table))


def test_rows_and_statements_are_of_one_transaction(database: Database) -> None:
    session = {"tenant": "t", "public_id": "s", "created_at": AT, "updated_at": AT}
    with pytest.raises(ZeroDivisionError), database.write() as tx:
        tx.add(SessionRow(owner_id=owner(tx, "ana"), **session))
        tx.flush()
        raise ZeroDivisionError
    with database.write() as tx:
        assert tx.scalars(NAMED, {"names": ["ana"]}) == [], "nothing of it was kept"
        ana = owner(tx, "ana")
        assert tx.get_one(OwnerRow, ana).name == "ana", "rows see what a statement wrote"
        tx.add(SessionRow(owner_id=ana, **session))
    with database.read() as tx:
        row = session_named(tx, "t", "s")
        assert row is not None and row.owner.name == "ana"


def test_what_is_written_in_a_read_is_not_kept(database: Database) -> None:
    with database.read() as tx:
        owner(tx, "ana")
    with database.read() as tx:
        owner(tx, "ben")
        assert tx.get(OwnerRow, 1) is not None
    with database.read() as tx:
        assert tx.scalars(NAMED, {"names": ["ana", "ben"]}) == []


@pytest.mark.parametrize("rows", [False, True])
def test_a_commit_that_fails_is_told_and_leaves_nothing(database: Database, promised: Statement, rows: bool) -> None:
    with pytest.raises(IntegrityError), database.write() as tx:
        owner(tx, "ana")
        tx.execute(promised, {"owner": 99})
        if rows:
            assert tx.get(OwnerRow, 1) is not None
    with database.write(patience=0) as tx:
        assert tx.scalars(NAMED, {"names": ["ana"]}) == []
    assert database.in_use == 0


def test_a_write_waits_no_longer_than_it_was_told_and_says_so(database: Database) -> None:
    other = Database(create_engine(database.engine.url))
    with other.write():
        with pytest.raises(OperationalError, match="locked"), database.write(patience=0.01):
            pytest.fail("one write goes on at a time")
        with database.read() as tx:
            assert tx.scalar(NAMED, {"names": ["ana"]}) is None, "readers never wait"
    other.engine.dispose()
    with database.write(patience=0) as tx:
        owner(tx, "ana")


def test_only_a_write_that_is_synced_waits_for_the_disk(database: Database) -> None:
    normal, full = 1, 2
    for synced in (True, False, False, True):
        with database.write(synced=synced) as tx:
            assert tx.scalar(text("PRAGMA synchronous")) == (full if synced else normal)


# Times


@given(
    st.datetimes(
        timezones=st.just(UTC) | st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).map(timezone),
        min_value=datetime(2, 1, 1),
        max_value=datetime(9998, 1, 1),
    )
)
def test_a_time_is_kept_in_sqlite_as_sqlalchemy_would(time: datetime) -> None:
    dialect = sqlite.dialect()
    write, read = UTCDateTime().bind_processor(dialect), UTCDateTime().result_processor(dialect, None)
    naive = DateTime().dialect_impl(dialect).bind_processor(dialect)
    assert naive is not None
    assert write(time) == naive(time.astimezone(UTC).replace(tzinfo=None))
    assert read(write(time)) == time and read(write(time)).tzinfo is UTC
    assert write(None) is None and read(None) is None
    with pytest.raises(ValueError, match="without a time zone"):
        write(time.replace(tzinfo=None))
