"""The benchmark of answers: it asks and judges what published files say, and goes on after a break."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from benchmarks import answers
from tests.application import an_app
from tests.live import Live
from tests.model_server import Status, prompts

TALK = {
    "speaker_a": "Ana",
    "speaker_b": "Ben",
    "session_1_date_time": "1:56 pm on 8 May, 2023",
    "session_1": [
        {"speaker": "Ana", "dia_id": "D1:1", "text": "I bought a cello yesterday."},
        {"speaker": "Ben", "dia_id": "D1:2", "text": "Look at my dog!", "blip_caption": "a beagle on a sofa"},
    ],
}
QUESTIONS = [
    {"question": "When did Ana buy a cello?", "answer": "7 May 2023", "evidence": ["D1:1"], "category": 2},
    {"question": "Which dog has Ben?", "answer": "a beagle", "evidence": ["D1:2"], "category": 1},
    {"question": "What did Otto cost?", "adversarial_answer": "94", "evidence": ["D:2"], "category": 5},
]
REPLIES = {
    "When did Ana buy a cello?": "On 7 May 2023.",
    "Which dog has Ben?": "He has a beagle.",
    "What did Otto cost?": "I do not know.",
}


@pytest.fixture
def run(tmp_path, migrated, model_server, monkeypatch):
    """Runs the benchmark on the scripted models.  Its Recap runs in this process, on fresh data."""

    @contextmanager
    def in_this_process(**settings: str) -> Iterator[Live]:
        (folder := tmp_path / f"data-{len(list(tmp_path.iterdir()))}").mkdir()
        with an_app(folder, migrated, **settings) as app:
            live = Live(lambda: app)
            try:
                yield live
            finally:
                live.stop()

    def run(*options: str) -> dict[str, Any]:
        where = ["--results", str(tmp_path / "results"), "--answers", str(tmp_path / "answers.jsonl")]
        models = ["--base-url", model_server.url, "--model", "main-model", "--judge-model", "mini-judge"]
        answers.main([str(talks), *where, *models, "--set", "OPENAI_SUMMARY_MODEL=mini-model", *options])
        *_, newest = sorted((tmp_path / "results").glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
        return json.loads(newest.read_text("utf-8"))

    monkeypatch.setattr(answers, "temporary_server", in_this_process)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    model_server.main.default = lambda body: REPLIES[body["messages"][-1]["content"].rpartition("</memory>\n\n")[2]]
    talks = tmp_path / "locomo.json"
    talks.write_text(json.dumps([{"sample_id": "conv-1", "conversation": TALK, "qa": QUESTIONS}]), "utf-8")
    return run


def test_a_run_that_breaks_off_goes_on_where_it_ended(run, tmp_path, model_server, capsys):
    right = '```json\n{"reason": "Yes.", "correct": true}\n```'
    model_server.main.queue("On 7 May 2023.", "He has a beagle.", Status(401))
    model_server.mini.queue("Hm.", '{"correct": "perhaps"}', "So:", right, right)
    with pytest.raises(SystemExit, match=r"The benchmark failed: .*401") as ended:
        run()
    assert "sk-of" not in str(ended.value)
    with (tmp_path / "answers.jsonl").open("a") as file:
        file.write('{"key": "conv-1:2", "ki')  # killed while it wrote
    before = len(prompts(model_server))
    with pytest.raises(SystemExit):
        run("--set", "RECALL=always")
    assert "begun with other options" in capsys.readouterr().err.splitlines()[-1]

    results = run()
    assert len(prompts(model_server)) == before + 1
    lines = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text("utf-8").splitlines()]
    assert [line["key"] for line in lines[1:]] == ["conv-1:0", "conv-1:1", "conv-1:2"]
    figures = {kind: (of["questions"], of["right_percent"], of["unjudged"]) for kind, of in results["kinds"].items()}
    assert figures == {"a time": (1, None, 1), "several messages": (1, 100.0, 0), "no answer": (1, 100.0, 0)}
    assert results["all"]["unjudged"] == 1 and min(results["tokens"]["prompt"], results["tokens"]["judge"]) > 0
