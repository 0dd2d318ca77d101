"""Commands that tell what goes wrong in a sentence.  A mistake of ours keeps its traceback."""

from __future__ import annotations

from typing import Any

import click
from flask.cli import AppGroup
from sqlalchemy.exc import SQLAlchemyError

from config import SettingsError
from memory.errors import RecapError, database_failed


class Command(click.Command):
    """A command that stands alone."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except RecapError as error:
            raise click.ClickException(error.message) from error
        except SettingsError as error:
            raise click.ClickException(str(error)) from error
        except OSError as error:
            raise click.ClickException(f"{error}.") from error
        except SQLAlchemyError as error:
            failed = database_failed(error, "Nothing was changed.")
            if failed is None:
                raise
            raise click.ClickException(failed.message) from error


class Commands(Command, AppGroup):
    """A group of commands."""
