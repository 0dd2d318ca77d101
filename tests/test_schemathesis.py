"""Requests made up from the OpenAPI document, well formed and not: no call breaks, each answers as it is documented.

Schemathesis makes them up, always the same ones; the application is called in this process, with the built-in model.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from flask import Flask
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from config import Settings
from tests.resources import an_app

KEY = "key-of-acme-0123456789"
EXAMPLES = 12  # of each kind for each call
SOUND = [content_type_conformance, response_headers_conformance, response_schema_conformance, status_code_conformance]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def open_app(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Iterator[Flask]:
    with an_app(tmp_path_factory.mktemp("open"), migrated) as app:
        yield app


@pytest.fixture(scope="module")
def locked_app(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Iterator[Flask]:
    keys = Settings.from_env({"RECAP_API_KEYS": f"acme:{KEY}"}, None).api_keys
    with an_app(tmp_path_factory.mktemp("locked"), migrated, api_keys=keys, rate_limit="off") as app:
        yield app


def problems(app: Flask, mode: GenerationMode, only: tuple[str, ...] = (), **headers: str) -> list[str]:
    """What is wrong with the answers to made up requests, a line for each call and kind."""
    found: dict[tuple[str, str], str] = {}
    schema = schemathesis.openapi.from_wsgi("/openapi.json", app)
    for result in schema.get_all_operations():
        operation = result.ok()
        if only and operation.label not in only:
            continue

        @seed(1)
        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def send(case: schemathesis.Case) -> None:
            answer = case.call(headers=headers)
            for check in SOUND:
                try:
                    case.validate_response(answer, checks=[check], headers=headers)
                except (Failure, FailureGroup) as failure:
                    why = failure.exceptions[0] if isinstance(failure, FailureGroup) else failure
                    told = f"{case.operation.label}: {answer.status_code}: {why}\n  {case.as_curl_command()}"
                    found.setdefault((case.operation.label, check.__name__), told)

        try:
            send()
        except Unsatisfiable:  # a call that takes nothing can't be sent anything wrong
            assert mode is GenerationMode.NEGATIVE and not list(operation.iter_parameters()) and not operation.body
    return list(found.values())


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_call_answers_as_it_is_documented(open_app: Flask, mode: GenerationMode) -> None:
    assert problems(open_app, mode) == []


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_so_it_does_to_who_has_a_key(locked_app: Flask, mode: GenerationMode) -> None:
    assert problems(locked_app, mode, Authorization=f"Bearer {KEY}") == []


def test_what_is_not_documented_would_be_found(open_app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(open_app.view_functions, "jobs.list_jobs", lambda: ({"items": "none"}, 200))
    monkeypatch.setitem(open_app.view_functions, "prompts.list_prompts", lambda: ({}, 418))
    found = "\n".join(problems(open_app, GenerationMode.POSITIVE, only=("GET /api/jobs", "GET /api/prompts")))
    assert "GET /api/jobs: 200: Response violates schema" in found
    assert "GET /api/prompts: 418: Undocumented status code" in found
