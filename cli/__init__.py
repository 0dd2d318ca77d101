"""Commands for operators: `flask --app wsgi index verify`, and the like; a module a group.  `--help` says the rest."""

from __future__ import annotations

from flask import Flask

from cli.backup import backup, restore
from cli.imports import import_files
from cli.index import index
from cli.jobs import jobs
from cli.keys import keys
from cli.logs import logs
from cli.mcp import mcp
from cli.models import models
from cli.move import move_to
from cli.prompts import prompts


def register_commands(app: Flask) -> None:
    """Add every command to the application."""
    for command in (index, jobs, keys, logs, mcp, models, prompts, backup, restore, move_to, import_files):
        app.cli.add_command(command)
