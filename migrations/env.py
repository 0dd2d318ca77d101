"""Alembic's environment: the application's engine and the rows' metadata, nothing of its own."""

from alembic import context
from flask import current_app

from models import Base

if context.is_offline_mode():
    raise SystemExit(
        "Migrations look at the database they change: run them online, with `flask --app wsgi db upgrade`."
    )

with current_app.extensions["migrate"].db.engine.begin() as connection:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        compare_type=True,
        render_as_batch=connection.dialect.name == "sqlite",  # SQLite can't alter most things in place
    )
    context.run_migrations()  # in the one transaction opened above: a migration that fails leaves nothing behind
