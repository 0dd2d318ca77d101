"""How the errors of a command are told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from flask.cli import AppGroup
from sqlalchemy.exc import SQLAlchemyError

from config import SettingsError
from memory.errors import RecapError
from memory.ops.database_errors import database_failed


@contextmanager
def errors_told() -> Iterator[None]:
    """What goes wrong is told in a sentence; a mistake of ours keeps its traceback."""
    try:
        yield
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


class Commands(AppGroup):
    """A group of commands that tell their errors."""

    def invoke(self, ctx: click.Context) -> Any:
        with errors_told():
            return super().invoke(ctx)
