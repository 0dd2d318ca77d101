"""Find the session that a request for a response goes on in: that of a response before, or a conversation."""

from contextlib import suppress
from dataclasses import replace

from api import client_requests as chat
from api.blueprint import current_engine
from api.response_items import CONVERSATION
from memory.errors import NotFound
from memory.sessions.sessions import SessionInfo
from memory.turn.request import TurnFinished, TurnRequest
from memory.turn.turns import TurnHistory
from models.owners import Caller


def in_session(turn: TurnRequest, previous: str | None, conversation: str | None, listed: str | None) -> TurnRequest:
    """Return the request in the session that it names, if it names one.

    previous: id of the response before. conversation: id of the one it is made in; listed: of the one that its items
    were read from. Raises NotFound.
    """
    if previous is not None:
        return _following(previous, turn)
    if conversation is not None:
        session = find_conversation(turn.caller, conversation, param="conversation")
        transcript = turn.transcript and replace(turn.transcript, is_complete=False)  # it has new messages alone
        return replace(turn, session_id=session.id, transcript=transcript)
    if turn.session_id is None and (read := listed or _begun(turn)) is not None:
        with suppress(NotFound):  # somebody else's: the messages tell which session it is
            return replace(turn, session_id=find_conversation(turn.caller, read).id)
    return turn


def _begun(turn: TurnRequest) -> str | None:
    """Return the conversation to which the client has just appended the person's first message, as agents' SDKs do."""
    transcript = turn.transcript
    if transcript is None or len(transcript.conversation.messages) != 1 or turn.caller.owner is None:
        return None
    return current_engine().sessions.find_waiting(turn.caller, CONVERSATION, turn.message)


def _following(previous: str, turn: TurnRequest) -> TurnRequest:
    """Return the request, continued from a response. Raises NotFound, also for somebody else's response."""
    try:
        finished = find_answer(turn.caller, previous)
    except NotFound:
        raise NotFound(
            "previous_response_not_found",
            f"There is no response {previous!r} to go on from: it was never stored, or it was erased, or another one "
            "took its place. Nothing was stored. Send the conversation as `input` instead.",
            param="previous_response_id",
        ) from None
    reply_id, session_id = finished.reply_message_id, finished.started.session_id
    transcript = turn.transcript and replace(turn.transcript, previous_reply_id=reply_id, is_complete=True)
    return replace(turn, session_id=session_id, transcript=transcript)


def find_answer(whom: Caller, id: str) -> TurnFinished:
    """Return the turn of a response. Raises NotFound, also for one that has no reply yet."""
    try:
        return TurnHistory(current_engine()).read_answer(whom, *chat.turn_named(id))
    except NotFound:
        text = f"There is no response {id!r}: it was never stored, it was erased, or another one took its place."
        raise NotFound("response_not_found", text, param="response_id") from None


def find_conversation(whom: Caller, id: str, *, param: str = "conversation_id") -> SessionInfo:
    """Return the session of a conversation.

    An empty one that was made without a name becomes that of the first person who is named. Raises NotFound.
    """
    sessions = current_engine().sessions
    try:
        return sessions.get(whom, id)
    except NotFound:
        is_secret = id.startswith(CONVERSATION)  # nobody guesses it, as they may the id of an application's session
        if is_secret and whom.owner is not None and (adopted := sessions.adopt(whom, id)):
            return adopted
        raise NotFound("conversation_not_found", f"There is no conversation {id!r}.", param=param) from None
