"""Conversation types: what a conversation is for, known by its words, and what a turn does differently then.

The types that are built in (planning, support, learning, writing, small talk) have cue words in the files of the
languages, and change budgets and the order of a summary's sections (see BUILT_IN_DOES).  A tenant, or a person for
themselves, adds types, and says what a type does: a text beside the system prompt, the mode of recall, budgets,
sections to emphasise.  A stored type takes the place of a built-in one of its name.

A conversation has the type that its session was given; without one, that which the mini model named with the last
summary; until then, that whose cue words the person's last messages have most of.  A word that the tenant or the person
named counts twice.  Small talk is what has few other words.

Guarantee: the beginning of a prompt does not change with the type from turn to turn.  What a type does to excerpts and
facts stands before the new message, so it follows the talk at once.  Its text is in the head, and the tools of recall
mode `tools` are before that: for both it counts which type it was when the head was chosen, at the beginning and when
the tail folds.  What a person sets, the session's type or what a type does, counts at once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from config import Settings
from memory.access.owners import find_or_make_owner, find_owner
from memory.errors import InvalidRequest, NotFound
from memory.languages import LANGUAGES, analysis_in
from memory.prompts.prompts import NAME
from memory.store import documents
from models import Database, OwnerRow, SessionRow, Transaction
from models.messages import Message
from models.owners import Caller
from models.sessions import SessionState
from models.store import OWN, Put
from search_index.caches import cached

NAMESPACE = (OWN, "types")
SMALL_TALK = "small_talk"
TYPES_MAX = 25  # of a person or a tenant, with those that are built in: every turn reads them
BUDGET_SHARE = 4  # a budget may be a quarter of CONTEXT_TOKENS
TEXTS_KEPT = 256  # messages, and lists of cues, whose words are cached
LAST, READ_CHARS = 4, 1_000  # messages of the person's that are read, and characters of each
ENOUGH = 2  # cue words that tell a type
_BUILT_IN = tuple((name, cue) for language in LANGUAGES for name, cues in language.types.items() for cue in cues)
BUILT_IN = frozenset(name for name, _ in _BUILT_IN)
BUILT_IN_DOES: Mapping[str, Mapping[str, Any]] = {  # budgets as shares of the settings
    "planning": {"fact_tokens": 1.5, "emphasis": ("requirements", "constraints", "excluded", "open_questions")},
    "support": {"recall": "always", "emphasis": ("data", "excluded", "open_questions")},
    "learning": {"recall_tokens": 1.25, "fact_tokens": 0.5, "emphasis": ("open_questions", "discussed")},
    "writing": {"recall_tokens": 0.5, "example_tokens": 1.5, "emphasis": ("requirements", "constraints")},
    "small_talk": {"recall_tokens": 0.5, "fact_tokens": 0.5, "example_tokens": 0.0},
}
"""What the built-in types do; docs/how-it-works.md gives the reasons."""
_SETTINGS = ("recall", "recall_tokens", "fact_tokens", "example_tokens")
Cues = defaultdict[str, list[tuple[str, frozenset[str]]]]  # by one of their terms: a type, and all terms of the cue


@dataclass(frozen=True)
class ConversationType:
    """A type, and what it does; None: as the settings say.  One that is `built_in` has cue words beside its own.

    emphasis: sections that come first in the summary.
    """

    name: str
    cues: Sequence[str] = ()
    prompt: str = ""
    recall: str | None = None
    recall_tokens: int | None = None
    fact_tokens: int | None = None
    example_tokens: int | None = None
    emphasis: Sequence[str] = ()
    built_in: bool = False
    of_tenant: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that it changes."""
        return {name: value for name in _SETTINGS if (value := getattr(self, name)) is not None}


@dataclass(frozen=True)
class TurnSettings:
    """How a turn is taken: the `type` of its conversation, what the prefix says for it, and the settings with it.

    prefix_type: the type that the prefix is for, as it was at the last compaction.
    """

    type: str | None
    prompt: str
    settings: Settings
    emphasis: Sequence[str] = ()
    prefix_type: str | None = None


