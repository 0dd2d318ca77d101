"""Sessions and their messages."""

from typing import Any

from api.blueprint import ApiBlueprint, Caller, current_engine
from memory import hidden_messages, message_versions
from memory.erasing import erasing, message
from memory.recall.related_sessions import related_sessions
from memory.turn import turns
from models.keys import CHAT
from schemas import messages, sessions
from schemas.shapes import Receipt

blueprint = ApiBlueprint("sessions", "Conversations and their messages.")
BUSY = "A reply is being written in the session. Nothing was done."


@blueprint.get("/sessions", query=sessions.SessionQuery, page_of=sessions.Session)
def list_sessions(caller: Caller, query: dict[str, Any]) -> Any:
    """List sessions, newest first"""
    return current_engine().sessions.page(caller, **query)


@blueprint.post(
    "/sessions",
    body=sessions.SessionCreate,
    returns=sessions.Session,
    status=201,
    scope=CHAT,
    errors={409: "A session with this id exists already."},
)
def create_session(caller: Caller, body: dict[str, Any]) -> Any:
    """Create an empty session"""
    return current_engine().sessions.create(caller, **body)


@blueprint.get("/sessions/<session_id>", returns=sessions.Session)
def get_session(caller: Caller, session_id: str) -> Any:
    """Read a session"""
    return current_engine().sessions.get(caller, session_id)


@blueprint.patch("/sessions/<session_id>", body=sessions.SessionChange, returns=sessions.Session)
def change_session(caller: Caller, body: dict[str, Any], session_id: str) -> Any:
    """Rename, pin or archive a session, turn its memory off, or set its system prompt or type"""
    return current_engine().sessions.change(caller, session_id, body)


@blueprint.delete("/sessions/<session_id>", returns=Receipt, slow=True)
def erase_session(caller: Caller, session_id: str) -> Any:
    """Erase a session with its messages, summaries and facts, for good

    When this call answers, they are gone from the database's files and the search index as well. A fact that was
    corrected only by this session is true again. A reply that is being written is not stored.
    """
    return erasing.erase_session(current_engine(), caller, session_id)


@blueprint.get("/sessions/<session_id>/messages", query=messages.MessageQuery, returns=messages.MessagePage)
def list_messages(caller: Caller, query: dict[str, Any], session_id: str) -> Any:
    """Read a session's messages, word for word

    With `around`, the page shows the messages before and after one message, with a cursor for each direction.
    """
    around = query.pop("around")
    if around is not None:
        return current_engine().sessions.messages_around(caller, session_id, around, query["limit"])
    newest_first = query.pop("order") == "desc"
    return current_engine().sessions.messages(caller, session_id, newest_first=newest_first, **query)


@blueprint.post(
    "/sessions/<session_id>/messages",
    body=messages.Append,
    returns=messages.Appended,
    scope=CHAT,
    slow=True,
    errors={409: BUSY},
)
def append_messages(caller: Caller, body: dict[str, Any], session_id: str) -> Any:
    """Append or import messages without calling a model

    A call takes up to 1,000 messages. A message whose `external_id` the session has already is left as it is, so a
    call can be repeated safely. A session that does not exist is created.
    """
    return current_engine().sessions.append(caller, session_id, body["messages"])


@blueprint.delete("/sessions/<session_id>/messages/<int64:message_id>", returns=Receipt, slow=True, errors={409: BUSY})
def erase_message(caller: Caller, session_id: str, message_id: int) -> Any:
    """Erase a message, for good

    Facts taken from the message are erased too, and so is every version of the summary that was made from it,
    including the person's own edits. A new summary is made without it. All other messages stay. The replies to it may
    repeat it: they stay in the session, but no summary, search or prompt has them any more. A replaced message can be
    erased as well. A few seconds later the words are gone from the database's files and the search index.
    """
    return message.erase_message(current_engine(), caller, session_id, message_id)


@blueprint.post("/sessions/<session_id>/messages/hide", body=messages.Hide, returns=messages.Hidden, errors={409: BUSY})
def hide_messages(caller: Caller, body: dict[str, Any], session_id: str) -> Any:
    """Take messages out of the session's prompts

    Hidden messages stay stored, listed and searched. The session's prompts neither show nor recall them, and later
    updates of the summary do not read them. What a summary or a fact says of them already stays. An answer is hidden
    with its question, and the call of a tool with its results. A span may count from the end: `"first": -4, "last": -1`
    names the last four messages.
    """
    return hidden_messages.hide_messages(current_engine(), caller, session_id, **body)


@blueprint.post("/sessions/<session_id>/messages/show", body=messages.Show, returns=messages.Hidden, errors={409: BUSY})
def show_messages(caller: Caller, body: dict[str, Any], session_id: str) -> Any:
    """Put hidden messages back into the session's prompts, all or those named

    A summary that was updated without these messages goes back to the version before, and is made anew.
    """
    return hidden_messages.show_messages(current_engine(), caller, session_id, **body)


@blueprint.get("/sessions/<session_id>/messages/versions", list_of=messages.Versions)
def list_message_versions(caller: Caller, session_id: str) -> Any:
    """List the messages that have other versions

    A replaced message stays as a version of the message in its place, together with all that followed it.
    """
    return {"items": message_versions.list_versions(current_engine(), caller, session_id)}


@blueprint.post(
    "/sessions/<session_id>/messages/<int64:message_id>/restore",
    returns=sessions.Session,
    errors={409: BUSY},
)
def restore_message(caller: Caller, session_id: str, message_id: int) -> Any:
    """Bring a version of a message back

    The version takes the place of the one that the session shows now, together with all messages that followed it. The
    replaced messages are kept and can be brought back in the same way. The summary and the facts follow.
    """
    return message_versions.restore_version(current_engine(), caller, session_id, message_id)


@blueprint.get("/sessions/<session_id>/related", query=sessions.RelatedQuery, list_of=sessions.RelatedSession)
def list_related_sessions(caller: Caller, query: dict[str, Any], session_id: str) -> Any:
    """List the person's conversations that belong together with this one, the closest first

    Related conversations speak of the same people, places and things, or their summaries are near.
    """
    return {"items": related_sessions(current_engine(), caller, session_id, **query)}


@blueprint.post("/sessions/<session_id>/stop", returns=sessions.Stopping, status=202, scope=CHAT)
def stop_reply(caller: Caller, session_id: str) -> dict[str, bool]:
    """Stop the reply that is being written

    The call that waits for the reply returns the words so far, and they are stored with the finish_reason
    `interrupted`. If there are none yet, that call fails with `turn_stopped`. The message is kept; send it again to
    get a reply.
    """
    return {"stopping": turns.stop(current_engine(), caller, session_id)}
