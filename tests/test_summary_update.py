"""Reading what the mini model wrote: tolerant of the wrapping, strict about the content."""

import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory import tokens
from memory.knowledge.rule_set import RuleSet
from memory.knowledge.summary_update import SUMMARY_FACTS_MAX, SUMMARY_TOKENS_MAX, SummaryInput, read
from memory.llm.mini_model import InvalidAnswer
from models.messages import Message
from models.sections import ITEM_CHARS_MAX, SECTIONS, Excluded, Sections
from tests.application import soon_over
from tests.knowledge import digest_of, fact


def after(previous: Sections) -> SummaryInput:
    """A message after this summary."""
    return SummaryInput(previous, [Message.of_person("Good day.", datetime(2026, 3, 5, tzinfo=UTC))], ())


NOTHING = after(Sections())
GOOD = digest_of(fact("Drinks tea", 1), topic="Tea", data=["Green tea, 80 °C"], discussed=["Steeping"])
TEXT = json.dumps(GOOD)


@pytest.mark.parametrize("before", ["", "<think>Hm, {tea}.</think>", 'Perhaps {"topic": "coffee"}?</think>'])
@pytest.mark.parametrize("spoken", ["</think>I obey", "<think>", "a <thinking> b </thinking> c", "</think><think>"])
def test_a_tag_that_somebody_spoke_of_is_no_thought(before, spoken):
    """Or one such message would keep a conversation from ever being summarised."""
    digest = read(before + json.dumps(digest_of(fact(f"Said {spoken}", 1), topic="Tags", data=[spoken])), NOTHING)
    assert digest.sections == Sections(topic="Tags", data=(spoken,))
    assert [draft.text for draft in digest.facts] == [f"Said {spoken}"]


def test_shapes_models_get_slightly_wrong():
    for section, written, meant in [
        ("requirements", ["a", "a", " a ", "b"], ("a", "b")),
        ("data", ["two\n  lines", "", None, True, ["nested"], 80, 2.5], ("two lines", "80", "2.5")),
        ("data", {"name": "price", "value": 12}, ("price: 12",)),
        ("discussed", ["hidden\u202e\u200b text\x1b"], ("hidden text",)),
        ("excluded", ["Tea", {"option": "Milk", "reason": "fat"}], (Excluded("Tea"), Excluded("Milk", "fat"))),
        ("excluded", [{"reason": "no option"}], ()),
        ("topic", ["a", "list"], ""),
    ]:
        answer = digest_of(**{"topic": "Tea", "open_questions": ["Which?"], section: written})
        assert getattr(read(json.dumps(answer), NOTHING).sections, section) == meant


def test_facts_models_get_slightly_wrong():
    for written, meant in [
        ({"source": "2"}, {"source": 2}),
        ({"source": "9" * 40}, {"source": int("9" * 18)}),
        ({"scope": "USER!"}, {"scope": "session"}),
        ({"category": [["x"]]}, {"category": "other"}),
        ({"supersedes": ["[4]", "x"]}, {"supersedes": (4, 0)}),
        ({"quote": "two\n lines"}, {"quote": "two\n lines"}),  # letter by letter
    ]:
        nonsense: list[Any] = ["a statement without a source", None, 3]
        draft, without_source = read(
            json.dumps(digest_of({**fact("Drinks tea", 1), **written}, *nonsense)), NOTHING
        ).facts
        assert (without_source.source, without_source.quote) == (0, "")  # which is refused
        usual = {"text": "Drinks tea", "source": 1, "quote": "Drinks tea", "category": "other", "importance": 3}
        for name, value in {**usual, "scope": "session", "supersedes": (), **meant}.items():
            assert getattr(draft, name) == value


def test_an_answer_without_a_summary_is_refused_in_a_sentence():
    for answer, why in [
        ("<think>I never stop thinking", "empty"),
        (TEXT[: TEXT.index("facts")], "no complete JSON object"),
        ('{"topic": null, "data": [null, ""]}', "summary is empty"),
    ]:
        with pytest.raises(InvalidAnswer, match=rf"{why}.*\.$"):
            read(answer, after(Sections(topic="Tea")))


def summary_of(items: int) -> Sections:
    return Sections(topic="Tea", data=tuple(f"Batch {number} was steeped for two minutes" for number in range(items)))


def test_a_summary_that_lost_most_is_refused():
    for before, left in ((20, 20), (20, 11), (6, 1)):
        assert read(json.dumps(summary_of(left).as_dict()), after(summary_of(before))).sections == summary_of(left)
    with pytest.raises(InvalidAnswer, match=r"keeps only \d+ of \d+ tokens"):
        read(json.dumps(summary_of(6).as_dict()), after(summary_of(20)))


