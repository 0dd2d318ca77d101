"""Conversation types: what a conversation is for, and what a turn does differently then.

Built-in types have cue words in the languages' files, and change budgets and the order of the summary (BUILT_IN_DOES).
A tenant, or a person for themselves, stores more types; a stored one takes the place of a built-in one of its name.

The type is the one set for the session; else the one that the mini model named with the last summary; else the one with
most cue words in the person's last messages. A cue that the tenant or the person stored counts twice. Small talk is the
type of messages with few other words.

Invariant: the prompt's prefix does not change with the type from turn to turn, to keep the cache. The type's text and
the recall mode `tools` stay as at the last compaction; budgets follow the current type. What a person sets, the
session's type or a stored type, counts at once (test_conversation_types).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from config import Settings
from memory.access.owners import find_or_make_owner, find_owner
from memory.errors import InvalidRequest, NotFound
from memory.languages import LANGUAGES, analysis_in
from memory.llm.mini_model import list_of, object_of
from memory.prompts.prompts import check_name
from memory.store import item_rows
from models import Database, OwnerRow, SessionRow, Transaction
from models.messages import Message
from models.owners import Caller
from models.sections import SECTIONS
from models.sessions import SessionState
from models.store import OWN, Put
from models.turns import RECALL_MODES
from schemas.conversation_types import CUE_CHARS, PROMPT_CHARS
from search_index.caches import cached

NAMESPACE = (OWN, "types")
STORED_NAMESPACE = item_rows.join_namespace(NAMESPACE)
SMALL_TALK = "small_talk"
TYPES_MAX = 25  # of a person or a tenant, built-in ones included: every turn reads them
BUDGET_SHARE = 4  # a budget may be a quarter of CONTEXT_TOKENS
CACHED_TEXTS = 256
CUE_MESSAGES, CUE_TEXT_CHARS = 4, 1_000  # the person's last messages, and the characters of each
CUES_MIN = 2  # cue words that tell a type
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
_BUDGETS = ("recall_tokens", "fact_tokens", "example_tokens")
_BUDGET = {"type": ["integer", "null"], "minimum": 0}
SHAPE = object_of(
    cues=list_of({"type": "string", "maxLength": CUE_CHARS}),
    prompt={"type": "string", "maxLength": PROMPT_CHARS},
    recall={"enum": [*RECALL_MODES, None]},
    **dict.fromkeys(_BUDGETS, _BUDGET),
)
SHAPE["properties"]["emphasis"] = list_of({"enum": [section.name for section in SECTIONS]})  # older types have none
Cues = defaultdict[str, list[tuple[str, frozenset[str]]]]  # by one of a cue's terms: its type, and all of its terms


@dataclass(frozen=True)
class ConversationType:
    """Type, and what it does; None: as the settings say.

    emphasis: sections that come first in the summary. built_in: has cue words of the languages beside its own.
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


@dataclass(frozen=True)
class TurnSettings:
    """`type` of a turn's conversation, the type's text in the prefix, and the settings with it.

    prefix_type: the type that the prefix is for, as it was at the last compaction. prompt_type: whose text it has.
    """

    type: str | None
    prompt_type: str
    prompt: str
    settings: Settings
    emphasis: Sequence[str] = ()
    prefix_type: str | None = None


