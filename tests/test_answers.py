"""The benchmark of answers: the published files it reads, what it asks and judges, and how it goes on after a break."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks import answers
from benchmarks.conversation import Conversation
from tests.application import an_app
from tests.live import Live
from tests.model_server import Status, digest, prompts

TALK = {
    "speaker_a": "Ana",
    "speaker_b": "Ben",
    "session_2_date_time": "12:09 am on 13 September, 2023",
    "session_2": [{"speaker": "Ben", "dia_id": "D2:1", "text": "My beagle Otto won a prize in Ghent."}],
    "session_1_date_time": "1:56 pm on 8 May, 2023",
    "session_1": [
        {"speaker": "Ana", "dia_id": "D1:1", "text": "I bought a cello yesterday."},
        {"speaker": "Ben", "dia_id": "D1:2", "text": "Look at my dog!", "blip_caption": "a beagle on a sofa"},
    ],
    "session_3_date_time": "1:00 pm on 14 September, 2023",
}
QUESTIONS = [
    {"question": "When did Ana buy a cello?", "answer": "7 May 2023", "evidence": ["D1:1"], "category": 2},
    {"question": "Which dog has Ben?", "answer": "a beagle", "evidence": ["D1:2; D2:1"], "category": 1},
    {"question": "What did Otto cost?", "adversarial_answer": "94", "evidence": ["D:2"], "category": 5},
]
LOCOMO = [{"sample_id": "conv-1", "conversation": TALK, "qa": QUESTIONS}]
ASKED = {
    "question_type": "knowledge-update",
    "question": "How many violins do I own?",
    "question_date": "2023/05/30 (Tue) 23:40",
    "haystack_session_ids": ["s-1", "s-2"],
    "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/25 (Thu) 10:00"],
    "haystack_sessions": [
        [{"role": "user", "content": "I own two violins."}, {"role": "assistant", "content": "Two violins!"}],
        [{"role": "user", "content": "I sold one of my violins.", "has_answer": True}],
    ],
}
NEVER_TOLD = "The number of violas was never told."
LONGMEMEVAL = [ASKED | {"question_id": "q1", "answer": 1}, ASKED | {"question_id": "q2_abs", "answer": NEVER_TOLD}]
REPLIES = {
    "When did Ana buy a cello?": "On 7 May 2023.",
    "Which dog has Ben?": "He has a beagle.",
    "What did Otto cost?": "I do not know.",
    "How many violins do I own?": "You own 2.",
}


def verdict(body: dict[str, Any]) -> dict[str, Any]:
    """What the scripted judge thinks: the expected answer's words decide."""
    asked = json.loads(body["messages"][1]["content"])
    unknown = "do not tell" in asked["expected"] and "not know" in asked["reply"]
    return {"reason": "Words.", "correct": unknown or asked["expected"] in asked["reply"]}


@pytest.fixture
def files(tmp_path):
    for name, content in (("locomo", LOCOMO), ("longmemeval", LONGMEMEVAL)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content), "utf-8")
    return [str(tmp_path / "locomo.json"), str(tmp_path / "longmemeval.json")]


