"""A method for each call, for plain and for async programs.

Generated from the OpenAPI document by clients/generate.py (`make clients`): change that one instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from recap_client import types
from recap_client.calls import UNSET, Call, File, Unset, changed, given
from recap_client.listings import AsyncListing, Listing
from recap_client.streams import AsyncEventStream, AsyncStream, EventStream, Stream


class Operations(ABC):
    """Every call of Recap, for a client that sends it."""

    @abstractmethod
    def send(self, call: Call) -> Any:
        """Return the answer to a call."""

    @abstractmethod
    def each(self, call: Call) -> Listing[Any, Any]:
        """Return the items that a call lists."""

    @abstractmethod
    def open(self, call: Call) -> Stream:
        """Return the reply that a call streams."""

    @abstractmethod
    def listen(self, call: Call) -> EventStream:
        """Return the events that a call streams."""

    def chat(
        self,
        message: str | Sequence[Mapping[str, Any]] | Mapping[str, Any],
        *,
        space: str | None = None,
        timezone: str | None = None,
        spaces: Sequence[str] | None = None,
        person: bool | None = None,
        history: Sequence[types.Said] | None = None,
        session_id: str | None = None,
        name: str | None = None,
        recall: Literal["auto", "always", "tools", "off"] | None = None,
        model: str | None = None,
        remember: bool | None = None,
        prompt: str | None = None,
        system_prompt: str | None = None,
        temporary: bool | None = None,
        replaces: int | None = None,
        user_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> types.ChatReply:
        """Send a message and get the reply.

        A session that does not exist is created. Recap recalls what fits the message, the main model answers, and the
        session's summary and facts are updated after the reply was sent. With `replaces`, the message takes the place
        of an earlier one and of everything after it: new words edit it, the same words get another reply. Replaced
        messages are kept, but no longer shown, recalled or summarised.

        message: Its text, a list of parts, or {"role": "user", "content": ...} with either. Parts are `text`;
            `image_url`, with a data: URL or an https address; and `file`, with `filename` and `file_data`, for text
            files and images. The model gets images as they are and text files as quoted text; of both, only name,
            size and a hash are stored.
        timezone: The zone in which the person's days begin: of words like `yesterday`, and of the times that models
            see. Later turns of the session keep it, and sessions that the person begins later. The default is the
            setting TIMEZONE.
        spaces: Spaces whose memory is read too. The default, with a person's key outside of a `space`: those it
            names.
        person: In a `space`: whether the memory of the person who acts is read too, though the reply is the space's.
            The default is true with the person's own key, else false.
        history: What was said just before, if Recap has not stored it: it tells what the message refers to. A chat
            takes it only with `temporary`.
        session_id: Without it, a session is created.
        name: Who says it, where several persons share the session or the space.
        recall: `auto`: the message decides whether to look back, and only what is near it is shown. `always`: the
            best excerpts, however near. `tools`: the model searches. The default is that of the conversation's type,
            else the setting RECALL.
        model: One of `GET /api/models`. Without it, the main model answers.
        remember: False: the reply looks at this session alone, and nothing of the turn comes up in others: no facts
            are taken from it, and it is not recalled. A search still finds it.
        prompt: The name of the prompt for this turn's summary.
        system_prompt: Of this turn alone, in place of the one that the session or the server has.
        temporary: Use the memory, but store nothing of this turn.
        replaces: The id of the person's message that it replaces.
        """
        return self.send(
            Call(
                "POST",
                "/api/chat",
                body={
                    "message": message,
                    **given(
                        space=space,
                        timezone=timezone,
                        spaces=spaces,
                        person=person,
                        history=history,
                        session_id=session_id,
                        name=name,
                        recall=recall,
                        model=model,
                        remember=remember,
                        prompt=prompt,
                        system_prompt=system_prompt,
                        temporary=temporary,
                        replaces=replaces,
                    ),
                },
                person="user_id",
                user_id=user_id,
                key=idempotency_key,
                is_turn=True,
            )
        )

    def stream(
        self,
        message: str | Sequence[Mapping[str, Any]] | Mapping[str, Any],
        *,
        space: str | None = None,
        timezone: str | None = None,
        spaces: Sequence[str] | None = None,
        person: bool | None = None,
        history: Sequence[types.Said] | None = None,
        session_id: str | None = None,
        name: str | None = None,
        recall: Literal["auto", "always", "tools", "off"] | None = None,
        model: str | None = None,
        remember: bool | None = None,
        prompt: str | None = None,
        system_prompt: str | None = None,
        temporary: bool | None = None,
        replaces: int | None = None,
        user_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Stream:
        """Send a message as `chat` does, and get the reply word by word."""
        return self.open(
            Call(
                "POST",
                "/api/chat",
                body={
                    "stream": True,
                    "message": message,
                    **given(
                        space=space,
                        timezone=timezone,
                        spaces=spaces,
                        person=person,
                        history=history,
                        session_id=session_id,
                        name=name,
                        recall=recall,
                        model=model,
                        remember=remember,
                        prompt=prompt,
                        system_prompt=system_prompt,
                        temporary=temporary,
                        replaces=replaces,
                    ),
                },
                person="user_id",
                user_id=user_id,
                key=idempotency_key,
                is_turn=True,
            )
        )

    def sessions(
        self,
        *,
        space: str | None = None,
        q: str | None = None,
        pinned: bool | None = None,
        archived: bool | None = None,
        before: str | datetime | None = None,
        after: str | datetime | None = None,
        except_user_id: str | None = None,
        user_id: str | None = None,
    ) -> Listing[types.Session, types.SessionPage]:
        """List sessions, newest first.

        q: Words to look for in titles.
        except_user_id: Leave this person's out: those of other people, and of programs, stay.
        """
        return self.each(
            Call(
                "GET",
                "/api/sessions",
                query=given(
                    space=space,
                    q=q,
                    pinned=pinned,
                    archived=archived,
                    before=before,
                    after=after,
                    except_user_id=except_user_id,
                ),
                person="query",
                user_id=user_id,
            )
        )

    def create_session(
        self,
        *,
        space: str | None = None,
        session_id: str | None = None,
        title: str | None = None,
        system_prompt: str | None = None,
        remember: bool | None = None,
        type: str | None = None,
        user_id: str | None = None,
    ) -> types.Session:
        """Create an empty session.

        session_id: Without it, Recap makes an id.
        remember: False: memory is off. A turn looks at this session alone, and what is said while it is off is
            neither recalled in others nor read for facts, also once it is on again. A search still finds it.
        type: A type of `GET /api/conversation-types`. Without it, Recap tells the type from the words.
        """
        return self.send(
            Call(
                "POST",
                "/api/sessions",
                body=given(
                    space=space,
                    session_id=session_id,
                    title=title,
                    system_prompt=system_prompt,
                    remember=remember,
                    type=type,
                ),
                person="user_id",
                user_id=user_id,
            )
        )

    def session(self, session_id: str, *, space: str | None = None, user_id: str | None = None) -> types.Session:
        """Read a session."""
        return self.send(
            Call(
                "GET",
                "/api/sessions/{session_id}",
                ids={"session_id": session_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def change_session(
        self,
        session_id: str,
        *,
        title: str | None = None,
        system_prompt: str | Unset | None = UNSET,
        pinned: bool | None = None,
        archived: bool | None = None,
        remember: bool | None = None,
        type: str | Unset | None = UNSET,
        user_id: str | None = None,
    ) -> types.Session:
        """Rename, pin or archive a session, turn its memory off, or set its system prompt or type.

        remember: False: memory is off. A turn looks at this session alone, and what is said while it is off is
            neither recalled in others nor read for facts, also once it is on again. A search still finds it.
        type: A type of `GET /api/conversation-types`. Without it, Recap tells the type from the words.
        """
        return self.send(
            Call(
                "PATCH",
                "/api/sessions/{session_id}",
                ids={"session_id": session_id},
                body={
                    **given(title=title, pinned=pinned, archived=archived, remember=remember),
                    **changed(system_prompt=system_prompt, type=type),
                },
                person="query",
                user_id=user_id,
                idempotent=True,
            )
        )

    def erase_session(self, session_id: str, *, space: str | None = None, user_id: str | None = None) -> types.Receipt:
        """Erase a session with its messages, summaries and facts, for good.

        When this call answers, they are gone from the database's files and the search index as well. A fact that was
        corrected only by this session is true again. A reply that is being written is not stored.
        """
        return self.send(
            Call(
                "DELETE",
                "/api/sessions/{session_id}",
                ids={"session_id": session_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def messages(
        self,
        session_id: str,
        *,
        space: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        around: int | None = None,
        branch: int | None = None,
        user_id: str | None = None,
    ) -> Listing[types.ListedMessage, types.ListedMessagePage]:
        """Read a session's messages, word for word.

        With `around`, the page shows the messages before and after one message, with a cursor for each direction.

        around: The id of a message, for a page with it in its middle.
        branch: 1, 2, ...: what was replaced first, second, ...
        """
        return self.each(
            Call(
                "GET",
                "/api/sessions/{session_id}/messages",
                ids={"session_id": session_id},
                query=given(space=space, order=order, around=around, branch=branch),
                person="query",
                user_id=user_id,
            )
        )

    def add_messages(
        self,
        session_id: str,
        messages: Sequence[types.MessageToAppend],
        *,
        space: str | None = None,
        user_id: str | None = None,
    ) -> types.Appended:
        """Append or import messages without calling a model.

        A call takes up to 1,000 messages. A message whose `external_id` the session has already is left as it is, so
        a call can be repeated safely. A session that does not exist is created.
        """
        return self.send(
            Call(
                "POST",
                "/api/sessions/{session_id}/messages",
                ids={"session_id": session_id},
                body={"messages": messages, **given(space=space)},
                person="user_id",
                user_id=user_id,
                idempotent=all("external_id" in message for message in messages),
            )
        )

    def erase_message(
        self, session_id: str, message_id: int, *, space: str | None = None, user_id: str | None = None
    ) -> types.Receipt:
        """Erase a message, for good.

        Facts taken from the message are erased too, and so is every version of the summary that was made from it,
        including the person's own edits. A new summary is made without it. All other messages stay. The replies to it
        may repeat it: they stay in the session, but no summary, search or prompt has them any more. A replaced
        message can be erased as well. A few seconds later the words are gone from the database's files and the search
        index.
        """
        return self.send(
            Call(
                "DELETE",
                "/api/sessions/{session_id}/messages/{message_id}",
                ids={"session_id": session_id, "message_id": message_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def hide_messages(
        self,
        session_id: str,
        *,
        space: str | None = None,
        first: int | None = None,
        last: int | None = None,
        ids: Sequence[int] | None = None,
        keep: bool | None = None,
        tokens: int | None = None,
        user_id: str | None = None,
    ) -> types.Hidden:
        """Take messages out of the session's prompts.

        Hidden messages stay stored, listed and searched. The session's prompts neither show nor recall them, and
        later updates of the summary do not read them. What a summary or a fact says of them already stays. An answer
        is hidden with its question, and the call of a tool with its results. A span may count from the end: `"first":
        -4, "last": -1` names the last four messages.

        first: A position; -1 is the session's last message, -2 the one before.
        last: A position; -1 is the session's last message, -2 the one before.
        ids: The ids of messages, instead of a span.
        keep: Hide all but these.
        tokens: Hide the recent messages that are older than the newest of so many tokens.
        """
        return self.send(
            Call(
                "POST",
                "/api/sessions/{session_id}/messages/hide",
                ids={"session_id": session_id},
                body=given(space=space, first=first, last=last, ids=ids, keep=keep, tokens=tokens),
                person="user_id",
                user_id=user_id,
            )
        )

    def show_messages(
        self,
        session_id: str,
        *,
        space: str | None = None,
        first: int | None = None,
        last: int | None = None,
        ids: Sequence[int] | None = None,
        user_id: str | None = None,
    ) -> types.Hidden:
        """Put hidden messages back into the session's prompts, all or those named.

        A summary that was updated without these messages goes back to the version before, and is made anew.

        first: A position; -1 is the session's last message, -2 the one before.
        last: A position; -1 is the session's last message, -2 the one before.
        ids: The ids of messages, instead of a span.
        """
        return self.send(
            Call(
                "POST",
                "/api/sessions/{session_id}/messages/show",
                ids={"session_id": session_id},
                body=given(space=space, first=first, last=last, ids=ids),
                person="user_id",
                user_id=user_id,
            )
        )

    def list_message_versions(
        self, session_id: str, *, space: str | None = None, user_id: str | None = None
    ) -> types.VersionsList:
        """List the messages that have other versions.

        A replaced message stays as a version of the message in its place, together with all that followed it.
        """
        return self.send(
            Call(
                "GET",
                "/api/sessions/{session_id}/messages/versions",
                ids={"session_id": session_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def restore_message(
        self, session_id: str, message_id: int, *, space: str | None = None, user_id: str | None = None
    ) -> types.Session:
        """Bring a version of a message back.

        The version takes the place of the one that the session shows now, together with all messages that followed
        it. The replaced messages are kept and can be brought back in the same way. The summary and the facts follow.
        """
        return self.send(
            Call(
                "POST",
                "/api/sessions/{session_id}/messages/{message_id}/restore",
                ids={"session_id": session_id, "message_id": message_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def list_related_sessions(
        self, session_id: str, *, space: str | None = None, limit: int | None = None, user_id: str | None = None
    ) -> types.RelatedSessionList:
        """List the person's conversations that belong together with this one, the closest first.

        Related conversations speak of the same people, places and things, or their summaries are near.
        """
        return self.send(
            Call(
                "GET",
                "/api/sessions/{session_id}/related",
                ids={"session_id": session_id},
                query=given(space=space, limit=limit),
                person="query",
                user_id=user_id,
            )
        )

    def stop_reply(self, session_id: str, *, space: str | None = None, user_id: str | None = None) -> types.Stopping:
        """Stop the reply that is being written.

        The call that waits for the reply returns the words so far, and they are stored with the finish_reason
        `interrupted`. If there are none yet, that call fails with `turn_stopped`. The message is kept; send it again
        to get a reply.
        """
        return self.send(
            Call(
                "POST",
                "/api/sessions/{session_id}/stop",
                ids={"session_id": session_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def list_turns(
        self,
        session_id: str,
        *,
        space: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        user_id: str | None = None,
    ) -> Listing[types.Turn, types.TurnPage]:
        """List a session's turns, newest first.

        Turns of messages that were replaced are left out.
        """
        return self.each(
            Call(
                "GET",
                "/api/sessions/{session_id}/turns",
                ids={"session_id": session_id},
                query=given(space=space, order=order),
                person="query",
                user_id=user_id,
            )
        )

    def get_turn(
        self, session_id: str, message_id: int, *, space: str | None = None, user_id: str | None = None
    ) -> types.TurnWithMemory:
        """Read one turn, named by its message or its reply, with the memory its prompt showed."""
        return self.send(
            Call(
                "GET",
                "/api/sessions/{session_id}/turns/{message_id}",
                ids={"session_id": session_id, "message_id": message_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def summary(self, session_id: str, *, space: str | None = None, user_id: str | None = None) -> types.Summary:
        """Read the newest summary, and whether it is up to date."""
        return self.send(
            Call(
                "GET",
                "/api/sessions/{session_id}/summary",
                ids={"session_id": session_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def edit_summary(
        self,
        session_id: str,
        sections: types.Sections,
        *,
        space: str | None = None,
        expected_version: int | None = None,
        user_id: str | None = None,
    ) -> types.Summary:
        """Replace the summary with an edited one.

        It becomes a new version. The next prompt shows it.

        expected_version: 409 if it is not the newest version.
        """
        return self.send(
            Call(
                "PUT",
                "/api/sessions/{session_id}/summary",
                ids={"session_id": session_id},
                body={"sections": sections, **given(space=space, expected_version=expected_version)},
                person="user_id",
                user_id=user_id,
            )
        )

    def list_summary_versions(
        self, session_id: str, *, space: str | None = None, user_id: str | None = None
    ) -> Listing[types.SummaryVersion, types.SummaryVersionPage]:
        """List all versions, newest first."""
        return self.each(
            Call(
                "GET",
                "/api/sessions/{session_id}/summary/versions",
                ids={"session_id": session_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def roll_back_summary(
        self, session_id: str, version: int, *, space: str | None = None, user_id: str | None = None
    ) -> types.Summary:
        """Bring an earlier version back, as a new version.

        Messages that it does not cover are sent word for word until the next update.
        """
        return self.send(
            Call(
                "POST",
                "/api/sessions/{session_id}/summary/rollback",
                ids={"session_id": session_id},
                body={"version": version, **given(space=space)},
                person="user_id",
                user_id=user_id,
            )
        )

    def refresh_summary(
        self, session_id: str, *, space: str | None = None, user_id: str | None = None
    ) -> types.Summary:
        """Update the summary now, also after an update has failed."""
        return self.send(
            Call(
                "POST",
                "/api/sessions/{session_id}/summary/refresh",
                ids={"session_id": session_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def preview_summary(
        self,
        session_id: str,
        *,
        space: str | None = None,
        prompt: str | None = None,
        text: str | None = None,
        user_id: str | None = None,
    ) -> types.SummaryPreview:
        """Try a summary prompt on this conversation, and store nothing.

        The mini model reads the whole conversation with this prompt. If that is too much for one call, it continues
        the earliest version of the summary after which the rest fits.

        prompt: The name of a summary prompt.
        text: Instead of `prompt`: a template, as for `PUT /api/prompts/{name}`.
        """
        return self.send(
            Call(
                "POST",
                "/api/sessions/{session_id}/summary/preview",
                ids={"session_id": session_id},
                body=given(space=space, prompt=prompt, text=text),
                person="user_id",
                user_id=user_id,
            )
        )

    def facts(
        self,
        *,
        space: str | None = None,
        session_id: str | None = None,
        q: str | None = None,
        category: str | None = None,
        as_of: str | datetime | None = None,
        state: Literal["valid", "waiting"] | None = None,
        user_id: str | None = None,
    ) -> Listing[types.Fact, types.FactPage]:
        """List the facts that are true now, or were true at `as_of`.

        With `session_id`, these are the session's facts, and those of its person with the scope `user`.

        q: Words, or parts of words, that the text must contain.
        category: One of identity, preference, plan, event, requirement, constraint, relationship, work, other, or a
            category of the rules (`/api/rules`).
        as_of: List what was true at this time, not what is true now.
        state: `waiting`: facts that wait for review, instead of those that are true.
        """
        return self.each(
            Call(
                "GET",
                "/api/facts",
                query=given(space=space, session_id=session_id, q=q, category=category, as_of=as_of, state=state),
                person="query",
                user_id=user_id,
            )
        )

    def add_fact(
        self,
        text: str,
        *,
        space: str | None = None,
        session_id: str | None = None,
        category: str | None = None,
        importance: int | None = None,
        pinned: bool | None = None,
        expires_at: str | datetime | None = None,
        user_id: str | None = None,
    ) -> types.Fact:
        """Add a fact, to one session or to all sessions of a person.

        category: One of identity, preference, plan, event, requirement, constraint, relationship, work, other, or a
            category of the rules (`/api/rules`).
        expires_at: When it stops being true by itself. Null: never.
        """
        return self.send(
            Call(
                "POST",
                "/api/facts",
                body={
                    "text": text,
                    **given(
                        space=space,
                        session_id=session_id,
                        category=category,
                        importance=importance,
                        pinned=pinned,
                        expires_at=expires_at,
                    ),
                },
                person="user_id",
                user_id=user_id,
            )
        )

    def get_fact(self, fact_id: int, *, space: str | None = None, user_id: str | None = None) -> types.Fact:
        """Read a fact, also one that is no longer true."""
        return self.send(
            Call(
                "GET",
                "/api/facts/{fact_id}",
                ids={"fact_id": fact_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def change_fact(
        self,
        fact_id: int,
        *,
        text: str | None = None,
        category: str | None = None,
        importance: int | None = None,
        scope: Literal["session", "user"] | None = None,
        pinned: bool | None = None,
        expires_at: str | datetime | Unset | None = UNSET,
        user_id: str | None = None,
    ) -> types.Fact:
        """Edit or pin a fact.

        Where the newest summary has exactly the old text, it gets the new one. The profile loses the old text.

        category: One of identity, preference, plan, event, requirement, constraint, relationship, work, other, or a
            category of the rules (`/api/rules`).
        expires_at: When it stops being true by itself. Null: never.
        """
        return self.send(
            Call(
                "PATCH",
                "/api/facts/{fact_id}",
                ids={"fact_id": fact_id},
                body={
                    **given(text=text, category=category, importance=importance, scope=scope, pinned=pinned),
                    **changed(expires_at=expires_at),
                },
                person="query",
                user_id=user_id,
                idempotent=True,
            )
        )

    def forget_fact(
        self, fact_id: int, *, space: str | None = None, restore: bool | None = None, user_id: str | None = None
    ) -> types.Receipt:
        """Forget a fact, with its history.

        The facts that it corrected are forgotten too; with `restore`, they become true again instead. Items of the
        newest summaries that say exactly the same go too. The source message stays: to erase the words, erase the
        message.

        restore: The facts that it corrected hold again, and are not forgotten.
        """
        return self.send(
            Call(
                "DELETE",
                "/api/facts/{fact_id}",
                ids={"fact_id": fact_id},
                query=given(space=space, restore=restore),
                person="query",
                user_id=user_id,
            )
        )

    def forget_facts(
        self, ids: Sequence[int], *, space: str | None = None, user_id: str | None = None
    ) -> types.Receipt:
        """Forget up to 1,000 facts, with their history.

        Facts that do not exist are skipped, so a call can be repeated safely.
        """
        return self.send(
            Call(
                "POST",
                "/api/facts/forget",
                body={"ids": ids, **given(space=space)},
                person="user_id",
                user_id=user_id,
                idempotent=True,
            )
        )

    def review_facts(
        self,
        *,
        space: str | None = None,
        accepted: Sequence[int] | None = None,
        refused: Sequence[int] | None = None,
        user_id: str | None = None,
    ) -> types.ReviewedFacts:
        """Accept facts that wait for review, and refuse others.

        An accepted fact is true from when it was stated, and takes the place of those that it corrects. A refused one
        is erased; its message stays. Facts that do not wait are skipped. `/api/facts?state=waiting` lists those that
        do.

        accepted: Ids of facts that wait.
        refused: Ids of facts that wait.
        """
        return self.send(
            Call(
                "POST",
                "/api/facts/review",
                body=given(space=space, accepted=accepted, refused=refused),
                person="user_id",
                user_id=user_id,
            )
        )

    def fact_history(
        self, fact_id: int, *, space: str | None = None, user_id: str | None = None
    ) -> types.FactRevisionList:
        """Read how a fact, and the facts that it corrected, changed."""
        return self.send(
            Call(
                "GET",
                "/api/facts/{fact_id}/history",
                ids={"fact_id": fact_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def list_consolidations_of_space(self, space: str) -> types.ConsolidationRunList:
        """List what jobs closed of a space's facts to bring them together, the newest run first.

        Of facts that say the same one stays, and the others are its `proofs`. Facts that a newer one contradicts are
        closed, and so are plans whose day is over.
        """
        return self.send(Call("GET", "/api/spaces/{space}/consolidation", ids={"space": space}))

    def consolidate_of_space(self, space: str) -> None:
        """Bring a space's facts together now, in a job.

        Where words leave a doubt the mini model decides. It is asked once a day at most.
        """
        self.send(Call("POST", "/api/spaces/{space}/consolidation", ids={"space": space}))

    def list_consolidations(self, *, user_id: str | None = None) -> types.ConsolidationRunList:
        """List what jobs closed of a person's facts to bring them together, the newest run first.

        Of facts that say the same one stays, and the others are its `proofs`. Facts that a newer one contradicts are
        closed, and so are plans whose day is over.
        """
        return self.send(Call("GET", "/api/users/{user_id}/consolidation", person="path", user_id=user_id))

    def consolidate(self, *, user_id: str | None = None) -> None:
        """Bring a person's facts together now, in a job.

        Where words leave a doubt the mini model decides. It is asked once a day at most.
        """
        self.send(Call("POST", "/api/users/{user_id}/consolidation", person="path", user_id=user_id))

    def undo_consolidation_of_space(self, space: str) -> types.ConsolidationRun:
        """Undo the newest run: the facts that it closed hold again.

        Later runs leave these facts alone. Those that were corrected since stay closed.
        """
        return self.send(Call("POST", "/api/spaces/{space}/consolidation/undo", ids={"space": space}))

    def undo_consolidation(self, *, user_id: str | None = None) -> types.ConsolidationRun:
        """Undo the newest run: the facts that it closed hold again.

        Later runs leave these facts alone. Those that were corrected since stay closed.
        """
        return self.send(Call("POST", "/api/users/{user_id}/consolidation/undo", person="path", user_id=user_id))

    def add_document(
        self,
        text: str,
        *,
        space: str | None = None,
        session_id: str | None = None,
        title: str | None = None,
        uri: str | None = None,
        external_id: str | None = None,
        media_type: Literal["text/plain", "text/markdown", "text/html"] | None = None,
        user_id: str | None = None,
    ) -> types.Document:
        """Add a document, as text or as a file, to what is known of a person.

        Send JSON with the `text`, or a form (`multipart/form-data`) with the `file`: text, Markdown, HTML or PDF. It
        is cut into passages, by headings and pages, which searches and turns find beside messages, from now on. Where
        they are quoted, so are title, page and `uri`. No facts and no summaries are made of it. The same document
        again changes nothing; another with the same `external_id` takes its place and keeps its `id`.

        session_id: The document is of the owner of this session: of its person, or of the session itself.
        title: Without it, Recap takes the one that the document has.
        uri: Where it is from; shown wherever it is quoted.
        external_id: The application's own name for it. A document sent with the same one replaces it.
        """
        return self.send(
            Call(
                "POST",
                "/api/documents",
                body={
                    "text": text,
                    **given(
                        space=space,
                        session_id=session_id,
                        title=title,
                        uri=uri,
                        external_id=external_id,
                        media_type=media_type,
                    ),
                },
                person="user_id",
                user_id=user_id,
                idempotent=True,
            )
        )

    def upload_document(
        self,
        file: File,
        *,
        space: str | None = None,
        session_id: str | None = None,
        title: str | None = None,
        uri: str | None = None,
        external_id: str | None = None,
        user_id: str | None = None,
    ) -> types.Document:
        """Add a document, as text or as a file, to what is known of a person.

        Send JSON with the `text`, or a form (`multipart/form-data`) with the `file`: text, Markdown, HTML or PDF. It
        is cut into passages, by headings and pages, which searches and turns find beside messages, from now on. Where
        they are quoted, so are title, page and `uri`. No facts and no summaries are made of it. The same document
        again changes nothing; another with the same `external_id` takes its place and keeps its `id`.

        session_id: The document is of the owner of this session: of its person, or of the session itself.
        title: Without it, Recap takes the one that the document has.
        uri: Where it is from; shown wherever it is quoted.
        external_id: The application's own name for it. A document sent with the same one replaces it.
        """
        return self.send(
            Call(
                "POST",
                "/api/documents",
                body=given(space=space, session_id=session_id, title=title, uri=uri, external_id=external_id),
                file=file,
                person="user_id",
                user_id=user_id,
                idempotent=True,
            )
        )

    def list_documents(
        self, *, space: str | None = None, session_id: str | None = None, user_id: str | None = None
    ) -> Listing[types.Document, types.DocumentPage]:
        """List a person's documents, newest first.

        session_id: Those of this session's owner.
        """
        return self.each(
            Call(
                "GET",
                "/api/documents",
                query=given(space=space, session_id=session_id),
                person="query",
                user_id=user_id,
            )
        )

    def get_document(self, document_id: str, *, space: str | None = None, user_id: str | None = None) -> types.Document:
        """Read what is known of a document."""
        return self.send(
            Call(
                "GET",
                "/api/documents/{document_id}",
                ids={"document_id": document_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def delete_document(
        self, document_id: str, *, space: str | None = None, user_id: str | None = None
    ) -> types.Receipt:
        """Delete a document with all its passages, for good."""
        return self.send(
            Call(
                "DELETE",
                "/api/documents/{document_id}",
                ids={"document_id": document_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def list_passages(
        self, document_id: str, *, space: str | None = None, user_id: str | None = None
    ) -> Listing[types.Passage, types.PassagePage]:
        """Read a document's text, passage by passage."""
        return self.each(
            Call(
                "GET",
                "/api/documents/{document_id}/passages",
                ids={"document_id": document_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def read_graph(
        self,
        *,
        space: str | None = None,
        session_id: str | None = None,
        entity: str | None = None,
        depth: int | None = None,
        as_of: str | datetime | None = None,
        user_id: str | None = None,
    ) -> Listing[types.Edge, types.EdgePage]:
        """Read the links around a person, place or thing, the nearest first.

        Each link belongs to a fact: it rests on the same words, and is corrected, forgotten and erased with it. With
        `session_id`, these are the links of the session's facts, and those of its person with the scope `user`.

        entity: The name to start from: `Ida`, `my sister`, or `user` for the person.
        depth: How many steps away from the entity links may be.
        as_of: List what was true at this time, not what is true now.
        """
        return self.each(
            Call(
                "GET",
                "/api/graph",
                query=given(space=space, session_id=session_id, entity=entity, depth=depth, as_of=as_of),
                person="query",
                user_id=user_id,
            )
        )

    def search(
        self,
        q: str,
        *,
        space: str | None = None,
        session_id: str | None = None,
        after: str | datetime | None = None,
        before: str | datetime | None = None,
        role: Literal["user", "assistant", "system", "tool"] | None = None,
        kind: Literal["message", "document", "summary", "fact"] | None = None,
        limit: int | None = None,
        window: int | None = None,
        timezone: str | None = None,
        user_id: str | None = None,
    ) -> types.SearchResults:
        """Search a person's past messages, or one session's.

        Messages are found the moment they are stored, and ranked by how well their words match. `q` may have
        "phrases", -exclusions and prefixes*. Words are compared by their stems: `kettles` finds "kettle".

        q: Words; a message with more of them, or with rarer ones, comes first. `"green tea"` finds only messages with
            that phrase, `-coffee` and `-"black tea"` leave out those with it, `berg*` finds only those with a word
            that begins so.
        after: Said at this time or later.
        before: Said before this time.
        kind: What is searched: messages, and the passages of documents beside them; passages alone (`document`); or
            the summaries of sessions, or facts, which come with the messages that they were taken from.
        window: Messages around each result.
        timezone: Where the days of `q` begin: what it says of times is preferred, not demanded.
        """
        return self.send(
            Call(
                "GET",
                "/api/search",
                query={
                    "q": q,
                    **given(
                        space=space,
                        session_id=session_id,
                        after=after,
                        before=before,
                        role=role,
                        kind=kind,
                        limit=limit,
                        window=window,
                        timezone=timezone,
                    ),
                },
                person="query",
                user_id=user_id,
            )
        )

    def recall(
        self,
        message: str,
        *,
        space: str | None = None,
        timezone: str | None = None,
        spaces: Sequence[str] | None = None,
        person: bool | None = None,
        history: Sequence[types.Said] | None = None,
        session_id: str | None = None,
        tokens: int | None = None,
        recall: Literal["auto", "always", "off"] | None = None,
        user_id: str | None = None,
    ) -> types.RecallBlock:
        """Get what a prompt for a message would show of the memory.

        For an application that calls a model itself: `block` is ready to stand before the message, or in a system
        prompt. It has instructions, profile and facts, the summary of the session if one is named, and excerpts of
        earlier conversations, as in the prompt of a turn. Nothing is stored. The session may be one that begins with
        this message. Its newest messages, those since the summary, are not in the block: the program sends them
        itself, as many as `memory.tail.messages` says.

        message: Its text, or {"role": "user", "content": "..."}.
        timezone: The zone in which the person's days begin: of words like `yesterday`, and of the times that models
            see. Later turns of the session keep it, and sessions that the person begins later. The default is the
            setting TIMEZONE.
        spaces: Spaces whose memory is read too. The default, with a person's key outside of a `space`: those it
            names.
        person: In a `space`: whether the memory of the person who acts is read too, though the reply is the space's.
            The default is true with the person's own key, else false.
        history: What was said just before, if Recap has not stored it: it tells what the message refers to. A chat
            takes it only with `temporary`.
        session_id: Its summary and facts are shown too.
        tokens: The most tokens that the block takes.
        recall: `always`: the nearest excerpts, however near; else as in a turn.
        """
        return self.send(
            Call(
                "POST",
                "/api/recall",
                body={
                    "message": message,
                    **given(
                        space=space,
                        timezone=timezone,
                        spaces=spaces,
                        person=person,
                        history=history,
                        session_id=session_id,
                        tokens=tokens,
                        recall=recall,
                    ),
                },
                person="user_id",
                user_id=user_id,
                idempotent=True,
            )
        )

    def add_unhelpful(
        self,
        session_id: str,
        message_id: int,
        hits: Sequence[int],
        *,
        space: str | None = None,
        user_id: str | None = None,
    ) -> types.Unhelpful:
        """Mark a recalled excerpt as not helpful.

        From now on the excerpt counts half for similar questions of the same person, which share half of their words
        or mean much the same. The `why` of an excerpt says what it lost by that, as `unhelpful`. The mark goes when
        the question or a message of the excerpt is erased or replaced.

        session_id: The session of the question.
        message_id: The id of the question or of its reply.
        hits: The `hits` of the excerpt.
        """
        return self.send(
            Call(
                "POST",
                "/api/recall/unhelpful",
                body={"session_id": session_id, "message_id": message_id, "hits": hits, **given(space=space)},
                person="user_id",
                user_id=user_id,
            )
        )

    def list_unhelpful(
        self,
        *,
        space: str | None = None,
        session_id: str | None = None,
        message_id: int | None = None,
        user_id: str | None = None,
    ) -> Listing[types.Unhelpful, types.UnhelpfulPage]:
        """List the excerpts that a person marked as not helpful, newest first.

        session_id: Those of this session's owner.
        message_id: Marks of this question, or with this message.
        """
        return self.each(
            Call(
                "GET",
                "/api/recall/unhelpful",
                query=given(space=space, session_id=session_id, message_id=message_id),
                person="query",
                user_id=user_id,
            )
        )

    def delete_unhelpful(self, mark_id: int, *, space: str | None = None, user_id: str | None = None) -> types.Receipt:
        """Take a mark back: the excerpt counts as before."""
        return self.send(
            Call(
                "DELETE",
                "/api/recall/unhelpful/{mark_id}",
                ids={"mark_id": mark_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def put_item(
        self,
        namespace: Sequence[str],
        key: str,
        value: Any,
        *,
        space: str | None = None,
        version: int | None = None,
        ttl: float | None = None,
        refresh_on_read: bool | None = None,
        index: Sequence[str] | None = None,
        user_id: str | None = None,
    ) -> types.Item:
        """Store an item, in the place of one with its name.

        Without a `user_id` it is the tenant's own. With `version` it is stored only if the item was not changed
        meanwhile.

        namespace: 1 to 8 parts, none empty or with a dot, and 256 characters together: a list, or a text with dots.
        value: At most 64 KB as JSON.
        version: Only in the place of this version; 0: only where there is no item. Otherwise the answer is 409.
        ttl: Minutes to live.
        index: Where queries look in this value: paths such as `title` or `notes[*].text`; an empty list: nowhere.
            Null: where the `fields` of the search say.
        """
        return self.send(
            Call(
                "PUT",
                "/api/store/items",
                body={
                    "namespace": namespace,
                    "key": key,
                    "value": value,
                    **given(space=space, version=version, ttl=ttl, refresh_on_read=refresh_on_read, index=index),
                },
                person="user_id",
                user_id=user_id,
                idempotent=True,
            )
        )

    def get_item(
        self,
        namespace: Sequence[str],
        key: str,
        *,
        space: str | None = None,
        refresh: bool | None = None,
        user_id: str | None = None,
    ) -> types.Item:
        """Read an item.

        namespace: 1 to 8 parts, none empty or with a dot, and 256 characters together: a list, or a text with dots.
        refresh: False: reading does not postpone when an item expires.
        """
        return self.send(
            Call(
                "GET",
                "/api/store/items",
                query={"namespace": namespace, "key": key, **given(space=space, refresh=refresh)},
                person="query",
                user_id=user_id,
            )
        )

    def delete_item(
        self,
        namespace: Sequence[str],
        key: str,
        *,
        space: str | None = None,
        version: int | None = None,
        user_id: str | None = None,
    ) -> types.Receipt:
        """Erase an item, for good.

        The item is not found from now on. Within a minute or two its words are gone from the database's files.

        namespace: 1 to 8 parts, none empty or with a dot, and 256 characters together: a list, or a text with dots.
        version: Only this version.
        """
        return self.send(
            Call(
                "DELETE",
                "/api/store/items",
                query={"namespace": namespace, "key": key, **given(space=space, version=version)},
                person="query",
                user_id=user_id,
            )
        )

    def search_items(
        self,
        namespace_prefix: Sequence[str] = (),
        *,
        space: str | None = None,
        filter: Mapping[str, Any] | None = None,
        query: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        offset: int | None = None,
        refresh: bool | None = None,
        user_id: str | None = None,
    ) -> types.Found:
        """Search items, newest first or by a query.

        Of what the filter leaves, a `query` ranks the 1,000 items that were changed last, by words and meaning.

        namespace_prefix: Only what is in this namespace, or below it.
        filter: Keys of the value, nested as it is, and what they are: `{"size": {"$gt": 3}, "by": {"name": "Ada"}}`;
            or a path of keys, such as `by.name`. The operators are $eq, $ne, $gt, $gte, $lt, $lte and $in. Numbers
            compare as numbers, texts by their characters.
        query: Find items by words and meaning, the best first.
        fields: Where the `query` looks: paths such as `title` or `notes[*].text`. None: in all texts.
        refresh: False: reading does not postpone when an item expires.
        """
        return self.send(
            Call(
                "POST",
                "/api/store/search",
                body={
                    "namespace_prefix": namespace_prefix,
                    **given(
                        space=space,
                        filter=filter,
                        query=query,
                        fields=fields,
                        limit=limit,
                        offset=offset,
                        refresh=refresh,
                    ),
                },
                person="user_id",
                user_id=user_id,
                idempotent=True,
            )
        )

    def list_namespaces(
        self,
        *,
        space: str | None = None,
        prefix: Sequence[str] | None = None,
        suffix: Sequence[str] | None = None,
        max_depth: int | None = None,
        limit: int | None = None,
        offset: int | None = None,
        user_id: str | None = None,
    ) -> types.NamespaceList:
        """List the namespaces that have items, in alphabetical order.

        prefix: How they begin; `*` is any part.
        suffix: How they end; `*` is any part.
        max_depth: Cut them to so many parts.
        """
        return self.send(
            Call(
                "GET",
                "/api/store/namespaces",
                query=given(space=space, prefix=prefix, suffix=suffix, max_depth=max_depth, limit=limit, offset=offset),
                person="query",
                user_id=user_id,
            )
        )

    def batch(
        self, operations: Sequence[Mapping[str, Any]], *, space: str | None = None, user_id: str | None = None
    ) -> types.Results:
        """Run up to 1,000 operations in one transaction.

        Operations run in their order, all or none of them, and each sees the changes of earlier ones. A key needs the
        scope `read` too, unless every operation is put or delete.
        """
        return self.send(
            Call(
                "POST",
                "/api/store/batch",
                body={"operations": operations, **given(space=space)},
                person="user_id",
                user_id=user_id,
            )
        )

    def get_profile_of_space(self, space: str, *, as_of: str | datetime | None = None) -> types.Profile:
        """Read the profile as it is, or as it was at `as_of`.

        as_of: Read the version of this time.
        """
        return self.send(Call("GET", "/api/spaces/{space}/profile", ids={"space": space}, query=given(as_of=as_of)))

    def edit_profile_of_space(
        self, space: str, patch: Sequence[types.Operation], *, expected_version: int | Unset | None = UNSET
    ) -> types.Profile:
        """Edit the profile by a JSON Patch (RFC 6902).

        All of its operations apply, or none. The next prompt shows the new version. The model changes what a space
        wrote only when they say something else later.

        expected_version: 409 if it is not the newest version.
        """
        return self.send(
            Call(
                "PATCH",
                "/api/spaces/{space}/profile",
                ids={"space": space},
                body={"patch": patch, **changed(expected_version=expected_version)},
            )
        )

    def profile(self, *, as_of: str | datetime | None = None, user_id: str | None = None) -> types.Profile:
        """Read the profile as it is, or as it was at `as_of`.

        as_of: Read the version of this time.
        """
        return self.send(
            Call("GET", "/api/users/{user_id}/profile", query=given(as_of=as_of), person="path", user_id=user_id)
        )

    def edit_profile(
        self,
        patch: Sequence[types.Operation],
        *,
        expected_version: int | Unset | None = UNSET,
        user_id: str | None = None,
    ) -> types.Profile:
        """Edit the profile by a JSON Patch (RFC 6902).

        All of its operations apply, or none. The next prompt shows the new version. The model changes what a person
        wrote only when they say something else later.

        expected_version: 409 if it is not the newest version.
        """
        return self.send(
            Call(
                "PATCH",
                "/api/users/{user_id}/profile",
                body={"patch": patch, **changed(expected_version=expected_version)},
                person="path",
                user_id=user_id,
            )
        )

    def list_profile_versions_of_space(self, space: str) -> Listing[types.Profile, types.ProfilePage]:
        """List all versions of the profile, newest first."""
        return self.each(Call("GET", "/api/spaces/{space}/profile/versions", ids={"space": space}))

    def list_profile_versions(self, *, user_id: str | None = None) -> Listing[types.Profile, types.ProfilePage]:
        """List all versions of the profile, newest first."""
        return self.each(Call("GET", "/api/users/{user_id}/profile/versions", person="path", user_id=user_id))

    def roll_back_profile_of_space(self, space: str, version: int) -> types.Profile:
        """Bring an earlier version of the profile back, as a new version."""
        return self.send(
            Call("POST", "/api/spaces/{space}/profile/rollback", ids={"space": space}, body={"version": version})
        )

    def roll_back_profile(self, version: int, *, user_id: str | None = None) -> types.Profile:
        """Bring an earlier version of the profile back, as a new version."""
        return self.send(
            Call(
                "POST",
                "/api/users/{user_id}/profile/rollback",
                body={"version": version},
                person="path",
                user_id=user_id,
            )
        )

    def refresh_profile_of_space(self, space: str) -> types.Profile:
        """Have the mini model read the new facts about the space now, also after an update has failed."""
        return self.send(Call("POST", "/api/spaces/{space}/profile/refresh", ids={"space": space}))

    def refresh_profile(self, *, user_id: str | None = None) -> types.Profile:
        """Have the mini model read the new facts about the person now, also after an update has failed."""
        return self.send(Call("POST", "/api/users/{user_id}/profile/refresh", person="path", user_id=user_id))

    def get_profile_schema(self, *, kind: Literal["user", "space"] | None = None) -> types.SchemaOfProfiles:
        """Read the JSON Schema of the tenant's profiles.

        kind: Whose profiles: of persons, or of spaces.
        """
        return self.send(Call("GET", "/api/profile/schema", query=given(kind=kind)))

    def set_profile_schema(self, schema: Any) -> types.SchemaOfProfiles:
        """Set the JSON Schema (2020-12) of the tenant's profiles.

        It is one tree, without references and patterns, and an empty profile fits it. Profiles stay as they are; the
        next change of one drops what the schema refuses.
        """
        return self.send(Call("PUT", "/api/profile/schema", body={"schema": schema}))

    def get_overview_of_space(self, space: str) -> types.Overview:
        """Read the overview as it is, and whether it is being written."""
        return self.send(Call("GET", "/api/spaces/{space}/overview", ids={"space": space}))

    def edit_overview_of_space(
        self, space: str, sentences: Sequence[types.WrittenSentence], *, expected_version: int | None = None
    ) -> types.Overview:
        """Set the sentences of the overview.

        The next prompt shows them. What the space wrote stays until they change it; what they leave out does not come
        back from the same facts or in the same words. A sentence that is sent as it stands keeps its sources.

        expected_version: 409 if it is not the newest version.
        """
        return self.send(
            Call(
                "PUT",
                "/api/spaces/{space}/overview",
                ids={"space": space},
                body={"sentences": sentences, **given(expected_version=expected_version)},
            )
        )

    def get_overview(self, *, user_id: str | None = None) -> types.Overview:
        """Read the overview as it is, and whether it is being written."""
        return self.send(Call("GET", "/api/users/{user_id}/overview", person="path", user_id=user_id))

    def edit_overview(
        self,
        sentences: Sequence[types.WrittenSentence],
        *,
        expected_version: int | None = None,
        user_id: str | None = None,
    ) -> types.Overview:
        """Set the sentences of the overview.

        The next prompt shows them. What the person wrote stays until they change it; what they leave out does not
        come back from the same facts or in the same words. A sentence that is sent as it stands keeps its sources.

        expected_version: 409 if it is not the newest version.
        """
        return self.send(
            Call(
                "PUT",
                "/api/users/{user_id}/overview",
                body={"sentences": sentences, **given(expected_version=expected_version)},
                person="path",
                user_id=user_id,
            )
        )

    def list_overview_versions_of_space(self, space: str) -> Listing[types.OverviewVersion, types.OverviewVersionPage]:
        """List all versions of the overview, newest first."""
        return self.each(Call("GET", "/api/spaces/{space}/overview/versions", ids={"space": space}))

    def list_overview_versions(
        self, *, user_id: str | None = None
    ) -> Listing[types.OverviewVersion, types.OverviewVersionPage]:
        """List all versions of the overview, newest first."""
        return self.each(Call("GET", "/api/users/{user_id}/overview/versions", person="path", user_id=user_id))

    def roll_back_overview_of_space(self, space: str, version: int) -> types.Overview:
        """Bring an earlier version of the overview back, as a new version.

        Sentences whose facts hold no longer are left out.
        """
        return self.send(
            Call("POST", "/api/spaces/{space}/overview/rollback", ids={"space": space}, body={"version": version})
        )

    def roll_back_overview(self, version: int, *, user_id: str | None = None) -> types.Overview:
        """Bring an earlier version of the overview back, as a new version.

        Sentences whose facts hold no longer are left out.
        """
        return self.send(
            Call(
                "POST",
                "/api/users/{user_id}/overview/rollback",
                body={"version": version},
                person="path",
                user_id=user_id,
            )
        )

    def refresh_overview_of_space(self, space: str) -> types.Overview:
        """Have the mini model write the overview now, also after an update has failed."""
        return self.send(Call("POST", "/api/spaces/{space}/overview/refresh", ids={"space": space}))

    def refresh_overview(self, *, user_id: str | None = None) -> types.Overview:
        """Have the mini model write the overview now, also after an update has failed."""
        return self.send(Call("POST", "/api/users/{user_id}/overview/refresh", person="path", user_id=user_id))

    def add_example(
        self,
        *,
        space: str | None = None,
        input: str | None = None,
        output: str | None = None,
        messages: Sequence[types.ExampleMessage] | None = None,
        session_id: str | None = None,
        message_id: int | None = None,
        tags: Sequence[str] | None = None,
        rating: int | None = None,
        user_id: str | None = None,
    ) -> types.Example:
        """Add an example, or make one of an exchange.

        An exchange becomes an example of the session's owner, and goes when one of its messages is erased or
        replaced. Of long messages the beginning is kept, and of calls of tools between them those that have at most
        8,000 characters. Otherwise the example is the user's or, without a `user_id`, for all people of the tenant.
        `messages` show how tools are called: the user's words, the assistant's calls, the results and the answer.

        messages: A message, calls of tools, the answer.
        session_id: With `message_id`, instead of `input` and `output`: an exchange.
        message_id: The id of the exchange's message or of its reply.
        rating: How good the answer is, from 1 to 5. Of similar examples the best rated come first.
        """
        return self.send(
            Call(
                "POST",
                "/api/examples",
                body=given(
                    space=space,
                    input=input,
                    output=output,
                    messages=messages,
                    session_id=session_id,
                    message_id=message_id,
                    tags=tags,
                    rating=rating,
                ),
                person="user_id",
                user_id=user_id,
            )
        )

    def list_examples(
        self, *, space: str | None = None, session_id: str | None = None, user_id: str | None = None
    ) -> Listing[types.Example, types.ExamplePage]:
        """List the examples of a user or, without a `user_id`, those for all of the tenant, newest first.

        session_id: Those of this session's owner.
        """
        return self.each(
            Call(
                "GET", "/api/examples", query=given(space=space, session_id=session_id), person="query", user_id=user_id
            )
        )

    def delete_example(self, example_id: int, *, space: str | None = None, user_id: str | None = None) -> types.Receipt:
        """Erase an example, for good."""
        return self.send(
            Call(
                "DELETE",
                "/api/examples/{example_id}",
                ids={"example_id": example_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def list_users(self) -> Listing[types.ListedUser, types.ListedUserPage]:
        """List the persons of whom something is stored, the newest first.

        A key of the whole tenant lists all of its persons, a key of a person that person alone.
        """
        return self.each(Call("GET", "/api/users"))

    def get_space(self, space: str) -> types.User:
        """Read how much is stored of a space."""
        return self.send(Call("GET", "/api/spaces/{space}", ids={"space": space}))

    def change_space(self, space: str, *, remember: bool | None = None) -> types.User:
        """Turn the memory of a space off, or on again.

        remember: False: memory is off for this person, in every session and for every client. No turn recalls, shows
            or learns anything beyond its own session, and programs get nothing of the memory through MCP.
        """
        return self.send(Call("PATCH", "/api/spaces/{space}", ids={"space": space}, body=given(remember=remember)))

    def erase_space(self, space: str) -> types.Receipt:
        """Erase everything of a space, for good.

        When this call answers, messages, summaries, facts, their histories, jobs and the search index are gone, from
        the database's files as well. A reply that is being written is not stored.
        """
        return self.send(Call("DELETE", "/api/spaces/{space}", ids={"space": space}))

    def get_user(self, *, user_id: str | None = None) -> types.User:
        """Read how much is stored of a person."""
        return self.send(Call("GET", "/api/users/{user_id}", person="path", user_id=user_id))

    def change_user(self, *, remember: bool | None = None, user_id: str | None = None) -> types.User:
        """Turn the memory of a person off, or on again.

        remember: False: memory is off for this person, in every session and for every client. No turn recalls, shows
            or learns anything beyond its own session, and programs get nothing of the memory through MCP.
        """
        return self.send(
            Call("PATCH", "/api/users/{user_id}", body=given(remember=remember), person="path", user_id=user_id)
        )

    def erase_user(self, *, user_id: str | None = None) -> types.Receipt:
        """Erase everything of a person, for good.

        When this call answers, messages, summaries, facts, their histories, jobs and the search index are gone, from
        the database's files as well. A reply that is being written is not stored.
        """
        return self.send(Call("DELETE", "/api/users/{user_id}", person="path", user_id=user_id))

    def export_space(
        self, space: str, *, format: Literal["json", "markdown"] | None = None
    ) -> types.ExportDocument | str:
        """Export everything of a space as one JSON document, or as Markdown to read.

        The JSON document can be imported again; of the Markdown, the chats can. Replaced messages are left out.
        """
        return self.send(Call("GET", "/api/spaces/{space}/export", ids={"space": space}, query=given(format=format)))

    def export(
        self, *, format: Literal["json", "markdown"] | None = None, user_id: str | None = None
    ) -> types.ExportDocument | str:
        """Export everything of a person as one JSON document, or as Markdown to read.

        The JSON document can be imported again; of the Markdown, the chats can. Replaced messages are left out.
        """
        return self.send(
            Call("GET", "/api/users/{user_id}/export", query=given(format=format), person="path", user_id=user_id)
        )

    def import_chats(self, document: Any | bytes, *, user_id: str | None = None) -> types.Imported:
        """Import an export of Recap or of another program, or chats as JSON, JSON Lines or Markdown.

        docs/export.md names the programs. Send JSON as `application/json`, and any other file, such as a .zip, as
        `application/octet-stream`. The whole document is checked before anything is stored. What is stored already is
        left as it is, so a call can be repeated safely. A session gets a new id where the person has another
        conversation of that id. No model is called: `POST /api/users/{user_id}/summaries` has what was imported
        summarised.
        """
        return self.send(Call("POST", "/api/import", body=document, person="query", user_id=user_id))

    def get_backlog_of_space(self, space: str) -> types.Backlog:
        """Read how much of a space's sessions no summary covers.

        After an import, no summary covers the imported messages.
        """
        return self.send(Call("GET", "/api/spaces/{space}/summaries", ids={"space": space}))

    def summarise_backlog_of_space(self, space: str) -> types.Backlog:
        """Summarise all of a space's sessions, and take facts from them.

        The newest come first. A repeated call resumes what was cancelled or has failed. With DAILY_TOKENS, only as
        many sessions are summarised as fit what is left of the space's day.
        """
        return self.send(Call("POST", "/api/spaces/{space}/summaries", ids={"space": space}))

    def cancel_backlog_of_space(self, space: str) -> types.Backlog:
        """Cancel the updates of summaries that have not begun.

        Summaries that were made stay. A session that goes on is summarised as usual.
        """
        return self.send(Call("DELETE", "/api/spaces/{space}/summaries", ids={"space": space}))

    def get_backlog(self, *, user_id: str | None = None) -> types.Backlog:
        """Read how much of a person's sessions no summary covers.

        After an import, no summary covers the imported messages.
        """
        return self.send(Call("GET", "/api/users/{user_id}/summaries", person="path", user_id=user_id))

    def summarise_backlog(self, *, user_id: str | None = None) -> types.Backlog:
        """Summarise all of a person's sessions, and take facts from them.

        The newest come first. A repeated call resumes what was cancelled or has failed. With DAILY_TOKENS, only as
        many sessions are summarised as fit what is left of the person's day.
        """
        return self.send(Call("POST", "/api/users/{user_id}/summaries", person="path", user_id=user_id))

    def cancel_backlog(self, *, user_id: str | None = None) -> types.Backlog:
        """Cancel the updates of summaries that have not begun.

        Summaries that were made stay. A session that goes on is summarised as usual.
        """
        return self.send(Call("DELETE", "/api/users/{user_id}/summaries", person="path", user_id=user_id))

    def whoami(self) -> types.Me:
        """Read the tenant, the person and the scopes of the request's key, and what it may do.

        On a server without keys, every caller has the tenant `default` and all scopes.
        """
        return self.send(Call("GET", "/api/me"))

    def list_spaces(self) -> Listing[types.Space, types.SpacePage]:
        """List the spaces that the key opens.

        A key of a person, or of spaces alone, opens those that it names. A key of the whole tenant opens every space;
        those are listed that something is stored of, the newest first.
        """
        return self.each(Call("GET", "/api/spaces"))

    def get_retention(self) -> types.RetentionPolicy:
        """Read which sessions of the tenant stay."""
        return self.send(Call("GET", "/api/retention"))

    def put_retention(
        self, *, days: int | None = None, sessions: int | None = None, archive: bool | None = None
    ) -> types.RetentionPolicy:
        """Set which sessions of the tenant stay.

        A job takes out the others, now and once a day: their messages, summaries, search entries, the facts taken
        from them and what rests on them. With both limits null, all sessions stay.

        days: Days after its last message or import that a session stays; null: any number.
        sessions: Number of each person's newest sessions that stay; null: all.
        archive: Whether a session that is taken out becomes an archive. Else it is erased.
        """
        return self.send(Call("PUT", "/api/retention", body=given(days=days, sessions=sessions, archive=archive)))

    def list_archives(
        self, *, space: str | None = None, session_id: str | None = None, user_id: str | None = None
    ) -> Listing[types.Archive, types.ArchivePage]:
        """List the archives of sessions that were taken out of memory, newest first.

        Archived sessions are neither searched nor recalled.
        """
        return self.each(
            Call(
                "GET", "/api/archives", query=given(space=space, session_id=session_id), person="query", user_id=user_id
            )
        )

    def get_archive(
        self, archive_id: int, *, space: str | None = None, user_id: str | None = None
    ) -> types.ExportDocument:
        """Read an archive, as a document that can be imported."""
        return self.send(
            Call(
                "GET",
                "/api/archives/{archive_id}",
                ids={"archive_id": archive_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def erase_archive(self, archive_id: int, *, space: str | None = None, user_id: str | None = None) -> types.Receipt:
        """Erase an archive, for good."""
        return self.send(
            Call(
                "DELETE",
                "/api/archives/{archive_id}",
                ids={"archive_id": archive_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def restore_archive(
        self, archive_id: int, *, space: str | None = None, user_id: str | None = None
    ) -> types.Imported:
        """Bring an archived session back into memory, and delete the archive.

        The session is imported like an export. If another session has its id by now, it gets a new one.
        """
        return self.send(
            Call(
                "POST",
                "/api/archives/{archive_id}/restore",
                ids={"archive_id": archive_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def get_rules(self, *, space: str | None = None, user_id: str | None = None) -> types.RulesVersion:
        """Read the person's rules or, without a user_id, the tenant's, which hold for each person."""
        return self.send(Call("GET", "/api/rules", query=given(space=space), person="query", user_id=user_id))

    def put_rules(
        self,
        *,
        categories: Sequence[types.CategoryRule] | None = None,
        topics: Sequence[str] | None = None,
        words: Sequence[str] | None = None,
        review: bool | None = None,
        space: str | None = None,
        expected_version: int | None = None,
        close: bool | None = None,
        user_id: str | None = None,
    ) -> types.RulesVersion:
        """Store new rules in the place of the ones before.

        They hold for what is found from now on. What they keep out of what is stored is closed only with `close`. A
        person's rules can only narrow the tenant's.

        topics: What is kept out, in words that the mini model reads, as `health`.
        words: What is kept out wherever it stands: words, with `*` at either end for any letters, and `#` for a
            digit.
        review: Whether facts that models found wait until somebody accepts them.
        expected_version: 409 if it is not the newest version.
        close: Whether to close what they keep out of what is stored. Null: 409 if there is anything.
        """
        return self.send(
            Call(
                "PUT",
                "/api/rules",
                body=given(
                    categories=categories,
                    topics=topics,
                    words=words,
                    review=review,
                    space=space,
                    expected_version=expected_version,
                    close=close,
                ),
                person="user_id",
                user_id=user_id,
            )
        )

    def delete_rules(self, *, space: str | None = None, user_id: str | None = None) -> types.Receipt:
        """Erase the rules with all of their versions, for good; what they closed stays closed."""
        return self.send(Call("DELETE", "/api/rules", query=given(space=space), person="query", user_id=user_id))

    def preview_rules(
        self,
        *,
        categories: Sequence[types.CategoryRule] | None = None,
        topics: Sequence[str] | None = None,
        words: Sequence[str] | None = None,
        review: bool | None = None,
        space: str | None = None,
        user_id: str | None = None,
    ) -> types.RulesEffect:
        """List what rules would close of what is stored; nothing is stored.

        topics: What is kept out, in words that the mini model reads, as `health`.
        words: What is kept out wherever it stands: words, with `*` at either end for any letters, and `#` for a
            digit.
        review: Whether facts that models found wait until somebody accepts them.
        """
        return self.send(
            Call(
                "POST",
                "/api/rules/preview",
                body=given(categories=categories, topics=topics, words=words, review=review, space=space),
                person="user_id",
                user_id=user_id,
            )
        )

    def list_rules_versions(self, *, space: str | None = None, user_id: str | None = None) -> types.RulesVersionList:
        """List all versions of the rules, newest first."""
        return self.send(Call("GET", "/api/rules/versions", query=given(space=space), person="query", user_id=user_id))

    def roll_back_rules(
        self, version: int, *, space: str | None = None, close: bool | None = None, user_id: str | None = None
    ) -> types.RulesVersion:
        """Bring an earlier version back, as a new version.

        close: Whether to close what they keep out of what is stored. Null: 409 if there is anything.
        """
        return self.send(
            Call(
                "POST",
                "/api/rules/rollback",
                body={"version": version, **given(space=space, close=close)},
                person="user_id",
                user_id=user_id,
            )
        )

    def list_instructions(self, *, space: str | None = None, user_id: str | None = None) -> types.InstructionList:
        """List the instructions that the person's prompts show, and those that have a proposal.

        A person's instruction takes the place of the tenant's instruction of the same name.
        """
        return self.send(Call("GET", "/api/instructions", query=given(space=space), person="query", user_id=user_id))

    def get_instruction(
        self, instruction: str, *, space: str | None = None, user_id: str | None = None
    ) -> types.Instruction:
        """Read an instruction, and the proposal that waits for it."""
        return self.send(
            Call(
                "GET",
                "/api/instructions/{instruction}",
                ids={"instruction": instruction},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def put_instruction(
        self,
        instruction: str,
        text: str,
        *,
        space: str | None = None,
        expected_version: int | None = None,
        user_id: str | None = None,
    ) -> types.Instruction:
        """Store a new version of an instruction.

        The next prompt shows it beside the system prompt, word for word. A proposal that waits is dropped.

        expected_version: 409 if it is not the newest version.
        """
        return self.send(
            Call(
                "PUT",
                "/api/instructions/{instruction}",
                ids={"instruction": instruction},
                body={"text": text, **given(space=space, expected_version=expected_version)},
                person="user_id",
                user_id=user_id,
            )
        )

    def delete_instruction(
        self, instruction: str, *, space: str | None = None, user_id: str | None = None
    ) -> types.Receipt:
        """Erase an instruction with all of its versions, for good."""
        return self.send(
            Call(
                "DELETE",
                "/api/instructions/{instruction}",
                ids={"instruction": instruction},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def list_instruction_versions(
        self, instruction: str, *, space: str | None = None, user_id: str | None = None
    ) -> types.InstructionVersionList:
        """List all versions, newest first, each with what it changed."""
        return self.send(
            Call(
                "GET",
                "/api/instructions/{instruction}/versions",
                ids={"instruction": instruction},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def roll_back_instruction(
        self, instruction: str, version: int, *, space: str | None = None, user_id: str | None = None
    ) -> types.Instruction:
        """Bring an earlier version back, as a new version."""
        return self.send(
            Call(
                "POST",
                "/api/instructions/{instruction}/rollback",
                ids={"instruction": instruction},
                body={"version": version, **given(space=space)},
                person="user_id",
                user_id=user_id,
            )
        )

    def decide_proposal(
        self, instruction: str, accept: bool, *, space: str | None = None, user_id: str | None = None
    ) -> types.Instruction:
        """Accept the proposal, which makes it a new version, or refuse it."""
        return self.send(
            Call(
                "POST",
                "/api/instructions/{instruction}/proposal",
                ids={"instruction": instruction},
                body={"accept": accept, **given(space=space)},
                person="user_id",
                user_id=user_id,
            )
        )

    def list_conversation_types(
        self, *, space: str | None = None, user_id: str | None = None
    ) -> types.ConversationTypeList:
        """List the types that are built in, the tenant's, and the person's own, which come before the tenant's."""
        return self.send(
            Call("GET", "/api/conversation-types", query=given(space=space), person="query", user_id=user_id)
        )

    def get_conversation_type(
        self, conversation_type: str, *, space: str | None = None, user_id: str | None = None
    ) -> types.ConversationType:
        """Read a type."""
        return self.send(
            Call(
                "GET",
                "/api/conversation-types/{conversation_type}",
                ids={"conversation_type": conversation_type},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def put_conversation_type(
        self,
        conversation_type: str,
        *,
        cues: Sequence[str] | None = None,
        prompt: str | None = None,
        recall: Literal["auto", "always", "tools", "off"] | None = None,
        recall_tokens: int | None = None,
        fact_tokens: int | None = None,
        example_tokens: int | None = None,
        emphasis: Sequence[
            Literal["topic", "requirements", "constraints", "excluded", "data", "open_questions", "discussed"]
        ]
        | None = None,
        space: str | None = None,
        user_id: str | None = None,
    ) -> types.ConversationType:
        """Add a type, or say what one of the same name does instead, also one that is built in.

        Its mode of recall and its budgets take the place of the settings while the conversation has the type.

        cues: Words that tell it; of a cue with several words, all have to be in one message.
        prompt: Stands beside the system prompt, from the next compaction on.
        emphasis: Sections that come first in the summary, from the next compaction on.
        """
        return self.send(
            Call(
                "PUT",
                "/api/conversation-types/{conversation_type}",
                ids={"conversation_type": conversation_type},
                body=given(
                    cues=cues,
                    prompt=prompt,
                    recall=recall,
                    recall_tokens=recall_tokens,
                    fact_tokens=fact_tokens,
                    example_tokens=example_tokens,
                    emphasis=emphasis,
                    space=space,
                ),
                person="user_id",
                user_id=user_id,
            )
        )

    def delete_conversation_type(
        self, conversation_type: str, *, space: str | None = None, user_id: str | None = None
    ) -> types.Receipt:
        """Erase a type of one's own; one that is built in changes nothing from then on."""
        return self.send(
            Call(
                "DELETE",
                "/api/conversation-types/{conversation_type}",
                ids={"conversation_type": conversation_type},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def give_feedback(
        self,
        session_id: str,
        message_id: int,
        *,
        space: str | None = None,
        thumbs: Literal["up", "down", "none"] | None = None,
        text: str | None = None,
        instruction: str | None = None,
        user_id: str | None = None,
    ) -> types.FeedbackGiven:
        """Say what a person thinks of a reply, in the place of what they thought before.

        Thumbs up make an example of the exchange, thumbs down take it away. With words or thumbs down, the mini model
        may propose a new version of the person's instruction (FEEDBACK says how). Read it in the store, below
        `recap.feedback`.

        message_id: The id of the exchange's message or of its reply.
        thumbs: `none` takes earlier ones back.
        instruction: The name of the instruction that it may change.
        """
        return self.send(
            Call(
                "POST",
                "/api/feedback",
                body={
                    "session_id": session_id,
                    "message_id": message_id,
                    **given(space=space, thumbs=thumbs, text=text, instruction=instruction),
                },
                person="user_id",
                user_id=user_id,
                idempotent=True,
            )
        )

    def list_prompts(self) -> types.PromptList:
        """List the prompts in use."""
        return self.send(Call("GET", "/api/prompts"))

    def get_prompt(self, name: str) -> types.Prompt:
        """Read a prompt."""
        return self.send(Call("GET", "/api/prompts/{name}", ids={"name": name}))

    def put_prompt(self, name: str, text: str) -> types.Prompt:
        """Store a new version of a prompt.

        `system` begins the main model's prompt. `repair` asks the mini model to correct its answer. Every other name
        is a summary prompt, which may use the variables `first`, `sections` and `max_words`. A template that fails is
        refused. Prompts belong to the whole tenant, so a key of one person can't change them.
        """
        return self.send(Call("PUT", "/api/prompts/{name}", ids={"name": name}, body={"text": text}))

    def delete_prompt(self, name: str) -> types.PromptDeleted:
        """Delete all stored versions of a prompt.

        The operator's file or the packaged text of this name is in use again, if there is one. A chat that names a
        deleted prompt is refused; updates of summaries that wait use the default prompt instead.
        """
        return self.send(Call("DELETE", "/api/prompts/{name}", ids={"name": name}))

    def list_models(self) -> types.ModelNames:
        """List the models that a chat can be answered by.

        The model server's list is kept for a minute, without those whose names tell that they answer no chat, as
        embedding models; the setting OPENAI_MODELS replaces it. A server that lists no models offers only its main
        model, and so does the built-in model.
        """
        return self.send(Call("GET", "/api/models"))

    def get_model_server(self) -> types.ModelServer:
        """Read which model server is in use.

        It serves all tenants. Where there are keys of more than one, only the operator sets it, in the environment.
        """
        return self.send(Call("GET", "/api/model-server"))

    def put_model_server(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        main: str | None = None,
        mini: str | None = None,
    ) -> types.ModelServer:
        """Store the model server.

        Its key is stored encrypted. Every process answers with it after at most two seconds.

        base_url: Where an OpenAI-compatible API is; it usually ends in /v1. Empty: OpenAI.
        api_key: The key for it. Empty: none. Null: the one in use, if `base_url` is the one in use too.
        main: Empty: OPENAI_MODEL.
        mini: Empty: OPENAI_SUMMARY_MODEL.
        """
        return self.send(
            Call("PUT", "/api/model-server", body=given(base_url=base_url, api_key=api_key, main=main, mini=mini))
        )

    def delete_model_server(self) -> types.ModelServer:
        """Forget the stored model server and its key."""
        return self.send(Call("DELETE", "/api/model-server"))

    def test_model_server(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        main: str | None = None,
        mini: str | None = None,
    ) -> types.ModelTried:
        """Ask the models of a model server one short question.

        The answer tells of each model whether it works, what its server does not take, and whether it can read
        prompts of CONTEXT_TOKENS. Nothing is stored, and the calls count for nobody's daily tokens.

        base_url: Where an OpenAI-compatible API is; it usually ends in /v1. Empty: OpenAI.
        api_key: The key for it. Empty: none. Null: the one in use, if `base_url` is the one in use too.
        main: Empty: OPENAI_MODEL.
        mini: Empty: OPENAI_SUMMARY_MODEL.
        """
        return self.send(
            Call("POST", "/api/model-server/test", body=given(base_url=base_url, api_key=api_key, main=main, mini=mini))
        )

    def list_models_of_server(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        main: str | None = None,
        mini: str | None = None,
    ) -> types.ModelsListed:
        """List the models of a model server, to choose from before it is stored.

        Those whose names tell that they answer no chat are left out. Nothing is stored.

        base_url: Where an OpenAI-compatible API is; it usually ends in /v1. Empty: OpenAI.
        api_key: The key for it. Empty: none. Null: the one in use, if `base_url` is the one in use too.
        main: Empty: OPENAI_MODEL.
        mini: Empty: OPENAI_SUMMARY_MODEL.
        """
        return self.send(
            Call(
                "POST", "/api/model-server/models", body=given(base_url=base_url, api_key=api_key, main=main, mini=mini)
            )
        )

    def jobs(
        self,
        *,
        space: str | None = None,
        state: Literal["pending", "running", "failed"] | None = None,
        session_id: str | None = None,
        user_id: str | None = None,
    ) -> Listing[types.Job, types.JobPage]:
        """List jobs that wait, run or failed.

        With `session_id`, only the jobs of that session. Index jobs belong to a person, not to a session.
        """
        return self.each(
            Call(
                "GET",
                "/api/jobs",
                query=given(space=space, state=state, session_id=session_id),
                person="query",
                user_id=user_id,
            )
        )

    def retry_job(self, job_id: int, *, space: str | None = None, user_id: str | None = None) -> types.Job:
        """Retry a job now."""
        return self.send(
            Call(
                "POST",
                "/api/jobs/{job_id}/retry",
                ids={"job_id": job_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def cancel_job(self, job_id: int, *, space: str | None = None, user_id: str | None = None) -> None:
        """Cancel a job of the kind `consolidation`, also while it runs: it changes nothing then."""
        self.send(
            Call(
                "DELETE",
                "/api/jobs/{job_id}",
                ids={"job_id": job_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def events(
        self,
        *,
        space: str | None = None,
        after: str | None = None,
        types: str | None = None,
        words: bool | None = None,
        seconds: int | None = None,
        user_id: str | None = None,
    ) -> EventStream:
        """Follow the events of a person or, with a key of the whole tenant and no `user_id`, of all.

        Server-sent events, each with the place behind it as `id:`. A reader that comes back with it as Last-Event-ID
        gets every event since then, some of them perhaps again. Of one person they come in order. Without it the
        stream begins now. A comment comes at least every 15 seconds; the stream ends after `seconds`, and when the
        server stops.

        after: Begin after this place, the `id:` of an event; for readers that can't send Last-Event-ID.
        types: Only these types, separated by commas.
        words: With what people and models said.
        seconds: End the stream after so long. 0: only what there is now.
        """
        return self.listen(
            Call(
                "GET",
                "/api/events",
                query=given(space=space, after=after, types=types, words=words, seconds=seconds),
                person="query",
                user_id=user_id,
            )
        )

    def list_webhooks(self, *, space: str | None = None, user_id: str | None = None) -> types.WebhookList:
        """List webhooks, each with its last deliveries."""
        return self.send(Call("GET", "/api/webhooks", query=given(space=space), person="query", user_id=user_id))

    def create_webhook(
        self,
        url: str,
        *,
        space: str | None = None,
        types: Sequence[
            Literal[
                "message.stored",
                "summary.updated",
                "fact.created",
                "fact.corrected",
                "fact.forgotten",
                "profile.updated",
                "overview.updated",
                "document.stored",
                "document.erased",
                "job.failed",
                "person.erased",
                "space.erased",
            ]
        ]
        | None = None,
        words: bool | None = None,
        user_id: str | None = None,
    ) -> types.WebhookMade:
        """Make a webhook for the events of a person or, without a `user_id`, of the whole tenant.

        It gets what happens from now on, each event at least once, those of one person in order. The answer has the
        secret that deliveries are signed with. A receiver that fails is tried again, for three days; then the webhook
        is disabled.

        url: Where events are posted, by https. An address that is not public needs WEBHOOK_NETWORKS.
        types: Empty: all. `message.stored`: a message was stored: said in a turn, appended, imported, or sent by a
            client's program; `summary.updated`: a session's summary has a new version; `fact.created`: a fact was
            made; `fact.corrected`: a fact was edited, superseded, merged, contradicted, excluded, ended, expired or
            reopened; `fact.forgotten`: a fact was deleted, by itself or with its message or session;
            `profile.updated`: a person's profile has a new version; `overview.updated`: the overview of a person has
            a new version; `document.stored`: a document was added or replaced; `document.erased`: a document was
            deleted; `job.failed`: a job failed for the last time, until somebody retries it; `person.erased`:
            everything of a person was erased; only those who listen to the whole tenant get this; `space.erased`:
            everything of a space was erased; told as `person.erased` is.
        words: With what people and models said.
        """
        return self.send(
            Call(
                "POST",
                "/api/webhooks",
                body={"url": url, **given(space=space, types=types, words=words)},
                person="user_id",
                user_id=user_id,
            )
        )

    def change_webhook(
        self,
        webhook_id: int,
        *,
        url: str | None = None,
        types: Sequence[
            Literal[
                "message.stored",
                "summary.updated",
                "fact.created",
                "fact.corrected",
                "fact.forgotten",
                "profile.updated",
                "overview.updated",
                "document.stored",
                "document.erased",
                "job.failed",
                "person.erased",
                "space.erased",
            ]
        ]
        | None = None,
        words: bool | None = None,
        enabled: bool | None = None,
        user_id: str | None = None,
    ) -> types.Webhook:
        """Change, disable or enable a webhook.

        A change also has what failed tried again now.

        url: Where events are posted, by https. An address that is not public needs WEBHOOK_NETWORKS.
        types: Empty: all. `message.stored`: a message was stored: said in a turn, appended, imported, or sent by a
            client's program; `summary.updated`: a session's summary has a new version; `fact.created`: a fact was
            made; `fact.corrected`: a fact was edited, superseded, merged, contradicted, excluded, ended, expired or
            reopened; `fact.forgotten`: a fact was deleted, by itself or with its message or session;
            `profile.updated`: a person's profile has a new version; `overview.updated`: the overview of a person has
            a new version; `document.stored`: a document was added or replaced; `document.erased`: a document was
            deleted; `job.failed`: a job failed for the last time, until somebody retries it; `person.erased`:
            everything of a person was erased; only those who listen to the whole tenant get this; `space.erased`:
            everything of a space was erased; told as `person.erased` is.
        words: With what people and models said.
        enabled: `true` delivers everything since it was disabled.
        """
        return self.send(
            Call(
                "PATCH",
                "/api/webhooks/{webhook_id}",
                ids={"webhook_id": webhook_id},
                body=given(url=url, types=types, words=words, enabled=enabled),
                person="query",
                user_id=user_id,
            )
        )

    def delete_webhook(self, webhook_id: int, *, space: str | None = None, user_id: str | None = None) -> None:
        """Delete a webhook, with what waits for it."""
        self.send(
            Call(
                "DELETE",
                "/api/webhooks/{webhook_id}",
                ids={"webhook_id": webhook_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def rotate_webhook(
        self, webhook_id: int, *, overlap_hours: int | None = None, user_id: str | None = None
    ) -> types.WebhookMade:
        """Give a webhook a new secret.

        The answer has it. Until `overlap_hours` are over, the header `webhook-signature` has two signatures, the new
        secret's and the former one's, as Standard Webhooks defines it: a receiver that knows either of them goes on.

        overlap_hours: How long deliveries are signed with the former secret as well; 0 if it has leaked.
        """
        return self.send(
            Call(
                "POST",
                "/api/webhooks/{webhook_id}/rotate",
                ids={"webhook_id": webhook_id},
                body=given(overlap_hours=overlap_hours),
                person="query",
                user_id=user_id,
            )
        )

    def test_webhook(self, webhook_id: int, *, space: str | None = None, user_id: str | None = None) -> types.Delivery:
        """Post an event of the type `webhook.test`, and see how it went."""
        return self.send(
            Call(
                "POST",
                "/api/webhooks/{webhook_id}/test",
                ids={"webhook_id": webhook_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        model: str | None = None,
        user: Any | None = None,
        safety_identifier: Any | None = None,
        session_id: Any | None = None,
        metadata: Any | None = None,
        n: Any | None = None,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        **more: Any,
    ) -> types.Completion:
        """Chat as with OpenAI, and be remembered.

        The session is named by X-Session-Id, X-Conversation-Id, X-OpenWebUI-Chat-Id, x-litellm-session-id,
        session_id, metadata.session_id or call.id; without any of them it is found by the conversation's first
        messages. The person is named by X-OpenWebUI-User-Id, x-litellm-end-user-id, safety_identifier, user, user_id,
        metadata.user_id or customer.number. A message that is sent again is stored once. The X-Memory-* headers of
        the reply give the model that answers, the session, the number of recalled messages and the saved tokens. With
        `X-Memory-Tools: on` the model also gets tools of the memory, which Recap runs; if it wrote facts with them,
        the answer's `memory` lists these. If the memory fails, the model gets the request unchanged, and X-Memory-
        Error says why. `recap` names the main model of any server, which also answers if the server does not have the
        model that is named.

        model: Passed on. Without it, and with the built-in model, the main model answers.
        user: The person, unless a header or `safety_identifier` names one.
        safety_identifier: The person, unless a header names one.
        session_id: The session, unless a header names one. Not passed on.
        metadata: Its `user_id` and `session_id` count where the body has none.
        n: Of several choices, the first is stored.
        """
        return self.send(
            Call(
                "POST",
                "/v1/chat/completions",
                body={
                    "messages": messages,
                    **given(
                        model=model,
                        user=user,
                        safety_identifier=safety_identifier,
                        session_id=session_id,
                        metadata=metadata,
                        n=n,
                    ),
                    **more,
                },
                person="user_id",
                user_id=user_id,
                key=idempotency_key,
                is_turn=True,
            )
        )

    def list_served_models(self) -> types.ModelList:
        """List the models: `recap`, which is the main model, and those of the model server.

        A request with the header `anthropic-version` gets them in Anthropic's form, all on one page; so it does one
        model, and an error.
        """
        return self.send(Call("GET", "/v1/models"))

    def get_served_model(self, model: str) -> types.Model:
        """Read one model of the model server, or the built-in one."""
        return self.send(Call("GET", "/v1/models/{model}", ids={"model": model}))

    def embed(self, *, model: str | None = None, **more: Any) -> Any:
        """Embed texts with the model server.

        The request is passed on unchanged. Nothing is stored.

        model: Passed on.
        """
        return self.send(Call("POST", "/v1/embeddings", body={**given(model=model), **more}))

    def complete_text(self, *, model: str | None = None, **more: Any) -> Any:
        """Complete a text with the model server, as programs do to complete code.

        The request is passed on, with the main model in the place of `recap`, and answered without memory. Nothing is
        stored. A stream is sent in one piece.

        model: Passed on.
        """
        return self.send(Call("POST", "/v1/completions", body={**given(model=model), **more}))

    def moderate(self, *, model: str | None = None, **more: Any) -> Any:
        """Classify texts with the model server.

        The request is passed on unchanged. Nothing is stored.

        model: Passed on.
        """
        return self.send(Call("POST", "/v1/moderations", body={**given(model=model), **more}))

    def create_message(
        self,
        messages: Sequence[Mapping[str, Any]],
        max_tokens: int,
        *,
        model: str | None = None,
        system: Any | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        output_config: Mapping[str, Any] | None = None,
        stop_sequences: Any | None = None,
        temperature: Any | None = None,
        top_p: Any | None = None,
        thread: Mapping[str, Any] | None = None,
        thinking: Mapping[str, Any] | None = None,
        top_k: Any | None = None,
        cache_control: Any | None = None,
        context_management: Any | None = None,
        service_tier: Any | None = None,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        **more: Any,
    ) -> types.AnthropicMessage:
        """Chat as with Anthropic, and be remembered.

        The model server is asked for a chat completion; text, images, tools and their results are translated. The
        session and the person are named as for chat completions, or by `metadata.session_id` and `metadata.user_id`.
        The key may also be sent as x-api-key. What has no counterpart in a chat completion is left out, and X-Memory-
        Left-Out names it.

        max_tokens: Passed on as `max_completion_tokens`.
        model: Passed on. The built-in model answers to every name.
        system: A string, or text blocks.
        tools: Tools of the client's own.
        metadata: `user_id` names the person and `session_id` the session, unless headers do.
        output_config: `format` and `effort` are passed on.
        stop_sequences: Passed on.
        temperature: Passed on.
        top_p: Passed on.
        thread: Recap holds no threads: `create` is ignored, `continue` is answered with the error thread_not_found.
        thinking: The answer has what the model thinks, unless its type is `disabled`.
        top_k: Ignored.
        cache_control: Ignored.
        context_management: Ignored.
        service_tier: Ignored.
        """
        return self.send(
            Call(
                "POST",
                "/v1/messages",
                body={
                    "messages": messages,
                    "max_tokens": max_tokens,
                    **given(
                        model=model,
                        system=system,
                        tools=tools,
                        tool_choice=tool_choice,
                        metadata=metadata,
                        output_config=output_config,
                        stop_sequences=stop_sequences,
                        temperature=temperature,
                        top_p=top_p,
                        thread=thread,
                        thinking=thinking,
                        top_k=top_k,
                        cache_control=cache_control,
                        context_management=context_management,
                        service_tier=service_tier,
                    ),
                    **more,
                },
                person="metadata",
                user_id=user_id,
                key=idempotency_key,
                is_turn=True,
            )
        )

    def count_tokens(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        model: str | None = None,
        system: Any | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> types.TokenCount:
        """Estimate the tokens of a request.

        The memory that a prompt shows beside the request is not counted. Nothing is stored.

        model: Passed on. The built-in model answers to every name.
        system: A string, or text blocks.
        tools: Tools of the client's own.
        """
        return self.send(
            Call(
                "POST",
                "/v1/messages/count_tokens",
                body={
                    "messages": messages,
                    **given(model=model, system=system, tools=tools, tool_choice=tool_choice),
                    **more,
                },
            )
        )

    def create_response(
        self,
        input: Any,
        *,
        model: str | None = None,
        instructions: str | None = None,
        previous_response_id: str | None = None,
        store: bool | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: Any | None = None,
        text: Mapping[str, Any] | None = None,
        reasoning: Mapping[str, Any] | None = None,
        max_output_tokens: int | None = None,
        metadata: Mapping[str, Any] | None = None,
        safety_identifier: Any | None = None,
        parallel_tool_calls: Any | None = None,
        prompt_cache_key: Any | None = None,
        temperature: Any | None = None,
        top_p: Any | None = None,
        include: Any | None = None,
        max_tool_calls: Any | None = None,
        prompt_cache_retention: Any | None = None,
        service_tier: Any | None = None,
        stream_options: Any | None = None,
        top_logprobs: Any | None = None,
        truncation: Any | None = None,
        client_metadata: Any | None = None,
        conversation: Any | None = None,
        background: bool | None = None,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        **more: Any,
    ) -> types.ResponseObject:
        """Ask for a response as from OpenAI, and be remembered.

        The model server is asked for a chat completion; text, images, functions and their outputs are translated.
        With `previous_response_id` the input goes on from that response, in its session, and takes the place of what
        came after it; a reference to a reply is read so, too. Otherwise the session is found as for chat completions,
        and so is the person. With store=false nothing is stored and no memory used, unless Codex sends it. References
        to other items are refused. What else has no counterpart is left out, and X-Memory-Left-Out names it.

        input: A string, or items: messages, calls of functions, their outputs.
        model: Passed on. The built-in model answers to every name.
        instructions: Holds for this request alone.
        previous_response_id: Go on from this response, in its session. What came after it is replaced.
        store: False: nothing is stored, and the memory is not used.
        tools: Tools of the types `function` and `custom`.
        text: `format` is passed on as `response_format`.
        reasoning: `effort` is passed on.
        max_output_tokens: Passed on as `max_completion_tokens`.
        metadata: Its `session_id` names the session, unless a header does.
        safety_identifier: The person, unless a header names one.
        parallel_tool_calls: Passed on.
        prompt_cache_key: Passed on.
        temperature: Passed on.
        top_p: Passed on.
        include: Ignored.
        max_tool_calls: Ignored.
        prompt_cache_retention: Ignored.
        service_tier: Ignored.
        stream_options: Ignored.
        top_logprobs: Ignored.
        truncation: Ignored.
        client_metadata: Ignored.
        conversation: The id of the session, or an object with it: input is new.
        background: Refused.
        """
        return self.send(
            Call(
                "POST",
                "/v1/responses",
                body={
                    "input": input,
                    **given(
                        model=model,
                        instructions=instructions,
                        previous_response_id=previous_response_id,
                        store=store,
                        tools=tools,
                        tool_choice=tool_choice,
                        text=text,
                        reasoning=reasoning,
                        max_output_tokens=max_output_tokens,
                        metadata=metadata,
                        safety_identifier=safety_identifier,
                        parallel_tool_calls=parallel_tool_calls,
                        prompt_cache_key=prompt_cache_key,
                        temperature=temperature,
                        top_p=top_p,
                        include=include,
                        max_tool_calls=max_tool_calls,
                        prompt_cache_retention=prompt_cache_retention,
                        service_tier=service_tier,
                        stream_options=stream_options,
                        top_logprobs=top_logprobs,
                        truncation=truncation,
                        client_metadata=client_metadata,
                        conversation=conversation,
                        background=background,
                    ),
                    **more,
                },
                person="user",
                user_id=user_id,
                key=idempotency_key,
                is_turn=True,
            )
        )

    def get_response(self, response_id: str, *, starting_after: int | None = None) -> types.ResponseObject:
        """Read a response that was stored.

        Of the fields of its request, those that were not stored have their defaults.

        starting_after: With `stream`: the `sequence_number` of the last event that arrived.
        """
        return self.send(
            Call(
                "GET",
                "/v1/responses/{response_id}",
                ids={"response_id": response_id},
                query=given(starting_after=starting_after),
            )
        )

    def delete_response(self, response_id: str) -> types.DeletedObject:
        """Erase a response and what it answers, for good, as single messages are erased."""
        return self.send(Call("DELETE", "/v1/responses/{response_id}", ids={"response_id": response_id}))

    def list_input_items(self, response_id: str) -> types.ConversationItems:
        """List the items that a response answers: those after the response before, oldest first."""
        return self.send(Call("GET", "/v1/responses/{response_id}/input_items", ids={"response_id": response_id}))

    def count_input_tokens(
        self,
        input: Any,
        *,
        model: str | None = None,
        instructions: str | None = None,
        previous_response_id: str | None = None,
        store: bool | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: Any | None = None,
        text: Mapping[str, Any] | None = None,
        reasoning: Mapping[str, Any] | None = None,
        max_output_tokens: int | None = None,
        metadata: Mapping[str, Any] | None = None,
        safety_identifier: Any | None = None,
        parallel_tool_calls: Any | None = None,
        prompt_cache_key: Any | None = None,
        temperature: Any | None = None,
        top_p: Any | None = None,
        include: Any | None = None,
        max_tool_calls: Any | None = None,
        prompt_cache_retention: Any | None = None,
        service_tier: Any | None = None,
        stream_options: Any | None = None,
        top_logprobs: Any | None = None,
        truncation: Any | None = None,
        client_metadata: Any | None = None,
        conversation: Any | None = None,
        background: bool | None = None,
        user_id: str | None = None,
        **more: Any,
    ) -> types.InputTokens:
        """Estimate the tokens of a request.

        The memory that a prompt shows beside the request is not counted. Nothing is stored.

        input: A string, or items: messages, calls of functions, their outputs.
        model: Passed on. The built-in model answers to every name.
        instructions: Holds for this request alone.
        previous_response_id: Go on from this response, in its session. What came after it is replaced.
        store: False: nothing is stored, and the memory is not used.
        tools: Tools of the types `function` and `custom`.
        text: `format` is passed on as `response_format`.
        reasoning: `effort` is passed on.
        max_output_tokens: Passed on as `max_completion_tokens`.
        metadata: Its `session_id` names the session, unless a header does.
        safety_identifier: The person, unless a header names one.
        parallel_tool_calls: Passed on.
        prompt_cache_key: Passed on.
        temperature: Passed on.
        top_p: Passed on.
        include: Ignored.
        max_tool_calls: Ignored.
        prompt_cache_retention: Ignored.
        service_tier: Ignored.
        stream_options: Ignored.
        top_logprobs: Ignored.
        truncation: Ignored.
        client_metadata: Ignored.
        conversation: The id of the session, or an object with it: input is new.
        background: Refused.
        """
        return self.send(
            Call(
                "POST",
                "/v1/responses/input_tokens",
                body={
                    "input": input,
                    **given(
                        model=model,
                        instructions=instructions,
                        previous_response_id=previous_response_id,
                        store=store,
                        tools=tools,
                        tool_choice=tool_choice,
                        text=text,
                        reasoning=reasoning,
                        max_output_tokens=max_output_tokens,
                        metadata=metadata,
                        safety_identifier=safety_identifier,
                        parallel_tool_calls=parallel_tool_calls,
                        prompt_cache_key=prompt_cache_key,
                        temperature=temperature,
                        top_p=top_p,
                        include=include,
                        max_tool_calls=max_tool_calls,
                        prompt_cache_retention=prompt_cache_retention,
                        service_tier=service_tier,
                        stream_options=stream_options,
                        top_logprobs=top_logprobs,
                        truncation=truncation,
                        client_metadata=client_metadata,
                        conversation=conversation,
                        background=background,
                    ),
                    **more,
                },
                person="user",
                user_id=user_id,
            )
        )

    def create_conversation(
        self,
        *,
        items: Sequence[Mapping[str, Any]] | None = None,
        metadata: Mapping[str, str] | None = None,
        safety_identifier: Any | None = None,
        user_id: str | None = None,
        **more: Any,
    ) -> types.ConversationObject:
        """Begin a conversation.

        Without items it is empty. The first person who is named in it has it.

        safety_identifier: The person, unless a header names one.
        """
        return self.send(
            Call(
                "POST",
                "/v1/conversations",
                body={**given(items=items, metadata=metadata, safety_identifier=safety_identifier), **more},
                person="user",
                user_id=user_id,
            )
        )

    def get_conversation(self, conversation_id: str) -> types.ConversationObject:
        """Read a conversation: any session by its id."""
        return self.send(Call("GET", "/v1/conversations/{conversation_id}", ids={"conversation_id": conversation_id}))

    def update_conversation(
        self, conversation_id: str, metadata: Mapping[str, str] | None, *, user_id: str | None = None, **more: Any
    ) -> types.ConversationObject:
        """Change what is kept with a conversation."""
        return self.send(
            Call(
                "POST",
                "/v1/conversations/{conversation_id}",
                ids={"conversation_id": conversation_id},
                body={"metadata": metadata, **more},
                person="metadata",
                user_id=user_id,
            )
        )

    def delete_conversation(self, conversation_id: str) -> types.DeletedObject:
        """Erase a conversation with its items, as DELETE /api/sessions/{session_id} does."""
        return self.send(
            Call("DELETE", "/v1/conversations/{conversation_id}", ids={"conversation_id": conversation_id})
        )

    def list_items_of_conversation(
        self,
        conversation_id: str,
        *,
        after: str | None = None,
        limit: int | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> types.ConversationItems:
        """List the items of a conversation, newest first.

        A message of the person's, of the model's and of a function's has the id that it is retrieved by.

        after: The id of an item: those after it are listed.
        """
        return self.send(
            Call(
                "GET",
                "/v1/conversations/{conversation_id}/items",
                ids={"conversation_id": conversation_id},
                query=given(after=after, limit=limit, order=order),
            )
        )

    def create_items(
        self, conversation_id: str, *, items: Sequence[Mapping[str, Any]] | None = None, **more: Any
    ) -> types.ConversationItems:
        """Append items to a conversation without asking a model.

        An exchange that the conversation ends with already, since Recap answered it, is not stored again.
        """
        return self.send(
            Call(
                "POST",
                "/v1/conversations/{conversation_id}/items",
                ids={"conversation_id": conversation_id},
                body={**given(items=items), **more},
            )
        )

    def get_item_of_conversation(self, conversation_id: str, item_id: str) -> types.ConversationItem:
        """Read an item of a conversation."""
        return self.send(
            Call(
                "GET",
                "/v1/conversations/{conversation_id}/items/{item_id}",
                ids={"conversation_id": conversation_id, "item_id": item_id},
            )
        )

    def delete_item_of_conversation(self, conversation_id: str, item_id: str) -> types.ConversationObject:
        """Erase the message of an item, for good."""
        return self.send(
            Call(
                "DELETE",
                "/v1/conversations/{conversation_id}/items/{item_id}",
                ids={"conversation_id": conversation_id, "item_id": item_id},
            )
        )

    def mcp(
        self,
        jsonrpc: str,
        *,
        id: Any | None = None,
        method: str | None = None,
        params: Mapping[str, Any] | None = None,
        result: Mapping[str, Any] | None = None,
        error: Mapping[str, Any] | None = None,
        user_id: str | None = None,
    ) -> types.RpcMessage:
        """Exchange one message of the Model Context Protocol.

        The revision 2026-07-28 is spoken, and the earlier ones that begin with `initialize`. A key that belongs to no
        single person needs one named: by `user_id`, or by a header such as X-User-Id. With `space`, or X-Memory-
        Space, it is the memory of that space.
        """
        return self.send(
            Call(
                "POST",
                "/mcp",
                body={"jsonrpc": jsonrpc, **given(id=id, method=method, params=params, result=result, error=error)},
                person="query",
                user_id=user_id,
            )
        )

    def live(self) -> types.Live:
        """Check that the process answers."""
        return self.send(Call("GET", "/health/live"))

    def ready(self) -> types.Ready:
        """Check that requests can be served, and by which models."""
        return self.send(Call("GET", "/health/ready"))


class AsyncOperations(ABC):
    """Every call of Recap, for a client that sends it."""

    @abstractmethod
    async def send(self, call: Call) -> Any:
        """Return the answer to a call."""

    @abstractmethod
    def each(self, call: Call) -> AsyncListing[Any, Any]:
        """Return the items that a call lists."""

    @abstractmethod
    def open(self, call: Call) -> AsyncStream:
        """Return the reply that a call streams."""

    @abstractmethod
    def listen(self, call: Call) -> AsyncEventStream:
        """Return the events that a call streams."""

    async def chat(
        self,
        message: str | Sequence[Mapping[str, Any]] | Mapping[str, Any],
        *,
        space: str | None = None,
        timezone: str | None = None,
        spaces: Sequence[str] | None = None,
        person: bool | None = None,
        history: Sequence[types.Said] | None = None,
        session_id: str | None = None,
        name: str | None = None,
        recall: Literal["auto", "always", "tools", "off"] | None = None,
        model: str | None = None,
        remember: bool | None = None,
        prompt: str | None = None,
        system_prompt: str | None = None,
        temporary: bool | None = None,
        replaces: int | None = None,
        user_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> types.ChatReply:
        """Send a message and get the reply.

        A session that does not exist is created. Recap recalls what fits the message, the main model answers, and the
        session's summary and facts are updated after the reply was sent. With `replaces`, the message takes the place
        of an earlier one and of everything after it: new words edit it, the same words get another reply. Replaced
        messages are kept, but no longer shown, recalled or summarised.
        """
        return await self.send(
            Call(
                "POST",
                "/api/chat",
                body={
                    "message": message,
                    **given(
                        space=space,
                        timezone=timezone,
                        spaces=spaces,
                        person=person,
                        history=history,
                        session_id=session_id,
                        name=name,
                        recall=recall,
                        model=model,
                        remember=remember,
                        prompt=prompt,
                        system_prompt=system_prompt,
                        temporary=temporary,
                        replaces=replaces,
                    ),
                },
                person="user_id",
                user_id=user_id,
                key=idempotency_key,
                is_turn=True,
            )
        )

    def stream(
        self,
        message: str | Sequence[Mapping[str, Any]] | Mapping[str, Any],
        *,
        space: str | None = None,
        timezone: str | None = None,
        spaces: Sequence[str] | None = None,
        person: bool | None = None,
        history: Sequence[types.Said] | None = None,
        session_id: str | None = None,
        name: str | None = None,
        recall: Literal["auto", "always", "tools", "off"] | None = None,
        model: str | None = None,
        remember: bool | None = None,
        prompt: str | None = None,
        system_prompt: str | None = None,
        temporary: bool | None = None,
        replaces: int | None = None,
        user_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> AsyncStream:
        """Send a message as `chat` does, and get the reply word by word."""
        return self.open(
            Call(
                "POST",
                "/api/chat",
                body={
                    "stream": True,
                    "message": message,
                    **given(
                        space=space,
                        timezone=timezone,
                        spaces=spaces,
                        person=person,
                        history=history,
                        session_id=session_id,
                        name=name,
                        recall=recall,
                        model=model,
                        remember=remember,
                        prompt=prompt,
                        system_prompt=system_prompt,
                        temporary=temporary,
                        replaces=replaces,
                    ),
                },
                person="user_id",
                user_id=user_id,
                key=idempotency_key,
                is_turn=True,
            )
        )

    def sessions(
        self,
        *,
        space: str | None = None,
        q: str | None = None,
        pinned: bool | None = None,
        archived: bool | None = None,
        before: str | datetime | None = None,
        after: str | datetime | None = None,
        except_user_id: str | None = None,
        user_id: str | None = None,
    ) -> AsyncListing[types.Session, types.SessionPage]:
        """List sessions, newest first."""
        return self.each(
            Call(
                "GET",
                "/api/sessions",
                query=given(
                    space=space,
                    q=q,
                    pinned=pinned,
                    archived=archived,
                    before=before,
                    after=after,
                    except_user_id=except_user_id,
                ),
                person="query",
                user_id=user_id,
            )
        )

    async def create_session(
        self,
        *,
        space: str | None = None,
        session_id: str | None = None,
        title: str | None = None,
        system_prompt: str | None = None,
        remember: bool | None = None,
        type: str | None = None,
        user_id: str | None = None,
    ) -> types.Session:
        """Create an empty session."""
        return await self.send(
            Call(
                "POST",
                "/api/sessions",
                body=given(
                    space=space,
                    session_id=session_id,
                    title=title,
                    system_prompt=system_prompt,
                    remember=remember,
                    type=type,
                ),
                person="user_id",
                user_id=user_id,
            )
        )

    async def session(self, session_id: str, *, space: str | None = None, user_id: str | None = None) -> types.Session:
        """Read a session."""
        return await self.send(
            Call(
                "GET",
                "/api/sessions/{session_id}",
                ids={"session_id": session_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def change_session(
        self,
        session_id: str,
        *,
        title: str | None = None,
        system_prompt: str | Unset | None = UNSET,
        pinned: bool | None = None,
        archived: bool | None = None,
        remember: bool | None = None,
        type: str | Unset | None = UNSET,
        user_id: str | None = None,
    ) -> types.Session:
        """Rename, pin or archive a session, turn its memory off, or set its system prompt or type."""
        return await self.send(
            Call(
                "PATCH",
                "/api/sessions/{session_id}",
                ids={"session_id": session_id},
                body={
                    **given(title=title, pinned=pinned, archived=archived, remember=remember),
                    **changed(system_prompt=system_prompt, type=type),
                },
                person="query",
                user_id=user_id,
                idempotent=True,
            )
        )

    async def erase_session(
        self, session_id: str, *, space: str | None = None, user_id: str | None = None
    ) -> types.Receipt:
        """Erase a session with its messages, summaries and facts, for good.

        When this call answers, they are gone from the database's files and the search index as well. A fact that was
        corrected only by this session is true again. A reply that is being written is not stored.
        """
        return await self.send(
            Call(
                "DELETE",
                "/api/sessions/{session_id}",
                ids={"session_id": session_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def messages(
        self,
        session_id: str,
        *,
        space: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        around: int | None = None,
        branch: int | None = None,
        user_id: str | None = None,
    ) -> AsyncListing[types.ListedMessage, types.ListedMessagePage]:
        """Read a session's messages, word for word.

        With `around`, the page shows the messages before and after one message, with a cursor for each direction.
        """
        return self.each(
            Call(
                "GET",
                "/api/sessions/{session_id}/messages",
                ids={"session_id": session_id},
                query=given(space=space, order=order, around=around, branch=branch),
                person="query",
                user_id=user_id,
            )
        )

    async def add_messages(
        self,
        session_id: str,
        messages: Sequence[types.MessageToAppend],
        *,
        space: str | None = None,
        user_id: str | None = None,
    ) -> types.Appended:
        """Append or import messages without calling a model.

        A call takes up to 1,000 messages. A message whose `external_id` the session has already is left as it is, so
        a call can be repeated safely. A session that does not exist is created.
        """
        return await self.send(
            Call(
                "POST",
                "/api/sessions/{session_id}/messages",
                ids={"session_id": session_id},
                body={"messages": messages, **given(space=space)},
                person="user_id",
                user_id=user_id,
                idempotent=all("external_id" in message for message in messages),
            )
        )

    async def erase_message(
        self, session_id: str, message_id: int, *, space: str | None = None, user_id: str | None = None
    ) -> types.Receipt:
        """Erase a message, for good.

        Facts taken from the message are erased too, and so is every version of the summary that was made from it,
        including the person's own edits. A new summary is made without it. All other messages stay. The replies to it
        may repeat it: they stay in the session, but no summary, search or prompt has them any more. A replaced
        message can be erased as well. A few seconds later the words are gone from the database's files and the search
        index.
        """
        return await self.send(
            Call(
                "DELETE",
                "/api/sessions/{session_id}/messages/{message_id}",
                ids={"session_id": session_id, "message_id": message_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def hide_messages(
        self,
        session_id: str,
        *,
        space: str | None = None,
        first: int | None = None,
        last: int | None = None,
        ids: Sequence[int] | None = None,
        keep: bool | None = None,
        tokens: int | None = None,
        user_id: str | None = None,
    ) -> types.Hidden:
        """Take messages out of the session's prompts.

        Hidden messages stay stored, listed and searched. The session's prompts neither show nor recall them, and
        later updates of the summary do not read them. What a summary or a fact says of them already stays. An answer
        is hidden with its question, and the call of a tool with its results. A span may count from the end: `"first":
        -4, "last": -1` names the last four messages.
        """
        return await self.send(
            Call(
                "POST",
                "/api/sessions/{session_id}/messages/hide",
                ids={"session_id": session_id},
                body=given(space=space, first=first, last=last, ids=ids, keep=keep, tokens=tokens),
                person="user_id",
                user_id=user_id,
            )
        )

    async def show_messages(
        self,
        session_id: str,
        *,
        space: str | None = None,
        first: int | None = None,
        last: int | None = None,
        ids: Sequence[int] | None = None,
        user_id: str | None = None,
    ) -> types.Hidden:
        """Put hidden messages back into the session's prompts, all or those named.

        A summary that was updated without these messages goes back to the version before, and is made anew.
        """
        return await self.send(
            Call(
                "POST",
                "/api/sessions/{session_id}/messages/show",
                ids={"session_id": session_id},
                body=given(space=space, first=first, last=last, ids=ids),
                person="user_id",
                user_id=user_id,
            )
        )

    async def list_message_versions(
        self, session_id: str, *, space: str | None = None, user_id: str | None = None
    ) -> types.VersionsList:
        """List the messages that have other versions.

        A replaced message stays as a version of the message in its place, together with all that followed it.
        """
        return await self.send(
            Call(
                "GET",
                "/api/sessions/{session_id}/messages/versions",
                ids={"session_id": session_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def restore_message(
        self, session_id: str, message_id: int, *, space: str | None = None, user_id: str | None = None
    ) -> types.Session:
        """Bring a version of a message back.

        The version takes the place of the one that the session shows now, together with all messages that followed
        it. The replaced messages are kept and can be brought back in the same way. The summary and the facts follow.
        """
        return await self.send(
            Call(
                "POST",
                "/api/sessions/{session_id}/messages/{message_id}/restore",
                ids={"session_id": session_id, "message_id": message_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def list_related_sessions(
        self, session_id: str, *, space: str | None = None, limit: int | None = None, user_id: str | None = None
    ) -> types.RelatedSessionList:
        """List the person's conversations that belong together with this one, the closest first.

        Related conversations speak of the same people, places and things, or their summaries are near.
        """
        return await self.send(
            Call(
                "GET",
                "/api/sessions/{session_id}/related",
                ids={"session_id": session_id},
                query=given(space=space, limit=limit),
                person="query",
                user_id=user_id,
            )
        )

    async def stop_reply(
        self, session_id: str, *, space: str | None = None, user_id: str | None = None
    ) -> types.Stopping:
        """Stop the reply that is being written.

        The call that waits for the reply returns the words so far, and they are stored with the finish_reason
        `interrupted`. If there are none yet, that call fails with `turn_stopped`. The message is kept; send it again
        to get a reply.
        """
        return await self.send(
            Call(
                "POST",
                "/api/sessions/{session_id}/stop",
                ids={"session_id": session_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def list_turns(
        self,
        session_id: str,
        *,
        space: str | None = None,
        order: Literal["asc", "desc"] | None = None,
        user_id: str | None = None,
    ) -> AsyncListing[types.Turn, types.TurnPage]:
        """List a session's turns, newest first.

        Turns of messages that were replaced are left out.
        """
        return self.each(
            Call(
                "GET",
                "/api/sessions/{session_id}/turns",
                ids={"session_id": session_id},
                query=given(space=space, order=order),
                person="query",
                user_id=user_id,
            )
        )

    async def get_turn(
        self, session_id: str, message_id: int, *, space: str | None = None, user_id: str | None = None
    ) -> types.TurnWithMemory:
        """Read one turn, named by its message or its reply, with the memory its prompt showed."""
        return await self.send(
            Call(
                "GET",
                "/api/sessions/{session_id}/turns/{message_id}",
                ids={"session_id": session_id, "message_id": message_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def summary(self, session_id: str, *, space: str | None = None, user_id: str | None = None) -> types.Summary:
        """Read the newest summary, and whether it is up to date."""
        return await self.send(
            Call(
                "GET",
                "/api/sessions/{session_id}/summary",
                ids={"session_id": session_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def edit_summary(
        self,
        session_id: str,
        sections: types.Sections,
        *,
        space: str | None = None,
        expected_version: int | None = None,
        user_id: str | None = None,
    ) -> types.Summary:
        """Replace the summary with an edited one.

        It becomes a new version. The next prompt shows it.
        """
        return await self.send(
            Call(
                "PUT",
                "/api/sessions/{session_id}/summary",
                ids={"session_id": session_id},
                body={"sections": sections, **given(space=space, expected_version=expected_version)},
                person="user_id",
                user_id=user_id,
            )
        )

    def list_summary_versions(
        self, session_id: str, *, space: str | None = None, user_id: str | None = None
    ) -> AsyncListing[types.SummaryVersion, types.SummaryVersionPage]:
        """List all versions, newest first."""
        return self.each(
            Call(
                "GET",
                "/api/sessions/{session_id}/summary/versions",
                ids={"session_id": session_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def roll_back_summary(
        self, session_id: str, version: int, *, space: str | None = None, user_id: str | None = None
    ) -> types.Summary:
        """Bring an earlier version back, as a new version.

        Messages that it does not cover are sent word for word until the next update.
        """
        return await self.send(
            Call(
                "POST",
                "/api/sessions/{session_id}/summary/rollback",
                ids={"session_id": session_id},
                body={"version": version, **given(space=space)},
                person="user_id",
                user_id=user_id,
            )
        )

    async def refresh_summary(
        self, session_id: str, *, space: str | None = None, user_id: str | None = None
    ) -> types.Summary:
        """Update the summary now, also after an update has failed."""
        return await self.send(
            Call(
                "POST",
                "/api/sessions/{session_id}/summary/refresh",
                ids={"session_id": session_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def preview_summary(
        self,
        session_id: str,
        *,
        space: str | None = None,
        prompt: str | None = None,
        text: str | None = None,
        user_id: str | None = None,
    ) -> types.SummaryPreview:
        """Try a summary prompt on this conversation, and store nothing.

        The mini model reads the whole conversation with this prompt. If that is too much for one call, it continues
        the earliest version of the summary after which the rest fits.
        """
        return await self.send(
            Call(
                "POST",
                "/api/sessions/{session_id}/summary/preview",
                ids={"session_id": session_id},
                body=given(space=space, prompt=prompt, text=text),
                person="user_id",
                user_id=user_id,
            )
        )

    def facts(
        self,
        *,
        space: str | None = None,
        session_id: str | None = None,
        q: str | None = None,
        category: str | None = None,
        as_of: str | datetime | None = None,
        state: Literal["valid", "waiting"] | None = None,
        user_id: str | None = None,
    ) -> AsyncListing[types.Fact, types.FactPage]:
        """List the facts that are true now, or were true at `as_of`.

        With `session_id`, these are the session's facts, and those of its person with the scope `user`.
        """
        return self.each(
            Call(
                "GET",
                "/api/facts",
                query=given(space=space, session_id=session_id, q=q, category=category, as_of=as_of, state=state),
                person="query",
                user_id=user_id,
            )
        )

    async def add_fact(
        self,
        text: str,
        *,
        space: str | None = None,
        session_id: str | None = None,
        category: str | None = None,
        importance: int | None = None,
        pinned: bool | None = None,
        expires_at: str | datetime | None = None,
        user_id: str | None = None,
    ) -> types.Fact:
        """Add a fact, to one session or to all sessions of a person."""
        return await self.send(
            Call(
                "POST",
                "/api/facts",
                body={
                    "text": text,
                    **given(
                        space=space,
                        session_id=session_id,
                        category=category,
                        importance=importance,
                        pinned=pinned,
                        expires_at=expires_at,
                    ),
                },
                person="user_id",
                user_id=user_id,
            )
        )

    async def get_fact(self, fact_id: int, *, space: str | None = None, user_id: str | None = None) -> types.Fact:
        """Read a fact, also one that is no longer true."""
        return await self.send(
            Call(
                "GET",
                "/api/facts/{fact_id}",
                ids={"fact_id": fact_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def change_fact(
        self,
        fact_id: int,
        *,
        text: str | None = None,
        category: str | None = None,
        importance: int | None = None,
        scope: Literal["session", "user"] | None = None,
        pinned: bool | None = None,
        expires_at: str | datetime | Unset | None = UNSET,
        user_id: str | None = None,
    ) -> types.Fact:
        """Edit or pin a fact.

        Where the newest summary has exactly the old text, it gets the new one. The profile loses the old text.
        """
        return await self.send(
            Call(
                "PATCH",
                "/api/facts/{fact_id}",
                ids={"fact_id": fact_id},
                body={
                    **given(text=text, category=category, importance=importance, scope=scope, pinned=pinned),
                    **changed(expires_at=expires_at),
                },
                person="query",
                user_id=user_id,
                idempotent=True,
            )
        )

    async def forget_fact(
        self, fact_id: int, *, space: str | None = None, restore: bool | None = None, user_id: str | None = None
    ) -> types.Receipt:
        """Forget a fact, with its history.

        The facts that it corrected are forgotten too; with `restore`, they become true again instead. Items of the
        newest summaries that say exactly the same go too. The source message stays: to erase the words, erase the
        message.
        """
        return await self.send(
            Call(
                "DELETE",
                "/api/facts/{fact_id}",
                ids={"fact_id": fact_id},
                query=given(space=space, restore=restore),
                person="query",
                user_id=user_id,
            )
        )

    async def forget_facts(
        self, ids: Sequence[int], *, space: str | None = None, user_id: str | None = None
    ) -> types.Receipt:
        """Forget up to 1,000 facts, with their history.

        Facts that do not exist are skipped, so a call can be repeated safely.
        """
        return await self.send(
            Call(
                "POST",
                "/api/facts/forget",
                body={"ids": ids, **given(space=space)},
                person="user_id",
                user_id=user_id,
                idempotent=True,
            )
        )

    async def review_facts(
        self,
        *,
        space: str | None = None,
        accepted: Sequence[int] | None = None,
        refused: Sequence[int] | None = None,
        user_id: str | None = None,
    ) -> types.ReviewedFacts:
        """Accept facts that wait for review, and refuse others.

        An accepted fact is true from when it was stated, and takes the place of those that it corrects. A refused one
        is erased; its message stays. Facts that do not wait are skipped. `/api/facts?state=waiting` lists those that
        do.
        """
        return await self.send(
            Call(
                "POST",
                "/api/facts/review",
                body=given(space=space, accepted=accepted, refused=refused),
                person="user_id",
                user_id=user_id,
            )
        )

    async def fact_history(
        self, fact_id: int, *, space: str | None = None, user_id: str | None = None
    ) -> types.FactRevisionList:
        """Read how a fact, and the facts that it corrected, changed."""
        return await self.send(
            Call(
                "GET",
                "/api/facts/{fact_id}/history",
                ids={"fact_id": fact_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def list_consolidations_of_space(self, space: str) -> types.ConsolidationRunList:
        """List what jobs closed of a space's facts to bring them together, the newest run first.

        Of facts that say the same one stays, and the others are its `proofs`. Facts that a newer one contradicts are
        closed, and so are plans whose day is over.
        """
        return await self.send(Call("GET", "/api/spaces/{space}/consolidation", ids={"space": space}))

    async def consolidate_of_space(self, space: str) -> None:
        """Bring a space's facts together now, in a job.

        Where words leave a doubt the mini model decides. It is asked once a day at most.
        """
        await self.send(Call("POST", "/api/spaces/{space}/consolidation", ids={"space": space}))

    async def list_consolidations(self, *, user_id: str | None = None) -> types.ConsolidationRunList:
        """List what jobs closed of a person's facts to bring them together, the newest run first.

        Of facts that say the same one stays, and the others are its `proofs`. Facts that a newer one contradicts are
        closed, and so are plans whose day is over.
        """
        return await self.send(Call("GET", "/api/users/{user_id}/consolidation", person="path", user_id=user_id))

    async def consolidate(self, *, user_id: str | None = None) -> None:
        """Bring a person's facts together now, in a job.

        Where words leave a doubt the mini model decides. It is asked once a day at most.
        """
        await self.send(Call("POST", "/api/users/{user_id}/consolidation", person="path", user_id=user_id))

    async def undo_consolidation_of_space(self, space: str) -> types.ConsolidationRun:
        """Undo the newest run: the facts that it closed hold again.

        Later runs leave these facts alone. Those that were corrected since stay closed.
        """
        return await self.send(Call("POST", "/api/spaces/{space}/consolidation/undo", ids={"space": space}))

    async def undo_consolidation(self, *, user_id: str | None = None) -> types.ConsolidationRun:
        """Undo the newest run: the facts that it closed hold again.

        Later runs leave these facts alone. Those that were corrected since stay closed.
        """
        return await self.send(Call("POST", "/api/users/{user_id}/consolidation/undo", person="path", user_id=user_id))

    async def add_document(
        self,
        text: str,
        *,
        space: str | None = None,
        session_id: str | None = None,
        title: str | None = None,
        uri: str | None = None,
        external_id: str | None = None,
        media_type: Literal["text/plain", "text/markdown", "text/html"] | None = None,
        user_id: str | None = None,
    ) -> types.Document:
        """Add a document, as text or as a file, to what is known of a person.

        Send JSON with the `text`, or a form (`multipart/form-data`) with the `file`: text, Markdown, HTML or PDF. It
        is cut into passages, by headings and pages, which searches and turns find beside messages, from now on. Where
        they are quoted, so are title, page and `uri`. No facts and no summaries are made of it. The same document
        again changes nothing; another with the same `external_id` takes its place and keeps its `id`.
        """
        return await self.send(
            Call(
                "POST",
                "/api/documents",
                body={
                    "text": text,
                    **given(
                        space=space,
                        session_id=session_id,
                        title=title,
                        uri=uri,
                        external_id=external_id,
                        media_type=media_type,
                    ),
                },
                person="user_id",
                user_id=user_id,
                idempotent=True,
            )
        )

    async def upload_document(
        self,
        file: File,
        *,
        space: str | None = None,
        session_id: str | None = None,
        title: str | None = None,
        uri: str | None = None,
        external_id: str | None = None,
        user_id: str | None = None,
    ) -> types.Document:
        """Add a document, as text or as a file, to what is known of a person.

        Send JSON with the `text`, or a form (`multipart/form-data`) with the `file`: text, Markdown, HTML or PDF. It
        is cut into passages, by headings and pages, which searches and turns find beside messages, from now on. Where
        they are quoted, so are title, page and `uri`. No facts and no summaries are made of it. The same document
        again changes nothing; another with the same `external_id` takes its place and keeps its `id`.
        """
        return await self.send(
            Call(
                "POST",
                "/api/documents",
                body=given(space=space, session_id=session_id, title=title, uri=uri, external_id=external_id),
                file=file,
                person="user_id",
                user_id=user_id,
                idempotent=True,
            )
        )

    def list_documents(
        self, *, space: str | None = None, session_id: str | None = None, user_id: str | None = None
    ) -> AsyncListing[types.Document, types.DocumentPage]:
        """List a person's documents, newest first."""
        return self.each(
            Call(
                "GET",
                "/api/documents",
                query=given(space=space, session_id=session_id),
                person="query",
                user_id=user_id,
            )
        )

    async def get_document(
        self, document_id: str, *, space: str | None = None, user_id: str | None = None
    ) -> types.Document:
        """Read what is known of a document."""
        return await self.send(
            Call(
                "GET",
                "/api/documents/{document_id}",
                ids={"document_id": document_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def delete_document(
        self, document_id: str, *, space: str | None = None, user_id: str | None = None
    ) -> types.Receipt:
        """Delete a document with all its passages, for good."""
        return await self.send(
            Call(
                "DELETE",
                "/api/documents/{document_id}",
                ids={"document_id": document_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def list_passages(
        self, document_id: str, *, space: str | None = None, user_id: str | None = None
    ) -> AsyncListing[types.Passage, types.PassagePage]:
        """Read a document's text, passage by passage."""
        return self.each(
            Call(
                "GET",
                "/api/documents/{document_id}/passages",
                ids={"document_id": document_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def read_graph(
        self,
        *,
        space: str | None = None,
        session_id: str | None = None,
        entity: str | None = None,
        depth: int | None = None,
        as_of: str | datetime | None = None,
        user_id: str | None = None,
    ) -> AsyncListing[types.Edge, types.EdgePage]:
        """Read the links around a person, place or thing, the nearest first.

        Each link belongs to a fact: it rests on the same words, and is corrected, forgotten and erased with it. With
        `session_id`, these are the links of the session's facts, and those of its person with the scope `user`.
        """
        return self.each(
            Call(
                "GET",
                "/api/graph",
                query=given(space=space, session_id=session_id, entity=entity, depth=depth, as_of=as_of),
                person="query",
                user_id=user_id,
            )
        )

    async def search(
        self,
        q: str,
        *,
        space: str | None = None,
        session_id: str | None = None,
        after: str | datetime | None = None,
        before: str | datetime | None = None,
        role: Literal["user", "assistant", "system", "tool"] | None = None,
        kind: Literal["message", "document", "summary", "fact"] | None = None,
        limit: int | None = None,
        window: int | None = None,
        timezone: str | None = None,
        user_id: str | None = None,
    ) -> types.SearchResults:
        """Search a person's past messages, or one session's.

        Messages are found the moment they are stored, and ranked by how well their words match. `q` may have
        "phrases", -exclusions and prefixes*. Words are compared by their stems: `kettles` finds "kettle".
        """
        return await self.send(
            Call(
                "GET",
                "/api/search",
                query={
                    "q": q,
                    **given(
                        space=space,
                        session_id=session_id,
                        after=after,
                        before=before,
                        role=role,
                        kind=kind,
                        limit=limit,
                        window=window,
                        timezone=timezone,
                    ),
                },
                person="query",
                user_id=user_id,
            )
        )

    async def recall(
        self,
        message: str,
        *,
        space: str | None = None,
        timezone: str | None = None,
        spaces: Sequence[str] | None = None,
        person: bool | None = None,
        history: Sequence[types.Said] | None = None,
        session_id: str | None = None,
        tokens: int | None = None,
        recall: Literal["auto", "always", "off"] | None = None,
        user_id: str | None = None,
    ) -> types.RecallBlock:
        """Get what a prompt for a message would show of the memory.

        For an application that calls a model itself: `block` is ready to stand before the message, or in a system
        prompt. It has instructions, profile and facts, the summary of the session if one is named, and excerpts of
        earlier conversations, as in the prompt of a turn. Nothing is stored. The session may be one that begins with
        this message. Its newest messages, those since the summary, are not in the block: the program sends them
        itself, as many as `memory.tail.messages` says.
        """
        return await self.send(
            Call(
                "POST",
                "/api/recall",
                body={
                    "message": message,
                    **given(
                        space=space,
                        timezone=timezone,
                        spaces=spaces,
                        person=person,
                        history=history,
                        session_id=session_id,
                        tokens=tokens,
                        recall=recall,
                    ),
                },
                person="user_id",
                user_id=user_id,
                idempotent=True,
            )
        )

    async def add_unhelpful(
        self,
        session_id: str,
        message_id: int,
        hits: Sequence[int],
        *,
        space: str | None = None,
        user_id: str | None = None,
    ) -> types.Unhelpful:
        """Mark a recalled excerpt as not helpful.

        From now on the excerpt counts half for similar questions of the same person, which share half of their words
        or mean much the same. The `why` of an excerpt says what it lost by that, as `unhelpful`. The mark goes when
        the question or a message of the excerpt is erased or replaced.
        """
        return await self.send(
            Call(
                "POST",
                "/api/recall/unhelpful",
                body={"session_id": session_id, "message_id": message_id, "hits": hits, **given(space=space)},
                person="user_id",
                user_id=user_id,
            )
        )

    def list_unhelpful(
        self,
        *,
        space: str | None = None,
        session_id: str | None = None,
        message_id: int | None = None,
        user_id: str | None = None,
    ) -> AsyncListing[types.Unhelpful, types.UnhelpfulPage]:
        """List the excerpts that a person marked as not helpful, newest first."""
        return self.each(
            Call(
                "GET",
                "/api/recall/unhelpful",
                query=given(space=space, session_id=session_id, message_id=message_id),
                person="query",
                user_id=user_id,
            )
        )

    async def delete_unhelpful(
        self, mark_id: int, *, space: str | None = None, user_id: str | None = None
    ) -> types.Receipt:
        """Take a mark back: the excerpt counts as before."""
        return await self.send(
            Call(
                "DELETE",
                "/api/recall/unhelpful/{mark_id}",
                ids={"mark_id": mark_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def put_item(
        self,
        namespace: Sequence[str],
        key: str,
        value: Any,
        *,
        space: str | None = None,
        version: int | None = None,
        ttl: float | None = None,
        refresh_on_read: bool | None = None,
        index: Sequence[str] | None = None,
        user_id: str | None = None,
    ) -> types.Item:
        """Store an item, in the place of one with its name.

        Without a `user_id` it is the tenant's own. With `version` it is stored only if the item was not changed
        meanwhile.
        """
        return await self.send(
            Call(
                "PUT",
                "/api/store/items",
                body={
                    "namespace": namespace,
                    "key": key,
                    "value": value,
                    **given(space=space, version=version, ttl=ttl, refresh_on_read=refresh_on_read, index=index),
                },
                person="user_id",
                user_id=user_id,
                idempotent=True,
            )
        )

    async def get_item(
        self,
        namespace: Sequence[str],
        key: str,
        *,
        space: str | None = None,
        refresh: bool | None = None,
        user_id: str | None = None,
    ) -> types.Item:
        """Read an item."""
        return await self.send(
            Call(
                "GET",
                "/api/store/items",
                query={"namespace": namespace, "key": key, **given(space=space, refresh=refresh)},
                person="query",
                user_id=user_id,
            )
        )

    async def delete_item(
        self,
        namespace: Sequence[str],
        key: str,
        *,
        space: str | None = None,
        version: int | None = None,
        user_id: str | None = None,
    ) -> types.Receipt:
        """Erase an item, for good.

        The item is not found from now on. Within a minute or two its words are gone from the database's files.
        """
        return await self.send(
            Call(
                "DELETE",
                "/api/store/items",
                query={"namespace": namespace, "key": key, **given(space=space, version=version)},
                person="query",
                user_id=user_id,
            )
        )

    async def search_items(
        self,
        namespace_prefix: Sequence[str] = (),
        *,
        space: str | None = None,
        filter: Mapping[str, Any] | None = None,
        query: str | None = None,
        fields: Sequence[str] | None = None,
        limit: int | None = None,
        offset: int | None = None,
        refresh: bool | None = None,
        user_id: str | None = None,
    ) -> types.Found:
        """Search items, newest first or by a query.

        Of what the filter leaves, a `query` ranks the 1,000 items that were changed last, by words and meaning.
        """
        return await self.send(
            Call(
                "POST",
                "/api/store/search",
                body={
                    "namespace_prefix": namespace_prefix,
                    **given(
                        space=space,
                        filter=filter,
                        query=query,
                        fields=fields,
                        limit=limit,
                        offset=offset,
                        refresh=refresh,
                    ),
                },
                person="user_id",
                user_id=user_id,
                idempotent=True,
            )
        )

    async def list_namespaces(
        self,
        *,
        space: str | None = None,
        prefix: Sequence[str] | None = None,
        suffix: Sequence[str] | None = None,
        max_depth: int | None = None,
        limit: int | None = None,
        offset: int | None = None,
        user_id: str | None = None,
    ) -> types.NamespaceList:
        """List the namespaces that have items, in alphabetical order."""
        return await self.send(
            Call(
                "GET",
                "/api/store/namespaces",
                query=given(space=space, prefix=prefix, suffix=suffix, max_depth=max_depth, limit=limit, offset=offset),
                person="query",
                user_id=user_id,
            )
        )

    async def batch(
        self, operations: Sequence[Mapping[str, Any]], *, space: str | None = None, user_id: str | None = None
    ) -> types.Results:
        """Run up to 1,000 operations in one transaction.

        Operations run in their order, all or none of them, and each sees the changes of earlier ones. A key needs the
        scope `read` too, unless every operation is put or delete.
        """
        return await self.send(
            Call(
                "POST",
                "/api/store/batch",
                body={"operations": operations, **given(space=space)},
                person="user_id",
                user_id=user_id,
            )
        )

    async def get_profile_of_space(self, space: str, *, as_of: str | datetime | None = None) -> types.Profile:
        """Read the profile as it is, or as it was at `as_of`."""
        return await self.send(
            Call("GET", "/api/spaces/{space}/profile", ids={"space": space}, query=given(as_of=as_of))
        )

    async def edit_profile_of_space(
        self, space: str, patch: Sequence[types.Operation], *, expected_version: int | Unset | None = UNSET
    ) -> types.Profile:
        """Edit the profile by a JSON Patch (RFC 6902).

        All of its operations apply, or none. The next prompt shows the new version. The model changes what a space
        wrote only when they say something else later.
        """
        return await self.send(
            Call(
                "PATCH",
                "/api/spaces/{space}/profile",
                ids={"space": space},
                body={"patch": patch, **changed(expected_version=expected_version)},
            )
        )

    async def profile(self, *, as_of: str | datetime | None = None, user_id: str | None = None) -> types.Profile:
        """Read the profile as it is, or as it was at `as_of`."""
        return await self.send(
            Call("GET", "/api/users/{user_id}/profile", query=given(as_of=as_of), person="path", user_id=user_id)
        )

    async def edit_profile(
        self,
        patch: Sequence[types.Operation],
        *,
        expected_version: int | Unset | None = UNSET,
        user_id: str | None = None,
    ) -> types.Profile:
        """Edit the profile by a JSON Patch (RFC 6902).

        All of its operations apply, or none. The next prompt shows the new version. The model changes what a person
        wrote only when they say something else later.
        """
        return await self.send(
            Call(
                "PATCH",
                "/api/users/{user_id}/profile",
                body={"patch": patch, **changed(expected_version=expected_version)},
                person="path",
                user_id=user_id,
            )
        )

    def list_profile_versions_of_space(self, space: str) -> AsyncListing[types.Profile, types.ProfilePage]:
        """List all versions of the profile, newest first."""
        return self.each(Call("GET", "/api/spaces/{space}/profile/versions", ids={"space": space}))

    def list_profile_versions(self, *, user_id: str | None = None) -> AsyncListing[types.Profile, types.ProfilePage]:
        """List all versions of the profile, newest first."""
        return self.each(Call("GET", "/api/users/{user_id}/profile/versions", person="path", user_id=user_id))

    async def roll_back_profile_of_space(self, space: str, version: int) -> types.Profile:
        """Bring an earlier version of the profile back, as a new version."""
        return await self.send(
            Call("POST", "/api/spaces/{space}/profile/rollback", ids={"space": space}, body={"version": version})
        )

    async def roll_back_profile(self, version: int, *, user_id: str | None = None) -> types.Profile:
        """Bring an earlier version of the profile back, as a new version."""
        return await self.send(
            Call(
                "POST",
                "/api/users/{user_id}/profile/rollback",
                body={"version": version},
                person="path",
                user_id=user_id,
            )
        )

    async def refresh_profile_of_space(self, space: str) -> types.Profile:
        """Have the mini model read the new facts about the space now, also after an update has failed."""
        return await self.send(Call("POST", "/api/spaces/{space}/profile/refresh", ids={"space": space}))

    async def refresh_profile(self, *, user_id: str | None = None) -> types.Profile:
        """Have the mini model read the new facts about the person now, also after an update has failed."""
        return await self.send(Call("POST", "/api/users/{user_id}/profile/refresh", person="path", user_id=user_id))

    async def get_profile_schema(self, *, kind: Literal["user", "space"] | None = None) -> types.SchemaOfProfiles:
        """Read the JSON Schema of the tenant's profiles."""
        return await self.send(Call("GET", "/api/profile/schema", query=given(kind=kind)))

    async def set_profile_schema(self, schema: Any) -> types.SchemaOfProfiles:
        """Set the JSON Schema (2020-12) of the tenant's profiles.

        It is one tree, without references and patterns, and an empty profile fits it. Profiles stay as they are; the
        next change of one drops what the schema refuses.
        """
        return await self.send(Call("PUT", "/api/profile/schema", body={"schema": schema}))

    async def get_overview_of_space(self, space: str) -> types.Overview:
        """Read the overview as it is, and whether it is being written."""
        return await self.send(Call("GET", "/api/spaces/{space}/overview", ids={"space": space}))

    async def edit_overview_of_space(
        self, space: str, sentences: Sequence[types.WrittenSentence], *, expected_version: int | None = None
    ) -> types.Overview:
        """Set the sentences of the overview.

        The next prompt shows them. What the space wrote stays until they change it; what they leave out does not come
        back from the same facts or in the same words. A sentence that is sent as it stands keeps its sources.
        """
        return await self.send(
            Call(
                "PUT",
                "/api/spaces/{space}/overview",
                ids={"space": space},
                body={"sentences": sentences, **given(expected_version=expected_version)},
            )
        )

    async def get_overview(self, *, user_id: str | None = None) -> types.Overview:
        """Read the overview as it is, and whether it is being written."""
        return await self.send(Call("GET", "/api/users/{user_id}/overview", person="path", user_id=user_id))

    async def edit_overview(
        self,
        sentences: Sequence[types.WrittenSentence],
        *,
        expected_version: int | None = None,
        user_id: str | None = None,
    ) -> types.Overview:
        """Set the sentences of the overview.

        The next prompt shows them. What the person wrote stays until they change it; what they leave out does not
        come back from the same facts or in the same words. A sentence that is sent as it stands keeps its sources.
        """
        return await self.send(
            Call(
                "PUT",
                "/api/users/{user_id}/overview",
                body={"sentences": sentences, **given(expected_version=expected_version)},
                person="path",
                user_id=user_id,
            )
        )

    def list_overview_versions_of_space(
        self, space: str
    ) -> AsyncListing[types.OverviewVersion, types.OverviewVersionPage]:
        """List all versions of the overview, newest first."""
        return self.each(Call("GET", "/api/spaces/{space}/overview/versions", ids={"space": space}))

    def list_overview_versions(
        self, *, user_id: str | None = None
    ) -> AsyncListing[types.OverviewVersion, types.OverviewVersionPage]:
        """List all versions of the overview, newest first."""
        return self.each(Call("GET", "/api/users/{user_id}/overview/versions", person="path", user_id=user_id))

    async def roll_back_overview_of_space(self, space: str, version: int) -> types.Overview:
        """Bring an earlier version of the overview back, as a new version.

        Sentences whose facts hold no longer are left out.
        """
        return await self.send(
            Call("POST", "/api/spaces/{space}/overview/rollback", ids={"space": space}, body={"version": version})
        )

    async def roll_back_overview(self, version: int, *, user_id: str | None = None) -> types.Overview:
        """Bring an earlier version of the overview back, as a new version.

        Sentences whose facts hold no longer are left out.
        """
        return await self.send(
            Call(
                "POST",
                "/api/users/{user_id}/overview/rollback",
                body={"version": version},
                person="path",
                user_id=user_id,
            )
        )

    async def refresh_overview_of_space(self, space: str) -> types.Overview:
        """Have the mini model write the overview now, also after an update has failed."""
        return await self.send(Call("POST", "/api/spaces/{space}/overview/refresh", ids={"space": space}))

    async def refresh_overview(self, *, user_id: str | None = None) -> types.Overview:
        """Have the mini model write the overview now, also after an update has failed."""
        return await self.send(Call("POST", "/api/users/{user_id}/overview/refresh", person="path", user_id=user_id))

    async def add_example(
        self,
        *,
        space: str | None = None,
        input: str | None = None,
        output: str | None = None,
        messages: Sequence[types.ExampleMessage] | None = None,
        session_id: str | None = None,
        message_id: int | None = None,
        tags: Sequence[str] | None = None,
        rating: int | None = None,
        user_id: str | None = None,
    ) -> types.Example:
        """Add an example, or make one of an exchange.

        An exchange becomes an example of the session's owner, and goes when one of its messages is erased or
        replaced. Of long messages the beginning is kept, and of calls of tools between them those that have at most
        8,000 characters. Otherwise the example is the user's or, without a `user_id`, for all people of the tenant.
        `messages` show how tools are called: the user's words, the assistant's calls, the results and the answer.
        """
        return await self.send(
            Call(
                "POST",
                "/api/examples",
                body=given(
                    space=space,
                    input=input,
                    output=output,
                    messages=messages,
                    session_id=session_id,
                    message_id=message_id,
                    tags=tags,
                    rating=rating,
                ),
                person="user_id",
                user_id=user_id,
            )
        )

    def list_examples(
        self, *, space: str | None = None, session_id: str | None = None, user_id: str | None = None
    ) -> AsyncListing[types.Example, types.ExamplePage]:
        """List the examples of a user or, without a `user_id`, those for all of the tenant, newest first."""
        return self.each(
            Call(
                "GET", "/api/examples", query=given(space=space, session_id=session_id), person="query", user_id=user_id
            )
        )

    async def delete_example(
        self, example_id: int, *, space: str | None = None, user_id: str | None = None
    ) -> types.Receipt:
        """Erase an example, for good."""
        return await self.send(
            Call(
                "DELETE",
                "/api/examples/{example_id}",
                ids={"example_id": example_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def list_users(self) -> AsyncListing[types.ListedUser, types.ListedUserPage]:
        """List the persons of whom something is stored, the newest first.

        A key of the whole tenant lists all of its persons, a key of a person that person alone.
        """
        return self.each(Call("GET", "/api/users"))

    async def get_space(self, space: str) -> types.User:
        """Read how much is stored of a space."""
        return await self.send(Call("GET", "/api/spaces/{space}", ids={"space": space}))

    async def change_space(self, space: str, *, remember: bool | None = None) -> types.User:
        """Turn the memory of a space off, or on again."""
        return await self.send(
            Call("PATCH", "/api/spaces/{space}", ids={"space": space}, body=given(remember=remember))
        )

    async def erase_space(self, space: str) -> types.Receipt:
        """Erase everything of a space, for good.

        When this call answers, messages, summaries, facts, their histories, jobs and the search index are gone, from
        the database's files as well. A reply that is being written is not stored.
        """
        return await self.send(Call("DELETE", "/api/spaces/{space}", ids={"space": space}))

    async def get_user(self, *, user_id: str | None = None) -> types.User:
        """Read how much is stored of a person."""
        return await self.send(Call("GET", "/api/users/{user_id}", person="path", user_id=user_id))

    async def change_user(self, *, remember: bool | None = None, user_id: str | None = None) -> types.User:
        """Turn the memory of a person off, or on again."""
        return await self.send(
            Call("PATCH", "/api/users/{user_id}", body=given(remember=remember), person="path", user_id=user_id)
        )

    async def erase_user(self, *, user_id: str | None = None) -> types.Receipt:
        """Erase everything of a person, for good.

        When this call answers, messages, summaries, facts, their histories, jobs and the search index are gone, from
        the database's files as well. A reply that is being written is not stored.
        """
        return await self.send(Call("DELETE", "/api/users/{user_id}", person="path", user_id=user_id))

    async def export_space(
        self, space: str, *, format: Literal["json", "markdown"] | None = None
    ) -> types.ExportDocument | str:
        """Export everything of a space as one JSON document, or as Markdown to read.

        The JSON document can be imported again; of the Markdown, the chats can. Replaced messages are left out.
        """
        return await self.send(
            Call("GET", "/api/spaces/{space}/export", ids={"space": space}, query=given(format=format))
        )

    async def export(
        self, *, format: Literal["json", "markdown"] | None = None, user_id: str | None = None
    ) -> types.ExportDocument | str:
        """Export everything of a person as one JSON document, or as Markdown to read.

        The JSON document can be imported again; of the Markdown, the chats can. Replaced messages are left out.
        """
        return await self.send(
            Call("GET", "/api/users/{user_id}/export", query=given(format=format), person="path", user_id=user_id)
        )

    async def import_chats(self, document: Any | bytes, *, user_id: str | None = None) -> types.Imported:
        """Import an export of Recap or of another program, or chats as JSON, JSON Lines or Markdown.

        docs/export.md names the programs. Send JSON as `application/json`, and any other file, such as a .zip, as
        `application/octet-stream`. The whole document is checked before anything is stored. What is stored already is
        left as it is, so a call can be repeated safely. A session gets a new id where the person has another
        conversation of that id. No model is called: `POST /api/users/{user_id}/summaries` has what was imported
        summarised.
        """
        return await self.send(Call("POST", "/api/import", body=document, person="query", user_id=user_id))

    async def get_backlog_of_space(self, space: str) -> types.Backlog:
        """Read how much of a space's sessions no summary covers.

        After an import, no summary covers the imported messages.
        """
        return await self.send(Call("GET", "/api/spaces/{space}/summaries", ids={"space": space}))

    async def summarise_backlog_of_space(self, space: str) -> types.Backlog:
        """Summarise all of a space's sessions, and take facts from them.

        The newest come first. A repeated call resumes what was cancelled or has failed. With DAILY_TOKENS, only as
        many sessions are summarised as fit what is left of the space's day.
        """
        return await self.send(Call("POST", "/api/spaces/{space}/summaries", ids={"space": space}))

    async def cancel_backlog_of_space(self, space: str) -> types.Backlog:
        """Cancel the updates of summaries that have not begun.

        Summaries that were made stay. A session that goes on is summarised as usual.
        """
        return await self.send(Call("DELETE", "/api/spaces/{space}/summaries", ids={"space": space}))

    async def get_backlog(self, *, user_id: str | None = None) -> types.Backlog:
        """Read how much of a person's sessions no summary covers.

        After an import, no summary covers the imported messages.
        """
        return await self.send(Call("GET", "/api/users/{user_id}/summaries", person="path", user_id=user_id))

    async def summarise_backlog(self, *, user_id: str | None = None) -> types.Backlog:
        """Summarise all of a person's sessions, and take facts from them.

        The newest come first. A repeated call resumes what was cancelled or has failed. With DAILY_TOKENS, only as
        many sessions are summarised as fit what is left of the person's day.
        """
        return await self.send(Call("POST", "/api/users/{user_id}/summaries", person="path", user_id=user_id))

    async def cancel_backlog(self, *, user_id: str | None = None) -> types.Backlog:
        """Cancel the updates of summaries that have not begun.

        Summaries that were made stay. A session that goes on is summarised as usual.
        """
        return await self.send(Call("DELETE", "/api/users/{user_id}/summaries", person="path", user_id=user_id))

    async def whoami(self) -> types.Me:
        """Read the tenant, the person and the scopes of the request's key, and what it may do.

        On a server without keys, every caller has the tenant `default` and all scopes.
        """
        return await self.send(Call("GET", "/api/me"))

    def list_spaces(self) -> AsyncListing[types.Space, types.SpacePage]:
        """List the spaces that the key opens.

        A key of a person, or of spaces alone, opens those that it names. A key of the whole tenant opens every space;
        those are listed that something is stored of, the newest first.
        """
        return self.each(Call("GET", "/api/spaces"))

    async def get_retention(self) -> types.RetentionPolicy:
        """Read which sessions of the tenant stay."""
        return await self.send(Call("GET", "/api/retention"))

    async def put_retention(
        self, *, days: int | None = None, sessions: int | None = None, archive: bool | None = None
    ) -> types.RetentionPolicy:
        """Set which sessions of the tenant stay.

        A job takes out the others, now and once a day: their messages, summaries, search entries, the facts taken
        from them and what rests on them. With both limits null, all sessions stay.
        """
        return await self.send(Call("PUT", "/api/retention", body=given(days=days, sessions=sessions, archive=archive)))

    def list_archives(
        self, *, space: str | None = None, session_id: str | None = None, user_id: str | None = None
    ) -> AsyncListing[types.Archive, types.ArchivePage]:
        """List the archives of sessions that were taken out of memory, newest first.

        Archived sessions are neither searched nor recalled.
        """
        return self.each(
            Call(
                "GET", "/api/archives", query=given(space=space, session_id=session_id), person="query", user_id=user_id
            )
        )

    async def get_archive(
        self, archive_id: int, *, space: str | None = None, user_id: str | None = None
    ) -> types.ExportDocument:
        """Read an archive, as a document that can be imported."""
        return await self.send(
            Call(
                "GET",
                "/api/archives/{archive_id}",
                ids={"archive_id": archive_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def erase_archive(
        self, archive_id: int, *, space: str | None = None, user_id: str | None = None
    ) -> types.Receipt:
        """Erase an archive, for good."""
        return await self.send(
            Call(
                "DELETE",
                "/api/archives/{archive_id}",
                ids={"archive_id": archive_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def restore_archive(
        self, archive_id: int, *, space: str | None = None, user_id: str | None = None
    ) -> types.Imported:
        """Bring an archived session back into memory, and delete the archive.

        The session is imported like an export. If another session has its id by now, it gets a new one.
        """
        return await self.send(
            Call(
                "POST",
                "/api/archives/{archive_id}/restore",
                ids={"archive_id": archive_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def get_rules(self, *, space: str | None = None, user_id: str | None = None) -> types.RulesVersion:
        """Read the person's rules or, without a user_id, the tenant's, which hold for each person."""
        return await self.send(Call("GET", "/api/rules", query=given(space=space), person="query", user_id=user_id))

    async def put_rules(
        self,
        *,
        categories: Sequence[types.CategoryRule] | None = None,
        topics: Sequence[str] | None = None,
        words: Sequence[str] | None = None,
        review: bool | None = None,
        space: str | None = None,
        expected_version: int | None = None,
        close: bool | None = None,
        user_id: str | None = None,
    ) -> types.RulesVersion:
        """Store new rules in the place of the ones before.

        They hold for what is found from now on. What they keep out of what is stored is closed only with `close`. A
        person's rules can only narrow the tenant's.
        """
        return await self.send(
            Call(
                "PUT",
                "/api/rules",
                body=given(
                    categories=categories,
                    topics=topics,
                    words=words,
                    review=review,
                    space=space,
                    expected_version=expected_version,
                    close=close,
                ),
                person="user_id",
                user_id=user_id,
            )
        )

    async def delete_rules(self, *, space: str | None = None, user_id: str | None = None) -> types.Receipt:
        """Erase the rules with all of their versions, for good; what they closed stays closed."""
        return await self.send(Call("DELETE", "/api/rules", query=given(space=space), person="query", user_id=user_id))

    async def preview_rules(
        self,
        *,
        categories: Sequence[types.CategoryRule] | None = None,
        topics: Sequence[str] | None = None,
        words: Sequence[str] | None = None,
        review: bool | None = None,
        space: str | None = None,
        user_id: str | None = None,
    ) -> types.RulesEffect:
        """List what rules would close of what is stored; nothing is stored."""
        return await self.send(
            Call(
                "POST",
                "/api/rules/preview",
                body=given(categories=categories, topics=topics, words=words, review=review, space=space),
                person="user_id",
                user_id=user_id,
            )
        )

    async def list_rules_versions(
        self, *, space: str | None = None, user_id: str | None = None
    ) -> types.RulesVersionList:
        """List all versions of the rules, newest first."""
        return await self.send(
            Call("GET", "/api/rules/versions", query=given(space=space), person="query", user_id=user_id)
        )

    async def roll_back_rules(
        self, version: int, *, space: str | None = None, close: bool | None = None, user_id: str | None = None
    ) -> types.RulesVersion:
        """Bring an earlier version back, as a new version."""
        return await self.send(
            Call(
                "POST",
                "/api/rules/rollback",
                body={"version": version, **given(space=space, close=close)},
                person="user_id",
                user_id=user_id,
            )
        )

    async def list_instructions(self, *, space: str | None = None, user_id: str | None = None) -> types.InstructionList:
        """List the instructions that the person's prompts show, and those that have a proposal.

        A person's instruction takes the place of the tenant's instruction of the same name.
        """
        return await self.send(
            Call("GET", "/api/instructions", query=given(space=space), person="query", user_id=user_id)
        )

    async def get_instruction(
        self, instruction: str, *, space: str | None = None, user_id: str | None = None
    ) -> types.Instruction:
        """Read an instruction, and the proposal that waits for it."""
        return await self.send(
            Call(
                "GET",
                "/api/instructions/{instruction}",
                ids={"instruction": instruction},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def put_instruction(
        self,
        instruction: str,
        text: str,
        *,
        space: str | None = None,
        expected_version: int | None = None,
        user_id: str | None = None,
    ) -> types.Instruction:
        """Store a new version of an instruction.

        The next prompt shows it beside the system prompt, word for word. A proposal that waits is dropped.
        """
        return await self.send(
            Call(
                "PUT",
                "/api/instructions/{instruction}",
                ids={"instruction": instruction},
                body={"text": text, **given(space=space, expected_version=expected_version)},
                person="user_id",
                user_id=user_id,
            )
        )

    async def delete_instruction(
        self, instruction: str, *, space: str | None = None, user_id: str | None = None
    ) -> types.Receipt:
        """Erase an instruction with all of its versions, for good."""
        return await self.send(
            Call(
                "DELETE",
                "/api/instructions/{instruction}",
                ids={"instruction": instruction},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def list_instruction_versions(
        self, instruction: str, *, space: str | None = None, user_id: str | None = None
    ) -> types.InstructionVersionList:
        """List all versions, newest first, each with what it changed."""
        return await self.send(
            Call(
                "GET",
                "/api/instructions/{instruction}/versions",
                ids={"instruction": instruction},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def roll_back_instruction(
        self, instruction: str, version: int, *, space: str | None = None, user_id: str | None = None
    ) -> types.Instruction:
        """Bring an earlier version back, as a new version."""
        return await self.send(
            Call(
                "POST",
                "/api/instructions/{instruction}/rollback",
                ids={"instruction": instruction},
                body={"version": version, **given(space=space)},
                person="user_id",
                user_id=user_id,
            )
        )

    async def decide_proposal(
        self, instruction: str, accept: bool, *, space: str | None = None, user_id: str | None = None
    ) -> types.Instruction:
        """Accept the proposal, which makes it a new version, or refuse it."""
        return await self.send(
            Call(
                "POST",
                "/api/instructions/{instruction}/proposal",
                ids={"instruction": instruction},
                body={"accept": accept, **given(space=space)},
                person="user_id",
                user_id=user_id,
            )
        )

    async def list_conversation_types(
        self, *, space: str | None = None, user_id: str | None = None
    ) -> types.ConversationTypeList:
        """List the types that are built in, the tenant's, and the person's own, which come before the tenant's."""
        return await self.send(
            Call("GET", "/api/conversation-types", query=given(space=space), person="query", user_id=user_id)
        )

    async def get_conversation_type(
        self, conversation_type: str, *, space: str | None = None, user_id: str | None = None
    ) -> types.ConversationType:
        """Read a type."""
        return await self.send(
            Call(
                "GET",
                "/api/conversation-types/{conversation_type}",
                ids={"conversation_type": conversation_type},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def put_conversation_type(
        self,
        conversation_type: str,
        *,
        cues: Sequence[str] | None = None,
        prompt: str | None = None,
        recall: Literal["auto", "always", "tools", "off"] | None = None,
        recall_tokens: int | None = None,
        fact_tokens: int | None = None,
        example_tokens: int | None = None,
        emphasis: Sequence[
            Literal["topic", "requirements", "constraints", "excluded", "data", "open_questions", "discussed"]
        ]
        | None = None,
        space: str | None = None,
        user_id: str | None = None,
    ) -> types.ConversationType:
        """Add a type, or say what one of the same name does instead, also one that is built in.

        Its mode of recall and its budgets take the place of the settings while the conversation has the type.
        """
        return await self.send(
            Call(
                "PUT",
                "/api/conversation-types/{conversation_type}",
                ids={"conversation_type": conversation_type},
                body=given(
                    cues=cues,
                    prompt=prompt,
                    recall=recall,
                    recall_tokens=recall_tokens,
                    fact_tokens=fact_tokens,
                    example_tokens=example_tokens,
                    emphasis=emphasis,
                    space=space,
                ),
                person="user_id",
                user_id=user_id,
            )
        )

    async def delete_conversation_type(
        self, conversation_type: str, *, space: str | None = None, user_id: str | None = None
    ) -> types.Receipt:
        """Erase a type of one's own; one that is built in changes nothing from then on."""
        return await self.send(
            Call(
                "DELETE",
                "/api/conversation-types/{conversation_type}",
                ids={"conversation_type": conversation_type},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def give_feedback(
        self,
        session_id: str,
        message_id: int,
        *,
        space: str | None = None,
        thumbs: Literal["up", "down", "none"] | None = None,
        text: str | None = None,
        instruction: str | None = None,
        user_id: str | None = None,
    ) -> types.FeedbackGiven:
        """Say what a person thinks of a reply, in the place of what they thought before.

        Thumbs up make an example of the exchange, thumbs down take it away. With words or thumbs down, the mini model
        may propose a new version of the person's instruction (FEEDBACK says how). Read it in the store, below
        `recap.feedback`.
        """
        return await self.send(
            Call(
                "POST",
                "/api/feedback",
                body={
                    "session_id": session_id,
                    "message_id": message_id,
                    **given(space=space, thumbs=thumbs, text=text, instruction=instruction),
                },
                person="user_id",
                user_id=user_id,
                idempotent=True,
            )
        )

    async def list_prompts(self) -> types.PromptList:
        """List the prompts in use."""
        return await self.send(Call("GET", "/api/prompts"))

    async def get_prompt(self, name: str) -> types.Prompt:
        """Read a prompt."""
        return await self.send(Call("GET", "/api/prompts/{name}", ids={"name": name}))

    async def put_prompt(self, name: str, text: str) -> types.Prompt:
        """Store a new version of a prompt.

        `system` begins the main model's prompt. `repair` asks the mini model to correct its answer. Every other name
        is a summary prompt, which may use the variables `first`, `sections` and `max_words`. A template that fails is
        refused. Prompts belong to the whole tenant, so a key of one person can't change them.
        """
        return await self.send(Call("PUT", "/api/prompts/{name}", ids={"name": name}, body={"text": text}))

    async def delete_prompt(self, name: str) -> types.PromptDeleted:
        """Delete all stored versions of a prompt.

        The operator's file or the packaged text of this name is in use again, if there is one. A chat that names a
        deleted prompt is refused; updates of summaries that wait use the default prompt instead.
        """
        return await self.send(Call("DELETE", "/api/prompts/{name}", ids={"name": name}))

    async def list_models(self) -> types.ModelNames:
        """List the models that a chat can be answered by.

        The model server's list is kept for a minute, without those whose names tell that they answer no chat, as
        embedding models; the setting OPENAI_MODELS replaces it. A server that lists no models offers only its main
        model, and so does the built-in model.
        """
        return await self.send(Call("GET", "/api/models"))

    async def get_model_server(self) -> types.ModelServer:
        """Read which model server is in use.

        It serves all tenants. Where there are keys of more than one, only the operator sets it, in the environment.
        """
        return await self.send(Call("GET", "/api/model-server"))

    async def put_model_server(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        main: str | None = None,
        mini: str | None = None,
    ) -> types.ModelServer:
        """Store the model server.

        Its key is stored encrypted. Every process answers with it after at most two seconds.
        """
        return await self.send(
            Call("PUT", "/api/model-server", body=given(base_url=base_url, api_key=api_key, main=main, mini=mini))
        )

    async def delete_model_server(self) -> types.ModelServer:
        """Forget the stored model server and its key."""
        return await self.send(Call("DELETE", "/api/model-server"))

    async def test_model_server(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        main: str | None = None,
        mini: str | None = None,
    ) -> types.ModelTried:
        """Ask the models of a model server one short question.

        The answer tells of each model whether it works, what its server does not take, and whether it can read
        prompts of CONTEXT_TOKENS. Nothing is stored, and the calls count for nobody's daily tokens.
        """
        return await self.send(
            Call("POST", "/api/model-server/test", body=given(base_url=base_url, api_key=api_key, main=main, mini=mini))
        )

    async def list_models_of_server(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        main: str | None = None,
        mini: str | None = None,
    ) -> types.ModelsListed:
        """List the models of a model server, to choose from before it is stored.

        Those whose names tell that they answer no chat are left out. Nothing is stored.
        """
        return await self.send(
            Call(
                "POST", "/api/model-server/models", body=given(base_url=base_url, api_key=api_key, main=main, mini=mini)
            )
        )

    def jobs(
        self,
        *,
        space: str | None = None,
        state: Literal["pending", "running", "failed"] | None = None,
        session_id: str | None = None,
        user_id: str | None = None,
    ) -> AsyncListing[types.Job, types.JobPage]:
        """List jobs that wait, run or failed.

        With `session_id`, only the jobs of that session. Index jobs belong to a person, not to a session.
        """
        return self.each(
            Call(
                "GET",
                "/api/jobs",
                query=given(space=space, state=state, session_id=session_id),
                person="query",
                user_id=user_id,
            )
        )

    async def retry_job(self, job_id: int, *, space: str | None = None, user_id: str | None = None) -> types.Job:
        """Retry a job now."""
        return await self.send(
            Call(
                "POST",
                "/api/jobs/{job_id}/retry",
                ids={"job_id": job_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def cancel_job(self, job_id: int, *, space: str | None = None, user_id: str | None = None) -> None:
        """Cancel a job of the kind `consolidation`, also while it runs: it changes nothing then."""
        await self.send(
            Call(
                "DELETE",
                "/api/jobs/{job_id}",
                ids={"job_id": job_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    def events(
        self,
        *,
        space: str | None = None,
        after: str | None = None,
        types: str | None = None,
        words: bool | None = None,
        seconds: int | None = None,
        user_id: str | None = None,
    ) -> AsyncEventStream:
        """Follow the events of a person or, with a key of the whole tenant and no `user_id`, of all.

        Server-sent events, each with the place behind it as `id:`. A reader that comes back with it as Last-Event-ID
        gets every event since then, some of them perhaps again. Of one person they come in order. Without it the
        stream begins now. A comment comes at least every 15 seconds; the stream ends after `seconds`, and when the
        server stops.
        """
        return self.listen(
            Call(
                "GET",
                "/api/events",
                query=given(space=space, after=after, types=types, words=words, seconds=seconds),
                person="query",
                user_id=user_id,
            )
        )

    async def list_webhooks(self, *, space: str | None = None, user_id: str | None = None) -> types.WebhookList:
        """List webhooks, each with its last deliveries."""
        return await self.send(Call("GET", "/api/webhooks", query=given(space=space), person="query", user_id=user_id))

    async def create_webhook(
        self,
        url: str,
        *,
        space: str | None = None,
        types: Sequence[
            Literal[
                "message.stored",
                "summary.updated",
                "fact.created",
                "fact.corrected",
                "fact.forgotten",
                "profile.updated",
                "overview.updated",
                "document.stored",
                "document.erased",
                "job.failed",
                "person.erased",
                "space.erased",
            ]
        ]
        | None = None,
        words: bool | None = None,
        user_id: str | None = None,
    ) -> types.WebhookMade:
        """Make a webhook for the events of a person or, without a `user_id`, of the whole tenant.

        It gets what happens from now on, each event at least once, those of one person in order. The answer has the
        secret that deliveries are signed with. A receiver that fails is tried again, for three days; then the webhook
        is disabled.
        """
        return await self.send(
            Call(
                "POST",
                "/api/webhooks",
                body={"url": url, **given(space=space, types=types, words=words)},
                person="user_id",
                user_id=user_id,
            )
        )

    async def change_webhook(
        self,
        webhook_id: int,
        *,
        url: str | None = None,
        types: Sequence[
            Literal[
                "message.stored",
                "summary.updated",
                "fact.created",
                "fact.corrected",
                "fact.forgotten",
                "profile.updated",
                "overview.updated",
                "document.stored",
                "document.erased",
                "job.failed",
                "person.erased",
                "space.erased",
            ]
        ]
        | None = None,
        words: bool | None = None,
        enabled: bool | None = None,
        user_id: str | None = None,
    ) -> types.Webhook:
        """Change, disable or enable a webhook.

        A change also has what failed tried again now.
        """
        return await self.send(
            Call(
                "PATCH",
                "/api/webhooks/{webhook_id}",
                ids={"webhook_id": webhook_id},
                body=given(url=url, types=types, words=words, enabled=enabled),
                person="query",
                user_id=user_id,
            )
        )

    async def delete_webhook(self, webhook_id: int, *, space: str | None = None, user_id: str | None = None) -> None:
        """Delete a webhook, with what waits for it."""
        await self.send(
            Call(
                "DELETE",
                "/api/webhooks/{webhook_id}",
                ids={"webhook_id": webhook_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def rotate_webhook(
        self, webhook_id: int, *, overlap_hours: int | None = None, user_id: str | None = None
    ) -> types.WebhookMade:
        """Give a webhook a new secret.

        The answer has it. Until `overlap_hours` are over, the header `webhook-signature` has two signatures, the new
        secret's and the former one's, as Standard Webhooks defines it: a receiver that knows either of them goes on.
        """
        return await self.send(
            Call(
                "POST",
                "/api/webhooks/{webhook_id}/rotate",
                ids={"webhook_id": webhook_id},
                body=given(overlap_hours=overlap_hours),
                person="query",
                user_id=user_id,
            )
        )

    async def test_webhook(
        self, webhook_id: int, *, space: str | None = None, user_id: str | None = None
    ) -> types.Delivery:
        """Post an event of the type `webhook.test`, and see how it went."""
        return await self.send(
            Call(
                "POST",
                "/api/webhooks/{webhook_id}/test",
                ids={"webhook_id": webhook_id},
                query=given(space=space),
                person="query",
                user_id=user_id,
            )
        )

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        model: str | None = None,
        user: Any | None = None,
        safety_identifier: Any | None = None,
        session_id: Any | None = None,
        metadata: Any | None = None,
        n: Any | None = None,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        **more: Any,
    ) -> types.Completion:
        """Chat as with OpenAI, and be remembered.

        The session is named by X-Session-Id, X-Conversation-Id, X-OpenWebUI-Chat-Id, x-litellm-session-id,
        session_id, metadata.session_id or call.id; without any of them it is found by the conversation's first
        messages. The person is named by X-OpenWebUI-User-Id, x-litellm-end-user-id, safety_identifier, user, user_id,
        metadata.user_id or customer.number. A message that is sent again is stored once. The X-Memory-* headers of
        the reply give the model that answers, the session, the number of recalled messages and the saved tokens. With
        `X-Memory-Tools: on` the model also gets tools of the memory, which Recap runs; if it wrote facts with them,
        the answer's `memory` lists these. If the memory fails, the model gets the request unchanged, and X-Memory-
        Error says why. `recap` names the main model of any server, which also answers if the server does not have the
        model that is named.
        """
        return await self.send(
            Call(
                "POST",
                "/v1/chat/completions",
                body={
                    "messages": messages,
                    **given(
                        model=model,
                        user=user,
                        safety_identifier=safety_identifier,
                        session_id=session_id,
                        metadata=metadata,
                        n=n,
                    ),
                    **more,
                },
                person="user_id",
                user_id=user_id,
                key=idempotency_key,
                is_turn=True,
            )
        )

    async def list_served_models(self) -> types.ModelList:
        """List the models: `recap`, which is the main model, and those of the model server.

        A request with the header `anthropic-version` gets them in Anthropic's form, all on one page; so it does one
        model, and an error.
        """
        return await self.send(Call("GET", "/v1/models"))

    async def get_served_model(self, model: str) -> types.Model:
        """Read one model of the model server, or the built-in one."""
        return await self.send(Call("GET", "/v1/models/{model}", ids={"model": model}))

    async def embed(self, *, model: str | None = None, **more: Any) -> Any:
        """Embed texts with the model server.

        The request is passed on unchanged. Nothing is stored.
        """
        return await self.send(Call("POST", "/v1/embeddings", body={**given(model=model), **more}))

    async def complete_text(self, *, model: str | None = None, **more: Any) -> Any:
        """Complete a text with the model server, as programs do to complete code.

        The request is passed on, with the main model in the place of `recap`, and answered without memory. Nothing is
        stored. A stream is sent in one piece.
        """
        return await self.send(Call("POST", "/v1/completions", body={**given(model=model), **more}))

    async def moderate(self, *, model: str | None = None, **more: Any) -> Any:
        """Classify texts with the model server.

        The request is passed on unchanged. Nothing is stored.
        """
        return await self.send(Call("POST", "/v1/moderations", body={**given(model=model), **more}))

    async def create_message(
        self,
        messages: Sequence[Mapping[str, Any]],
        max_tokens: int,
        *,
        model: str | None = None,
        system: Any | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        output_config: Mapping[str, Any] | None = None,
        stop_sequences: Any | None = None,
        temperature: Any | None = None,
        top_p: Any | None = None,
        thread: Mapping[str, Any] | None = None,
        thinking: Mapping[str, Any] | None = None,
        top_k: Any | None = None,
        cache_control: Any | None = None,
        context_management: Any | None = None,
        service_tier: Any | None = None,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        **more: Any,
    ) -> types.AnthropicMessage:
        """Chat as with Anthropic, and be remembered.

        The model server is asked for a chat completion; text, images, tools and their results are translated. The
        session and the person are named as for chat completions, or by `metadata.session_id` and `metadata.user_id`.
        The key may also be sent as x-api-key. What has no counterpart in a chat completion is left out, and X-Memory-
        Left-Out names it.
        """
        return await self.send(
            Call(
                "POST",
                "/v1/messages",
                body={
                    "messages": messages,
                    "max_tokens": max_tokens,
                    **given(
                        model=model,
                        system=system,
                        tools=tools,
                        tool_choice=tool_choice,
                        metadata=metadata,
                        output_config=output_config,
                        stop_sequences=stop_sequences,
                        temperature=temperature,
                        top_p=top_p,
                        thread=thread,
                        thinking=thinking,
                        top_k=top_k,
                        cache_control=cache_control,
                        context_management=context_management,
                        service_tier=service_tier,
                    ),
                    **more,
                },
                person="metadata",
                user_id=user_id,
                key=idempotency_key,
                is_turn=True,
            )
        )

    async def count_tokens(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        model: str | None = None,
        system: Any | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> types.TokenCount:
        """Estimate the tokens of a request.

        The memory that a prompt shows beside the request is not counted. Nothing is stored.
        """
        return await self.send(
            Call(
                "POST",
                "/v1/messages/count_tokens",
                body={
                    "messages": messages,
                    **given(model=model, system=system, tools=tools, tool_choice=tool_choice),
                    **more,
                },
            )
        )

    async def create_response(
        self,
        input: Any,
        *,
        model: str | None = None,
        instructions: str | None = None,
        previous_response_id: str | None = None,
        store: bool | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: Any | None = None,
        text: Mapping[str, Any] | None = None,
        reasoning: Mapping[str, Any] | None = None,
        max_output_tokens: int | None = None,
        metadata: Mapping[str, Any] | None = None,
        safety_identifier: Any | None = None,
        parallel_tool_calls: Any | None = None,
        prompt_cache_key: Any | None = None,
        temperature: Any | None = None,
        top_p: Any | None = None,
        include: Any | None = None,
        max_tool_calls: Any | None = None,
        prompt_cache_retention: Any | None = None,
        service_tier: Any | None = None,
        stream_options: Any | None = None,
        top_logprobs: Any | None = None,
        truncation: Any | None = None,
        client_metadata: Any | None = None,
        conversation: Any | None = None,
        background: bool | None = None,
        user_id: str | None = None,
        idempotency_key: str | None = None,
        **more: Any,
    ) -> types.ResponseObject:
        """Ask for a response as from OpenAI, and be remembered.

        The model server is asked for a chat completion; text, images, functions and their outputs are translated.
        With `previous_response_id` the input goes on from that response, in its session, and takes the place of what
        came after it; a reference to a reply is read so, too. Otherwise the session is found as for chat completions,
        and so is the person. With store=false nothing is stored and no memory used, unless Codex sends it. References
        to other items are refused. What else has no counterpart is left out, and X-Memory-Left-Out names it.
        """
        return await self.send(
            Call(
                "POST",
                "/v1/responses",
                body={
                    "input": input,
                    **given(
                        model=model,
                        instructions=instructions,
                        previous_response_id=previous_response_id,
                        store=store,
                        tools=tools,
                        tool_choice=tool_choice,
                        text=text,
                        reasoning=reasoning,
                        max_output_tokens=max_output_tokens,
                        metadata=metadata,
                        safety_identifier=safety_identifier,
                        parallel_tool_calls=parallel_tool_calls,
                        prompt_cache_key=prompt_cache_key,
                        temperature=temperature,
                        top_p=top_p,
                        include=include,
                        max_tool_calls=max_tool_calls,
                        prompt_cache_retention=prompt_cache_retention,
                        service_tier=service_tier,
                        stream_options=stream_options,
                        top_logprobs=top_logprobs,
                        truncation=truncation,
                        client_metadata=client_metadata,
                        conversation=conversation,
                        background=background,
                    ),
                    **more,
                },
                person="user",
                user_id=user_id,
                key=idempotency_key,
                is_turn=True,
            )
        )

    async def get_response(self, response_id: str, *, starting_after: int | None = None) -> types.ResponseObject:
        """Read a response that was stored.

        Of the fields of its request, those that were not stored have their defaults.
        """
        return await self.send(
            Call(
                "GET",
                "/v1/responses/{response_id}",
                ids={"response_id": response_id},
                query=given(starting_after=starting_after),
            )
        )

    async def delete_response(self, response_id: str) -> types.DeletedObject:
        """Erase a response and what it answers, for good, as single messages are erased."""
        return await self.send(Call("DELETE", "/v1/responses/{response_id}", ids={"response_id": response_id}))

    async def list_input_items(self, response_id: str) -> types.ConversationItems:
        """List the items that a response answers: those after the response before, oldest first."""
        return await self.send(Call("GET", "/v1/responses/{response_id}/input_items", ids={"response_id": response_id}))

    async def count_input_tokens(
        self,
        input: Any,
        *,
        model: str | None = None,
        instructions: str | None = None,
        previous_response_id: str | None = None,
        store: bool | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: Any | None = None,
        text: Mapping[str, Any] | None = None,
        reasoning: Mapping[str, Any] | None = None,
        max_output_tokens: int | None = None,
        metadata: Mapping[str, Any] | None = None,
        safety_identifier: Any | None = None,
        parallel_tool_calls: Any | None = None,
        prompt_cache_key: Any | None = None,
        temperature: Any | None = None,
        top_p: Any | None = None,
        include: Any | None = None,
        max_tool_calls: Any | None = None,
        prompt_cache_retention: Any | None = None,
        service_tier: Any | None = None,
        stream_options: Any | None = None,
        top_logprobs: Any | None = None,
        truncation: Any | None = None,
        client_metadata: Any | None = None,
        conversation: Any | None = None,
        background: bool | None = None,
        user_id: str | None = None,
        **more: Any,
    ) -> types.InputTokens:
        """Estimate the tokens of a request.

        The memory that a prompt shows beside the request is not counted. Nothing is stored.
        """
        return await self.send(
            Call(
                "POST",
                "/v1/responses/input_tokens",
                body={
                    "input": input,
                    **given(
                        model=model,
                        instructions=instructions,
                        previous_response_id=previous_response_id,
                        store=store,
                        tools=tools,
                        tool_choice=tool_choice,
                        text=text,
                        reasoning=reasoning,
                        max_output_tokens=max_output_tokens,
                        metadata=metadata,
                        safety_identifier=safety_identifier,
                        parallel_tool_calls=parallel_tool_calls,
                        prompt_cache_key=prompt_cache_key,
                        temperature=temperature,
                        top_p=top_p,
                        include=include,
                        max_tool_calls=max_tool_calls,
                        prompt_cache_retention=prompt_cache_retention,
                        service_tier=service_tier,
                        stream_options=stream_options,
                        top_logprobs=top_logprobs,
                        truncation=truncation,
                        client_metadata=client_metadata,
                        conversation=conversation,
                        background=background,
                    ),
                    **more,
                },
                person="user",
                user_id=user_id,
            )
        )

    async def create_conversation(
        self,
        *,
        items: Sequence[Mapping[str, Any]] | None = None,
        metadata: Mapping[str, str] | None = None,
        safety_identifier: Any | None = None,
        user_id: str | None = None,
        **more: Any,
    ) -> types.ConversationObject:
        """Begin a conversation.

        Without items it is empty. The first person who is named in it has it.
        """
        return await self.send(
            Call(
                "POST",
                "/v1/conversations",
                body={**given(items=items, metadata=metadata, safety_identifier=safety_identifier), **more},
                person="user",
                user_id=user_id,
            )
        )

    async def get_conversation(self, conversation_id: str) -> types.ConversationObject:
        """Read a conversation: any session by its id."""
        return await self.send(
            Call("GET", "/v1/conversations/{conversation_id}", ids={"conversation_id": conversation_id})
        )

    async def update_conversation(
        self, conversation_id: str, metadata: Mapping[str, str] | None, *, user_id: str | None = None, **more: Any
    ) -> types.ConversationObject:
        """Change what is kept with a conversation."""
        return await self.send(
            Call(
                "POST",
                "/v1/conversations/{conversation_id}",
                ids={"conversation_id": conversation_id},
                body={"metadata": metadata, **more},
                person="metadata",
                user_id=user_id,
            )
        )

    async def delete_conversation(self, conversation_id: str) -> types.DeletedObject:
        """Erase a conversation with its items, as DELETE /api/sessions/{session_id} does."""
        return await self.send(
            Call("DELETE", "/v1/conversations/{conversation_id}", ids={"conversation_id": conversation_id})
        )

    async def list_items_of_conversation(
        self,
        conversation_id: str,
        *,
        after: str | None = None,
        limit: int | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> types.ConversationItems:
        """List the items of a conversation, newest first.

        A message of the person's, of the model's and of a function's has the id that it is retrieved by.
        """
        return await self.send(
            Call(
                "GET",
                "/v1/conversations/{conversation_id}/items",
                ids={"conversation_id": conversation_id},
                query=given(after=after, limit=limit, order=order),
            )
        )

    async def create_items(
        self, conversation_id: str, *, items: Sequence[Mapping[str, Any]] | None = None, **more: Any
    ) -> types.ConversationItems:
        """Append items to a conversation without asking a model.

        An exchange that the conversation ends with already, since Recap answered it, is not stored again.
        """
        return await self.send(
            Call(
                "POST",
                "/v1/conversations/{conversation_id}/items",
                ids={"conversation_id": conversation_id},
                body={**given(items=items), **more},
            )
        )

    async def get_item_of_conversation(self, conversation_id: str, item_id: str) -> types.ConversationItem:
        """Read an item of a conversation."""
        return await self.send(
            Call(
                "GET",
                "/v1/conversations/{conversation_id}/items/{item_id}",
                ids={"conversation_id": conversation_id, "item_id": item_id},
            )
        )

    async def delete_item_of_conversation(self, conversation_id: str, item_id: str) -> types.ConversationObject:
        """Erase the message of an item, for good."""
        return await self.send(
            Call(
                "DELETE",
                "/v1/conversations/{conversation_id}/items/{item_id}",
                ids={"conversation_id": conversation_id, "item_id": item_id},
            )
        )

    async def mcp(
        self,
        jsonrpc: str,
        *,
        id: Any | None = None,
        method: str | None = None,
        params: Mapping[str, Any] | None = None,
        result: Mapping[str, Any] | None = None,
        error: Mapping[str, Any] | None = None,
        user_id: str | None = None,
    ) -> types.RpcMessage:
        """Exchange one message of the Model Context Protocol.

        The revision 2026-07-28 is spoken, and the earlier ones that begin with `initialize`. A key that belongs to no
        single person needs one named: by `user_id`, or by a header such as X-User-Id. With `space`, or X-Memory-
        Space, it is the memory of that space.
        """
        return await self.send(
            Call(
                "POST",
                "/mcp",
                body={"jsonrpc": jsonrpc, **given(id=id, method=method, params=params, result=result, error=error)},
                person="query",
                user_id=user_id,
            )
        )

    async def live(self) -> types.Live:
        """Check that the process answers."""
        return await self.send(Call("GET", "/health/live"))

    async def ready(self) -> types.Ready:
        """Check that requests can be served, and by which models."""
        return await self.send(Call("GET", "/health/ready"))
