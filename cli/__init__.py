"""Commands for operators, as `recap index verify`. Each group has a module of its name, which nothing else lists."""

import pkgutil
import re
from importlib import import_module
from typing import Any

import click
from flask import Flask
from flask.cli import AppGroup, ScriptInfo
from sqlalchemy.exc import SQLAlchemyError

from app import engine_of
from config import SettingsError
from config.parsers import TENANT, TENANT_RULE
from memory.errors import RecapError
from models.database_faults import command_failed
from schemas.fields import ID, ID_RULE, INT64_MAX, USER_ID, USER_ID_RULE
from search_index import IndexBusy

NUMBER = click.IntRange(1, INT64_MAX)
"""Type of the number of a row."""


class Name(click.ParamType):
    """Type of a name that requests can have too: what stands under another one, no call could read or erase."""

    name = "text"

    def __init__(self, form: re.Pattern[str], rule: str) -> None:
        self._form, self._rule = form, rule

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not self._form.fullmatch(value):
            self.fail(self._rule, param, ctx)
        return value


OWNER = {"user_id": Name(USER_ID, USER_ID_RULE), "space": Name(ID, ID_RULE), "tenant": Name(TENANT, TENANT_RULE)}
"""Types of what names an owner."""


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
