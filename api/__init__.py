"""The HTTP interface: a blueprint for each resource, a handler for each call.

A handler loads, makes one call into the engine and dumps; its docstring is what the API's reader sees.
"""

from __future__ import annotations

from flask_smorest import Api

from api import chat, facts, jobs, ops, prompts, search, sessions, summary


def register(api: Api) -> None:
    """Add every resource."""
    for module in (chat, sessions, summary, facts, search, prompts, jobs, ops):
        api.register_blueprint(module.blueprint)
