"""When long-term memory is written: the grammar of its settings, and the jobs that follow from it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from config.parsers import When, when
from memory.jobs import PAUSE, scheduled_request
from models import OwnerRow
from tests.jobs import Bench


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("off", When("off")),
        ("Background", When("background")),
        ("every 1 minute", When("schedule", minutes=1)),
        ("every  30 minutes", When("schedule", minutes=30)),
        ("0 4 * * mon", When("schedule", cron="0 4 * * MON")),
    ],
)
def test_a_setting_says_when(raw: str, expected: When) -> None:
    assert when(raw) == expected


@pytest.mark.parametrize(
    "raw",
    [
        *("", "sometimes", "every 0 minutes", "every 525601 minutes", "* * * *", "0 0 4 * * *", "61 * * * *"),
        *("0 0 30 2 *", "0 0 31 4 MON#1-2", "0 0 30,31 2 *"),  # these never come round
    ],
)
def test_what_says_no_time_is_refused_with_what_does(raw: str) -> None:
    with pytest.raises(ValueError, match="it takes off, manual, background"):
        when(raw)


def test_a_job_waits_for_a_pause_or_for_its_time(bench: Bench) -> None:
    """Asked for after each of three turns a minute apart, it runs once."""
    began = bench.clock()  # midnight
    due = {"background": 2 * 60 + PAUSE, "inline": 0.0, "every 30 minutes": 1800.0, "0 4 * * *": 4 * 3600.0}
    for number, setting in enumerate([*due, "manual", "off"]):
        bench.clock.now = began
        owner_id = bench.owner(setting)
        for _ in range(3):
            with bench.engine.database.write() as tx:
                if when(setting).is_scheduled:
                    owner = tx.get_one(OwnerRow, owner_id)
                    request = scheduled_request(when(setting), "probe", owner, bench.clock())
                    bench.engine.job_queue.enqueue(tx, request)
            bench.clock.tick(60.0)
        jobs = [job["run_at"] for job in bench.jobs(user_id=setting)]
        expected = [(began + timedelta(seconds=due[setting])).isoformat()] if setting in due else []
        assert jobs == expected, (number, setting)
