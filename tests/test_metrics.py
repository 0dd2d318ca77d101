"""/metrics: each thing that happens is counted once, under no name of anybody's, by however many processes."""

import os
import re
import shutil
import signal
from typing import Any

import pytest
from flask import Flask
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import select

from app import engine_of
from benchmarks.serving import ROOT
from config import ApiKey
from memory import jobs as jobs_module
from memory.ops.metrics import Metrics
from models import JobRow
from tests.http import append, ask, chat, failed, said
from tests.model_server import Status, Text, ToolCalls, at
from tests.openai import stream, talk
from tests.processes import Api, Server, eventually, migrated_server, rows, workers
from tests.test_auth import bearer

OPERATIONS = ROOT / "docs/operations.md"
METRICS_KEY = "prometheus-reads-with-this"


class Figures:
    """The samples of one scrape: `figures("recap_turns_total", outcome="answered")` adds up those that match."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.families = list(text_string_to_metric_families(text))
        self._samples = [sample for family in self.families for sample in family.samples]

    def __call__(self, name: str, **labels: str) -> float:
        return sum(
            sample.value for sample in self._samples if sample.name == name and labels.items() <= sample.labels.items()
        )

    @property
    def names(self) -> set[str]:
        """Every metric's name, counters' with the `_total` they are read by."""
        return {f"{one.name}_total" if one.type == "counter" else one.name for one in self.families}

    @property
    def labels(self) -> set[str]:
        """Every value of every label."""
        return {value for sample in self._samples for value in sample.labels.values()}


def scraped(client: Any, **headers: str) -> Figures:
    """The figures as Flask's test client gets them."""
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return Figures(answer.text)


@pytest.fixture
def model_client(model_app):
    return model_app.test_client()


# -- what is counted


def test_a_turn_is_counted_with_its_phases_and_tokens(model_client, model_server):
    assert scraped(model_client)("recap_turns_total") == 0
    usage = {"prompt_tokens": 90, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 64}}
    model_server.main.queue(Text("Noted.", usage=usage))
    used = chat(model_client, "My cat is called Miso.", session_id="s")["usage"]
    figures = scraped(model_client)
    assert figures("recap_turns_total", api="chat", outcome="answered") == figures("recap_turns_total") == 1
    for phase in ("admit", "recall", "compose", "answer", "record"):
        assert figures("recap_turn_phase_seconds_count", phase=phase) == 1
    assert figures("recap_turn_phase_seconds_count", phase="summary") == 0
    assert figures("recap_turn_first_text_seconds_count") == 0, "a reply that is not streamed has no first text"
    for kind, count in (("prompt", 90), ("cached", 64), ("completion", 7)):
        assert figures("recap_tokens_total", model="main", kind=kind) == count
    assert figures("recap_full_history_tokens_total") == used["full_history_tokens"]
    assert figures("recap_saved_tokens_total") == max(0, used["saved_tokens"])


def test_the_first_text_of_a_streamed_reply_is_timed(model_client, model_server):
    """Not the first chunk of a client's stream, which names the role, and no call of a tool."""
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    for reply, count in ((ToolCalls((("weather", {}),)), 0), (Text("Sunny."), 1)):
        model_server.main.queue(reply)
        stream(model_client, talk(f"Is it {count} degrees?"), tools=tools)
        assert scraped(model_client)("recap_turn_first_text_seconds_count") == count


def test_an_unusable_summary_is_paid_for_all_the_same(model_client, model_server):
    chat(model_client, "My cat is called Miso.", session_id="s")
    usage = {"prompt_tokens": 50, "completion_tokens": 5}
    model_server.mini.queue(Text("{", usage=usage), Text("{", usage=usage))
    engine_of(model_client.application).job_queue.run_due()
    figures = scraped(model_client)
    assert figures("recap_tokens_total", model="mini", kind="prompt") == 100, "the repair too"
    assert figures("recap_jobs_run_total", kind="summary", outcome="retried") == 1


# -- what goes wrong


