"""Which broker coordinates a group, and since when."""

from __future__ import annotations

from caughtup.agents.kafka.partition_leaders import LogPartition, coordinator_moved_ms
from caughtup.models.assignors.java.strings import coordinator_partition

MOVED_MS = 1_800_000_000_000


def test_when_its_coordinator_moved_is_that_of_its_partition() -> None:
    number = coordinator_partition("orders", 4)
    partitions = {one: LogPartition() for one in range(4)}
    assert coordinator_moved_ms(partitions, "orders") is None
    partitions[number].moved_ms = MOVED_MS
    assert coordinator_moved_ms(partitions, "orders") == MOVED_MS
    assert coordinator_moved_ms({}, "orders") is None
