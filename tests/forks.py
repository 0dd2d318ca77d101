"""Commands of Recap that begin with its modules loaded: forks of one process, which loads them once a run.

Loading takes each new process seconds, and the tests of whole processes start some hundred.  From there on a fork is
what the command is: a process in a session of its own, with its own environment and log, that nobody else waits for.

`python -m tests.forks` reads one order a line, as JSON: to begin a command, which it answers with the process id, and
to reap a process that has ended, which it answers with the exit code.
"""

import atexit
import gc
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from benchmarks.serving import ROOT

LOADED = ("app", "cli", "flask_migrate.cli", "gunicorn.app.wsgiapp", "gunicorn.arbiter", "gunicorn_worker", "psycopg")


class Fork:
    """A command, as a `subprocess.Popen` that can be waited for and ended."""

    def __init__(self, command: str, arguments: tuple[str, ...], environ: Mapping[str, str], log: Path) -> None:
        self.pid = _order(command=command, arguments=arguments, environ=dict(environ), log=str(log))
        self._ended = os.pidfd_open(self.pid)
        self._code: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code, once there is one.  Raises TimeoutExpired."""
        if self._code is None:
            ended = select.poll()
            ended.register(self._ended, select.POLLIN)
            if not ended.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            os.close(self._ended)
            self._code = _order(reap=self.pid)
        return self._code

    def poll(self) -> int | None:
        """Return the exit code if there is one yet."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def terminate(self) -> None:
        """Send SIGTERM, unless it has ended."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL, unless it has ended, and wait."""
        self._send(signal.SIGKILL)
        self.wait()

    def _send(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


_loaded: list[subprocess.Popen[str]] = []  # the process that has all loaded, once there is one
_turns = threading.Lock()


def _order(**order: Any) -> int:
    with _turns:
        if not _loaded:
            _loaded.append(
                subprocess.Popen(
                    [sys.executable, "-m", "tests.forks"],
                    cwd=ROOT,
                    env=os.environ | {"MALLOC_ARENA_MAX": "1", "TOKENIZERS_PARALLELISM": "false"},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    start_new_session=True,  # Ctrl-C ends it with the tests, as the end of its orders
                )
            )
            atexit.register(_loaded[0].communicate)  # it has no more orders, and ends
        stdin, stdout = _loaded[0].stdin, _loaded[0].stdout
        assert stdin is not None and stdout is not None
        stdin.write(json.dumps(order) + "\n")
        stdin.flush()
        return int(stdout.readline())


def _load() -> None:
    """Load all that commands have in common.  No thread may be left running."""
    for name in LOADED:
        import_module(name)
    from memory.recall.triggers import warm_up
    from search_index.embeddings import WordLlamaEmbedder

    WordLlamaEmbedder().embed(["word"])
    warm_up()


def _next_command() -> dict[str, Any]:
    """Follow orders.  Returns only in a fork: the command that it is to become."""
    for line in sys.stdin:
        order: dict[str, Any] = json.loads(line)
        if "reap" in order:
            answer = os.waitstatus_to_exitcode(os.waitpid(order["reap"], 0)[1])
        elif not (answer := os.fork()):
            return order
        print(answer, flush=True)
    sys.exit()


def main() -> None:
    """Wait for orders; and in a fork, run the command."""
    gc.disable()
    _load()
    commands = {command.name: command for command in entry_points(group="console_scripts")}
    gc.freeze()
    order = _next_command()
    gc.enable()
    os.setsid()
    os.environ.clear()
    os.environ.update(order["environ"])
    log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for stream, file in enumerate((os.open(os.devnull, os.O_RDONLY), log, log)):
        os.dup2(file, stream)
    sys.argv = [order["command"], *order["arguments"]]
    sys.exit(commands[order["command"]].load()())


if __name__ == "__main__":
    main()
