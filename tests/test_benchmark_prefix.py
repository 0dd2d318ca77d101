"""The prefix benchmark: what it counts, what its model server says, and a whole run over a conversation of our own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.conversation import Conversation, Said
from benchmarks.model import Json
from benchmarks.prefix import Turn, figures, main, rewritten, shared, turns

OURS = Path(__file__).parent.parent / "benchmarks" / "conversation.json"


def said(*lines: tuple[str, str]) -> list[Said]:
    return [Said(str(at), "1", role, role, text, f"2026-05-01T10:0{at}:00") for at, (role, text) in enumerate(lines)]


def prompt(*contents: str) -> list[Json]:
    """A prompt of a system message and the person's and the assistant's words in turn."""
    roles = ["system", *(["user", "assistant"] * len(contents))]
    return [{"role": role, "content": content} for role, content in zip(roles, contents, strict=False)]


@given(st.binary(max_size=40), st.binary(max_size=40), st.binary(max_size=40))
def test_the_shared_prefix_is_the_longest_with_which_both_begin(start: bytes, one: bytes, other: bytes) -> None:
    length = shared(start + one, start + other)
    assert length >= len(start)
    assert (start + one)[:length] == (start + other)[:length]
    assert (start + one)[: length + 1] != (start + other)[: length + 1] or length == min(len(one), len(other)) + len(
        start
    )
    assert length == shared(start + other, start + one)
    assert shared(start + one, start + one) == len(start + one)


def test_prompts_are_compared_within_a_session_and_counted_over_all() -> None:
    stable, other = prompt("A" * 400, "one"), prompt("B" * 400, "one")
    together = figures([[stable, stable, stable], [other, other]])
    assert (together["prompts"], together["median"], together["p25"]) == (5, 1.0, 1.0)
    changed = figures([[stable, other, stable], [other, other]])
    assert changed["median"] < 0.1 and changed["at_goal_percent"] == pytest.approx(33.3)
    assert changed["prompt_tokens"] == together["prompt_tokens"]
    assert changed["new_tokens"] > together["new_tokens"]
    assert sum(changed["mean"].values()) == pytest.approx(changed["prompt_tokens"] / 5, abs=3)


def test_a_conversation_is_taken_in_turns() -> None:
    talk = said(
        ("assistant", "before"), ("user", "a"), ("user", "b"), ("assistant", "c"), ("user", "d"), ("assistant", "e"),
        ("assistant", "f"), ("user", "unanswered"),
    )  # fmt: skip
    assert turns(talk) == [Turn("a\nb", "c", "2026-05-01T10:02:00"), Turn("d", "e\nf", "2026-05-01T10:04:00")]
    assert turns(talk, 1) == turns(talk)[:1]
    assert len(turns(Conversation.load(OURS).said)) > 35


def test_the_baseline_says_the_same_with_all_that_is_remembered_in_the_system_message() -> None:
    recalled = '<memory now="2026-11-20 14:11 UTC, Friday">\n<chat id="a">\nJo: soup\n</chat>\n</memory>'
    sent = prompt("Note.\n\n<summary>\nold\n</summary>\n\n<facts>\n- x\n</facts>", "q", "a", f"{recalled}\n\nSoup?")
    told = rewritten(sent, {"topic": "soup", "discussed": ["it was good"], "data": []}, "noon")
    system = "Note.\n\n<summary>\ntopic: soup\ndiscussed:\n- it was good\n</summary>\n\n<facts>\n- x\n</facts>"
    assert told[0] == {"role": "system", "content": f"{system}\n\n{recalled}\n\nCurrent time: noon"}
    assert told[1:3] == sent[1:3]
    assert told[3] == {"role": "user", "content": "Soup?"}
    bare: list[Json] = [{"role": "user", "content": "Hello"}]
    assert rewritten(bare, {}, "noon") == [{"role": "system", "content": "Current time: noon"}, *bare]


@pytest.mark.slow
def test_most_of_each_prompt_has_just_been_seen_by_the_model_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(OURS), "--limit", "20", "--results", str(tmp_path / "results")])
    printed = capsys.readouterr().out
    (file,) = (tmp_path / "results").glob("prefix-*.json")
    results = json.loads(file.read_text())
    assert results["machine"]["cores"] >= 1
    for client in ("newest", "history"):
        measured = results["conversations"]["conversation"][client]
        assert measured == results["all"][client]
        recap, baseline, history = (measured[kind] for kind in ("recap", "baseline", "history"))
        assert recap["prompts"] == baseline["prompts"] == history["prompts"] == 20
        assert recap["median"] >= 0.75 > 0.5 > baseline["median"]
        assert recap["new_tokens"] < baseline["new_tokens"] < baseline["prompt_tokens"]
        assert history["median"] > 0.99
        assert f"{recap['prompt_tokens']:,}" in printed
    for said in ("prefix, median", "rewritten each turn", "newest message only: prompts", "Measured on", str(file)):
        assert said in printed
