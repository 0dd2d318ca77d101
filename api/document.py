"""The OpenAPI document, made from the schemas and docstrings when it is first asked for.

It takes ten times as long as everything else at the start of a process, and most processes are never asked.  What only
the document needs stays out of the way of requests: a handler is called with what it takes, and by nothing else.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from flask import Response, request
from flask_smorest import Api, Blueprint
from marshmallow import Schema

from api.arguments import loading
from schemas.errors import Error

Decorator = Callable[[Any], Any]


class DocumentedApi(Api):
    """flask-smorest with our shape of errors in the document it writes, and that written late."""

    ERROR_SCHEMA = Error
    DEFAULT_ERROR_RESPONSE_NAME = None  # each call says which errors it answers

    def __init__(self, *args: Any, **options: Any) -> None:
        self._writing = threading.Lock()
        self._unwritten: list[Callable[[], None]] = []
        super().__init__(*args, **options)

    def later(self, write: Callable[[], None]) -> None:
        """Have a part of the document written before it is given out."""
        self._unwritten.append(write)

    def _openapi_json(self) -> Response:
        with self._writing:
            while self._unwritten:
                self._unwritten[0]()
                del self._unwritten[0]
        response: Response = super()._openapi_json()
        return response


class DocumentedBlueprint(Blueprint):
    """Calls that a `DocumentedApi` documents."""

    def register_views_in_doc(self, api: DocumentedApi, app: Any, spec: Any, **named: Any) -> None:
        """Late; see the module."""
        register = super().register_views_in_doc
        api.later(lambda: register(api, app, spec, **named))

    def arguments(self, schema: type[Schema], *, location: str = "json", **described: Any) -> Decorator:
        """Document what a call takes, and call its handler with it, after what the decorators above have loaded."""
        document = super().arguments(schema, location=location, **described)
        load = loading(schema(), location)

        def decorator(handler: Any) -> Any:
            @functools.wraps(handler)
            def taking(*args: Any, **named: Any) -> Any:
                return handler(*args, load(request._get_current_object()), **named)  # type: ignore[attr-defined]

            taking._apidoc = document(handler)._apidoc  # type: ignore[attr-defined]
            return taking

        return decorator

    def answer(self, *args: Any, **described: Any) -> Decorator:
        """Document the usual answer of a call whose handler makes the response itself."""
        return _written_only(self.response(*args, **described))

    def alt_response(self, *args: Any, **described: Any) -> Decorator:
        """Document an answer that is not the usual one."""
        return _written_only(super().alt_response(*args, **described))

    @staticmethod
    def doc(**described: Any) -> Decorator:
        """Document what the rest leaves out."""
        return _written_only(Blueprint.doc(**described))


def _written_only(decorate: Decorator) -> Decorator:
    """`decorate`, which documents a handler, without the function it puts around it: a request would come through a
    dozen of them."""

    def decorator(handler: Any) -> Any:
        handler._apidoc = decorate(handler)._apidoc
        return handler

    return decorator
