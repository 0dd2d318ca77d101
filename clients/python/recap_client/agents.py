"""RecapSession: the history of an agent of the OpenAI Agents SDK, kept as a session of a Recap server.

Each item of the SDK is a message: its words are summarised, recalled and searched like those of any conversation, and
the item itself is kept beside them, so that the agent gets back exactly what it had, but for characters that no
database takes.  Words beyond MESSAGE_CHARS are in the item alone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Literal, cast

from agents.items import TResponseInputItem
from agents.memory import SessionSettings

from recap_client.calls import MESSAGE_CHARS, storable
from recap_client.client import Recap
from recap_client.errors import NotFound
from recap_client.types import Message, MessageToAppend

BATCH_MAX = 1000  # messages that Recap takes in one call
ITEM = "agents_item"  # what a message holds besides its words
Role = Literal["user", "assistant", "system", "tool"]
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}


class RecapSession:
    """The SDK's Session protocol.  Give it to a run: `Runner.run(agent, "Hello", session=RecapSession(...))`.

    The session is made with its first item, as the person's of `user_id`.  A key needs the scopes `chat` and `read`,
    and `admin` to pop an item or to clear the session, which erases.
    """

    def __init__(
        self,
        session_id: str,
        base_url: str,
        api_key: str | None = None,
        user_id: str | None = None,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings: SessionSettings | None = SessionSettings().resolve(session_settings)
        self._recap = Recap(base_url, api_key, user_id)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return all items in their order, or the latest `limit`.

        A message without an item of the SDK's, such as one written elsewhere, counts as a plain message.  Messages that
        can't be read are left out.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit is not None and limit <= 0:
            return []
        return await asyncio.to_thread(lambda: list(islice(self._latest(), limit))[::-1])

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items, all of them or none.  Raises RecapError, also for more than BATCH_MAX."""
        if items:
            messages = [_message(cast(dict[str, Any], item)) for item in items]
            await asyncio.to_thread(self._recap.add_messages, self.session_id, messages)

    async def pop_item(self) -> TResponseInputItem | None:
        """Erase the latest item and return it; None when there is none."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Erase the session, with its summary and facts."""
        with suppress(NotFound):
            await asyncio.to_thread(self._recap.erase_session, self.session_id)

    def close(self) -> None:
        """Close the connections to the server."""
        self._recap.close()

    def _pop(self) -> TResponseInputItem | None:
        for message in self._messages():
            with suppress(NotFound):  # another program took it
                self._recap.erase_message(self.session_id, message["id"])
                if (item := _item(message)) is not None:  # else it can't be read
                    return item
        return None

    def _latest(self) -> Iterator[TResponseInputItem]:
        """Return the items, the latest first."""
        return (item for message in self._messages() if (item := _item(message)) is not None)

    def _messages(self) -> Iterator[Message]:
        """Yield the messages, the latest first."""
        with suppress(NotFound):
            yield from self._recap.messages(self.session_id, order="desc")


def _message(item: dict[str, Any]) -> MessageToAppend:
    """Return an item as a message to store."""
    item = storable(item)
    kind = str(item.get("type", "message"))
    role: Role = "tool" if kind.endswith("_output") else _ROLES.get(str(item.get("role", "assistant")), "assistant")
    return {"role": role, "content": _words(item)[:MESSAGE_CHARS] or f"[{kind}]", "extra": {ITEM: item}}


def _words(item: dict[str, Any]) -> str:
    """Return the text of an item."""
    if "arguments" in item:
        return f"{item.get('name', '')}({item['arguments']})"
    content = item.get("content", item.get("output", item.get("summary")))
    if isinstance(content, list):
        content = "\n".join(str(part["text"]) for part in content if isinstance(part, dict) and part.get("text"))
    return content if isinstance(content, str) else json.dumps(content) if content else ""


def _item(message: Message) -> TResponseInputItem | None:
    """Return the item of a message; None for a message that is no item."""
    extra = message.get("extra") or {}
    item = extra.get(ITEM, {"role": message["role"], "content": message["content"]})
    readable = isinstance(item, dict) and ("role" in item or "type" in item)
    return cast(TResponseInputItem, item) if readable and item.get("role") != "tool" else None
