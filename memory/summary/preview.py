"""Trying a summary prompt on a conversation: what it would make of it now, with nothing stored.

The comparison that helps who edits a prompt is with the summary there is; so the conversation is read anew from as far
back as one call of the mini model can: from its beginning where it is short, else from the earliest version of the
summary after which all that was said since goes into one call.  So the prompt has written as much of the preview as
one call can show, and a preview costs no more than one step of an update (and one repair).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from config import Settings
from memory import tokens
from memory.access.budgets import Budgets
from memory.access.owners import find_session
from memory.domain import Caller, Sections, Usage
from memory.errors import InvalidRequest
from memory.llm import LanguageModel
from memory.llm.counted import CountedModel
from memory.prompts.prompts import Prompt, Prompts, check
from memory.summary.digest import digest
from memory.summary.material import Materials, starting_point
from models import Database

NAME = "preview"  # of a prompt that has none


@dataclass(frozen=True)
class Preview:
    """A summary that was not stored.

    It goes on from version `since` (0: from the beginning) and covers the messages up to position `through`;
    `prompt` is the label of the named prompt that made it, `current_version` the stored summary to compare it with.
    """

    sections: Sections
    tokens: int
    model: str
    prompt: str | None
    usage: dict[str, Any]
    since: int
    through: int
    current_version: int


class Previews:
    """Tries prompts on behalf of callers."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        prompts: Prompts,
        materials: Materials,
        mini: LanguageModel,
        budgets: Budgets,
    ) -> None:
        self._settings = settings
        self._database = database
        self._prompts = prompts
        self._materials = materials
        self._mini = mini
        self._budgets = budgets

    def make(self, caller: Caller, session_id: str, *, prompt: str | None = None, text: str | None = None) -> Preview:
        """The summary that the prompt named `prompt`, or one of this `text`, gives the conversation; the one in use
        if neither is given.

        Raises NotFound, InvalidRequest for a text that can't be a prompt and for a session without messages,
        LimitReached when the owner's day is spent, ModelError, and SummaryRefused when the model's answer could not be
        used.
        """
        if text is not None:
            check(NAME, text)
        with self._database.read() as tx:
            row = find_session(tx, caller, session_id)
            self._budgets.check(tx, row.owner_id)
            if text is not None:
                instruction = Prompt(NAME, 0, text, source="given")
            else:
                instruction = self._prompts.find_summary(tx, caller, prompt or self._settings.summary_prompt)
            repair = self._prompts.find(tx, caller, "repair")
            since = starting_point(tx, row)
            material = self._materials.since(tx, row, since)
        if material is None:
            raise InvalidRequest(
                "nothing_to_summarise",
                f"Session {session_id!r} has no messages to summarise yet. Try the prompt on another conversation.",
            )
        spent: list[Usage] = []
        try:
            made = digest(CountedModel(self._mini, spent.append), instruction, repair, material)
        finally:
            self._budgets.charge(row.owner_id, spent)
        return Preview(
            sections=made.digest.sections,
            tokens=tokens.estimate(str(made.digest.sections)),
            model=made.model,
            prompt=instruction.label if text is None else None,
            usage=made.cost,
            since=since.version if since else 0,
            through=material.messages[-1].position,
            current_version=row.summary_version,
        )
