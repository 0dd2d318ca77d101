"""The tail and the fold: nothing said is ever in neither summary nor tail, and prompts stay short and stable."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from app import services_of
from memory import tokens
from tests.conftest import MakeApp
from tests.model_server import Body, Delay, ModelServer, Status
from tests.remembering import Talk
from tests.resources import append
from tests.resources import said as words
from tests.talking import Prompt, ask, at, chat, failed, jobs, prompts, question, said, sessions, stored, summary

ACTIONS = ["turn", "turn", "turn", "long turn", "main fails", "append", "work", "work", "mini fails", "mini garbles"]
ACTIONS += ["hold", "let go", "roll back"]


class Covering:
    """A mini model whose summary says which messages it rests on: `through 7` only if it was shown all up to 7."""

    def __init__(self) -> None:
        self.gaps: list[str] = []

    def __call__(self, body: Body) -> Any:
        summary_so_far, _, messages = body["messages"][1]["content"].rpartition("<messages>")
        before = re.search(r"through (\d+)", summary_so_far)
        last = int(before.group(1)) if before else 0
        for position in map(int, re.findall(r"^\[(\d+)\] ", messages, re.M)):
            if position != last + 1:
                self.gaps.append(f"{position} follows {last}")
            last = position
        return {"summary": {"topic": f"through {last}"}, "facts": []}


def covered(prompt: Prompt) -> int:
    """The last message that the summary in a prompt's head stands in for."""
    found = re.search(r"^Topic: through (\d+)$", prompt[0]["content"], re.M)
    return int(found.group(1)) if found else 0


def digested(prompt: Prompt) -> list[int]:
    """The positions of the messages that the mini model is shown."""
    return [int(position) for position in re.findall(r"^\[(\d+)\] ", prompt[1]["content"], re.M)]


def verbatim(prompt: Prompt) -> str:
    """All words of a prompt after its head, without the memory block."""
    *tail, last = (message["content"] for message in prompt[1:])
    before, block, rest = last.partition("<memory now=")
    assert block
    return "\n\n".join([*tail, before + rest.partition("</memory>\n\n")[2]])


class Conversation:
    """One session that is talked in, with a mini model that works, fails, or takes its time."""

    def __init__(self, client: FlaskClient, server: ModelServer, mini: Covering, session_id: str) -> None:
        self.client, self.server, self.mini, self.session_id = client, server, mini, session_id
        self.heads: dict[int, str] = {}
        self.held: tuple[threading.Event, threading.Thread] | None = None

    def post(self, path: str, **body: Any) -> None:
        self.client.post(f"/api/sessions/{self.session_id}/{path}", json=body)

    def work(self) -> None:
        services_of(self.client.application).outbox.run_due(["summary"])

    def take(self, action: str, number: int) -> None:
        if action in ("turn", "long turn", "main fails"):
            text = f"m{number} " + "and so on " * (30 if action == "long turn" else 1)
            if action == "main fails":
                self.server.main.queue(Status(401))
            response = ask(self.client, text, session_id=self.session_id)
            assert response.status_code == (502 if action == "main fails" else 200), response.text
            self.check(text, response.json.get("memory"))
        elif action == "append":
            roles = ("user", "assistant", "assistant")
            self.post("messages", messages=[words(f"m{number} {role}", role) for role in roles])
        elif action == "roll back" and (newest := summary(self.client, self.session_id)["latest"]):
            self.post("summary/rollback", version=max(1, newest["version"] - 1))
        elif action in ("work", "mini fails", "mini garbles"):
            failing = {"mini fails": Status(401), "mini garbles": "{"}
            self.update(lambda body: failing.get(action) or self.mini(body))
            self.work()
        elif action == "hold" and not self.held:
            self.held = release, worker = threading.Event(), threading.Thread(target=self.work)
            self.update(lambda body: Delay(release, self.mini(body)))
            asked = len(self.server.requests)
            worker.start()
            self.server.wait_for(lambda: len(self.server.requests) > asked, 0.3)
        elif action == "let go" and self.held:
            release, worker = self.held
            release.set()
            worker.join()
            self.held = None

    def update(self, answer: Callable[[Body], Any]) -> None:
        self.server.mini.default = answer
        self.post("summary/refresh")

    def check(self, text: str, memory: dict[str, Any] | None) -> None:
        """The prompt just sent holds everything: what the head does not cover, word for word."""
        prompt = prompts(self.server)[-1]
        before = stored(self.client, self.session_id)
        if before[-1]["role"] == "assistant":
            before.pop()
        assert before[-1]["content"] == text
        shown, said = verbatim(prompt), [message["content"] for message in before]
        fits = [start for start in range(len(said)) if "\n\n".join(said[start:]) == shown]
        assert fits, f"not a tail of what was said: {shown}"
        assert before[fits[0]]["position"] <= covered(prompt) + 1, f"lost after {covered(prompt)}, before {shown}"
        if memory is not None:
            assert memory["tail"]["dropped"] == 0
            head = self.heads.setdefault(memory["summary"]["head_version"], prompt[0]["content"])
            assert head == prompt[0]["content"], "the head changed between folds"


