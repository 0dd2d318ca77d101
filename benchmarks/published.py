"""The files that LoCoMo and LongMemEval publish, in the format of `benchmarks.conversation`.

LoCoMo: github.com/snap-research/locomo, `locomo10.json` or a file for each conversation.  LongMemEval:
github.com/xiaowu0162/LongMemEval, `longmemeval_*.json`, where each question has a conversation of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

_LONGMEMEVAL = {  # its types of questions, by the number of LoCoMo's category that is most like it
    "multi-session": 1,
    "knowledge-update": 1,
    "temporal-reasoning": 2,
    "single-session-preference": 3,
    "single-session-user": 4,
    "single-session-assistant": 4,
}


def in_our_format(name: str, data: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The conversations in the JSON of a file called `name`, each with a name of its own.

    Raises KeyError, TypeError or ValueError if they are not what their format says.
    """
    for entry in data if isinstance(data, list) else [data]:
        if "haystack_sessions" in entry:
            yield entry["question_id"], _longmemeval(entry)
        elif "qa" in entry:
            yield entry.get("sample_id", name), _locomo(entry)
        else:
            yield name, entry


def _locomo(entry: Mapping[str, Any]) -> dict[str, Any]:
    talk = entry.get("conversation", entry)
    messages = [
        {
            "id": turn["dia_id"],
            "session": number,
            "created_at": datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").isoformat(),
            "name": turn["speaker"],
            "content": turn["text"],
            "caption": turn.get("blip_caption"),
        }
        for number in sorted(int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key))
        for turn in talk[f"session_{number}"]
    ]
    ids = {message["id"] for message in messages}  # some evidence is misspelt, or several ids in one text
    questions = [
        {**asked, "evidence": sorted(ids.intersection(re.split(r"[;\s]+", " ".join(asked["evidence"]))))}
        for asked in entry["qa"]
    ]
    return {"messages": messages, "questions": questions}


def _longmemeval(entry: Mapping[str, Any]) -> dict[str, Any]:
    messages, evidence = [], []
    for session, (day, turns) in enumerate(zip(entry["haystack_dates"], entry["haystack_sessions"], strict=True), 1):
        for number, turn in enumerate(turns, 1):
            message = {"id": f"S{session}:{number}", "session": session, "created_at": _moment(day)}
            messages.append({**message, "role": turn["role"], "content": turn["content"]})
            evidence += [message["id"]] if turn.get("has_answer") else []
    unanswerable = entry["question_id"].endswith("_abs")
    question = {
        "question": entry["question"],
        "answer": entry["answer"],
        "evidence": evidence,
        "category": 5 if unanswerable else _LONGMEMEVAL[entry["question_type"]],
        "kind": "abstention" if unanswerable else entry["question_type"],
        "asked_at": _moment(entry["question_date"]),
    }
    return {"messages": messages, "questions": [question]}


def _moment(text: str) -> str:
    """LongMemEval's "2023/05/20 (Sat) 02:21" in ISO 8601."""
    return datetime.strptime(re.sub(r" \(\w+\)", "", text), "%Y/%m/%d %H:%M").isoformat()
