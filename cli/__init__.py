"""Commands for operators, as `recap index verify`. Each group has a module of its name, which nothing else lists."""

import pkgutil
from importlib import import_module
from typing import Any

import click
from flask import Flask
from flask.cli import AppGroup, ScriptInfo
from sqlalchemy.exc import SQLAlchemyError

from app import engine_of
from config import SettingsError
from memory.errors import RecapError
from models.database_faults import command_failed
from search_index import IndexBusy


class Command(click.Command):
    """Command within the application's context. It reports an expected failure in one sentence."""

    def invoke(self, ctx: click.Context) -> Any:
        app = ctx.ensure_object(ScriptInfo).load_app()
        try:
            with app.app_context():
                return super().invoke(ctx)
        except RecapError as error:
            raise click.ClickException(error.message) from error
        except SettingsError as error:
            raise click.ClickException(str(error)) from error
        except IndexBusy as error:
            raise click.ClickException(f"{error}. Nothing is lost: run the command again.") from error
        except OSError as error:
            files = " to ".join(str(file) for file in (error.filename, error.filename2) if file)
            raise click.ClickException(f"{files}: {error.strerror}." if files else f"{error}.") from error
        except SQLAlchemyError as error:
            message = command_failed(error, engine_of(app).database.engine.url)
            if message is None:
                raise
            raise click.ClickException(message) from error


class Commands(Command, AppGroup):
    """Group of commands."""


def register_commands(app: Flask) -> None:
    """Add the commands and groups of every module here to the application."""
    for module in pkgutil.iter_modules(__path__):  # imported here, because a web worker needs none of them
        for item in vars(import_module(f"{__name__}.{module.name}")).values():
            if isinstance(item, Command):
                app.cli.add_command(item)
