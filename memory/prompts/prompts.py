"""Prompts by name: the packaged text, an operator's file over it, a version put through the API over both.

Guarantee: a prompt that is accepted renders, soon, into a text of bounded size.  Templates run in Jinja2's immutable
sandbox with nothing but the variables listed here and a few harmless filters; they print, choose, and loop one deep,
and can't define or call anything, so that no prompt reads a secret, eats the memory or never ends.

`system` opens the main model's prompt, `memory` tells it after a client's own instructions how to read the memory, and
`repair` asks the mini model to mend its answer; every other name is a summary prompt, and `summary` the one used unless
a setting or a request names another.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import StrictUndefined, TemplateError, meta, nodes, pass_context
from jinja2.filters import do_join
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment, SecurityError
from sqlalchemy import bindparam, func, select

from memory.domain import Caller
from memory.errors import InvalidRequest, NotFound
from models import Database, PromptRow, Transaction

PACKAGED = Path(__file__).parent
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
TEXT_CHARS_MAX = 20_000
RENDERED_CHARS_MAX = 100_000
SUMMARY_MAX_WORDS = 400

SECTIONS = (
    ("topic", "what the conversation is about, in one line"),
    ("requirements", "what the person needs or decided"),
    ("constraints", "limits: budget, time, must not, has to work with"),
    ("excluded", "options the person ruled out, each with the reason; take one out again when they reopen it"),
    ("data", "facts, figures and conclusions reached"),
    ("open_questions", "asked or left to decide, and not settled yet"),
    ("discussed", "what else was talked about, in the order it came up"),
)

_SUMMARY_VARIABLES: dict[str, Any] = {
    "first": True,
    "sections": [{"name": name, "about": about} for name, about in SECTIONS],
    "max_words": SUMMARY_MAX_WORDS,
}
_VARIABLES: dict[str, dict[str, Any]] = {"system": {}, "memory": {}, "repair": {"problem": "It is not JSON."}}
_GROWING = (nodes.Macro, nodes.Call, nodes.CallBlock, nodes.Assign, nodes.AssignBlock, nodes.With)
_FILTERS = ("join", "upper", "lower", "title", "capitalize", "trim", "length", "default", "first", "last", "list")


@dataclass(frozen=True)
class Prompt:
    """A named instruction.  `version` counts from 1 for stored ones; 0 is a file's.

    `source` is `packaged`, `file` or `stored`.
    """

    name: str
    version: int
    text: str
    source: str
    created_at: datetime | None = None

    @property
    def label(self) -> str:
        """How a summary says what it was made with."""
        return f"{self.name}@{self.version}" if self.version else self.name


class _Sandbox(ImmutableSandboxedEnvironment):
    """A sandbox without arithmetic that multiplies: `'x' * 10 ** 9` is a sentence that takes a gigabyte."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> NoReturn:
        raise SecurityError(f"the operator {operator} is not available in prompts")


def _join(context: Context, items: Any, separator: str = "", attribute: Any = None) -> str:
    """Jinja2's `join`, which multiplies as well: a long string joined by another."""
    items, separator = list(items), str(separator)
    if len(items) * len(separator) > RENDERED_CHARS_MAX:
        raise SecurityError("what it joins is too long")
    joined: str = do_join(context.eval_ctx, items, separator, attribute)
    return joined


def _environment() -> _Sandbox:
    env = _Sandbox(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False)
    env.globals.clear()  # no range, lipsum, cycler: loops go over what is given
    env.filters = {name: env.filters[name] for name in _FILTERS} | {"join": pass_context(_join)}
    return env


_ENV = _environment()
_compiled = lru_cache(maxsize=256)(_ENV.from_string)
_P = PromptRow.__table__.c
_NEWEST = (
    select(_P.name, _P.version, _P.text, _P.created_at)
    .where(_P.tenant == bindparam("tenant"), _P.name == bindparam("name"))
    .order_by(_P.version.desc())
    .limit(1)
)