def test_a_turn_that_fails_is_counted_with_its_code(model_client, model_server):
    model_server.main.queue(Status(401))
    code = ask(model_client, "Hello").json["error"]["code"]
    figures = scraped(model_client)
    assert figures("recap_turns_total", outcome="failed") == 1
    assert figures("recap_errors_total", code=code) == figures("recap_errors_total") == 1
    assert figures("recap_http_requests_total", route="/api/chat", status="502") == 1


def test_a_job_is_counted_by_how_it_ended(make_app, model_server, monkeypatch):
    monkeypatch.setattr(jobs_module, "ATTEMPTS", 2)
    app = make_app(**at(model_server))
    client, job_queue = app.test_client(), engine_of(app).job_queue
    chat(client, "My cat is called Miso.", session_id="s")
    model_server.mini.default = lambda body: Status(401)
    job_queue.run_due()
    assert scraped(client)("recap_jobs_run_total", kind="summary", outcome="retried") == 1
    assert scraped(client)("recap_jobs", kind="summary", state="pending") == 1
    client.post("/api/sessions/s/summary/refresh")  # which is a new chance
    job_queue.run_due(["summary"])
    job_queue.run_now("summary", _key(app))
    figures = scraped(client)
    assert figures("recap_jobs_run_total", kind="summary", outcome="dead") == 1
    assert figures("recap_jobs", kind="summary", state="failed") == 1
    assert figures("recap_job_seconds_count", kind="summary") == 3


def _key(app: Flask) -> str:
    """What the one summary job is about."""
    with engine_of(app).database.read() as tx:
        return tx.scalars(select(JobRow.key).where(JobRow.kind == "summary")).one()


# -- requests


def test_a_request_is_counted_by_its_route_method_and_status(client):
    client.get("/api/sessions/nobodys")
    client.get("/no/such/address")
    client.open("/api/sessions", method="BREW")
    figures = scraped(client)
    assert figures("recap_http_requests_total", method="GET", route="/api/sessions/<session_id>", status="404") == 1
    assert figures("recap_http_requests_total", method="GET", route="none", status="404") == 1
    assert figures("recap_http_requests_total", method="other", status="405") == 1
    assert figures("recap_http_request_seconds_count") == 3


def test_no_label_holds_what_is_anybodys(client, engine):
    personal = {"tangerine", "person-of-acme", "session-nineteen", "key-seventeen", "brief-of-mine", "request-twelve"}
    append(client, "session-nineteen", [said("tangerine")], user_id="person-of-acme")
    ask(client, "tangerine", session_id="session-nineteen", user_id="person-of-acme", key="key-seventeen")
    ask(client, "tangerine", session_id="session-nineteen", user_id="someone-else")
    client.get("/api/users/person-of-acme/tangerine", headers={"X-Request-ID": "request-twelve"})
    client.put("/api/prompts/brief-of-mine", json={"text": "tangerine"})
    client.open("/tangerine", method="TANGERINE")
    engine.job_queue.run_due()
    figures = scraped(client)
    assert figures("recap_http_requests_total") >= 6
    shown = figures.text.lower()
    assert [word for word in personal if word in shown] == []
    known = re.compile(r"[a-z_]+|[0-9]{3}|[A-Z]+|[0-9.]+|\+Inf|/[\w/<>:()=.,-]*")
    assert [value for value in figures.labels if not known.fullmatch(value)] == []


# -- where they can be read


def test_a_database_that_cannot_be_read_is_told_and_not_fatal(make_app, tmp_path):
    client = make_app(database_url=f"sqlite:///{tmp_path / 'empty.db'}", metrics_key=METRICS_KEY).test_client()
    figures = scraped(client, **bearer(METRICS_KEY))
    assert figures("recap_database_up") == 0
    assert figures("recap_build_info", version=client.application.config["API_VERSION"]) == 1


