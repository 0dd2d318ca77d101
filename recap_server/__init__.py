"""The command `recap`, and the one package that an installed Recap adds to an environment.

Recap's own modules have short names, such as `api` and `models`, which would clash with those of other programs. So the
wheel keeps them all inside this package's folder, and only the processes of `recap` have that folder on their path.
"""

import gc
import os
import signal
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE if (HERE / "app.py").exists() else HERE.parent  # of the modules: a checkout has them beside the package


def end_on_sigterm() -> None:
    """End on SIGTERM also as the first process of a container, for which signals have no default action."""
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def main() -> None:
    """Run a command, as `recap serve`."""
    end_on_sigterm()
    sys.path.insert(0, str(FOLDER))
    gc.disable()  # nearly nothing that is loaded is garbage
    from flask.cli import ScriptInfo
    from flask_migrate.cli import db

    from app import VERSION, create_app
    from cli import register_commands
    from config import SettingsError

    if sys.argv[1:] == ["--version"]:
        print(VERSION)
        return
    try:
        app = create_app()
    except SettingsError as error:
        sys.exit(f"Recap does not start. {error}")
    register_commands(app)
    gc.enable()
    # The others are for developers: `recap db migrate` would write a file into the package, and Recap not start again.
    db.commands = {name: db.commands[name] for name in ("current", "upgrade")}
    app.cli.add_command(db)
    app.cli.help = (
        "Memory for LLM chat. The settings are in the environment, or in the file .env of the working folder."
    )
    app.cli.main(prog_name="recap", obj=ScriptInfo(create_app=lambda: app))
