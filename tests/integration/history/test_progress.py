"""``caughtup pipeline history`` tells the service how it gets on, until it is told to stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.integration.conftest import MakeTopic
from tests.support.service import Service, commit, wait_for

#: Spark's start and first batch take long on a busy machine.
SECONDS = 300.0

pytestmark = [pytest.mark.timeout(900), pytest.mark.thorough]


def test_the_page_says_how_the_history_gets_on_and_that_it_was_stopped(
    cluster: EmbeddedCluster, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic()
    commit(cluster, "billing", topic, 3)
    with Service(cluster) as service:

        def row() -> dict[str, Any]:
            return next(iter(service.page()["streams"]), {})

        command = [sys.executable, "-m", "caughtup.agents", "pipeline", "history"]
        command += ["--config", str(service.settings_file), "--trigger-seconds", "1"]
        command += ["--output", str(tmp_path / "table"), "--checkpoint", str(tmp_path / "kept")]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_")}
        log = tmp_path / "log"
        with log.open("wb") as output:
            job = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
        try:
            wait_for("the first batch on the page", lambda: row().get("batch") == 0, SECONDS)
            assert row()["stream"] == "history"
            assert row()["status"] == "running"
            assert row()["rows"] > 0
            wait_for("later batches", lambda: row()["batch"] > 1, SECONDS)
            assert row().get("quarantined", 0) == 0
            assert service.value("pipeline_offsets_behind", stream="history") is not None
            job.send_signal(signal.SIGTERM)
            assert job.wait(SECONDS) == 0, log.read_text()
        finally:
            if job.poll() is None:
                job.kill()
                job.wait()
        service.wait_value(1, "pipeline_status", stream="history", status="stopped")
        assert "why" not in row()
