"""`recap serve`: Recap for everybody who may reach its port."""

import os
import sys

import click
from flask import current_app

from api.current_request import current_engine
from app import upgrade_schema
from cli import Command
from recap_server import FOLDER, HERE


@click.command("serve", cls=Command)
@click.option("--no-upgrade", is_flag=True, help="Do not upgrade the database first; `recap db upgrade` does it.")
def serve(no_upgrade: bool) -> None:
    """Bring the database up to date and serve on HOST and PORT, until SIGTERM or Ctrl-C.

    The process becomes gunicorn, which reads GUNICORN_CMD_ARGS.
    """
    if not no_upgrade:
        upgrade_schema(current_app)
    current_engine().database.close()
    path = os.pathsep.join(filter(None, (str(FOLDER), os.environ.get("PYTHONPATH"))))
    environ = {"MALLOC_ARENA_MAX": "1", **os.environ, "PYTHONPATH": path}  # else each thread's memory grows apart
    server, config = HERE / "server.py", FOLDER / "gunicorn.conf.py"
    os.execve(sys.executable, [sys.executable, str(server), "--config", str(config), "wsgi:app"], environ)  # nosec B606
