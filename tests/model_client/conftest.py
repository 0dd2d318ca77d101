"""What the tests of the client of model servers share: a server and a model at it, which together take 20 ms to make.

Each test finds the server with nothing scripted and nothing asked.  The connections to it stay, and so does what the
model has learned of it; tests for which that matters make their own under the same names.
"""

from contextlib import ExitStack

import pytest

from tests.llm import connected
from tests.model_server import ModelServer


@pytest.fixture(scope="module")
def shared():
    """One of each for a module's many tests, and for Hypothesis, which makes no fixtures anew for its examples."""
    with ModelServer() as server, connected(server) as model:
        yield server, model


@pytest.fixture
def server(shared):
    shared[0].reset()
    return shared[0]


@pytest.fixture
def model(shared):
    return shared[1]


@pytest.fixture
def make(server):
    """Makes models at the server, with settings of their own."""
    with ExitStack() as stack:
        yield lambda name="gpt-4o", **settings: stack.enter_context(connected(server, name, **settings))
