"""Commands for operators: `flask --app wsgi index verify`, and the like; a module a group.  `--help` says the rest."""

from __future__ import annotations

from flask import Flask

from cli.index import index
from cli.prompts import prompts


def register_commands(app: Flask) -> None:
    """Add every command to the application."""
    for group in (index, prompts):
        app.cli.add_command(group)
