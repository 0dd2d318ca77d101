"""WSGI application: `gunicorn wsgi:app`, with gunicorn.conf.py beside this file."""

import sys

import click
from flask.cli import run_command

from app import create_app, engine_of
from cli import register_commands
from config import SettingsError

_command = click.get_current_context(silent=True)  # None under gunicorn
try:
    app = create_app(migrations=_command is not None)
except SettingsError as error:
    sys.exit(f"Recap does not start. {error}")

if _command is not None:
    register_commands(app)

# A server, by gunicorn or `flask run`, starts with the schema that it needs or not at all; `recap db upgrade` starts.
if _command is None or _command.command is run_command:
    _report = engine_of(app).health.check(begins_jobs=True)
    engine_of(app).database.close()  # no connection outlives a fork
    if not _report.migrated:
        sys.exit(f"Recap does not start. The database can't be used: {_report.database}.")
