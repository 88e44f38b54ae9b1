"""A broker whose clock is five minutes off: nothing of it is refused, and no figure waits for it.

The clock is that of the broker's process alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from tests.support.clocks import COMPILER, another_clock
from tests.support.kafka.topics import words_read
from tests.support.service import Service, commit, wait_for


@contextmanager
def broker_with_another_clock(seconds: int, directory: Path) -> Iterator[EmbeddedCluster]:
    """Start a broker whose clock is off by so many seconds."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in another_clock(seconds, directory).items():
            patched.setenv(name, value)
        cluster = EmbeddedCluster(nodes=1)
        cluster.processes  # noqa: B018 - the watchdog goes by any clock
        cluster._launch(1)
    try:
        cluster.wait_ready()
        yield cluster
    finally:
        cluster.close()


@pytest.mark.thorough
@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("seconds", [300, -300])
def test_a_broker_whose_clock_is_off_is_told_of_as_any_other(seconds: int, tmp_path: Path) -> None:
    with broker_with_another_clock(seconds, tmp_path) as cluster:
        lag = words_read(cluster, 100, 40)
        with Service(cluster) as service:
            service.wait_value(60, "group_lag_records", **lag)
            for committed in (50, 100):
                commit(cluster, "readers", "words", committed)
                service.wait_value(100 - committed, "group_lag_records", **lag)
            produce(cluster, "words", 20)
            service.wait_value(20, "group_lag_records", **lag)
            wait_for("what is seen is fresh", lambda: age(service) < 5)
            refused = [s for s in service.metrics() if s.name == "caughtup_records_refused_total"]
            assert sum(sample.value for sample in refused) == 0
            assert service.value("active") == 1
            written_ms = last_commit_ms(cluster)
            print(f"commits are {written_ms / 1000 - time.time():+.0f} s off")
            assert abs(written_ms / 1000 - time.time() - seconds) < 60


def last_commit_ms(cluster: EmbeddedCluster) -> int:
    """Return when the group's last commit was written by the broker's word (ms)."""
    consumer = Consumer({**cluster.client_config(), "group.id": "clock"})
    try:
        topic = consumer.list_topics(CONSUMER_OFFSETS, timeout=10).topics[CONSUMER_OFFSETS]
        places = [TopicPartition(CONSUMER_OFFSETS, p, OFFSET_BEGINNING) for p in topic.partitions]
        consumer.assign(places)
        return max(message.timestamp()[1] for message in consumer.consume(100, timeout=5))
    finally:
        consumer.close()


def age(service: Service) -> float:
    """Return how old end offsets are by the service's own word, in seconds."""
    found = service.value("snapshot_age_seconds", source="end_offsets")
    return float("inf") if found is None else found
