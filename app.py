"""Make the application: `create_app` for servers and programs, `build_app` without anything that starts by itself."""

from __future__ import annotations

import atexit
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flask import Flask
from flask_migrate import Migrate, upgrade
from flask_sqlalchemy import SQLAlchemy

import api
import web
from api.resource import EXTENSION
from config import Settings, SettingsError
from memory.background import register_jobs
from memory.engine import Engine
from memory.errors import RecapError
from memory.ops import logs
from models import Base, engine_options
from models.schema import MIGRATIONS

log = logging.getLogger(__name__)

VERSION = "0.1.0"


def create_app() -> Flask:
    """Return the application for the environment's settings. Its first request starts the background work.

    Raises SettingsError for a setting that can't be used, OSError when the data directory can't be made.
    """
    app = build_app(Settings.from_env())
    _start_with_first_request(app)
    return app


def build_app(settings: Settings) -> Flask:
    """Return the application, its engine under `engine_of(app)`. The caller starts the background work."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    logs.set_up(settings)
    app = Flask("recap", static_folder=None)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.config.update(
        SQLALCHEMY_DATABASE_URI=settings.sqlalchemy_url,
        SQLALCHEMY_ENGINE_OPTIONS=engine_options(settings.sqlalchemy_url),
        MAX_CONTENT_LENGTH=settings.max_body_bytes,
        API_VERSION=VERSION,
    )
    database = SQLAlchemy(metadata=Base.metadata)
    database.init_app(app)
    Migrate(app, database, directory=str(MIGRATIONS))
    with app.app_context():
        engine = Engine(settings, database.engine)
    register_jobs(engine)
    api.register(app, engine)
    app.register_blueprint(web.docs)
    app.register_blueprint(web.blueprint)
    return app


def engine_of(app: Flask) -> Engine:
    """Return the engine of an application."""
    engine: Engine = app.extensions[EXTENSION]
    return engine


@contextmanager
def on_database(settings: Settings, database_url: str) -> Iterator[Engine]:
    """Yield an engine on another database, whose schema is brought up to date first."""
    app = build_app(settings.model_copy(update={"database_url": database_url, "log_level": "warning"}))
    with app.app_context():
        upgrade()
    engine = engine_of(app)
    try:
        yield engine
    finally:
        engine.database.close()


def _start_with_first_request(app: Flask) -> None:
    """Start the background work in each process that serves a request, whatever server it is.

    Not earlier: a server that forks its workers would start it in the process that serves nothing.
    """
    serve, engine = app.wsgi_app, engine_of(app)

    def start_and_serve(environ: Any, start_response: Any) -> Any:
        try:
            if not engine.has_started:
                engine.start()
                atexit.register(engine.stop)
            app.wsgi_app = serve  # type: ignore[method-assign]
        except (RecapError, SettingsError) as error:  # requests are served all the same; the next one tries again
            log.error("the background work can't start: %s", error)
        return serve(environ, start_response)

    app.wsgi_app = start_and_serve  # type: ignore[method-assign]