class ConversationTypes:
    """Stores types for callers: those of the user, or without one the tenant's. Tells the type of a turn."""

    def __init__(self, settings: Settings, database: Database, now: Callable[[], datetime]) -> None:
        self._settings = settings
        self._database = database
        self._now = now
        self._is_on = settings.conversation_types == "on"
        self._defaults = {name: _default(name, settings) for name in BUILT_IN}
        words = analysis_in(settings.search_language).words

        def index_cues(cues: Iterable[tuple[str, str]]) -> Cues:
            index: Cues = defaultdict(list)
            for name, cue in cues:
                if terms := words(cue):
                    index[min(terms)].append((name, terms))
            return index

        self._words, self._index_cues = cached(CACHED_TEXTS)(words), cached(CACHED_TEXTS)(index_cues)
        self._built_in_cues = index_cues(_BUILT_IN)

    def list_types(self, caller: Caller) -> list[ConversationType]:
        """Return the types of the caller's conversations, by name."""
        with self._database.read() as tx:
            types = self._types(tx, find_owner(tx, Caller(caller.tenant)), find_owner(tx, caller))
        return [types[name] for name in sorted(types)]

    def get(self, caller: Caller, name: str) -> ConversationType:
        """Return the type of this name. Raises NotFound."""
        for type_ in self.list_types(caller):
            if type_.name == name:
                return type_
        raise not_found(name)

    def put(self, caller: Caller, name: str, **does: Any) -> ConversationType:
        """Store a type of the caller's, by the fields of a type. Raises InvalidRequest."""
        new = ConversationType(name, **does)
        limit = self._settings.context_tokens // BUDGET_SHARE
        check_name(name, "type")
        if cue := next((cue for cue in new.cues if not self._words(cue)), None):
            raise _refused("bad_cue", f"The cue {cue!r} has no word that tells anything. Name another.")
        if any((getattr(new, budget) or 0) > limit for budget in _BUDGETS):
            raise _refused("budget_too_large", f"A budget may be a quarter of CONTEXT_TOKENS, so {limit:,} tokens.")
        with self._database.write() as tx:
            owner = find_or_make_owner(tx, caller, self._now())
            if len(self._types(tx, owner).keys() | {name}) > TYPES_MAX:
                raise _refused("too_many_types", f"There may be {TYPES_MAX} types with those built in. Delete some.")
            item_rows.write(tx, owner.id, Put(NAMESPACE, name, does), self._now(), author="person")
        return self.get(caller, name)

    def check(self, tx: Transaction, row: SessionRow, name: str) -> None:
        """Raise InvalidRequest when the session can't have this type."""
        types = self._types(tx, find_owner(tx, Caller(row.tenant)), row.owner)
        if name not in types:
            raise InvalidRequest(
                "unknown_type",
                f"There is no conversation type {name!r} for this session. There are: {', '.join(sorted(types))}. "
                "Nothing was stored. `PUT /api/conversation-types/NAME` adds one.",
                param="type",
            )

    def choices(self, stored: Iterable[str]) -> Sequence[str]:
        """Return the types among which the mini model chooses. stored: the names of the person's and the tenant's."""
        return sorted({*self._defaults, *stored}) if self._is_on else ()

    def settings_for(
        self, row: SessionState, stored: Mapping[str, Any], messages: Sequence[Message], *, choosing: bool
    ) -> TurnSettings:
        """Return the settings of a turn after these messages.

        stored: values of the types that are stored, by name. choosing: the prefix is chosen now.
        """
        own = {name: ConversationType(name, **value) for name, value in stored.items()}
        types = self._defaults | own
        chosen = row.type if row.type in types else None
        recognised = row.recognised_type
        if chosen or not self._is_on:
            name = chosen
        elif recognised is not None and (not recognised or recognised in types):
            name = recognised or None
        else:
            texts = [message.content for message in messages if message.role == "user"]
            name = self._recognise(texts[-CUE_MESSAGES:], own.values())
        prefix_type = name if choosing else row.head_type
        of_turn, of_prefix = (types.get(key or "", ConversationType("")) for key in (name, chosen or prefix_type))
        changes = ((name, getattr(of_turn, name)) for name in ("recall", *_BUDGETS))
        changed = {name: value for name, value in changes if value is not None}
        default = self._settings.recall
        if "tools" in (of_turn.recall or default, of_prefix.recall or default):
            changed["recall"] = of_prefix.recall or default
        settings = self._settings.model_copy(update=changed) if changed else self._settings
        return TurnSettings(name, of_prefix.name, of_prefix.prompt, settings, of_prefix.emphasis, prefix_type)

    def _types(self, tx: Transaction, *owners: OwnerRow | None) -> dict[str, ConversationType]:
        """Return the types of these owners, by name; a later owner's take the place of an earlier one's."""
        types = dict(self._defaults)
        for owner in filter(None, owners):
            for item in item_rows.list_items(tx, owner.id, NAMESPACE, self._now()):
                built_in = item.key in BUILT_IN
                of_tenant = owner.kind == "tenant"
                types[item.key] = ConversationType(item.key, **item.value, built_in=built_in, of_tenant=of_tenant)
        return types

    def _recognise(self, texts: Iterable[str], types: Iterable[ConversationType]) -> str | None:
        """Return the type with most cue words; None below CUES_MIN."""
        own = self._index_cues(tuple((type_.name, cue) for type_ in types for cue in type_.cues))
        scores: Counter[str] = Counter()
        for words in (self._words(text[:CUE_TEXT_CHARS]) for text in texts):
            chatting: set[str] = set()
            for cues, weight in ((self._built_in_cues, 1), (own, 2)):
                for name, cue in {cue for word in cues.keys() & words for cue in cues[word] if cue[1] <= words}:
                    scores[name] += weight
                    chatting.update(cue if name == SMALL_TALK else ())
            scores[SMALL_TALK] -= len(words - chatting)
        best = max(scores, key=lambda name: (scores[name], name), default="")
        return best if scores[best] >= CUES_MIN else None


def _default(name: str, settings: Settings) -> ConversationType:
    """Return a built-in type. Its recall mode counts only where the settings leave that to the message."""
    does = dict(BUILT_IN_DOES[name])
    for budget in does.keys() & set(_BUDGETS):
        does[budget] = int(getattr(settings, budget) * does[budget])
    if settings.recall != "auto":
        does.pop("recall", None)
    return ConversationType(name, **does, built_in=True)


def _refused(code: str, reason: str) -> InvalidRequest:
    return InvalidRequest(code, f"{reason} Nothing was stored.")


def not_found(name: str) -> NotFound:
    return NotFound("type_not_found", f"There is no conversation type {name!r}.", param="name")
