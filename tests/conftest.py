"""What the tests share: a fresh application with real SQLite and Whoosh for each, and a scripted model over HTTP."""

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis
import pytest
import trustme
from cryptography.fernet import Fernet
from flask import Flask
from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy import Engine as DatabaseEngine
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from app import build_app, engine_of, upgrade_schema
from benchmarks.serving import start_postgres
from config import Settings
from memory.llm.openai_model import OpenAIModel
from search_index import SearchIndex
from tests.application import CompiledRule, an_app
from tests.jobs import Bench, Clock
from tests.knowledge import Talk
from tests.model_server import ModelServer, at
from tests.processes import eventually

MakeApp = Callable[..., Flask]

hypothesis.settings.register_profile(  # how fast the machine is, is not what tests are about
    "recap", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("recap")


def pytest_configure() -> None:
    """Keep what tests write in memory where there is room, unless told where: each commit waits for the disk."""
    memory = Path("/dev/shm")
    if memory.is_dir() and shutil.disk_usage(memory).free > 4 << 30 and not os.statvfs(memory).f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))


def pytest_xdist_auto_num_workers() -> int:
    """Return how many processes `-n auto` makes: one more than processors, because tests wait a third of their time."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browsers and whole processes have a second try, which the report names: a machine that others load starves them
    for longer than any of them waits.  A test that fails twice is wrong.

    Whole processes come first: no worker is left with a long test when the others have ended."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)
    for item in items:
        if item.get_closest_marker("browser") or item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_collection() -> None:
    """Look for no garbage while modules are loaded, which takes a quarter of that time: they stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage from now on, but not among what is loaded."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _one_authority(tmp_path_factory):
    """Trust one certificate instead of all of the system's: every application that has a model server reads them, which
    takes longer than most tests."""
    file = tmp_path_factory.mktemp("authority") / "authority.pem"
    trustme.CA().cert_pem.write_to_path(str(file))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(file))
        yield


@pytest.fixture(scope="session", autouse=True)
def _retries_at_once():
    """Repeat a failed request to a model server at once.  The tests of the client have pauses of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(OpenAIModel.__init__.__kwdefaults__, "backoff", 0.01)
        yield


@pytest.fixture(scope="session", autouse=True)
def _rules_compiled_once():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Flask, "url_rule_class", CompiledRule)
        yield


@pytest.fixture(scope="session", autouse=True)
def _statements_compiled_once():
    """Compile each statement once a run: every application has an engine, and each would compile it again."""
    compiled: dict[Any, Any] = {}

    def share(connection: Connection) -> None:
        connection.execution_options(compiled_cache=compiled)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite.dialect, "__hash__", lambda self: hash(type(self)))
        patch.setattr(sqlite.dialect, "__eq__", lambda self, other: type(self) is type(other))
        event.listen(DatabaseEngine, "engine_connect", share)
        yield
        event.remove(DatabaseEngine, "engine_connect", share)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory):
    """A database that the migrations made, once a run; each test starts from a copy."""
    folder = tmp_path_factory.mktemp("migrated")
    with an_app(folder) as app:
        upgrade_schema(app)
    return folder / "recap.db"


@pytest.fixture(scope="session")
def postgres_server():
    """A PostgreSQL server of this run's own, in a folder whose parents let the server's user in."""
    with TemporaryDirectory(prefix="recap-postgres-") as folder:
        running = start_postgres(Path(folder) / "data")
        yield running
        running.cleanup()


@pytest.fixture(scope="session")
def postgres(postgres_server):
    """The server's address."""
    address: str = postgres_server.get_uri()
    return address.replace("postgresql://", "postgresql+psycopg://")


def accepts(server: str) -> bool:
    """Whether a server has recovered from a crash that a test made."""
    try:
        with create_engine(server, poolclass=NullPool).connect():
            return True
    except OperationalError:
        return False


def empty(server: str) -> None:
    assert eventually(lambda: accepts(server), 120.0)
    with create_engine(server, isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))


