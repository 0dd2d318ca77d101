"""Ask the mini model once for a new summary and for facts, from the previous summary and the messages since.

The result is fit to replace the previous summary, or AnswerRefused is raised. The model may repair its answer once.

Models may write prose instead of JSON, or other names.  Reading is tolerant of the form and strict about the content.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, tzinfo
from functools import partial
from operator import attrgetter
from typing import Any

from memory import tokens
from memory.knowledge.grounding import Grounding, contains_quote, find_quotes
from memory.knowledge.rule_set import EVERYTHING, RuleSet
from memory.languages import pattern, plain_apostrophes
from memory.llm import ModelRequest
from memory.llm.mini_model import (
    INTEGER,
    TEXT,
    CutOff,
    InvalidAnswer,
    ParsedAnswer,
    json_objects,
    list_of,
    object_of,
    request_for,
)
from memory.llm.thoughts import without_thoughts
from memory.prompts.prompts import SUMMARY_VARIABLES, PromptTemplate
from memory.quoting import GAP, block, escape, format_time, message_lines, one_line
from models.base import local_time
from models.facts import CATEGORY_CHARS_MAX, ENTITY_KINDS, Fact, FactDraft, InstructionDraft, Relation
from models.messages import Message
from models.sections import ITEM_CHARS_MAX, ITEMS_MAX, SECTIONS, Excluded, Kind, Sections

SUMMARY_FACTS_MAX = 40
WRAPPED_MAX = 2  # members of an object that a model puts around its answer
INSTRUCTIONS_MAX = 5
LINKS_MAX = 8  # of one fact
SUMMARY_TOKENS_MAX = 1200  # more than the prompt asks for; a longer summary loses its oldest and least important items
SHRUNKEN = "Its summary keeps only"  # how the problem of such an answer begins
SHRUNKEN_FROM = 80  # tokens; a smaller summary may lose anything
SHRUNKEN_TO = 0.5  # an update that keeps a smaller share of the summary is taken for a mistake

REFUSAL_CHARS_MAX = 600  # a longer text says something of the conversation

_REFUSAL = pattern(lambda language: language.refusals)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|[\W_]+")
_SUMMARY_NAME = re.compile(r"(?:^|_)(?:summary|memory)(?:_text|_update)?$")
_FACTS_NAME = re.compile(r"facts$|memories$")
_WORD = re.compile(r"[^\W\d_]+")
_NO_WORDS = frozenset(["json", "null", "none", "true", "false"])
_TEXT_NAMES = ("text", "fact", "statement")
_SCHEMAS: Mapping[Kind, Any] = {
    "line": TEXT,
    "items": list_of(TEXT),
    "options": list_of(object_of(option=TEXT, reason=TEXT)),
}
_ENTITY = {"type": "string", "enum": list(ENTITY_KINDS)}
_LINK = object_of(subject=TEXT, relation=TEXT, object=TEXT, subject_kind=_ENTITY, object_kind=_ENTITY)


@dataclass(frozen=True)
class SummaryUpdate:
    """Content of an answer: the whole summary as it stands now, and facts that are not yet checked.

    whole: the answer was JSON with nothing to repair, so that nothing of it can be missing.
    type: the conversation type that the answer names; "": none fits; None: it does not say.
    forget: ids of the known facts that the person asks to forget, with what else each says, which stays known.
    instructions: what they ask of every later reply.
    """

    sections: Sections
    facts: tuple[FactDraft, ...] = ()
    type: str | None = None
    forget: Mapping[int, str] = field(default_factory=dict)
    instructions: tuple[InstructionDraft, ...] = ()
    whole: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class SummaryInput:
    """Input of a summary: the previous one, the messages since then, and the known facts.

    session_id: public id of their session. zone: in which the person's days begin.
    beside_requests: what messages in which the person asks to forget something say beside that, by their ids.
    links: facts also say which people, places and things they tie together.
    types: names of conversation types, of which the answer names one; none: it names none.
    instructions: the person may ask for something of every later reply.
    rules: what is kept out of the answer, and the categories of facts.
    """

    previous: Sections
    messages: Sequence[Message]
    known_facts: Sequence[Fact]
    session_id: str = ""
    zone: tzinfo = UTC
    beside_requests: Mapping[int, str] = field(default_factory=dict)
    links: bool = False
    types: Sequence[str] = ()
    instructions: bool = False
    rules: RuleSet = EVERYTHING

    def grounding(self, facts_through: int = 0) -> Grounding:
        """Return the check of the facts that are proposed from it."""
        return Grounding(self.messages, [*self.previous.lines()], self.known_facts, facts_through)

    def is_beside_request(self, fact: Fact) -> bool:
        """Return whether a fact rests on what its message says beside a request to forget."""
        return contains_quote(fact.quote, self.beside_requests.get(fact.source_message_id or 0, ""))

    @property
    def has_content(self) -> bool:
        """Return whether the person has said anything in words."""
        return any(message.role == "user" and any(map(str.isalnum, message.content)) for message in self.messages)

    @property
    def variables(self) -> dict[str, Any]:
        """Return the variables of a summary prompt."""
        own = {"first": self.previous.empty, "links": self.links, "types": list(self.types)}
        return {**SUMMARY_VARIABLES, **own, "forget": bool(self.beside_requests), "instructions": self.instructions}

    @property
    def schema(self) -> Mapping[str, Any]:
        """Return the JSON Schema of the mini model's answer."""
        fact = {
            "text": TEXT,
            "category": {"type": "string", "enum": self.rules.categories_to_choose},
            "importance": {"type": "integer", "minimum": 1, "maximum": 5},
            "scope": {"type": "string", "enum": ["session", "user"]},
            "source": INTEGER,
            "quote": TEXT,
            "supersedes": list_of(TEXT),
            "until": TEXT,
        }
        if self.links:
            fact["links"] = list_of(_LINK)
        answer = {
            "summary": object_of(**{section.name: _SCHEMAS[section.kind] for section in SECTIONS}),
            "facts": list_of(object_of(**fact)),
        }
        if self.types:
            answer["type"] = {"type": "string", "enum": [*self.types, ""]}
        if self.beside_requests:
            answer["forget"] = list_of(object_of(fact=TEXT, rest=TEXT))
        if self.instructions:
            answer["instructions"] = list_of(object_of(text=TEXT, quote=TEXT, source=INTEGER))
        return object_of(**answer)

    def request(self, instruction: str) -> ModelRequest:
        """Return the request to the mini model. instruction: the prompt, rendered."""
        blocks = (
            block("summary_so_far", self._previous_lines()),
            self._known_facts_block(),
            block("messages", message_lines(self.messages, numbered=True)),
        )
        return request_for("\n\n".join(filter(None, (instruction, self.rules.instruction))), blocks, self.schema)

    def _previous_lines(self) -> Iterator[str]:
        """Yield the filled sections of the previous summary as JSON on one line, in the shape of the answer."""
        filled = {name: value for name, value in self.previous.as_dict().items() if value}
        if filled:
            yield escape(one_line(json.dumps(filled, ensure_ascii=False)))

    def _known_facts_block(self) -> str:
        """Return the known facts, the oldest first, as lines that begin with their marks: F3, which no message has.

        They have the time, as messages have, and tell whether another session's message states the fact.
        """
        lines: list[str] = []
        for fact in sorted(self.known_facts, key=attrgetter("valid_from", "id")):
            place = " elsewhere" if fact.session_id not in (self.session_id, None) else ""
            since = format_time(local_time(fact.valid_from, self.zone))
            lines.append(f"[F{fact.id}] {escape(fact.text)} (said {since}{place})")
        return block("known_facts", lines)


