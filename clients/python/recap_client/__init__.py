"""A client of Recap: Recap and AsyncRecap.  The classes of errors are in `recap_client.errors`.

`recap_client.langgraph`, `.langchain` and `.agents` are for programs of these frameworks.
"""

from recap_client.client import AsyncRecap, Recap
from recap_client.errors import RecapError

__all__ = ["AsyncRecap", "Recap", "RecapError"]