@pytest.mark.slow
def test_no_message_is_ever_in_neither_the_summary_nor_the_tail(make_app: MakeApp, model_server: ModelServer) -> None:
    client = make_app(**at(model_server, tail_messages_max=6, tail_tokens_max=300, summary_debounce=60.0)).test_client()
    covering = Covering()
    model_server.main.default = lambda body: f"Answer to {question(body['messages'])[:4]}"
    numbers = count(1)

    @settings(
        max_examples=8,
        phases=[Phase.generate],  # each run is a conversation already; shrinking one takes a minute
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        derandomize=True,
    )
    @given(st.lists(st.sampled_from(ACTIONS), min_size=18, max_size=24))
    def talk(actions: list[str]) -> None:
        conversation = Conversation(client, model_server, covering, f"s{next(numbers)}")
        try:
            for step, action in enumerate(["turn", *actions, "let go", "work", "turn", "turn"]):
                conversation.take(action, step)
        finally:
            conversation.take("let go", 0)
            client.delete(f"/api/sessions/{conversation.session_id}")
        assert covering.gaps == []

    talk()


def positions(client: FlaskClient, session_id: str, prompt: Prompt) -> list[int]:
    """Where the messages of a prompt's tail stand in their session."""
    place = {(m["role"], m["content"]): m["position"] for m in stored(client, session_id)}
    return [place[(message["role"], message["content"])] for message in prompt[1:-1]]


@pytest.mark.parametrize(("least", "most"), [(0, 4), (2, 6), (4, 6)])
def test_a_fold_keeps_the_last_messages_word_for_word(
    make_app: MakeApp, model_server: ModelServer, least: int, most: int
) -> None:
    limits = {"tail_messages_min": least, "tail_messages_max": most}
    client = make_app(**at(model_server, summary_mode="inline", **limits)).test_client()
    model_server.mini.default = Covering()
    model_server.main.default = lambda body: f"Answer to {question(body['messages'])}"
    lengths, heads = [], []
    for number in range(12):
        memory = chat(client, f"m{number}", session_id="s")["memory"]
        prompt = prompts(model_server)[-1]
        assert positions(client, "s", prompt) == list(range(covered(prompt) - least + 1 or 1, 2 * number + 1)) or (
            not covered(prompt)
        )
        lengths.append(memory["tail"]["messages"])
        heads.append(memory["summary"]["head_version"])
    folds = [lengths[n] for n in range(1, 12) if heads[n] != heads[n - 1]]
    assert len(folds) >= 3 and set(folds) == {least} and max(lengths) == most
    assert lengths[:3] == [0, 2, 4]


