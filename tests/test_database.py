"""The database's own promises: what was deleted is in no byte once `vacuum` has said so; text is found in any case; a
transaction commits whole or not at all."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Column, ForeignKey, MetaData, Table, bindparam, create_engine, insert, select, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import IntegrityError, OperationalError

from models import (
    Base,
    Database,
    DocumentRow,
    ItemRow,
    KeyRow,
    MessageRow,
    ModelServerRow,
    OwnerRow,
    SessionRow,
    Transaction,
    UTCDateTime,
)
from schemas.documents import TITLE_CHARS
from schemas.fields import EXTERNAL_ID_CHARS, USER_ID_CHARS
from schemas.model_server import MODEL_CHARS
from schemas.store import NAME_CHARS

SENTINEL = "Xylozarquon"
OTHERS = "Plainwording"
NOW = "2026-01-01 00:00:00.000000"
SESSION = (
    "INSERT INTO sessions (tenant, public_id, owner_id, title, system_prompt, created_at, updated_at, message_count,"
    " tokens, summary_version, summary_through, facts_through, head_version, head_through, head_tokens, pinned,"
    f" archived) VALUES ('default', :id, :owner, :word, :prompt, '{NOW}', '{NOW}', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)"
)


@pytest.fixture
def database(tmp_path):
    engine = create_engine(f"sqlite:///{tmp_path / 'recap.db'}")
    Base.metadata.create_all(engine)
    engine.dispose()
    made = Database(engine)
    yield made
    engine.dispose()


def traces(folder: Path) -> dict[str, int]:
    """How often the sentinel is in each file."""
    return {path.name: path.read_bytes().count(SENTINEL.encode()) for path in folder.iterdir()}


def live(database: Database) -> None:
    """Eight owners with fifty sessions each; those of the fourth have the word."""
    born = datetime.fromisoformat(NOW).replace(tzinfo=UTC)
    with database.write() as tx:
        owners = [
            {"id": one, "tenant": "default", "kind": "user", "name": str(one), "created_at": born}
            for one in range(1, 9)
        ]
        tx.execute(insert(OwnerRow), owners)
        for number in range(400):
            owner = number % 8 + 1
            word = f"{SENTINEL if owner == 4 else OTHERS} "
            values = {"id": f"{word.strip()}-{number}", "owner": owner, "word": word, "prompt": word * 20}
            tx.execute(text(SESSION), values)


def erase(database: Database) -> None:
    with database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA secure_delete = OFF")  # as if rows had been moved, which leaves copies
        connection.commit()
        connection.exec_driver_sql("DELETE FROM owners WHERE id = 4")
        connection.commit()


def test_what_was_deleted_is_in_no_byte_after_a_scrub_and_the_rest_keeps_its_ids(database, tmp_path):
    live(database)
    assert sum(traces(tmp_path).values()) > 1000, "the scan finds what is there"
    with database.read() as tx:
        last = tx.scalar(text("SELECT max(id) FROM sessions"))
        kept = tx.execute(text("SELECT id, public_id FROM sessions WHERE owner_id != 4 ORDER BY id")).all()
    erase(database)
    with database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")
    assert all(traces(tmp_path)[name] > 100 for name in ("recap.db", "recap.db-wal")), "deleting alone leaves it"
    assert database.vacuum()
    assert traces(tmp_path) == dict.fromkeys(traces(tmp_path), 0)
    with database.write() as tx:
        assert tx.scalar(text("PRAGMA integrity_check")) == "ok"
        assert tx.execute(text("SELECT id, public_id FROM sessions ORDER BY id")).all() == kept
        tx.execute(text(SESSION), {"id": "new", "owner": 1, "word": "", "prompt": ""})
        assert tx.scalar(text("SELECT max(id) FROM sessions")) > last, "no id is given out again"


# Transactions

OWNERS = OwnerRow.__table__
MAKE = insert(OWNERS).returning(OWNERS.c.id)
NAMED = select(OWNERS.c.id).where(OWNERS.c.name.in_(bindparam("names", expanding=True))).order_by(OWNERS.c.id)
AT = datetime(2026, 5, 1, 9, 30, 0, 123456, tzinfo=timezone(timedelta(hours=3)))


def owner(tx: Transaction, name: str) -> int:
    """The id of a new owner."""
    values = {"tenant": "default", "kind": "user", "name": name, "created_at": AT}
    return tx.scalars(MAKE, values).one()


@pytest.fixture
def promised(database):
    """Inserts a row of a table whose owner may be missing until its transaction commits."""
    table = Table(
        "promised", MetaData(), Column("owner", ForeignKey(OWNERS.c.id, deferrable=True, initially="DEFERRED"))
    )
    table.create(database.engine)
    return insert(table)


@pytest.mark.parametrize("rows", [False, True])
def test_a_commit_that_fails_is_told_and_leaves_nothing(database, promised, rows):
    with pytest.raises(IntegrityError), database.write() as tx:
        owner(tx, "ana")
        tx.execute(promised, {"owner": 99})
        if rows:
            assert tx.get(OwnerRow, 1) is not None
    with database.write(lock_timeout=0) as tx:
        assert tx.scalars(NAMED, {"names": ["ana"]}).all() == []
    assert database.engine.pool.checkedout() == 0


def test_a_write_does_not_wait_for_this_process_for_ever(database, monkeypatch):
    """Else requests that wait for a locked database would wait one after the other, each as long as all before it."""
    monkeypatch.setattr("models.database.LOCK_TIMEOUT_SECONDS", 0.01)
    with database.write(), ThreadPoolExecutor() as others:
        waiting = [others.submit(database.write().__enter__) for _ in range(3)]
        assert all(isinstance(one.exception(timeout=30), OperationalError) for one in waiting)


def test_a_database_that_others_open_and_close_at_the_same_time_misses_no_file(database):
    def open_and_close(_: int) -> None:
        for _ in range(100):
            another = Database(create_engine(database.engine.url))
            with another.read() as tx:
                assert not tx.query(OwnerRow).count()
            another.close()

    with ThreadPoolExecutor(4) as pool:
        assert len(list(pool.map(open_and_close, range(4)))) == 4


# Times


@given(
    st.datetimes(
        timezones=st.just(UTC) | st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).map(timezone),
        min_value=datetime(2, 1, 1),
        max_value=datetime(9998, 1, 1),
    )
)
def test_a_time_is_stored_in_utc_and_comes_back_aware(time):
    dialect = sqlite.dialect()
    kind = UTCDateTime().dialect_impl(dialect)
    write, read = kind.bind_processor(dialect), kind.result_processor(dialect, None)
    stored = time.astimezone(UTC).replace(tzinfo=None)
    assert write(time) == stored.isoformat(" ", "microseconds")
    back = read(write(time))
    assert back == time and back.tzinfo is UTC
    assert write(None) is None and read(None) is None
    with pytest.raises(ValueError, match="without a time zone"):
        write(time.replace(tzinfo=None))


def test_a_column_holds_the_longest_text_that_a_request_may_have():
    for most, column in (
        (USER_ID_CHARS, OwnerRow.name),
        (USER_ID_CHARS, KeyRow.user_id),
        (EXTERNAL_ID_CHARS, MessageRow.external_id),
        (EXTERNAL_ID_CHARS, DocumentRow.external_id),
        (TITLE_CHARS, SessionRow.title),
        (MODEL_CHARS, ModelServerRow.main),
        (NAME_CHARS, ItemRow.key),
    ):
        assert column.type.length >= most, column
