"""Whose job is next: tenants take turns, then the owners of a tenant; nobody's backlog delays another's jobs."""

import re
import threading
from typing import Any

from flask.testing import FlaskClient

from app import engine_of
from config import ApiKey
from memory.recall import indexing
from memory.recall.indexing import BATCH_MESSAGES
from models.jobs import Job
from tests.http import append, read_all, said
from tests.jobs import Bench, Clock, fail
from tests.knowledge import digest_of, fact
from tests.model_server import Delay, ModelServer, at, prompts

TENANTS = ("acme", "bell")
KEYS = tuple(ApiKey(tenant, f"key-of-{tenant}-0123456789") for tenant in TENANTS)


def clients(app: Any) -> list[FlaskClient]:
    """A client of each tenant."""
    made = [app.test_client() for _ in KEYS]
    for client, key in zip(made, KEYS, strict=True):
        client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {key.key}"
    return made


def asked_of(model_server: ModelServer) -> list[str]:
    """Whose session each call of the mini model was about, in order."""
    asked = map(str, prompts(model_server, "mini"))
    return [found[1] for prompt in asked if (found := re.search(r"I am (\w+)\.", prompt))]


# -- owners


def test_a_persons_summaries_are_made_one_after_the_other(make_app, model_server):
    """So that each sees the facts of the one before, which it may correct; nobody else waits for them."""
    app = make_app(**at(model_server, model_timeout=60.0))
    client, gates = app.test_client(), [threading.Event() for _ in range(4)]
    for number in range(3):
        append(client, f"s-{number}", [said(f"I am ada. We are at version {number}.")], user_id="ada")
    version = fact("They are at version 0", 1, "We are at version 0", scope="user")
    answers = digest_of(version), *3 * [digest_of(topic="Done")]
    model_server.mini.queue(*map(Delay, gates, answers))
    engine_of(app).start()
    try:
        model_server.wait_for_requests(1)
        append(client, "b", [said("I am bob.")], user_id="bob")
        model_server.wait_for_requests(2)
        assert not model_server.wait_for(lambda: len(model_server.requests) > 2, 0.5)
        assert asked_of(model_server) == ["ada", "bob"]
        gates[0].set()
        model_server.wait_for_requests(3)
        assert asked_of(model_server)[2] == "ada"
        assert "They are at version 0" in prompts(model_server, "mini")[2][-1]["content"]
    finally:
        for gate in gates:
            gate.set()


# -- tenants


def test_a_slow_models_backlog_delays_no_other_tenant(make_app, model_server):
    """All workers are busy with one tenant's summaries: the first that is free takes the other's."""
    app = make_app(**at(model_server, api_keys=KEYS, model_timeout=60.0))
    acme, bell = clients(app)
    for number in range(30):
        append(acme, f"s-{number}", [said("I am acme.")], user_id=f"person-{number % 5}")
    gates = [threading.Event() for _ in range(31)]
    model_server.mini.queue(*(Delay(gate, digest_of(topic="Done")) for gate in gates))
    engine_of(app).start()
    try:
        workers = len(model_server.wait_for_requests(4))
        append(bell, "b", [said("I am bell.")])
        for number in range(2):
            gates[number].set()
            model_server.wait_for_requests(workers + number + 1)
        assert asked_of(model_server) == ["acme"] * workers + ["bell", "acme"]
    finally:
        for gate in gates:
            gate.set()


def test_an_import_to_index_delays_no_other_tenant(make_app):
    """A thousand messages of one person are indexed in parts, and twenty persons wait behind one of these."""
    app = make_app(api_keys=KEYS)
    acme, bell = clients(app)
    append(acme, "long", [said(f"Message number {number}.") for number in range(1000)], user_id="long")
    for number in range(20):
        append(acme, f"s-{number}", [said("Hello.")], user_id=f"person-{number}")
    append(bell, "b", [said("Hello.")], user_id="bob")
    bells = {job["id"] for job in read_all(bell, "/api/jobs")}
    ran: list[bool] = []
    engine_of(app).job_queue.run_due(["index"], each=lambda job, error: ran.append(job.id in bells))
    assert ran.index(True) <= 1 and ran.count(True) == 1
    assert len(ran) == 1000 // BATCH_MESSAGES + 1 + 20 + 1  # the last part finds that there is no more
    assert all(verified.consistent and not verified.unindexed for verified in indexing.verify(engine_of(app)))


def fill(bench: Bench, count: int, *tenants: str, delay: float = 0.0) -> None:
    for tenant in tenants:
        for number in range(count):
            bench.enqueue(f"{tenant}-{number}", tenant=tenant, owner_id=None, delay=delay)


def test_whoever_has_the_fewest_running_is_next_over_all_processes(bench):
    fill(bench, 5, "acme")
    processes = [bench.process(bench.app) for _ in range(2)]
    taken = [bench.take(process).tenant for process in processes * 2]
    fill(bench, 5, "bell", "cool")
    taken += [bench.take(process).tenant for process in processes * 4]
    assert taken == ["acme"] * 4 + ["bell", "cool"] * 4
    for process in processes:
        process.stop()


def test_tenants_take_turns_whichever_process_looks(bench):
    fill(bench, 6, "acme", "bell")
    done: list[str] = []
    bench.work = lambda job: done.append(job.tenant)
    for _ in range(6):  # each runs two jobs, and is replaced by another that has seen nothing
        process = bench.process(bench.app)
        for _ in range(2):
            claimed = process.job_queue.claim_next("probe")
            assert claimed is not None
            process.job_queue.run(claimed)
        process.stop()
        bench.clock.tick(-3600)  # and no clock says who was served last
    assert done == ["acme", "bell"] * 6


def test_failing_jobs_wait_behind_those_of_others(bench):
    """Nor do tries that are due again come before a job that was never tried."""
    bob = bench.owner("bob")
    tried: list[str] = []

    def work(job: Job) -> None:
        tried.append(job.key)
        bench.clock.tick(10)  # longer than the pause: what failed is due again
        if job.key.startswith("ada"):
            fail(job)

    bench.work = work
    for number in range(20):
        bench.enqueue(f"ada-{number}")
    bench.enqueue("bob-0", owner_id=bob)
    bench.enqueue("bob-1", owner_id=bob)
    bench.run()
    assert tried.index("bob-0") == 1 and tried.index("bob-1") == 3


# -- the place in the queue


def test_each_waiting_job_shows_its_position_and_age(make_app):
    bench = Bench(make_app(), Clock())
    bob = bench.owner("bob")
    fill(bench, 50, "another tenant")
    for number in range(60):
        bench.enqueue(f"ada-{number}")
    bench.clock.tick(90)
    bench.enqueue("bob", owner_id=bob)
    bench.enqueue("other", kind="other")

    def shown(**query: Any) -> list[tuple[str, int | None, int]]:
        return [(job["state"], job["position"], job["age"]) for job in bench.jobs(**query)]

    ada = [("pending", 1, 90), *(("pending", place, 90) for place in range(3, 62))]
    assert shown(limit=7) == [*ada, ("pending", 2, 0), ("pending", 1, 0)]
    bench.engine.job_queue.claim_next("probe")  # which is the other tenant's or Ada's first
    bench.engine.job_queue.claim_next("probe")
    running = ("running", None, 90)
    assert shown()[:3] == [running, ("pending", 2, 90), ("pending", 3, 90)]
    assert shown(user_id="bob") == [("pending", 1, 0)]
    bench.clock.tick(-3600)
    assert {age for _, _, age in shown()} == {0}
