"""Prompts by name: a version stored through the API, else the operator's file, else the packaged text.

`system` opens the main model's prompt.  `memory` follows a client's own instructions and tells how to read the memory.
`profile` has the mini model update a person's profile, `overview` write what matters now, `feedback` an instruction,
`consolidation` compare facts, and `repair` mend an answer.
Every other name is a summary prompt; `summary` is used unless a setting or a request names another.  Guarantee: a
prompt that is stored renders with the variables it will be given.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import bindparam, delete, exists, func, select
from sqlalchemy.orm import aliased

from memory.errors import InvalidRequest, NotFound
from memory.prompts import sandbox
from models import Database, PromptRow, Transaction, retry_on_conflict
from models.owners import Caller
from models.sections import SECTIONS

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
PROMPT_CHARS_MAX = 20_000

_PACKAGED = {path.stem: path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.txt")}
_OTHER = aliased(PromptRow)
_VERSIONS = select(func.max(_OTHER.version)).where(_OTHER.tenant == PromptRow.tenant, _OTHER.name == PromptRow.name)
_NEWEST = select(PromptRow).where(
    PromptRow.tenant == bindparam("tenant"),
    PromptRow.name.in_(bindparam("names", expanding=True)),
    PromptRow.version == _VERSIONS.scalar_subquery(),
)
_SYSTEM = select(PromptRow.text).where(PromptRow.tenant == bindparam("tenant"), PromptRow.name == "system")
SYSTEM_TEXT = _SYSTEM.order_by(PromptRow.version.desc()).limit(1).scalar_subquery().label("system_text")
"""The newest stored text of `system`, as a column for a statement with the parameter `tenant`."""
HAS_PROMPTS = exists().where(PromptRow.tenant == bindparam("tenant")).label("has_prompts")
"""Whether any prompt is stored, as such a column."""

SUMMARY_VARIABLES: Mapping[str, Any] = {
    "first": True,
    "sections": [{"name": section.name, "about": section.instruction} for section in SECTIONS],
    "max_words": 400,
    "links": True,
    "types": [],
    "forget": False,
    "instructions": False,
}
"""Variables of a summary prompt. first: there is no summary yet. links to instructions: what else the answer has."""
_OTHER_VARIABLES = dict(SUMMARY_VARIABLES, first=False, links=False, types=["support"], forget=True, instructions=True)
_VARIABLES: dict[str, Mapping[str, Any]] = {
    **{name: {} for name in ("system", "memory", "profile", "overview", "feedback", "consolidation")},
    "repair": {"problem": "It is not JSON."},
}


@dataclass(frozen=True)
class PromptTemplate:
    """Version of a named instruction, a Jinja2 template.  `version` counts from 1 for stored ones; 0 is a file's.

    `source` is `packaged`, `file`, `stored` or, for a text that is only tried, `given`.
    """

    name: str
    version: int
    text: str
    source: str
    created_at: datetime | None = None

    @property
    def label(self) -> str:
        """Return the name and version that a summary keeps."""
        return f"{self.name}@{self.version}" if self.version else self.name

    def render(self, **variables: Any) -> str:
        """Return the text, filled in. Raises InvalidRequest for a file that isn't a good template."""
        return sandbox.render(self.name, self.text, variables)


