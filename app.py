"""Make the application: `create_app` for servers and programs, `build_app` without anything that starts by itself."""

import atexit
import errno
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from flask import Flask, Response, request
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy.exc import SQLAlchemyError

import api
import web
from api.current_request import AT_END, EXTENSION
from config import Settings, SettingsError
from config.environment import KEY_FILES
from memory.engine import Engine, Model
from memory.errors import RecapError
from memory.job_kinds import register_jobs
from memory.ops import logs
from models import Base, engine_options
from models.database_faults import DatabaseFault, fault_of
from models.schema import MIGRATIONS, revision_of, schema_differs

log = logging.getLogger(__name__)

VERSION = "0.1.0"


def create_app(
    settings: Mapping[str, Any] | None = None, *, model: "Model | None" = None, migrations: bool = True
) -> Flask:
    """Return the application for servers, and for programs that embed it. Its first request starts the background work.

    settings: Recap's by variable, and Flask's own, in the place of the environment; a new database gets its schema.
    With TESTING nothing runs in the background: jobs that are due run before a response ends, and summaries are due at
    once. model: the main and mini model, any `LanguageModel` or an `openai.OpenAI` client. migrations: let `recap db`
    work on its database; a server does without.

    Raises SettingsError for a setting, or a data directory, that can't be used.
    """
    if settings is None:
        app = build_app(Settings.from_env(), model)
        for sentence in Settings.unread():
            log.warning(sentence)
    else:
        own, flask = _read(settings)
        app = build_app(own, model, is_embedded=True, **flask)
        make_schema(app)
    if migrations:
        add_migrations(app)
    if app.testing:
        app.after_request(partial(_run_due_jobs, engine_of(app)))
    else:
        _start_with_first_request(app)
    return app


def build_app(settings: Settings, model: "Model | None" = None, *, is_embedded: bool = False, **config: Any) -> Flask:
    """Return the application, its engine under `engine_of(app)`. The caller starts the background work."""
    try:
        settings.data_dir.mkdir(0o700, parents=True, exist_ok=True)  # people's words are in it
        if not os.access(settings.data_dir, os.W_OK) and not any(settings.data_dir.iterdir()):  # else it can be read
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise SettingsError(
            f"RECAP_DATA_DIR: the folder {settings.data_dir} can't be made or written ({error.strerror}). Make it, "
            f"give it to the account that Recap runs as (user {os.geteuid()}), or name another."
        ) from error
    logs.set_up(settings, is_embedded=is_embedded)
    app = Flask("recap", static_folder=None)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.config.update(
        SQLALCHEMY_DATABASE_URI=settings.sqlalchemy_url,
        SQLALCHEMY_ENGINE_OPTIONS=engine_options(settings.sqlalchemy_url),
        MAX_CONTENT_LENGTH=settings.max_body_bytes,
        API_VERSION=VERSION,
        **config,
    )
    database = SQLAlchemy(metadata=Base.metadata)
    database.init_app(app)
    with app.app_context():
        engine = Engine(settings, database.engine, model=model)
    register_jobs(engine)
    api.register(app, engine)
    app.register_blueprint(web.docs, url_prefix="/docs")
    app.register_blueprint(web.blueprint)
    return app


def engine_of(app: Flask) -> Engine:
    """Return the engine of an application."""
    engine: Engine = app.extensions[EXTENSION]
    return engine


def add_migrations(app: Flask) -> None:
    """Let `recap db` and the functions of flask_migrate work on an application's database."""
    from flask_migrate import Migrate  # not at the top: it imports Alembic, which servers do not need

    Migrate(app, app.extensions["sqlalchemy"], directory=str(MIGRATIONS))


def upgrade_schema(app: Flask) -> None:
    """Bring the schema of an application's database up to date."""
    add_migrations(app)
    from flask_migrate import upgrade

    with app.app_context():
        upgrade()


@contextmanager
def on_database(settings: Settings, database_url: str) -> Iterator[Engine]:
    """Yield an engine on another database, whose schema is brought up to date first."""
    app = build_app(settings.model_copy(update={"database_url": database_url, "log_level": "warning"}))
    upgrade_schema(app)
    engine = engine_of(app)
    try:
        yield engine
    finally:
        engine.database.close()


def _read(settings: Mapping[str, Any]) -> tuple[Settings, dict[str, Any]]:
    """Return Recap's settings and Flask's. Raises SettingsError, also for a name that neither has."""
    flask = {name: value for name, value in settings.items() if name in Flask.default_config}
    variables = {
        name: ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        for name, value in settings.items()
        if name not in flask and value is not None
    }
    if unknown := ", ".join(sorted(variables.keys() - {*Settings.variables(), *KEY_FILES.values()})):
        raise SettingsError(f"{unknown}: neither Recap nor Flask has a setting of this name.")
    if flask.get("TESTING"):
        variables.setdefault("SUMMARY_DEBOUNCE", "0")
    own = Settings.from_env(variables, dotenv=None)
    if own.is_in_memory and "RECAP_DATA_DIR" not in variables:
        folder = TemporaryDirectory(prefix="recap-")  # of the index; it goes with the process
        atexit.register(folder.cleanup)
        own = own.model_copy(update={"data_dir": Path(folder.name)})
    return own, flask


def make_schema(app: Flask) -> bool:
    """Make the schema of a new database; return whether it is new. Raises SettingsError for an older or newer one."""
    engine = engine_of(app)
    revision = None
    try:
        with engine.database.read() as tx:
            revision = revision_of(tx.connection())
    except SQLAlchemyError as error:
        if fault_of(error) is not DatabaseFault.MISSING:
            raise
    if revision is None:
        upgrade_schema(app)
    elif differs := schema_differs(revision):
        raise SettingsError(f"The database can't be used: {differs}.")
    return revision is None


def _start_with_first_request(app: Flask) -> None:
    """Start the background work in each process that serves a request, whatever server it is.

    Not earlier: a server that forks its workers would start it in the process that serves nothing.
    """
    serve = app.wsgi_app
    engine = engine_of(app)

    def start_and_serve(environ: Any, start_response: Any) -> Any:
        if not engine.has_started:
            try:
                engine.start()
                atexit.register(engine.stop)
            except (RecapError, SettingsError) as error:  # requests are served all the same; the next one tries again
                log.error("the background work can't start: %s", error)
        return serve(environ, start_response)

    app.wsgi_app = start_and_serve  # type: ignore[method-assign]


def _run_due_jobs(engine: Engine, response: Response) -> Response:
    """Run the jobs that are due when the response ends: before it, or when its stream was read to the end."""
    request.environ[AT_END].callback(engine.job_queue.run_due)
    return response