def update_summary(
    ask: Callable[..., ParsedAnswer[SummaryUpdate]],
    prompt: PromptTemplate,
    source: SummaryInput,
    *,
    keeps_previous: bool = False,
) -> ParsedAnswer[SummaryUpdate]:
    """Bring the previous summary up to date with the messages since; `ask` asks the mini model (see `MiniModel.ask`).

    keeps_previous: what the previous summary says stays in one that shrinks, which is refused otherwise.
    Raises ModelError when the model fails, AnswerRefused when its answer can't be used, even repaired.
    """
    usable = partial(read, source=source, keeps_previous=keeps_previous)
    answer = ask(source.request(prompt.render(**source.variables)), read=usable, replacing="summary")
    if answer.cut_off and not answer.value.whole and len(source.messages) > 1:
        raise CutOff().to_error("summary")
    return answer


def read(answer: str, source: SummaryInput, *, keeps_previous: bool = False) -> SummaryUpdate:
    """Read a model's answer that is fit to replace the previous summary. Prose becomes `discussed`, without facts.

    The summary may shrink where the person asks to forget something, and the answer forgets a known fact or there is
    none: that may be all that it has. "Forget it, let's go on" takes nothing. It may be empty then, too, and as long as
    nothing was said. keeps_previous: as for `update_summary`. Raises InvalidAnswer.
    """
    previous = source.previous
    if not without_thoughts(answer).strip():
        raise InvalidAnswer("It is empty.")
    shown = "\n".join([str(previous), *(message.content for message in source.messages)])
    for escaped, sign in _ESCAPED.items():  # as memory.quoting writes it, and models copy it
        answer = answer if escaped in shown else answer.replace(escaped, sign)
    update = _in_json(answer, previous, source.messages)
    if update is None and ("{" in answer or _NO_WORDS.issuperset(_WORD.findall(answer.lower()))):
        raise InvalidAnswer("It holds no complete JSON object with a `summary`.")
    update = update or SummaryUpdate(_from_text(without_thoughts(answer), previous))
    kept = replace(update, sections=source.rules.kept_of(update.sections))
    known = {fact.id for fact in source.known_facts}
    if source.beside_requests and (previous.empty or not known or not known.isdisjoint(update.forget)):
        return kept
    if update.sections.empty and (source.has_content or not previous.empty):
        raise InvalidAnswer("Its summary is empty.")
    before = tokens.estimate(str(previous))
    after = tokens.estimate(str(update.sections))
    if before < SHRUNKEN_FROM or after >= before * SHRUNKEN_TO:
        return kept
    if keeps_previous:
        return replace(kept, sections=limit_size(_joined(source.rules.kept_of(previous), kept.sections)))
    raise InvalidAnswer(f"{SHRUNKEN} {after} of {before} tokens of the one before; what still holds must stay in it.")


