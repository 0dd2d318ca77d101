"""How many questions about recorded conversations Recap answers, with your models and a model as the judge.

    OPENAI_API_KEY=... python -m benchmarks.answers locomo10.json --limit 100
    OPENAI_API_KEY=... python -m benchmarks.answers longmemeval_s_cleaned.json --summaries --set RECALL=always

The benchmark starts a server of its own and imports each conversation as that of one person.  It asks each question in
a temporary turn, which leaves nothing for the next one, and a judge compares the reply with the expected answer.  It
first prints an estimate of the tokens; `--estimate` ends there.  Each answer is appended to a file at once: if a run
ends early, the same command goes on from there.

    right      share of the judged replies that are correct.  One prompt judges both datasets, so the figures compare
               with those of this benchmark only
    unjudged   the judge gave no verdict, even when asked twice; such a reply counts as neither right nor wrong
    prompt     tokens of a question's prompt on average, as the model server counts them
    p50, p95   milliseconds of a reply at the client, most of which are the model's

A question is asked at the time that the dataset says, or the day after the last message.  The model is told that time,
but recall reads "last week" by the clock.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import Any

from benchmarks.client import Recap
from benchmarks.command import RESULTS, Command, about_now, breaking_off, progress
from benchmarks.conversation import Conversation, Question
from benchmarks.judge import Judge
from benchmarks.results import Row, by_name, load_line, machine_line, percentiles, settings_told
from benchmarks.serving import temporary_server
from config import Settings

OPENAI_URL = "https://api.openai.com/v1"
BYTES_A_TOKEN = 4
TURN_TOKENS = 400  # of a turn beside what is recalled: the system prompt, the question, the reply
JUDGE_TOKENS = 500  # of a verdict
SUMMARY_TOKENS = 1_000  # of a session's summary beside its messages

_SYSTEM = (
    "You answer questions about earlier conversations, of which you get excerpts. Now it is {:%A, %d %B %Y, %H:%M}: "
    "count from there, whatever other time is named as the present. Answer in one or two sentences. If the "
    "conversations do not tell, say that you do not know."
)
_COLUMNS: tuple[Row, ...] = (
    ("questions", "{:,}", ("questions",)),
    ("right, %", "{:.1f}", ("right_percent",)),
    ("unjudged", "{:,}", ("unjudged",)),
    ("prompt", "{:,}", ("prompt_tokens",)),
    ("p50 ms", "{:,.0f}", ("reply_ms", "p50")),
    ("p95 ms", "{:,.0f}", ("reply_ms", "p95")),
)

Asked = dict[str, tuple[Conversation, Question]]
"""Questions by key: the name of the conversation and the number of the question there."""


class Answers:
    """The file of answers, as JSON Lines: the options, then a line for each question, which are in `by_key`.

    Raises ValueError if the file was begun with other options or is something else, and OSError.
    """

    def __init__(self, path: Path, options: Mapping[str, Any]) -> None:
        self._path = path
        text = path.read_text("utf-8") if path.exists() else ""
        self._whole = text[: text.rfind("\n") + 1]  # a run that was killed may leave half a line
        self._begun = json.dumps(options)
        begun, *answers = (self._whole or text or self._begun).splitlines()
        if begun != self._begun:
            told = f"{path} was begun with other options, or is something else: {begun[:500]}"
            raise ValueError(f"{told}. Go on with these options, or name another file with --answers")
        self.by_key = {answer["key"]: answer for answer in map(json.loads, answers)}

    def begin(self) -> None:
        """Make the file ready for `add`."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.truncate(len(self._whole.encode()))
            file.write("" if self._whole else f"{self._begun}\n")

    def add(self, answer: dict[str, Any]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(answer) + "\n")
        self.by_key[answer["key"]] = answer


def chosen(conversations: Sequence[Conversation], limit: int | None) -> Asked:
    """`limit` of the questions, or all.  A larger limit chooses the same ones and more.  Raises ValueError if none."""
    every = {f"{one.name}:{at}": (one, asked) for one in conversations for at, asked in enumerate(one.questions)}
    if not every:
        raise ValueError("there are no questions")
    kept = set(random.Random(0).sample(list(every), len(every))[:limit])  # nosec B311 # a choice of questions
    return {key: asked for key, asked in every.items() if key in kept}


def estimate(asked: Asked, settings: Settings, summaries: bool) -> str:
    """About how many tokens it takes to answer these questions."""
    conversations = {conversation.name: conversation for conversation, _ in asked.values()}.values()
    turn = TURN_TOKENS + settings.recall_tokens + summaries * settings.fact_tokens
    told = [f"{len(asked) * turn:,} to answer", f"{len(asked) * JUDGE_TOKENS:,} to judge"]
    if summaries:
        bytes_said = sum(len(said.content.encode()) for one in conversations for said in one.said)
        sessions = sum(len(one.sessions) for one in conversations)
        told.append(f"{bytes_said // BYTES_A_TOKEN + sessions * SUMMARY_TOKENS:,} to summarise")
    return (
        f"Questions left: {len(asked):,}, of conversations: {len(conversations):,}. Tokens, about: {', '.join(told)}."
    )


