"""The HTTP interface: a blueprint for each resource, a handler for each call.

A handler loads, makes one call into the engine and dumps; its docstring is what the API's reader sees.
"""

from __future__ import annotations

from flask_smorest import Api

from api import auth, chat, facts, jobs, openai_compat, ops, prompts, search, sessions, summary, turns, users


def register(api: Api) -> None:
    """Add every resource."""
    api.spec.components.security_scheme("bearer", auth.SCHEME)
    for module in (chat, sessions, turns, summary, facts, search, users, prompts, jobs, openai_compat, ops):
        api.register_blueprint(module.blueprint)
