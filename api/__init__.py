"""The HTTP interface: a blueprint for each resource, a handler for each call.

A handler loads, makes one call into the engine and dumps; its docstring is what the API's reader sees.
"""

from __future__ import annotations

from api import auth, chat, facts, jobs, me, openai_compat, ops, prompts, search, sessions, summary, turns, users
from api.context import Int64
from api.document import DocumentedApi


def register(api: DocumentedApi) -> None:
    """Add every resource."""
    api.spec.components.security_scheme("bearer", auth.SCHEME)
    api.register_converter(Int64, lambda converter: converter.documented)
    for module in (chat, sessions, turns, summary, facts, search, users, prompts, jobs, me, openai_compat, ops):
        api.register_blueprint(module.blueprint)