class Prompts:
    """Finds, checks, stores and renders prompts."""

    def __init__(self, database: Database, folder: Path, now: Callable[[], datetime]) -> None:
        self._database = database
        self._folder = folder
        self._now = now

    def get(self, caller: Caller, name: str) -> Prompt:
        """The version in use.  Raises NotFound, naming those there are."""
        with self._database.read() as tx:
            return self.find(tx, caller, name)

    def find(self, tx: Transaction, caller: Caller, name: str) -> Prompt:
        """`get`, within a transaction of the engine's."""
        row = tx.execute(_NEWEST, {"tenant": caller.tenant, "name": name}).first()
        if row is not None:
            return Prompt(row.name, row.version, row.text, "stored", row.created_at)
        written = (self._own(name) or _packaged(name)) if NAME.fullmatch(name) else None
        if written is not None:
            return written
        there = ", ".join(sorted({prompt.name for prompt in self._all(tx, caller)}))
        raise NotFound("prompt_not_found", f"There is no prompt {name!r}. There are: {there}.", param="prompt")

    def _own(self, name: str) -> Prompt | None:
        """The operator's own file of this name.  Each turn asks, mostly to hear that there is none."""
        path = f"{self._folder}/{name}.txt"
        try:
            about = os.stat(path)  # noqa: PTH116 - a fifth of what pathlib takes to say so
        except (FileNotFoundError, NotADirectoryError):
            return None
        return _written(name, path, about.st_mtime_ns) if stat.S_ISREG(about.st_mode) else None

    def find_summary(self, tx: Transaction, caller: Caller, name: str) -> Prompt:
        """`find`, for a prompt that a summary is to be made with.  Raises InvalidRequest for one of another purpose."""
        if name in _VARIABLES:
            raise InvalidRequest(
                "not_a_summary_prompt",
                f"The prompt {name!r} has another purpose; name a summary prompt.",
                param="prompt",
            )
        return self.find(tx, caller, name)

    def all(self, caller: Caller) -> list[Prompt]:
        """The version in use of every prompt, by name."""
        with self._database.read() as tx:
            return self._all(tx, caller)

    def _all(self, tx: Transaction, caller: Caller) -> list[Prompt]:
        names = {path.stem for folder in (PACKAGED, self._folder) if folder.is_dir() for path in folder.glob("*.txt")}
        names = {name for name in names if NAME.fullmatch(name)}
        names.update(tx.scalars(select(PromptRow.name).where(PromptRow.tenant == caller.tenant).distinct()))
        return [self.find(tx, caller, name) for name in sorted(names)]

    def put(self, caller: Caller, name: str, text: str) -> Prompt:
        """Store a new version.  Raises InvalidRequest when the name or the template can't be used, saying why."""
        if not NAME.fullmatch(name):
            raise InvalidRequest(
                "bad_prompt_name",
                "A prompt's name is 1 to 64 of a-z, 0-9, - and _, and starts with a letter or a digit.",
                param="name",
            )
        check(name, text)
        with self._database.write() as tx:
            last = tx.scalar(
                select(func.max(PromptRow.version)).where(PromptRow.tenant == caller.tenant, PromptRow.name == name)
            )
            row = PromptRow(tenant=caller.tenant, name=name, version=(last or 0) + 1, text=text, created_at=self._now())
            tx.add(row)
        return Prompt(row.name, row.version, row.text, "stored", row.created_at)


@lru_cache(maxsize=64)
def _written(name: str, path: str, _at: int) -> Prompt:
    """An operator's file, read when it was changed."""
    return Prompt(name, 0, Path(path).read_text(encoding="utf-8"), "file")


@lru_cache(maxsize=64)
def _packaged(name: str) -> Prompt | None:
    path = PACKAGED / f"{name}.txt"
    return Prompt(name, 0, path.read_text(encoding="utf-8"), "packaged") if path.is_file() else None


def variables(name: str) -> Mapping[str, Any]:
    """The variables a prompt of this name may use, with sample values."""
    return _VARIABLES.get(name, _SUMMARY_VARIABLES)


def check(name: str, text: str) -> None:
    """Raises InvalidRequest unless `text` is a template that renders with the variables of `name`."""
    if not text.strip():
        raise _bad("A prompt needs some text.")
    if len(text) > TEXT_CHARS_MAX:
        raise _bad(f"A prompt may have {TEXT_CHARS_MAX:,} characters.")
    allowed = variables(name)
    try:
        tree = _ENV.parse(text)
        unknown = sorted(meta.find_undeclared_variables(tree) - set(allowed))
        if unknown:
            knows = ", ".join(allowed) or "no variables"
            raise InvalidRequest(
                "undefined_in_prompt",
                f"The prompt {name!r} uses {', '.join(unknown)}, which it is not given. It knows: {knows}.",
                param="text",
            )
        _check_bounded(tree)
        template = _ENV.from_string(text)
        for first in (True, False):
            values = {**allowed, **({"first": first} if "first" in allowed else {})}
            if sum(map(len, template.generate(values))) > RENDERED_CHARS_MAX:
                raise _bad(f"The prompt grows beyond {RENDERED_CHARS_MAX:,} characters when it is filled in.")
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        where = f" (line {line})" if line else ""
        said = str(error.message).rstrip(".")
        raise _bad(f"The prompt is not a template that can be used{where}: {said}.") from error
    except (RecursionError, SyntaxError, MemoryError) as error:  # all three are Python's words for it
        raise _bad("The prompt is nested too deeply.") from error
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise _bad(f"The prompt fails when it is filled in: {error}.") from error


def _check_bounded(tree: nodes.Template) -> None:
    """Raises InvalidRequest for what could make a short template run long or write much."""
    if any(tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends))):
        raise _bad("A prompt can't include other templates.")
    growing = next(tree.find_all(_GROWING), None)
    if growing is not None:
        raise _bad(f"A prompt can print, choose and loop, but not define or call anything (line {growing.lineno}).")
    for loop in tree.find_all(nodes.For):
        if loop.find(nodes.For) is not None or not isinstance(loop.iter, nodes.Name):
            raise _bad(f"A loop goes over one of the prompt's variables, and not within another (line {loop.lineno}).")


def _bad(message: str) -> InvalidRequest:
    return InvalidRequest("bad_prompt", message, param="text")


def render(prompt: Prompt, **values: Any) -> str:
    """The prompt with `values` over its sample values.  Raises InvalidRequest for a file that isn't a good template."""
    return _as_it_is(prompt.name, prompt.text) if not values else _rendered(prompt.name, prompt.text, values)


def _rendered(name: str, text: str, values: Mapping[str, Any]) -> str:
    check_once(name, text)
    return _compiled(text).render({**variables(name), **values}).strip()


@lru_cache(maxsize=256)
def _as_it_is(name: str, text: str) -> str:
    """A prompt of which nothing depends on the turn, rendered: every turn begins with one."""
    return _rendered(name, text, {})


@lru_cache(maxsize=256)
def check_once(name: str, text: str) -> None:
    """`check`, remembered: files are not checked when they are written."""
    check(name, text)
