"""How gunicorn serves Recap.  `gunicorn wsgi:app` in this folder reads it."""

import os
import signal
import sys

from config import Settings, SettingsError
from memory.ops import logs

_settings = Settings.from_env()

_host = f"[{_settings.host}]" if ":" in _settings.host else _settings.host  # IPv6
bind = f"{_host}:{_settings.port}"
workers = _settings.workers
worker_class = "worker.Worker"  # gthread that waits for slow clients as long as REQUEST_TIMEOUT says
threads = _settings.threads
preload_app = True  # imported and wired once: workers share that memory, and one that dies is replaced at once
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # the tokenizer's own threads don't outlive the fork
timeout = 0  # a thread waits on the model for as long as MODEL_TIMEOUT says; gunicorn need not guess
graceful_timeout = int(_settings.turn_seconds) + 15  # replies that are being written may end, then running jobs
keepalive = 60
limit_request_line = 8190  # words to search for, in any script
control_socket_disable = True
logger_class = "worker.EventLogger"
logconfig_dict = logs.for_gunicorn(_settings)
_figures = _settings.data_dir / "metrics"  # which `flask jobs work` shares


def on_starting(server):
    """Drop what an earlier run counted."""
    from memory.ops import metrics

    metrics.begin(_figures)


def when_ready(server):
    """Before there are workers: refuse a port in others' reach, load what the workers share, and let Ctrl-C drain as
    SIGTERM does."""
    from app import services_of
    from memory.access.anonymous import refuse_strangers

    services = services_of(server.app.wsgi())
    try:
        refuse_strangers(_settings, services.keys, server.cfg.address)
    except SettingsError as error:
        sys.exit(str(error))
    services.database.engine.dispose()  # no connection outlives the fork
    services.index.warm_up()
    signal.signal(signal.SIGINT, lambda *_: os.kill(os.getpid(), signal.SIGTERM))


def post_fork(server, worker):
    """Connections belong to the process that opened them."""
    from app import services_of

    services_of(worker.app.wsgi()).database.engine.dispose(close=False)


def post_worker_init(worker):
    """Start the background threads, which do not survive a fork.  On Ctrl-C the master decides for its workers."""
    from app import services_of

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    services_of(worker.wsgi).metrics.share(_figures)
    services_of(worker.wsgi).start()


def worker_exit(server, worker):
    """Let running jobs end; what is left waits in the database."""
    from app import services_of

    if getattr(worker, "wsgi", None) is not None:  # None: it was ended before it had loaded anything
        services_of(worker.wsgi).stop()


def child_exit(server, worker):
    """Drop what an ended worker was in the middle of from the gauges; its counters stay."""
    from memory.ops import metrics

    metrics.ended(_figures, worker.pid)
