"""The models there are to choose from."""

from __future__ import annotations

from marshmallow import Schema, fields

from schemas.fields import about


class ModelNames(Schema):
    main = fields.String(metadata=about("The model that answers if a request names none."))
    items = fields.List(fields.String(), metadata=about("What `model` of `POST /api/chat` can name, `main` first."))
