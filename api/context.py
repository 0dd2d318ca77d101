"""What every handler needs of the request: the engine, and on whose behalf it is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from flask import current_app, g
from flask_smorest import Blueprint
from marshmallow import RAISE
from webargs.flaskparser import FlaskParser

from api import auth
from memory.domain import Caller
from memory.services import Services
from schemas.errors import Error
from schemas.fields import INT64_MAX

EXTENSION = "recap"
Handler = TypeVar("Handler", bound=Callable[..., Any])
ID = f"<int(max={INT64_MAX}):%s>"  # an id in a path; what can't be an id is 404, like an id nobody has


class _StrictParser(FlaskParser):
    """Refuses what it does not know in a query too: `?userid=ada`, ignored, would list everybody's."""

    DEFAULT_UNKNOWN_BY_LOCATION = {**FlaskParser.DEFAULT_UNKNOWN_BY_LOCATION, "query": RAISE}


class _Blueprint(Blueprint):
    """Calls that act on behalf of somebody: each is documented as asking for a key."""

    ARGUMENTS_PARSER = _StrictParser()

    def add_url_rule(
        self, rule: str, endpoint: str | None = None, view_func: Handler | None = None, *args: Any, **options: Any
    ) -> None:
        asking = self.alt_response(401, schema=Error, description=auth.REFUSED)(view_func)
        super().add_url_rule(rule, endpoint, self.doc(security=[{"bearer": []}])(asking), *args, **options)


def services() -> Services:
    return cast(Services, current_app.extensions[EXTENSION])


def caller(user_id: str | None) -> Caller:
    """The caller of this request: the tenant its key opens (see `auth`); within it, the user the application names."""
    return Caller(g.tenant, user_id)


def resource(name: str, description: str, prefix: str = "/api") -> Blueprint:
    """A blueprint for a resource under `prefix`."""
    return _Blueprint(name, name, url_prefix=prefix, description=description)


def errors(blueprint: Blueprint, **described: str) -> Callable[[Handler], Handler]:
    """Document the errors a call answers, by status: `errors(blueprint, e404="...")`."""

    def decorate(function: Handler) -> Handler:
        for status, description in described.items():
            function = blueprint.alt_response(int(status[1:]), schema=Error, description=description)(function)
        return function

    return decorate