@pytest.mark.parametrize("every", [1, 3])
def test_the_summary_is_updated_every_so_many_turns(make_app: MakeApp, model_server: ModelServer, every: int) -> None:
    app = make_app(**at(model_server, summary_every=every))
    for number in range(6):
        chat(app.test_client(), f"m{number}", session_id="s")
        services_of(app).outbox.run_due(["summary"])
    shown = [len(digested(prompt)) for prompt in prompts(model_server, "mini")]
    assert shown == [2 * every] * (6 // every)


def test_a_burst_of_turns_costs_one_call_that_is_made_a_turn_before_the_fold_needs_it(
    make_app: MakeApp, model_server: ModelServer
) -> None:
    app = make_app(**at(model_server, summary_debounce=30.0, tail_messages_max=8))
    client = app.test_client()
    model_server.mini.default = Covering()
    tails = []
    for number in range(14):
        tails.append(chat(client, f"m{number}", session_id="s")["memory"]["tail"]["messages"])
        (job,) = jobs(client)
        due = (datetime.fromisoformat(job["run_at"]) - datetime.now(UTC)).total_seconds()
        pressing = number in (3, 7, 11)  # the tail is full; else it waits for the pause after the latest turn
        assert due <= 0 if pressing else 25 < due <= 30
        assert services_of(app).outbox.run_due(["summary"]) == pressing
    assert tails == [0, 2, 4, 6, 8, 2, 4, 6, 8, 2, 4, 6, 8, 2]
    assert [len(digested(prompt)) for prompt in prompts(model_server, "mini")] == [8, 8, 8]


def test_prompts_after_two_hundred_turns_are_no_longer_than_after_ten(
    make_app: MakeApp, model_server: ModelServer
) -> None:
    app = make_app(**at(model_server))
    client = app.test_client()
    model_server.mini.default = Covering()
    model_server.main.default = lambda body: "Twelve words of an answer, which is about what a person gets here."
    append(client, "old", [words("m1 and one more about tea"), words("Twelve " * 12, "assistant")] * 190)
    services_of(app).outbox.run_due(["summary"])
    longest = {}
    for session_id in ("young", "old"):
        usage = []
        for number in range(20):
            answer = chat(client, f"m{number} and one more about tea", session_id=session_id, recall="off")
            usage.append(answer["usage"])
            services_of(app).outbox.run_due(["summary"])
        longest[session_id] = max(one["prompt_tokens"] for one in usage)
    assert longest["old"] <= 1.02 * longest["young"]
    assert usage[-1]["full_history_tokens"] > 5 * longest["old"] and usage[-1]["saved_tokens"] > 0


# -- when it does not fit


def size(prompt: Prompt) -> int:
    return sum(tokens.estimate_message(message["content"]) for message in prompt)


def test_the_context_is_never_exceeded_while_the_mini_model_is_down(
    make_app: MakeApp, model_server: ModelServer
) -> None:
    limit = 2500
    app = make_app(**at(model_server, context_tokens=limit, tail_messages_max=6, summary_mode="inline"))
    client = app.test_client()
    model_server.mini.default = lambda body: Status(401)
    model_server.main.default = lambda body: f"Answer to {question(body['messages'])[:4]} " + "tea and more tea " * 15
    dropped = []
    for number in range(16):
        words = f"m{number} " + f"the tea of day {number} " * 14
        answer = chat(client, words, session_id="s", user_id="ann")
        prompt = prompts(model_server)[-1]
        assert size(prompt) <= limit
        tail = positions(client, "s", prompt)
        dropped.append(answer["memory"]["tail"]["dropped"])
        assert tail == list(range(dropped[-1] + 1, 2 * number + 1))  # the newest stay
        assert answer["memory"]["tail"]["messages"] == len(tail)
    assert dropped[0] == 0 and dropped[-1] > 5
    assert summary(client, "s")["error"]
    model_server.mini.default = Covering()
    client.post("/api/sessions/s/summary/refresh")
    services_of(app).outbox.run_due(["summary"])
    assert chat(client, "And now?", session_id="s", user_id="ann")["memory"]["tail"]["dropped"] == 0
    assert covered(prompts(model_server)[-1]) == 32


@pytest.mark.parametrize("spare", range(0, 1200, 300))
def test_a_message_that_nearly_fills_the_context_leaves_out_what_was_recalled(
    make_app: MakeApp, model_server: ModelServer, spare: int
) -> None:
    client = make_app(**at(model_server, context_tokens=4000)).test_client()
    append(client, "old", [words(f"Tea number {n}: " + "green tea leaves " * 20) for n in range(8)], user_id="ann")
    empty = chat(client, "Hello", session_id="new", user_id="ann", recall="off", temporary=False)
    assert empty["memory"]["excerpts"] == []
    room = 4000 - size(prompts(model_server)[-1]) - 60 - spare
    answer = chat(client, "Which green tea? " + "x" * (4 * room - 107), session_id="big", user_id="ann")
    assert size(prompts(model_server)[-1]) <= 4000
    shown = prompts(model_server)[-1][-1]["content"].count("<chat ")
    assert shown == len(answer["memory"]["excerpts"]) and bool(shown) is (spare > 0)


def test_a_message_too_large_for_any_prompt_is_refused_and_not_stored(
    make_app: MakeApp, model_server: ModelServer
) -> None:
    client = make_app(**at(model_server, context_tokens=1000)).test_client()
    chat(client, "Hello", session_id="s")
    for text in ("x" * 4000, "茶" * 1300, "y" * 100_001):
        for session_id in ("s", "new"):
            error = failed(ask(client, text, session_id=session_id), 413, "message_too_large")
            assert error["param"] == "message" and "Nothing was stored" in error["message"]
    assert len(said(client, "s")) == 2 and [session["id"] for session in sessions(client)] == ["s"]
    assert len(prompts(model_server)) == 1
    assert chat(client, "Hello again", session_id="s")["reply"]


def test_work_done_stays_done_when_a_later_step_fails(talk: Talk) -> None:
    talk.say(*(f"m{n} " + "word " * 200 for n in range(60)))
    state = talk.digest(Covering(), Status(401))
    assert state["state"] == "pending" and state["latest"]["version"] == 1 and "refused the key" in state["error"]
    talk.prompt("More")
    prompt = prompts(talk.server)[-1]
    assert covered(prompt) == state["latest"]["through"]
    assert verbatim(prompt).startswith(f"m{state['latest']['through']} ")