@dataclass(frozen=True)
class Prompts:
    """Finds, checks and stores prompts."""

    database: Database
    folder: Path
    now: Callable[[], datetime]

    def get(self, caller: Caller, name: str) -> PromptTemplate:
        """Return the version in use. Raises NotFound, which lists the prompts there are."""
        with self.database.read() as tx:
            return self.find(tx, caller, name)

    def all(self, caller: Caller) -> list[PromptTemplate]:
        """Return the version in use of every prompt, by name."""
        with self.database.read() as tx:
            return [self.find(tx, caller, name) for name in self._names(tx, caller)]

    @retry_on_conflict
    def put(self, caller: Caller, name: str, text: str) -> PromptTemplate:
        """Store a new version.  Raises InvalidRequest that says what is wrong with the name or the template."""
        check_name(name, "prompt")
        self.check(name, text)
        with self.database.write() as tx:
            newest = _newest(tx, caller, name).get(name)
            prompt = PromptTemplate(name, newest.version + 1 if newest else 1, text, "stored", self.now())
            values = {"version": prompt.version, "text": text, "created_at": prompt.created_at}
            tx.add(PromptRow(tenant=caller.tenant, name=name, **values))
            return prompt

    def delete(self, caller: Caller, name: str) -> int:
        """Delete all stored versions; the operator's file or the packaged text is in use then, if there is one.

        Returns how many there were.  Raises NotFound.
        """
        with self.database.write() as tx:
            stored = delete(PromptRow).where(PromptRow.tenant == caller.tenant, PromptRow.name == name)
            count = len(tx.scalars(stored.returning(PromptRow.id)).all())
        if not count:
            raise NotFound("prompt_not_found", f"There is no stored prompt {name!r}.", param="name")
        return count

    def check(self, name: str, text: str) -> None:
        """Raise InvalidRequest unless `text` is a template that renders with the variables of `name`."""
        if not text.strip():
            raise sandbox.bad_prompt("A prompt needs some text.")
        if len(text) > PROMPT_CHARS_MAX:
            raise sandbox.bad_prompt(f"A prompt may have {PROMPT_CHARS_MAX:,} characters.")
        of_summary = SUMMARY_VARIABLES, _OTHER_VARIABLES
        for variables in [_VARIABLES[name]] if name in _VARIABLES else of_summary:
            sandbox.render(name, text, variables)

    # -- for the engine's own transactions

    def find(self, tx: Transaction, caller: Caller, *names: str, has_prompts: bool = True) -> PromptTemplate:
        """Return the first of these prompts that there is. Raises NotFound as `get` does.

        has_prompts: whether any is stored, as far as it is known (see HAS_PROMPTS).
        """
        stored = _newest(tx, caller, *names) if has_prompts else {}
        for name in names:
            if prompt := stored.get(name) or self._unstored(name):
                return prompt
        there = ", ".join(self._names(tx, caller))
        raise NotFound("prompt_not_found", f"There is no prompt {names[-1]!r}. There are: {there}.", param="prompt")

    def find_summary(self, tx: Transaction, caller: Caller, name: str) -> PromptTemplate:
        """`find` for a summary prompt.  Raises InvalidRequest for a prompt of another purpose."""
        if name in _VARIABLES:
            raise InvalidRequest(
                "not_a_summary_prompt",
                f"The prompt {name!r} has another purpose; name a summary prompt.",
                param="prompt",
            )
        return self.find(tx, caller, name)

    def system(self, stored: str | None) -> str:
        """Return the text of `system`, rendered; `stored` is its newest stored one (see SYSTEM_TEXT)."""
        unstored = self._unstored("system") if stored is None else None
        return _system(unstored.text if unstored else stored or "")

    def _unstored(self, name: str) -> PromptTemplate | None:
        """Return the operator's file or the packaged text of this name."""
        file = self.folder / f"{name}.txt"
        if NAME.fullmatch(name) and file.is_file():
            return PromptTemplate(name, 0, file.read_text(encoding="utf-8"), "file")
        return PromptTemplate(name, 0, _PACKAGED[name], "packaged") if name in _PACKAGED else None

    def _names(self, tx: Transaction, caller: Caller) -> list[str]:
        stored = tx.scalars(select(PromptRow.name).where(PromptRow.tenant == caller.tenant).distinct())
        files = (path.stem for path in self.folder.glob("*.txt") if NAME.fullmatch(path.stem))
        return sorted({*_PACKAGED, *files, *stored})


def check_name(name: str, kind: str) -> None:
    """Raise InvalidRequest for a bad name of a prompt, or of another kind of things that callers name."""
    if not NAME.fullmatch(name):
        text = "A name is 1 to 64 of a-z, 0-9, - and _, and starts with a letter or a digit. Nothing was stored."
        raise InvalidRequest(f"bad_{kind}_name", text, param="name")


def _newest(tx: Transaction, caller: Caller, *names: str) -> dict[str, PromptTemplate]:
    """Return the newest stored version of each of these prompts, by name."""
    rows = tx.scalars(_NEWEST, {"tenant": caller.tenant, "names": names})
    return {row.name: PromptTemplate(row.name, row.version, row.text, "stored", row.created_at) for row in rows}


@lru_cache(maxsize=256)
def _system(text: str) -> str:
    return sandbox.render("system", text, {})
