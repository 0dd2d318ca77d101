"""gunicorn's configuration.  `gunicorn wsgi:app` in this folder reads it."""

import errno
import fcntl
import gc
import logging
import os
import signal
import socket
import sys
from contextlib import suppress

from gunicorn.errors import AppImportError
from gunicorn.glogging import Logger

from config import Settings, SettingsError
from memory.ops import logs

try:
    _settings = Settings.from_env()
except SettingsError as error:
    sys.exit(f"Recap does not start. {error}")


class _EventLogger(Logger):
    """gunicorn's log of its own events."""

    def access(self, *_):
        """Nothing: api.middleware logs the requests."""


_host = f"[{_settings.host}]" if ":" in _settings.host else _settings.host  # IPv6
bind = f"{_host}:{_settings.port}"
workers = _settings.workers
worker_class = "gunicorn_worker.Worker"  # gthread, with REQUEST_TIMEOUT as the limit for slow clients
threads = _settings.threads
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # the tokenizer's threads do not survive the fork
timeout = 0  # MODEL_TIMEOUT limits how long a thread waits
# A worker touches a file of its own with every request.  On a disk, that waits for what the database writes.
worker_tmp_dir = "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None  # nosec B108
graceful_timeout = int(_settings.turn_seconds) + 15  # for replies in progress, then for running jobs
keepalive = 60
worker_connections = 800  # where a process may have 1,024 files open, some are left for the database and the index
limit_request_line = 8190  # long enough for a search in any script
forwarder_headers = ""  # or whoever calls could choose SCRIPT_NAME, and with it which part of an address counts
control_socket_disable = True
logger_class = _EventLogger
logconfig_dict = logs.for_gunicorn(_settings)
_figures = _settings.data_dir / "metrics"  # shared with `recap jobs work`

gc.disable()  # until everything is loaded: nearly nothing of it is garbage


def _load_vectors():
    """Load the vectors of words before the application, which then gets the memory that this takes for a moment."""
    if _settings.embeddings == "wordllama":
        from search_index.embeddings import WordLlamaEmbedder

        WordLlamaEmbedder().embed(["word"])


def on_starting(server):
    """Refuse an address that is taken, once and in a sentence; delete the counts of an earlier run; load for several.

    Several workers share the memory of what is loaded here.  One alone shares it with nobody: the first process, which
    only watches over it, then loads no more than this file.  `preload_app` would have to be set before gunicorn reads
    its own option `--workers`.
    """
    inherited = "LISTEN_FDS" in os.environ or "GUNICORN_FD" in os.environ
    for host, port in (address for address in server.cfg.address if isinstance(address, tuple) and not inherited):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                taken = error.errno == errno.EADDRINUSE
                why = "another program uses it: stop that one" if taken else f"{error.strerror}: choose another address"
                sys.exit(
                    f"Recap does not start on {host}, port {port}: {why}, or set PORT (or HOST), as PORT=8001 in .env."
                )
    for path in _figures.glob("*.db"):
        with suppress(OSError), path.open("rb") as file:  # locked by a living process such as `recap jobs work`; or a
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # read-only disk, where nobody counts
            path.unlink()
    if server.cfg.workers > 1:
        _load_vectors()
        try:
            _prepare(server.app.wsgi(), server.cfg.address)
        except SettingsError as error:
            sys.exit(str(error))
    else:
        gc.freeze()  # else the worker's collector would write to the pages that it shares with this process


def when_ready(server):
    """Let Ctrl-C drain as SIGTERM does."""
    signal.signal(signal.SIGINT, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    gc.enable()


def pre_fork(server, worker):
    """Hold SIGTERM back until the worker handles it.

    A worker that is told to end while it starts would lose the signal in the handler that it has from the first
    process, and that would wait for the worker as long as for a reply in progress.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # until Worker.init_signals


os.register_at_fork(after_in_parent=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM}))


def post_fork(server, worker):
    """Collect no garbage in a worker before it has loaded everything."""
    gc.disable()
    if server.cfg.workers == 1:
        _load_vectors()


def post_worker_init(worker):
    """Start the background threads, which do not survive a fork.  Ctrl-C is handled by the master alone."""
    from app import engine_of

    if worker.cfg.workers == 1:
        try:
            _prepare(worker.wsgi, worker.cfg.address)
        except SettingsError as error:
            raise AppImportError(str(error)) from None  # it ends the first process too
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.enable()
    engine_of(worker.wsgi).metrics.share(_figures)
    engine_of(worker.wsgi).start()
    # The last of the first workers says so: what they shared to count themselves, a killed one could hold.
    if worker.age == worker.cfg.workers:
        address = str(worker.sockets[0]).replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
        if any(map(os.path.exists, ("/.dockerenv", "/run/.containerenv"))):
            address += " (in this container; from outside, the port that it is published as)"
        logging.getLogger("recap").info("Recap is ready: open %s", _settings.public_url or address)


def _prepare(wsgi, address):
    """Load all that the workers need, but for a port that others can reach without a key.  Raises SettingsError."""
    from app import engine_of
    from memory.access.keys import require_key_or_loopback
    from memory.recall import triggers

    engine = engine_of(wsgi)
    require_key_or_loopback(_settings, engine.keys, address)
    engine.index.warm_up()
    triggers.warm_up()
    engine.database.engine.dispose()  # no connection outlives a fork
    gc.collect()
    gc.freeze()  # else the workers' collector would write to the pages that they share


def worker_exit(server, worker):
    """Let running jobs end.  Other jobs wait in the database."""
    from app import engine_of

    if getattr(worker, "wsgi", None) is not None:  # None: the worker ended before it loaded the application
        engine_of(worker.wsgi).stop()
