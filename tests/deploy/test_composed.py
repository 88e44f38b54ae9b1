"""docker-compose.yml under podman: our service beside a real cluster, with the file's limits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.processes.children import free_ports
from tests.support.composed import Composed, missing
from tests.support.images import Builder, Image
from tests.support.service import wait_for

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1500)]

NAME = "caughtup_caughtup_1"


def test_our_service_runs_as_the_file_says(
    builder: Builder, service_image: Image, images_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    if (reason := missing()) is not None:
        pytest.skip(reason)
    builder.asked("tag", service_image.name, "localhost/caughtup")
    port = free_ports(1)[0]
    composed = Composed(
        builder,
        tmp_path / "compose",
        {
            "CAUGHTUP_BOOTSTRAP_SERVERS": images_cluster.bootstrap_servers,
            "CAUGHTUP_WEB_HOST": "127.0.0.1",
            "CAUGHTUP_WEB_PORT": str(port),
            "CAUGHTUP_APPLICATION_ID": f"composed-{port}",
            "CAUGHTUP_TOPIC_PREFIX": f"composed-{port}-",
        },
    )
    try:
        composed.compose("up", "--detach", "--no-build", "--no-deps", "caughtup")
        wait_for("the service is healthy", lambda: composed.is_healthy(NAME), 120)
        (found,) = json.loads(composed.podman("inspect", NAME))
        host = found["HostConfig"]
        assert host["ReadonlyRootfs"] is True
        assert host["Memory"] == 1 << 30
        assert host["PidsLimit"] == 256
        assert found["EffectiveCaps"] in (None, [])
        composed.podman("stop", "--time", "10", NAME)
        (found,) = json.loads(composed.podman("inspect", NAME))
        assert found["State"]["ExitCode"] == 0, composed.podman("logs", NAME)
    finally:
        composed.podman("rm", "--all", "--force", "--time", "1")
