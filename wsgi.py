"""What gunicorn serves: `gunicorn wsgi:app`, with gunicorn.conf.py beside this file."""

from __future__ import annotations

from cli import register_commands

from app import create_app

app = create_app()
register_commands(app)
