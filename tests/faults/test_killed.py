"""200 times kill -9 under eight chatting clients: nothing acknowledged is lost, nothing comes twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import seed, size
from tests.faults.killing import killed_and_found_whole
from tests.serving import migrated_server, model_process, model_settings

pytestmark = pytest.mark.faults


def test_nothing_acknowledged_is_lost_or_doubled_by_kill_9(tmp_path: Path, migrated: Path) -> None:
    with (
        model_process("--main-delay", "0.02") as url,
        migrated_server(tmp_path, migrated, **model_settings(url)) as server,
    ):
        killed_and_found_whole(server, size("FAULTS_CYCLES", 200), seed())
