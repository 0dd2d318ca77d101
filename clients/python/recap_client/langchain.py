"""LangChain's history of a conversation and its retriever, on a Recap server."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal, cast

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, convert_to_messages, message_to_dict, messages_from_dict
from langchain_core.retrievers import BaseRetriever
from pydantic import PrivateAttr, SecretStr

from recap_client.calls import MESSAGE_CHARS, QUERY_CHARS, storable
from recap_client.client import Recap
from recap_client.errors import NotFound
from recap_client.types import Message, MessageToAppend, SearchResult

EXTRA = "langchain_message"  # the key of the whole message beside its words
Role = Literal["user", "assistant", "system", "tool"]
_ROLES: dict[str, Role] = {
    "human": "user",
    "user": "user",
    "system": "system",
    "tool": "tool",
    "function": "tool",
}


class RecapChatMessageHistory(BaseChatMessageHistory):
    """The messages of a session.  A chain gets back each message as it was.

    Their words are summarised, recalled and searched like those of any conversation.  A key needs the scopes `chat` and
    `read`, and `admin` to clear the history, which erases the session.
    """

    def __init__(self, session_id: str, base_url: str, api_key: str | None = None, user_id: str | None = None) -> None:
        super().__init__()
        self._session_id = session_id
        self._recap = Recap(base_url, api_key, user_id)

    def _messages(self) -> list[BaseMessage]:
        """Return all readable messages in their order.  A message written elsewhere comes as its words."""
        try:
            messages = [_read(message) for message in self._recap.messages(self._session_id)]
        except NotFound:
            return []
        return [message for message in messages if message is not None]

    messages = cast(list[BaseMessage], property(_messages))  # which LangChain declares as a plain attribute

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append up to 1,000 messages, all of them or none.  One with an `id` is stored once.  Raises RecapError."""
        if messages:
            self._recap.add_messages(self._session_id, [_new_message(message) for message in messages])

    def clear(self) -> None:
        """Erase the session, with its summary and facts."""
        with suppress(NotFound):
            self._recap.erase_session(self._session_id)


class RecapRetriever(BaseRetriever):
    """Past messages as documents, the best first: of a person, of a session, or both.  Or summaries, or facts.

    The metadata of a document say where it is from, and as `corrections` what holds now in place of its words.  `k` is
    the number of documents.
    """

    base_url: str
    api_key: SecretStr | None = None
    user_id: str | None = None
    session_id: str | None = None
    kind: Literal["message", "summary", "fact"] = "message"
    k: int = 10
    _recap: Recap = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        key = self.api_key.get_secret_value() if self.api_key is not None else None
        self._recap = Recap(self.base_url, key, self.user_id)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        limit = self.k if k is None else k
        words = storable(query)[:QUERY_CHARS]
        found = self._recap.search(words, session_id=self.session_id, kind=self.kind, limit=limit)
        return [_document(result) for result in found["results"]]


def _document(result: SearchResult) -> Document:
    names = ("kind", "session_id", "title", "message_id", "role", "created_at", "score")
    metadata = {name: value for name, value in result.items() if name in names and value is not None}
    metadata |= {"corrections": [fact["text"] for fact in result["corrections"]]} if result["corrections"] else {}
    return Document(page_content=result["text"] or result["content"] or "", metadata=metadata)


def _new_message(message: BaseMessage) -> MessageToAppend:
    kind = getattr(message, "role", message.type)  # a ChatMessage names a role of its own
    role: Role = _ROLES.get(kind.removesuffix("MessageChunk").lower(), "assistant")
    calls = getattr(message, "tool_calls", [])
    words = str(message.text) or ", ".join(f"{call['name']}({call['args']})" for call in calls) or f"[{message.type}]"
    whole = {EXTRA: storable(message_to_dict(message))}
    new: MessageToAppend = {"role": role, "content": storable(words)[:MESSAGE_CHARS], "extra": whole}
    return {**new, "external_id": message.id} if message.id is not None else new


def _read(message: Message) -> BaseMessage | None:
    stored = (message["extra"] or {}).get(EXTRA)
    try:
        if stored is not None:
            return messages_from_dict([stored])[0]
        return convert_to_messages([{"role": message["role"], "content": message["content"]}])[0]
    except (KeyError, TypeError, ValueError):
        return None