class ConversationTypes:
    """Reads and changes types on behalf of callers, those of the user or without one the tenant's; and knows the type
    of a turn."""

    def __init__(self, settings: Settings, database: Database, now: Callable[[], datetime]) -> None:
        self._settings = settings
        self._database = database
        self._now = now
        self._is_on = settings.conversation_types == "on"
        self._defaults = {name: _default(name, settings) for name in BUILT_IN}
        words = analysis_in(settings.search_language).words

        def cues(named: Iterable[tuple[str, str]]) -> Cues:
            found: Cues = defaultdict(list)
            for name, cue in named:
                if terms := words(cue):
                    found[min(terms)].append((name, terms))
            return found

        self._words, self._cues, self._built_in = cached(TEXTS_KEPT)(words), cached(TEXTS_KEPT)(cues), cues(_BUILT_IN)

    def all(self, caller: Caller) -> list[ConversationType]:
        """What the caller's conversations may be, by name.  A person's own takes the place of the tenant's."""
        with self._database.read() as tx:
            found = self._known(tx, find_owner(tx, Caller(caller.tenant)), find_owner(tx, caller))
        return [found[name] for name in sorted(found)]

    def get(self, caller: Caller, name: str) -> ConversationType:
        """Raises NotFound."""
        found = next((one for one in self.all(caller) if one.name == name), None)
        if found is None:
            raise _not_found(name)
        return found

    def put(self, caller: Caller, name: str, **does: Any) -> ConversationType:
        """Store what a type of the caller's does, by the fields of a type.  Raises InvalidRequest."""
        new, most = ConversationType(name, **does), self._settings.context_tokens // BUDGET_SHARE
        if not NAME.fullmatch(name):
            raise _refused("bad_type_name", "A type's name is 1 to 64 of a-z, 0-9, - and _, and starts with no sign.")
        if cue := next((cue for cue in new.cues if not self._words(cue)), None):
            raise _refused("bad_cue", f"The cue {cue!r} has no word that tells anything. Name another.")
        if max((value for value in new.settings.values() if isinstance(value, int)), default=0) > most:
            raise _refused("budget_too_large", f"A budget may be a quarter of CONTEXT_TOKENS, so {most:,} tokens.")
        with self._database.write() as tx:
            owner = find_or_make_owner(tx, caller, self._now())
            if len(self._known(tx, owner).keys() | {name}) > TYPES_MAX:
                raise _refused("too_many_types", f"There may be {TYPES_MAX} types with those built in. Delete some.")
            documents.write(tx, owner.id, Put(NAMESPACE, name, does), self._now(), author="person")
        return self.get(caller, name)

    # -- for the engine's own transactions

    def find(self, tx: Transaction, caller: Caller, name: str) -> list[int]:
        """The id of the item that the caller's own type is.  Raises NotFound."""
        owner = find_owner(tx, caller)
        item = documents.read(tx, owner.id, NAMESPACE, name, self._now()) if owner is not None else None
        if item is None:
            raise _not_found(name)
        return [item.id]

    def check(self, tx: Transaction, row: SessionRow, name: str) -> None:
        """Raises InvalidRequest when the session's conversation can't be of this type."""
        if name not in self._known(tx, find_owner(tx, Caller(row.tenant)), row.owner):
            raise InvalidRequest(
                "unknown_type",
                f"There is no conversation type {name!r} for this session. Nothing was changed. Store it first.",
                param="type",
            )

    def settings_for(
        self, row: SessionState, stored: Mapping[str, Any], line: Sequence[Message], *, choosing: bool
    ) -> TurnSettings:
        """How to take a turn at the end of this line, with the types that are `stored`.

        choosing: the prefix is chosen now.
        """
        types = {name: ConversationType(name, **value) for name, value in stored.items()}
        said = [message.content for message in line if message.role == "user"]
        known = self._defaults | types
        given, recognised = row.type if row.type in known else None, row.recognised_type
        if given or not self._is_on:
            name = given
        elif recognised is not None and (not recognised or recognised in known):
            name = recognised or None
        else:
            name = self._recognise(said[-LAST:], types.values())
        prefix_type = name if choosing else row.head_type
        of_turn, of_head = (known.get(one or "", ConversationType("")) for one in (name, given or prefix_type))
        changed, default = of_turn.settings, self._settings.recall
        if "tools" in (of_turn.recall or default, of_head.recall or default):
            changed["recall"] = of_head.recall or default
        settings = self._settings.model_copy(update=changed) if changed else self._settings
        return TurnSettings(name, of_head.prompt, settings, of_head.emphasis, prefix_type)

    def choices(self, stored: Iterable[str]) -> Sequence[str]:
        """Return the types among which the mini model chooses. stored: the names of the person's and the tenant's."""
        return sorted({*self._defaults, *stored}) if self._is_on else ()

    def _known(self, tx: Transaction, *owners: OwnerRow | None) -> dict[str, ConversationType]:
        """The types of these owners; a later one's take the place of an earlier one's."""
        found = dict(self._defaults)
        for owner in filter(None, owners):
            for item in documents.listed(tx, owner.id, NAMESPACE, self._now()):
                built_in, of_tenant = item.key in BUILT_IN, owner.kind == "tenant"
                found[item.key] = ConversationType(item.key, **item.value, built_in=built_in, of_tenant=of_tenant)
        return found

    def _recognise(self, said: Iterable[str], types: Iterable[ConversationType]) -> str | None:
        """The type that the words tell; None where they do not tell enough."""
        own = self._cues(tuple((one.name, cue) for one in types for cue in one.cues))
        scores: Counter[str] = Counter()
        for words in (self._words(text[:READ_CHARS]) for text in said):
            chatting: set[str] = set()
            for cues, weight in ((self._built_in, 1), (own, 2)):
                for name, cue in {one for word in words for one in cues.get(word, ()) if one[1] <= words}:
                    scores[name] += weight
                    chatting.update(cue if name == SMALL_TALK else ())
            scores[SMALL_TALK] -= len(words - chatting)
        best = max(scores, key=lambda name: (scores[name], name), default="")
        return best if scores[best] >= ENOUGH else None


def _default(name: str, settings: Settings) -> ConversationType:
    """Return what a built-in type does.  It looks back more often only where the settings leave that to the message."""
    does = dict(BUILT_IN_DOES[name])
    for budget in _SETTINGS[1:]:
        if budget in does:
            does[budget] = int(getattr(settings, budget) * does[budget])
    if settings.recall != "auto":
        does.pop("recall", None)
    return ConversationType(name, **does, built_in=True)


def _refused(code: str, reason: str) -> InvalidRequest:
    return InvalidRequest(code, f"{reason} Nothing was stored.")


def _not_found(name: str) -> NotFound:
    return NotFound("type_not_found", f"There is no conversation type {name!r}.", param="name")
