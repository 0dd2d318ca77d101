"""create_app: wiring, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from flask import Flask
from flask_migrate import Migrate, upgrade
from flask_sqlalchemy import SQLAlchemy

import api
import web
from api.resource import EXTENSION
from config import Settings
from memory.engine import Engine
from memory.ops import logs
from memory.transfer.export_format import text_of
from models import Base, engine_options
from models.schema import MIGRATIONS

VERSION = "0.1.0"


def create_app(settings: Settings | None = None) -> Flask:
    """The application, its engine under `engine_of(app)`.  Background workers are started by the caller.

    Raises SettingsError for a setting that can't be used, OSError when the data directory can't be made.
    """
    settings = settings or Settings.from_env()
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
        api.register(app, Engine(settings, database.engine, text_of))
    app.register_blueprint(web.docs)
    app.register_blueprint(web.blueprint)
    return app


def engine_of(app: Flask) -> Engine:
    """The engine of an application made by `create_app`."""
    engine: Engine = app.extensions[EXTENSION]
    return engine


@contextmanager
def on_database(settings: Settings, database_url: str) -> Iterator[Engine]:
    """The engine on another database, whose schema is brought up to date first."""
    app = create_app(settings.model_copy(update={"database_url": database_url, "log_level": "warning"}))
    with app.app_context():
        upgrade()
    engine = engine_of(app)
    try:
        yield engine
    finally:
        engine.database.close()