def _joined(previous: Sections, new: Sections) -> Sections:
    """Return all that two summaries say: the new items last, and the new topic if there is one."""
    joined: dict[str, Any] = {"topic": new.topic or previous.topic}
    for section in SECTIONS:
        if section.kind != "line":
            items = (*getattr(previous, section.name), *getattr(new, section.name))
            joined[section.name] = tuple(dict.fromkeys(items))[-ITEMS_MAX:]
    return Sections(**joined)


def _in_json(answer: str, previous: Sections, messages: Sequence[Message]) -> SummaryUpdate | None:
    """Read an answer's JSON objects, the first of which counts; return None if they hold no summary."""
    data: dict[str, Any] = {}
    repaired = False
    for item in json_objects(answer):
        data |= {name: value for name, value in _by_name(_unwrapped(item.value)).items() if name not in data}
        repaired = repaired or item.repaired
    listed = next(filter(_FACTS_NAME.search, data), "")
    summary = data.get(next(filter(_SUMMARY_NAME.search, data), ""), data)
    if repaired and (summary is data or not listed):
        return None  # parts of the summary may be missing
    facts = _facts(data.get(listed), messages)
    forget = dict(map(_forgotten, _listed(data.get("forget"))))
    instructions = tuple(map(_instruction, _listed(data.get("instructions"))[:INSTRUCTIONS_MAX]))
    of_type = data.get("type")
    named_type = of_type.strip() if isinstance(of_type, str) else None
    if isinstance(summary, str | list) and summary:
        text = "\n".join(map(one_line_item, _listed(summary)))
        return SummaryUpdate(_from_text(text, previous), facts, named_type, forget, instructions, whole=not repaired)
    written = _by_name(summary) if isinstance(summary, dict) else {}
    if not any(section.name in written for section in SECTIONS):
        return None
    sections = {section.name: _READERS[section.kind](written.get(section.name)) for section in SECTIONS}
    return SummaryUpdate(limit_size(Sections(**sections)), facts, named_type, forget, instructions, whole=not repaired)


def _unwrapped(data: dict[str, Any]) -> dict[str, Any]:
    """Return the object with a summary that is one of few members, also as text; else the same object."""
    if len(data) > WRAPPED_MAX or _holds_summary(data):
        return data
    inner = (entry.value for member in data.values() for entry in json_objects(json.dumps(member)))
    return next(filter(_holds_summary, inner), data)


def _holds_summary(data: Mapping[str, Any]) -> bool:
    return any(map(_SUMMARY_NAME.search, _by_name(data)))