def test_with_api_keys_the_metrics_have_a_key_of_their_own(make_app):
    tenants = (ApiKey("acme", "key-of-acme-0123456789"),)
    client = make_app(api_keys=tenants, metrics_key=METRICS_KEY).test_client()
    for headers in ({}, bearer("key-of-acme-0123456789"), {"Authorization": METRICS_KEY}, bearer(METRICS_KEY[:-1])):
        failed(client.get("/metrics", headers=headers), 401, "metrics_key_missing")
    assert scraped(client, **bearer(METRICS_KEY))("recap_errors_total", code="metrics_key_missing") == 4
    refused = client.get("/api/sessions", headers=bearer(METRICS_KEY))
    failed(refused, 401, "api_key_unknown")  # and opens nothing else


def test_without_keys_the_metrics_are_for_this_machine(client):
    refused = client.get("/metrics", environ_base={"REMOTE_ADDR": "203.0.113.7"})
    failed(refused, 403, "not_local")


def test_every_metric_is_described_and_no_other():
    metrics = Metrics()
    there = Figures(metrics.text("1", {("index", "pending"): 1}).decode()).names
    told = set(re.findall(r"^\| `(recap_\w+)", OPERATIONS.read_text("utf-8"), re.M))
    assert sorted(there - told) == [], "metrics that docs/operations.md does not describe"
    assert sorted(told - there) == [], "metrics in docs/operations.md that there are not"


# -- over several processes


@pytest.mark.slow
def test_two_workers_count_together_and_a_killed_ones_counts_stay(tmp_path, migrated):
    with migrated_server(tmp_path, migrated, WEB_WORKERS="2") as server:
        server.start()
        served = _chat_with_both(server)
        for _ in range(6):  # so that either answers
            figures = _scraped(server)
            assert figures("recap_metrics_shared") == 1
            assert figures("recap_turns_total", outcome="answered") == served
            assert figures("recap_http_requests_total", route="/api/chat", status="200") == served
            assert figures("recap_turn_phase_seconds_count", phase="answer") == served
            assert figures("recap_http_requests_in_flight") == 1
        with Api(server) as api:
            api.jobs_done()
        (done,) = rows(server, "SELECT count(*) FROM messages WHERE indexed_in IS NOT NULL")[0]
        assert done == 2 * served
        assert _scraped(server)("recap_jobs") == 0
        assert _scraped(server)("recap_jobs_run_total", outcome="done") > 0
        former = set(workers(server))
        os.kill(server.pid, signal.SIGHUP)
        assert eventually(lambda: len({*workers(server)} - former) == 2 and not {*workers(server)} & former)
        victims = set(workers(server))
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
        assert eventually(lambda: len({*workers(server)} - victims) == 2)
        assert _scraped(server)("recap_turns_total", outcome="answered") == served
        assert _scraped(server)("recap_http_requests_in_flight") == 1
        assert len(list((server.data_dir / "metrics").glob("counter_*.db"))) <= 4, (
            "new workers count on in the files of former ones"
        )
        assert server.stop() == 0
        server.start()
        assert _scraped(server)("recap_turns_total") == 0, "a restart begins at nothing"
        _chat_with_both(server)  # a worker that is still starting would make the folder again
        shutil.rmtree(server.data_dir / "metrics")
        with Api(server) as api:
            lost = api.http.get("/metrics")
            assert (lost.status_code, lost.json()["error"]["code"]) == (503, "metrics_lost")
            api.chat("after", "Hello")


def _scraped(server: Server) -> Figures:
    with Api(server) as api:  # a connection of its own
        return Figures(api.http.get("/metrics").raise_for_status().text)


def _chat_with_both(server: Server) -> int:
    """Take turns until both workers have taken some; how many."""
    served = 0

    def both() -> bool:
        nonlocal served
        with Api(server) as api:  # a connection of its own, which either worker may accept
            api.chat(f"s{served}", "Hello")
        served += 1
        folder = server.data_dir / "metrics"
        counting = [path for path in folder.glob("counter_*.db") if b"/api/chat" in path.read_bytes()]
        return len(counting) == 2

    assert eventually(both, 60.0)
    return served
