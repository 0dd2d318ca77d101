"""How the errors of a command are told."""

from __future__ import annotations

from typing import Any

import click
from flask.cli import AppGroup
from sqlalchemy.exc import SQLAlchemyError

from memory.errors import RecapError
from memory.ops.database_errors import database_failed


class Commands(AppGroup):
    """A group of commands.  What goes wrong is told in a sentence; a mistake of ours keeps its traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except RecapError as error:
            raise click.ClickException(error.message) from error
        except SQLAlchemyError as error:
            failed = database_failed(error, "Nothing was changed.")
            if failed is None:
                raise
            raise click.ClickException(failed.message) from error