def _by_name(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of an object by the names in the schema: `Open Questions` is `open_questions`."""
    return {_HUMP.sub("_", str(name).strip()).lower(): value for name, value in data.items()}


def _from_text(text: str, previous: Sections) -> Sections:
    """Return the previous summary with a text as its `discussed`. Raises InvalidAnswer."""
    if len(text) < REFUSAL_CHARS_MAX and _REFUSAL.match(plain_apostrophes(text).lstrip(" \n\t\"'*#>_“«")):
        raise InvalidAnswer("It declines the task in words and is no summary.")
    return limit_size(replace(previous, discussed=_paragraphs(text)))


def _texts(value: Any) -> tuple[str, ...]:
    items = dict.fromkeys(filter(None, map(one_line_item, _listed(value))))  # without repetitions
    return tuple(items)[-ITEMS_MAX:]


def _options(value: Any) -> tuple[Excluded, ...]:
    items = (item if isinstance(item, Mapping) else {"option": item} for item in _listed(value))
    options = (Excluded(one_line_item(item.get("option")), one_line_item(item.get("reason"))) for item in items)
    return tuple(option for option in options if option.option)[-ITEMS_MAX:]


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [] if value in (None, "", {}) else [value]


def one_line_item(value: Any) -> str:
    """Return a text on one line, not too long. The values of a JSON object are joined; a number becomes its text."""
    if isinstance(value, Mapping):
        value = ": ".join(str(part) for part in value.values() if isinstance(part, str | int | float))
    if value is None or isinstance(value, bool | list):
        return ""
    line = one_line(str(value))
    return line if len(line) <= ITEM_CHARS_MAX else line[: ITEM_CHARS_MAX - 1] + "…"


_ESCAPED = {"&lt;": "<", "&gt;": ">", "&#91;": "[", "&#126;": "~", "&amp;": "&"}
_READERS: Mapping[Kind, Callable[[Any], Any]] = {"line": one_line_item, "items": _texts, "options": _options}


def _paragraphs(text: str) -> tuple[str, ...]:
    lines = (re.sub(r"^\s*(?:[-*•#>]+|\d+[.)])\s*", "", line) for line in text.splitlines() if "```" not in line)
    return _texts([line for line in lines if line.strip()])


def _facts(value: Any, messages: Sequence[Message]) -> tuple[FactDraft, ...]:
    """Proposed facts.  Where one has no quote, words of the person's that say the same become its quote."""
    items = (item for item in _listed(value)[:SUMMARY_FACTS_MAX] if isinstance(item, Mapping | str))
    drafts = [_fact(_by_name(item) if isinstance(item, Mapping) else {"text": item}) for item in items]
    quotes = find_quotes({draft.text for draft in drafts if not draft.quote}, messages)
    return tuple(
        replace(draft, source=quotes[draft.text][0], quote=quotes[draft.text][1]) if draft.text in quotes else draft
        for draft in drafts
    )


def _fact(item: Mapping[str, Any]) -> FactDraft:
    category = one_line_item(item.get("category")).lower()
    return FactDraft(
        text=one_line_item(next((item[name] for name in _TEXT_NAMES if name in item), None)),
        source=_integer(item.get("source"), 0),
        quote=item["quote"] if isinstance(item.get("quote"), str) else "",
        category=category[:CATEGORY_CHARS_MAX] or "other",
        importance=min(5, max(1, _integer(item.get("importance"), 3))),
        scope="user" if item.get("scope") == "user" else "session",
        supersedes=tuple(_integer(old, 0) for old in _listed(item.get("supersedes"))),
        links=tuple(_link(link) for link in _listed(item.get("links"))[:LINKS_MAX] if isinstance(link, Mapping)),
        last_day=_day(item.get("until")),
    )


def _day(value: Any) -> date | None:
    """Return a day as models write it, 2026-03-05 or with a time; None for anything else."""
    try:
        return date.fromisoformat(str(value).strip()[:10])
    except ValueError:
        return None


def _instruction(item: Any) -> InstructionDraft:
    named = _by_name(item) if isinstance(item, Mapping) else {}
    quote = named.get("quote")
    text = one_line_item(named.get("text"))
    source = _integer(named.get("source"), 0)
    return InstructionDraft(text, source, quote if isinstance(quote, str) else "")


def _forgotten(item: Any) -> tuple[int, str]:
    """Return the id of a fact to forget, and what of it stays. Models also write the mark alone."""
    named = _by_name(item) if isinstance(item, Mapping) else {"fact": item}
    return _integer(named.get("fact"), 0), one_line_item(named.get("rest"))


def _link(item: Mapping[str, Any]) -> Relation:
    kinds = (one_line_item(item.get(name)).lower() for name in ("subject_kind", "object_kind"))
    ends = (one_line_item(item.get(name)) for name in ("subject", "relation", "object"))
    return Relation(*ends, *(kind if kind in ENTITY_KINDS else "thing" for kind in kinds))


def _integer(value: Any, otherwise: int) -> int:
    """Return a whole number as models write it: 3, 3.0, "3", "[3]" or [3]; at most 18 digits fit 64 bits."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    match = re.search(r"-?\d{1,18}", str(value)) if isinstance(value, int | float | str) else None
    return int(match.group()) if match else otherwise


def shortened(message: Message, window: int | None) -> Message:
    """Return a message's beginning and end, at most half of it, and at most half of what the model can read."""
    part = min(len(message.content) // 4, window or len(message.content))  # a token has four characters
    return message._replace(content=f"{message.content[:part]}\n{GAP}\n{message.content[-part:]}")


def limit_size(sections: Sections) -> Sections:
    """`sections` within SUMMARY_TOKENS_MAX.  The last sections lose items first, each its oldest first."""
    if tokens.estimate(str(sections)) <= SUMMARY_TOKENS_MAX:
        return sections
    for section in reversed(SECTIONS):
        items = getattr(sections, section.name)
        while items and section.kind != "line" and tokens.estimate(str(sections)) > SUMMARY_TOKENS_MAX:
            items = items[1:]
            fewer: dict[str, Any] = {section.name: items}
            sections = replace(sections, **fewer)
    return sections