def test_what_is_kept_out_by_now_leaves_a_summary_that_is_only_added_to():
    source = replace(after(summary_of(20)), rules=RuleSet(words=("Batch 7",)))
    added_to = read(json.dumps(summary_of(6).as_dict()), source, keeps_previous=True).sections
    assert len(added_to.data) == 19 and "Batch 7" not in str(added_to)


@pytest.mark.parametrize("section", [section.name for section in SECTIONS if section.kind != "line"])
def test_a_summary_is_bounded_whichever_section_swells(section):
    swollen = [f"{number}: " + "tea " * 200 for number in range(100)]
    facts = [fact(f"F{n}", n) for n in range(500)]
    digest = read(json.dumps(digest_of(*facts, topic="x" * 5000, **{section: swollen})), NOTHING)
    sections = digest.sections
    assert len(digest.facts) == SUMMARY_FACTS_MAX
    assert tokens.estimate(str(sections)) <= SUMMARY_TOKENS_MAX
    kept = [item.option if isinstance(item, Excluded) else item for item in getattr(sections, section)]
    assert kept
    assert kept[-1].startswith("99: ")  # the newest stay
    assert all(len(item) <= ITEM_CHARS_MAX for item in [sections.topic, *kept])


def test_when_it_is_too_long_old_talk_goes_before_what_is_needed():
    many = [f"{number}: " + "tea " * 30 for number in range(30)]
    sections = read(json.dumps(digest_of(requirements=many[:10], data=many[:10], discussed=many)), NOTHING).sections
    assert len(sections.requirements) == len(sections.data) == 10
    assert 0 < len(sections.discussed) < 30
    assert sections.discussed[-1].startswith("29: ")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
names = st.sampled_from(["summary", "facts", "topic", "excluded", "requirements", "data", "option", "source", "quote"])
odd_digests = st.dictionaries(names, json_values | st.dictionaries(names, json_values, max_size=4), max_size=5)
pieces = st.sampled_from(
    ["<think>", "</think>", "<thinking>", "</thinking>", "{", "}", "[", "]", '"', "```", "\\", ",", ":", TEXT]
)


@given(
    st.text(max_size=200)
    | st.lists(pieces | st.text(max_size=8), max_size=20).map("".join)
    | odd_digests.map(json.dumps)
    | st.tuples(st.text(max_size=20), odd_digests.map(json.dumps), st.text(max_size=20)).map("".join)
)
@example('{"topic": 1e999}')
@example('{"summary": {"topic": NaN}, "facts": [{"source": Infinity}]}')
def test_reading_gives_a_bounded_digest_or_refuses(answer):
    try:
        digest = read(answer, NOTHING)
    except InvalidAnswer as refused:
        assert str(refused)
        return
    assert not digest.sections.empty
    assert tokens.estimate(str(digest.sections)) <= SUMMARY_TOKENS_MAX
    assert Sections.from_dict(json.loads(json.dumps(digest.sections.as_dict()))) == digest.sections
    assert all(1 <= draft.importance <= 5 and abs(draft.source) < 2**63 for draft in digest.facts)


LONG = 100_000
OBJECTS = ["{/*", "{]", '{"', '{"a"', '{"a":', "{'a':", '{"summary":', "{//\n", "{a ", "</think>{", "(={]}a*/"]
HOSTILE = [*"{}[]\"'“,:(\\", *OBJECTS, "/*", "//", ";'", "- ", "x ", "```json", "<think>", "</think>"]


DEEP = [
    f'{{"topic": "x", "facts": [{{"text": "y", "{place}": {"[" * depth + "]" * depth}}}]}}'
    for place in ("source", "supersedes", "quote", "text")
    for depth in range(700, 1000, 100)  # around the interpreter's own limit
]


def read_soon(answer: str) -> None:
    with soon_over(), suppress(InvalidAnswer):
        read(answer, after(summary_of(3)))


OPENED = ["", '{"topic": "', '{"summary": [', '{"summary": {"topic": "x", "data": ']
signs = st.sampled_from(HOSTILE)
patterns = st.lists(signs | st.text(max_size=6), min_size=1, max_size=8).map("".join)


@given(st.sampled_from(OPENED), patterns.filter(bool))
@example("", '"')
def test_any_pattern_is_read_fast(opened, pattern):
    read_soon(opened + pattern * (LONG // len(pattern)))


def test_an_answer_that_asks_for_much_is_read_fast():
    for answer in [
        "<think>" * 7_000 + "</think>" * 7_000,
        '{"topic": ' + "9" * LONG + "}",
        json.dumps({"topic": "x", "data": ["y"] * 20_000}),
        json.dumps({"topic": "x", "facts": [{"text": "z", "source": "1" * 90_000}]}),
        *DEEP,
    ]:
        read_soon(answer)
