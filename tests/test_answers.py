"""The published files that benchmarks read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.conversation import Conversation

LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
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
        },
        "qa": [
            {"question": "When did Ana buy a cello?", "answer": "7 May 2023", "evidence": ["D1:1"], "category": 2},
            {"question": "Which dog has Ben?", "answer": "a beagle", "evidence": ["D1:2; D2:1"], "category": 1},
            {"question": "What did Otto cost?", "adversarial_answer": "94", "evidence": ["D:2"], "category": 5},
        ],
    }
]
LONGMEMEVAL = [
    {
        "question_id": name,
        "question_type": "knowledge-update",
        "question": "How many violins do I own?",
        "answer": expected,
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": ["s-1", "s-2"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/25 (Thu) 10:00"],
        "haystack_sessions": [
            [{"role": "user", "content": "I own two violins."}, {"role": "assistant", "content": "Two violins!"}],
            [{"role": "user", "content": "I sold one of my violins.", "has_answer": True}],
        ],
    }
    for name, expected in (("q1", 1), ("q2_abs", "The number of violas was never told."))
]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for name, content in (("locomo", LOCOMO), ("longmemeval", LONGMEMEVAL)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content), "utf-8")
    return [str(tmp_path / "locomo.json"), str(tmp_path / "longmemeval.json")]


def test_published_questions_keep_what_the_other_benchmarks_need(files: list[str]) -> None:
    (talk,) = Conversation.load(Path(files[0]))
    assert [one.external_id for one in talk.said] == ["D1:1", "D1:2", "D2:1"]
    assert [one.created_at[:16] for one in talk.said] == ["2023-05-08T13:56", "2023-05-08T13:56", "2023-09-13T00:09"]
    assert [sorted(one.evidence) for one in talk.questions] == [["D1:1"], ["D1:2", "D2:1"], []]
    assert len(talk.with_evidence(unanswerable=True).questions) == 2
    first, second = Conversation.load(Path(files[1]))
    assert [one.name for one in second.with_evidence().questions] == []
    assert first.questions[0].evidence == {"S2:1"} and first.in_first_person() == [first]
