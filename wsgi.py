"""What gunicorn serves: `gunicorn wsgi:app`, with gunicorn.conf.py beside this file."""

from __future__ import annotations

from app import create_app
from cli import register_commands

app = create_app()
register_commands(app)