@pytest.fixture
def nodes(postgres, tmp_path, model_server, request):
    """Two nodes on an empty database, each with a folder of its own.

    `scripted` ones ask the scripted server; `keyless` ones have no key for secrets.
    """
    empty(postgres)
    made: list[Flask] = []
    kind = getattr(request, "param", "")
    key = "" if kind == "keyless" else Fernet.generate_key().decode()
    model = at(model_server, model_timeout=30.0) if kind == "scripted" else {}
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        told: dict[str, Any] = {"data_dir": tmp_path / name, "database_url": postgres, "daily_tokens": 10_000_000}
        told |= {"encryption_key": key, "webhook_networks": (ip_network("127.0.0.1"),)}
        made.append(build_app(Settings(log_level="warning", summary_debounce=0.0, **told, **model)))
    upgrade_schema(made[0])
    yield made
    for app in made:
        engine_of(app).stop()
        engine_of(app).database.engine.dispose()


@pytest.fixture(params=["whoosh", pytest.param("postgres", marks=pytest.mark.slow)])
def place(request, tmp_path):
    """Where a search index is: what it promises holds for both."""
    if request.param == "whoosh":
        yield tmp_path
        return
    engine = create_engine(request.getfixturevalue("postgres"))
    SearchIndex(engine).warm_up()
    with engine.begin() as connection:
        connection.execute(text("TRUNCATE search_indexes CASCADE"))
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def guide(tmp_path_factory):
    """The documentation site, built as `make docs` builds it, or what that has built."""
    if built := os.environ.get("RECAP_BUILT_GUIDE"):
        return Path(built)
    folder = tmp_path_factory.mktemp("guide")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(build, cwd=Path(__file__).parent.parent, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture
def make_app(tmp_path, migrated):
    """Makes applications on this test's own data directory; called twice, the second is a restart on the same data.

    Background workers are off: tests call `engine_of(app).job_queue.run_due()` when they want the jobs done.
    """
    made: list[Flask] = []

    def make(**changes: Any) -> Flask:
        folder = tmp_path / "data"
        if not folder.exists():
            folder.mkdir()
            shutil.copy(migrated, folder / "recap.db")
        settings = Settings(**{"data_dir": folder, "log_level": "warning", "summary_debounce": 0.0, **changes})
        app = build_app(settings)
        made.append(app)
        return app

    yield make
    for app in made:
        engine = engine_of(app)
        engine.stop()
        engine.database.engine.dispose()


@pytest.fixture(scope="module")
def shared_app(tmp_path_factory, migrated):
    """One application for a whole module whose tests leave nothing in it that another would see.

    Such a module takes it as its own `app`, and `client` and `engine` follow.
    """
    with an_app(tmp_path_factory.mktemp("shared"), migrated) as app:
        yield app


@pytest.fixture(scope="module")
def shared(shared_app):
    """A client of one application for all tests of a module that have everything refused."""
    return shared_app.test_client()


@pytest.fixture
def app(make_app, request):
    """An application that answers with the built-in model; in a module marked `scripted` it is `model_app`."""
    return request.getfixturevalue("model_app") if request.node.get_closest_marker("scripted") else make_app()


@pytest.fixture
def client(app):
    return app.test_client()


@pytest.fixture
def engine(app):
    return engine_of(app)


@pytest.fixture
def model_server():
    with ModelServer() as server:
        yield server


@pytest.fixture
def model_app(make_app, model_server):
    """An application that answers with the scripted model server's models."""
    return make_app(**at(model_server))


@pytest.fixture(params=["one process", "two processes"])
def apps(request, make_app, model_server):
    """One application twice, or two on the same data: what two worker processes are to each other."""
    first = make_app(**at(model_server, model_timeout=30.0))
    return first, first if request.param == "one process" else make_app(**at(model_server))


@pytest.fixture
def talk(model_app, model_server):
    """A session whose mini model answers what the test queues."""
    return Talk(model_app, model_server)


@pytest.fixture
def bench(app):
    """An application on a clock of the test's, with jobs that do what the test says."""
    bench = Bench(app, Clock())
    yield bench
    bench.engine.stop()
