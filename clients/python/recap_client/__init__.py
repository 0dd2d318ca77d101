"""Recap for programs in Python: `recap_client.langgraph.RecapStore` and `recap_client.agents.RecapSession`."""

from recap_client.http import RecapError

__all__ = ["RecapError"]
