"""How gunicorn serves Recap.  `gunicorn wsgi:app` in this folder reads it."""

import os
import signal

from config import Settings

_settings = Settings.from_env()

_host = f"[{_settings.host}]" if ":" in _settings.host else _settings.host  # IPv6
bind = f"{_host}:{_settings.port}"
workers = _settings.workers
worker_class = "gthread"
threads = _settings.threads
timeout = 0  # a thread waits on the model for as long as MODEL_TIMEOUT says; gunicorn need not guess
graceful_timeout = int(_settings.model_timeout) + 15  # a reply that is being written may end
keepalive = 60
control_socket_disable = True
accesslog = None


def when_ready(server):
    """Ctrl-C drains, as SIGTERM does, instead of cutting replies off."""
    signal.signal(signal.SIGINT, lambda *_: os.kill(os.getpid(), signal.SIGTERM))


def post_fork(server, worker):
    """A terminal sends Ctrl-C to every process; the master decides, also for a worker that is still starting."""
    quit_at_once = worker.handle_quit

    def handle_quit(number, frame):
        if number != signal.SIGINT:
            quit_at_once(number, frame)

    worker.handle_quit = handle_quit


def post_worker_init(worker):
    """Background workers belong to each process: threads do not survive a fork."""
    from app import services_of

    services_of(worker.wsgi).start()


def worker_exit(server, worker):
    """Let running jobs end; what is left waits in the database."""
    from app import services_of

    if getattr(worker, "wsgi", None) is not None:  # None: it was ended before it had loaded anything
        services_of(worker.wsgi).stop()