def run(asked: Asked, answers: Answers, judge: Judge, settings: Mapping[str, str], summaries: bool) -> None:
    """Ask the questions, conversation by conversation.  Raises RuntimeError, and errors of httpx2."""
    with temporary_server(**settings) as server, progress(len(asked), "question") as bar:
        answers.begin()
        recap = Recap(server.url)
        for number, (conversation, questions) in enumerate(groupby(asked.items(), lambda item: item[1][0])):
            bar.set_postfix_str(conversation.name)
            user = f"person-{number}"
            recap.restore(user, conversation.sessions)
            spent = recap.summarise(user) if summaries else 0
            recap.wait_for_jobs(user, "index")
            for key, (_, question) in questions:
                answer = answered(user, conversation, question, recap, judge)
                answers.add({"key": key, **answer, "summary_tokens": spent})
                spent = 0
                bar.update()
            recap.forget(user)


def answered(user: str, conversation: Conversation, question: Question, recap: Recap, judge: Judge) -> dict[str, Any]:
    """Ask a question as the user, and have the reply judged."""
    begun = perf_counter()
    turn = recap.ask(user, question.text, _SYSTEM.format(conversation.asked_at(question)))
    ms = round(1000 * (perf_counter() - begun))
    judged = judge.judged(question, turn["reply"])
    return {
        "kind": question.kind,
        "question": question.text,
        "expected": question.answer,
        "reply": turn["reply"],
        "correct": judged.correct,
        "reason": judged.reason,
        "reply_ms": ms,
        "prompt_tokens": turn["usage"]["prompt_tokens"],
        "completion_tokens": turn["usage"]["completion_tokens"],
        "judge_tokens": judged.tokens,
    }


def measured(answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of all answers, of each kind of questions, and the tokens of all calls."""
    kinds = sorted({answer["kind"] for answer in answers})
    return {
        "kinds": {kind: figures([answer for answer in answers if answer["kind"] == kind]) for kind in kinds},
        "all": figures(answers),
        "tokens": {
            name: sum(answer[f"{name}_tokens"] for answer in answers)
            for name in ("prompt", "completion", "judge", "summary")
        },
    }


def figures(answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    judged = [answer["correct"] for answer in answers if answer["correct"] is not None]
    return {
        "questions": len(answers),
        "right_percent": round(100 * mean(judged), 1) if judged else None,
        "unjudged": len(answers) - len(judged),
        "prompt_tokens": round(mean(answer["prompt_tokens"] for answer in answers)),
        "reply_ms": percentiles([answer["reply_ms"] for answer in answers]),
    }


def table(results: Mapping[str, Any]) -> str:
    """A row for each kind of questions, and one for all."""
    options, tokens = results["options"], results["tokens"]
    remembered = "words, summaries and facts" if options["summaries"] else "words"
    lines = [
        *by_name("", _COLUMNS, {**results["kinds"], "all": results["all"]}, 28, 11),
        "",
        "Tokens of all calls: " + ", ".join(f"{name} {count:,}" for name, count in tokens.items()) + ".",
        f"Model {options['model']}, judge {options['judge_model']}, {remembered} of {', '.join(options['files'])}"
        f"{settings_told(options['settings'])}.",
        load_line(results["load"]),
        machine_line(results["machine"]),
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("answers", __doc__)
    command.takes_conversations()
    command.add_argument("--base-url", default=OPENAI_URL, help="the server of the models")
    command.add_argument("--model", default="gpt-4o-mini", help="the model that answers")
    command.add_argument("--judge-model", default="gpt-4o", help="the model that judges")
    command.add_argument("--limit", type=int, metavar="N", help="only N of the questions, chosen at random")
    command.add_argument(
        "--summaries", action="store_true", help="have summaries and facts made, not only words stored"
    )
    command.add_argument("--answers", type=Path, default=RESULTS / "answers.jsonl", help="the file of answers")
    command.add_argument("--estimate", action="store_true", help="only print how many tokens it takes, about")
    command.takes_settings()
    options = command.parse_args(arguments)
    if options.limit is not None and options.limit < 1:
        command.error("--limit must be at least 1")
    key = os.environ.get("OPENAI_API_KEY", "")
    if not key and not options.estimate:
        command.error("OPENAI_API_KEY is not set; for a server that needs no key, set it to anything")
    conversations = command.loaded(options.conversations)
    made_with = {name: getattr(options, name) for name in ("base_url", "model", "judge_model", "summaries")}
    made_with |= {"files": [path.name for path in options.conversations], "settings": dict(options.set)}
    settings = {"OPENAI_BASE_URL": options.base_url, "OPENAI_MODEL": options.model, **made_with["settings"]}
    try:
        asked = chosen(conversations, options.limit)
        answers = Answers(options.answers, made_with)
        left = {name: one for name, one in asked.items() if name not in answers.by_key}
        print(estimate(left, Settings.from_env(settings, dotenv=None), options.summaries), file=sys.stderr)
    except (OSError, ValueError) as error:
        command.error(str(error))
    if options.estimate:
        return
    results = about_now() | {"options": made_with}
    with breaking_off():
        if left:
            judge = Judge(options.base_url, key, options.judge_model)
            run(left, answers, judge, {**settings, "OPENAI_API_KEY": key}, options.summaries)
    results |= measured([answers.by_key[name] for name in asked])
    command.publish(options.results, results, table)


if __name__ == "__main__":
    main()
