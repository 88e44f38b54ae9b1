"""The disk under a broker is full: it ends, and what it led is figures that say their age, or none.

The disk is a small tmpfs, which takes root to mount.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from tests.support.kafka.topics import words_read
from tests.support.service import Service, wait_for
from tests.support.small_disk import small_disk

_DISK_BYTES = 160 << 20
_CHUNK = bytes(1 << 20)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", _DISK_BYTES) as place:
        yield place


def fill(disk: Path) -> Path:
    """Leave no byte on a disk; return the file that took them."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (len(_CHUNK), 1):
            try:
                while True:
                    file.write(_CHUNK[:size])
            except OSError:
                continue
    return ballast


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_a_broker_whose_disk_is_full_takes_nobody_with_it(disk: Path) -> None:
    cluster = EmbeddedCluster(nodes=1)
    directory = cluster.node_directory(1)
    directory.mkdir()
    (directory / "data").symlink_to(disk)
    with cluster:
        lag = words_read(cluster, 100, 40)
        with Service(cluster) as service:
            service.wait_value(60, "group_lag_records", **lag)
            ballast = fill(disk)
            producer = Producer({**cluster.client_config(), "message.timeout.ms": 2_000})

            def write() -> bool:
                producer.produce("words", os.urandom(100_000))
                producer.flush(0.1)
                return not cluster.running_nodes

            wait_for("the broker has ended", write, 120)
            wait_for("it isn't ready, and says why", lambda: "answer" in service.unready(), 90)
            print(service.unready().strip())
            assert service.process.exit_code is None
            ballast.unlink()
            cluster.start_node(1)
            wait_for("it is ready again", service.ready, 120)
            end = {"topic": "words", "partition": 0, "isolation": "read_committed"}
            before = service.value("partition_end_offset", **end)
            produce(cluster, "words", 50)
            expected = (before or 0) + 50
            service.wait_value(expected, "partition_end_offset", **end)
            service.wait_value(expected - 40, "group_lag_records", **lag)
