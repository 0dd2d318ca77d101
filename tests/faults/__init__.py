"""Crash and load tests, run by `make test-faults`: minutes each, on loopback alone, with a scripted model.

What they do is set by environment variables, whose defaults are what is promised:
FAULTS_CYCLES (200 kill -9), FAULTS_CLIENTS (300 at once), FAULTS_TURNS (48,000), FAULTS_SECONDS (60 of a cluster),
FAULTS_SEED (1).  Each prints its figures: `make test-faults` shows them.
"""

import os


def size(name: str, default: int) -> int:
    """The environment's `name`, or what is promised."""
    return int(os.environ.get(name) or default)


def seed() -> int:
    """What the choices of a run are made from, so that it can be run again."""
    return size("FAULTS_SEED", 1)


def report(title: str, **figures: object) -> None:
    """Print figures of a run; `pytest -s` shows them."""
    told = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in figures.items())
    print(f"\n{title}: {told}", flush=True)
