"""200 times kill -9 under eight chatting clients: nothing acknowledged is lost, nothing comes twice."""

import pytest

from tests.faults import seed, size
from tests.faults.killing import killed_and_found_whole
from tests.processes import server_with_model

pytestmark = pytest.mark.faults


def test_nothing_acknowledged_is_lost_or_doubled_by_kill_9(tmp_path, migrated):
    with server_with_model(tmp_path, migrated, "--main-delay", "0.02") as server:
        killed_and_found_whole(server, size("FAULTS_CYCLES", 200), seed())
