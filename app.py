"""create_app: wiring, and nothing else."""

from __future__ import annotations

import logging
import re
import sys
import uuid
from pathlib import Path
from typing import Any

from flask import Flask, Response, g, request
from flask_migrate import Migrate
from flask_smorest import Api
from flask_sqlalchemy import SQLAlchemy
from flask_swagger_ui import get_swaggerui_blueprint
from werkzeug.exceptions import UnsupportedMediaType

import api
import web
from api import auth, errors
from api.context import EXTENSION
from config import Settings
from memory.services import Services, build
from models import Base
from schemas.errors import Error

VERSION = "0.1.0"
BODY_BYTES_MAX = 32 * 1024 * 1024  # an import of 1,000 long messages fits
_REQUEST_ID = re.compile(r"[\w.:-]{1,128}")


class _Api(Api):
    """flask-smorest with our shape of errors in the document it writes."""

    ERROR_SCHEMA = Error


def create_app(settings: Settings | None = None) -> Flask:
    """The application, its engine under `services_of(app)`.  Background workers are started by the caller.

    Raises SettingsError for a setting that can't be used, OSError when the data directory can't be made.
    """
    settings = settings or Settings.from_env()
    _set_up_logging(settings)
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    app = Flask("recap", static_folder=None)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.config.update(
        SQLALCHEMY_DATABASE_URI=settings.sqlalchemy_url,
        SQLALCHEMY_ENGINE_OPTIONS=_engine_options(settings),
        MAX_CONTENT_LENGTH=BODY_BYTES_MAX,
        API_TITLE="Recap",
        API_VERSION=VERSION,
        OPENAPI_VERSION="3.0.3",
        OPENAPI_URL_PREFIX="/",
        OPENAPI_JSON_PATH="openapi.json",
    )
    database = SQLAlchemy(metadata=Base.metadata)
    database.init_app(app)
    Migrate(app, database, directory=str(Path(__file__).parent / "migrations"))
    with app.app_context():
        app.extensions[EXTENSION] = build(settings, database.engine)
    api.register(_Api(app))
    errors.register(app)  # after flask-smorest, which brings a shape of its own
    config = {"app_name": "Recap", "validatorUrl": None}  # or the page would send the document to a site to be checked
    app.register_blueprint(get_swaggerui_blueprint("/docs", "/openapi.json", config=config))
    app.register_blueprint(web.blueprint)
    app.before_request(_name_request)
    auth.register(app, settings.api_keys)
    app.before_request(_expect_json)
    app.after_request(_after)
    return app


def services_of(app: Flask) -> Services:
    """The engine of an application made by `create_app`."""
    engine: Services = app.extensions[EXTENSION]
    return engine


def _engine_options(settings: Settings) -> dict[str, Any]:
    # Transactions are short, so few connections serve many threads; more would only wait for each other.
    return {"pool_size": 8, "max_overflow": 24, "pool_timeout": 30, "hide_parameters": True}  # words stay out of logs


def _name_request() -> None:
    given = request.headers.get("X-Request-ID", "")
    g.request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


def _expect_json() -> None:
    if request.method in ("POST", "PUT", "PATCH") and request.content_length and not request.is_json:
        raise UnsupportedMediaType


def _after(response: Response) -> Response:
    response.headers["X-Request-ID"] = g.get("request_id", "")
    return response


class _WithRequestId(logging.Filter):
    """Gives every line the id of the request it belongs to."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = g.get("request_id", "-") if g else "-"
        return True


def _set_up_logging(settings: Settings) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        logging.Formatter("%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s", "%Y-%m-%dT%H:%M:%S%z")
    )
    handler.addFilter(_WithRequestId())
    root = logging.getLogger()
    root.setLevel(settings.log_level.upper())
    for old in [h for h in root.handlers if any(isinstance(f, _WithRequestId) for f in h.filters)]:
        root.removeHandler(old)
    root.addHandler(handler)
    for noisy in ("httpx2", "httpcore2", "openai", "alembic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