@pytest.fixture
def run(tmp_path, migrated, model_server, files, monkeypatch):
    """Runs the benchmark on both files and the scripted models.  Its Recap runs in this process, on fresh data."""

    @contextmanager
    def in_this_process(**settings: str) -> Iterator[Live]:
        (folder := tmp_path / f"data-{len(list(tmp_path.iterdir()))}").mkdir()
        with an_app(folder, migrated, **settings) as app:
            live = Live(lambda: app)
            try:
                yield live
            finally:
                live.stop()

    def reply(body: dict[str, Any]) -> str:
        return REPLIES[body["messages"][-1]["content"].rpartition("</memory>\n\n")[2]]

    def run(*options: str, asked: Sequence[str] = files) -> dict[str, Any]:
        where = ["--results", str(tmp_path / "results"), "--answers", str(tmp_path / "answers.jsonl")]
        models = ["--base-url", model_server.url, "--model", "main-model", "--judge-model", "mini-judge"]
        answers.main([*asked, *where, *models, "--set", "OPENAI_SUMMARY_MODEL=mini-model", *options])
        stored = sorted((tmp_path / "results").glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
        return json.loads(stored[-1].read_text("utf-8")) if stored else {}

    monkeypatch.setattr(answers, "temporary_server", in_this_process)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    model_server.main.default = reply
    model_server.mini.default = lambda body: verdict(body) if body["model"] == "mini-judge" else digest(body)
    return run


def lines(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text("utf-8").splitlines()]


def test_a_run_that_breaks_off_goes_on_where_it_ended(run, tmp_path, model_server, capsys):
    model_server.main.queue("On 7 May 2023.", "He has a beagle.", Status(401))
    model_server.mini.queue("Hm.", '{"correct": "perhaps"}', "So:", '```json\n{"reason": "Yes.", "correct": true}\n```')
    with pytest.raises(SystemExit, match=r"The benchmark failed: .*401") as ended:
        run()
    assert "sk-of" not in str(ended.value)
    assert [line.get("correct") for line in lines(tmp_path)] == [None, None, True]
    with (tmp_path / "answers.jsonl").open("a") as file:
        file.write('{"key": "conv-1:2", "ki')  # killed while it wrote
    before = len(prompts(model_server))

    with pytest.raises(SystemExit):
        run("--set", "RECALL=always")
    assert "begun with other options" in capsys.readouterr().err.splitlines()[-1]
    results = run()

    assert len(prompts(model_server)) == before + 3
    assert [line["key"] for line in lines(tmp_path)[1:]] == ["conv-1:0", "conv-1:1", "conv-1:2", "q1:0", "q2_abs:0"]
    figures = {kind: (of["questions"], of["right_percent"], of["unjudged"]) for kind, of in results["kinds"].items()}
    assert figures == {
        "a time": (1, None, 1),
        "several messages": (1, 100.0, 0),
        "no answer": (1, 100.0, 0),
        "knowledge-update": (1, 0.0, 0),
        "abstention": (1, 0.0, 0),
    }
    assert (results["all"]["right_percent"], results["all"]["unjudged"]) == (50.0, 1)
    tokens = results["tokens"]
    assert min(tokens["prompt"], tokens["completion"], tokens["judge"]) > 0 == tokens["summary"]
    assert "50.0" in capsys.readouterr().out


def test_a_folder_of_beam_is_read(tmp_path):
    asks = {"role": "user", "id": 0, "time_anchor": "March-15-2024", "content": "My sprint ends on Friday? ->-> 1,1"}
    turns = [asks, {"role": "user", "id": 2, "content": "It ends on Monday now."}]
    of_both = {"original_info": [0], "updated_info": [[2]]}
    asked = {
        "knowledge_update": [{"question": "When?", "answer": "Monday", "source_chat_ids": of_both}],
        "event_ordering": [{"question": "In which order?", "ideal_answer": "...", "source_chat_ids": [0, 2]}],
        "abstention": [{"question": "Who?", "ideal_response": "Nothing was said of it."}],
        "summarization": [{"question": "What was it about?"}],
    }
    (folder := tmp_path / "7" / "probing_questions").mkdir(parents=True)
    (folder / "probing_questions.json").write_text(json.dumps(asked), "utf-8")
    batch = {"batch_number": 1, "time_anchor": None, "turns": [turns]}
    (talk := tmp_path / "7" / "chat.json").write_text(json.dumps([batch]), "utf-8")
    (conversation,) = Conversation.load(talk)
    first, last = conversation.messages
    assert (conversation.name, first.content, first.role) == ("7", "My sprint ends on Friday?", "user")
    assert first.created_at[:10] == last.created_at[:10] == "2024-03-15" and first.created_at < last.created_at
    assert {one.kind: (one.answer, one.evidence, one.is_answerable) for one in conversation.questions} == {
        "knowledge_update": ("Monday", {"2"}, True),
        "event_ordering": ("...", {"0", "2"}, True),
        "abstention": ("Nothing was said of it.", frozenset(), False),
    }
