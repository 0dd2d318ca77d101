"""Read a request's body: whole and within its bounds, or not at all.

A small body of JSON can stand for a hundred times its size in values. So a body is bounded in bytes, and before it is
parsed its nesting and, if it is large, the values in it are counted; the schemas bound lists and objects. A body is
refused within a fraction of a second, for at most ten times its size in memory (test_hostile_bodies).
"""

from itertools import accumulate
from typing import Any

from flask import Request, request
from marshmallow import Schema
from webargs.flaskparser import FlaskParser
from werkzeug.datastructures import FileStorage
from werkzeug.exceptions import BadRequest, ClientDisconnected, RequestEntityTooLarge

from memory.errors import InvalidRequest, TooLarge
from schemas.fields import JSON_DEPTH_MAX
from schemas.shapes import WHOM, Input

FILE, FORM = "application/octet-stream", "multipart/form-data"
SHORT_BYTES = 1_000_000  # what most calls take: an edited summary fits
FORM_BYTES = 100_000  # of the other fields beside a file, and of what separates them
IMPORT_BYTES = 1 << 30  # of an import, which is read from a file; MAX_BODY_BYTES and MAX_DOCUMENT_BYTES are settings
MARKS_MAX = 350_000  # brackets, quotes and commas: those of 300,000 tokens to embed, the most that OpenAI takes
_STEPS = {**dict.fromkeys(b"[{", 1), **dict.fromkeys(b"]}", -1)}
_NO_MARKS = bytes(set(range(256)) - set(b"[]{},"))


class WholeRequest(Request):
    """Request whose body is read to its end or refused.

    werkzeug alone takes what arrived before the connection broke for the whole body, where the server marks a body's
    end; and cuts a body of unknown length off at the limit.
    """

    def get_data(self, cache: bool = True, as_text: bool = False, parse_form_data: bool = False) -> Any:  # noqa: FBT001
        data = super().get_data(cache=cache, parse_form_data=parse_form_data)
        expected = self.content_length
        arrived = len(data)
        if expected is None:
            if self.max_content_length is not None and arrived >= self.max_content_length:
                raise RequestEntityTooLarge
        elif arrived < expected:
            raise ClientDisconnected
        return data.decode("utf-8", "replace") if as_text else data


class BodyParser(FlaskParser):
    """Parse bodies within bounds. Unknown names in a query are refused, and the owner that a body is to name."""

    DEFAULT_UNKNOWN_BY_LOCATION = {**FlaskParser.DEFAULT_UNKNOWN_BY_LOCATION, "query": None}  # None: as the schema says

    def load_querystring(self, req: Any, schema: Schema) -> Any:
        """Return the query. A name that is sent more than once has a list, which only a field for lists takes."""
        return {name: values if len(values) > 1 else values[0] for name, values in req.args.lists()}

    def load_form(self, req: Any, schema: Schema) -> Any:
        _refuse_owner_in_query(req, schema)
        return super().load_form(req, schema)

    def load_json(self, req: Any, schema: Schema) -> Any:
        _refuse_owner_in_query(req, schema)
        if not (isinstance(schema, Input) and schema.long):
            req.max_content_length = min(req.max_content_length, SHORT_BYTES)
        check_values(req.get_data())
        try:
            return super().load_json(req, schema)
        except ValueError as error:  # a number with more digits than Python reads
            raise BadRequest from error


def _refuse_owner_in_query(req: Any, schema: Schema) -> None:
    for name in WHOM if "user_id" in schema.fields else ():
        if name in req.args:  # ignored there, it would mean everybody
            message = f"This call takes `{name}` in its body, not in its address. Nothing was done."
            raise InvalidRequest("owner_in_query", message, param=name)


def refuse_owner_in_body() -> None:
    """Refuse a body that names the owner of a call that takes no body."""
    request.max_content_length = min(request.max_content_length or SHORT_BYTES, SHORT_BYTES)
    check_values(request.get_data())
    body = request.get_json(silent=True)
    names = [name for name in WHOM if name in body] if isinstance(body, dict) else []
    if names:  # ignored there, it would mean everybody
        message = f"This call takes `{names[0]}` in its address, as ?{names[0]}=NAME, and no body. Nothing was done."
        raise InvalidRequest("owner_in_body", message, param=names[0])


def read_upload(in_json: type[Schema], in_form: type[Schema], most: int) -> tuple[dict[str, Any], FileStorage | None]:
    """Return the fields of a request that has a text as JSON, or a file in a form, and the file.

    most: bytes of the file, or of the JSON, which is limited as all JSON is.
    """
    parser = BodyParser()
    if request.mimetype != FORM:
        request.max_content_length = min(request.max_content_length or most, most)
        return parser.parse(in_json(), request), None
    request.max_content_length = most + FORM_BYTES
    file = request.files.get("file")
    if file is None:
        text = "The form has no file. Nothing was stored. Send the file in the field `file`."
        raise InvalidRequest("file_missing", text, param="file")
    return {**parser.parse(in_form(exclude=["file"]), request, location="form")}, file


def check_values(body: bytes) -> None:
    """Refuse JSON with too many values, or nested too deeply, before it is parsed.

    A short body with few brackets is neither, so an ordinary turn costs nothing here. JSON has no NUL, which UTF-16
    and UTF-32 have: of them the marks could not be counted.
    """
    if b"\0" in body:
        raise BadRequest
    if len(body) <= SHORT_BYTES and body.count(b"[") + body.count(b"{") <= JSON_DEPTH_MAX:
        return
    without_escapes = body.replace(rb"\\", b"").replace(rb"\"", b"")
    quotes = without_escapes.count(b'"')
    outside = b"".join(without_escapes.split(b'"')[::2]) if quotes <= MARKS_MAX else b""  # of the strings
    marks = outside.translate(None, _NO_MARKS)
    if quotes + len(marks) > MARKS_MAX:
        raise TooLarge(
            "body_too_large",
            "The body has too many values. Nothing was stored. Send it in parts, with fewer items in each.",
        )
    if max(accumulate(_STEPS.get(mark, 0) for mark in marks), default=0) > JSON_DEPTH_MAX:
        text = (
            f"The JSON is nested more than {JSON_DEPTH_MAX} levels deep. Nothing was stored. Send it with fewer levels."
        )
        raise InvalidRequest("invalid_json", text, status=400)
