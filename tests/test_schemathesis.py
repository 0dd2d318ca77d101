"""Requests made up from the OpenAPI document, well formed and not: no call breaks, each answers as it is documented.

Schemathesis makes them up, always the same ones; the application is called in this process, with the built-in model.
"""

import pytest
import schemathesis
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

EXAMPLES = 3  # of each kind for each call
SOUND = [content_type_conformance, response_headers_conformance, response_schema_conformance, status_code_conformance]

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_call_answers_as_it_is_documented(shared_app, mode):
    found: dict[tuple[str, str], str] = {}  # what is wrong, a line for each call and kind
    schema = schemathesis.openapi.from_wsgi("/openapi.json", shared_app)
    for result in schema.get_all_operations():
        operation = result.ok()

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
            if case.path == "/api/events":
                case.query = {**(case.query or {}), "seconds": 0}  # or the stream lasts an hour
            answer = case.call()
            for check in SOUND:
                try:
                    case.validate_response(answer, checks=[check])
                except (Failure, FailureGroup) as failure:
                    why = failure.exceptions[0] if isinstance(failure, FailureGroup) else failure
                    told = f"{case.operation.label}: {answer.status_code}: {why}\n  {case.as_curl_command()}"
                    found.setdefault((case.operation.label, check.__name__), told)

        try:
            send()
        except Unsatisfiable:  # a call that takes nothing can't be sent anything wrong
            assert mode is GenerationMode.NEGATIVE and not list(operation.iter_parameters()) and not operation.body
    assert list(found.values()) == []
