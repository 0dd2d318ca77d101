"""A client of Recap: Recap and AsyncRecap, the errors that they raise, and the `types` of what calls take and answer.

`recap_client.langgraph`, `.langchain` and `.agents` are for programs of these frameworks.
"""

from recap_client import types
from recap_client.calls import UNSET
from recap_client.client import AsyncRecap, Recap
from recap_client.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    LimitReached,
    ModelError,
    NoAnswer,
    NotFound,
    RecapError,
    ServerError,
    Unauthenticated,
)
from recap_client.listings import AsyncListing, Listing
from recap_client.streams import AsyncEventStream, AsyncStream, EventStream, Stream

__version__ = "0.3.0"

__all__ = [
    "UNSET",
    "AsyncEventStream",
    "AsyncListing",
    "AsyncRecap",
    "AsyncStream",
    "Conflict",
    "EventStream",
    "Forbidden",
    "InvalidRequest",
    "LimitReached",
    "Listing",
    "ModelError",
    "NoAnswer",
    "NotFound",
    "Recap",
    "RecapError",
    "ServerError",
    "Stream",
    "Unauthenticated",
    "types",
]
