"""The engine a command works with."""

from __future__ import annotations

from flask import current_app

from app import services_of
from memory.services import Services


def engine() -> Services:
    """That of the application `flask --app` names."""
    return services_of(current_app._get_current_object())  # type: ignore[attr-defined]
