"""Checkpoints in folders, and a state to which looks at them are applied."""

from __future__ import annotations

from pathlib import Path

from caughtup.agents.checkpoints.reading import CheckpointLooks
from caughtup.models.ids import TopicPartition
from caughtup.models.state.cluster import ClusterState
from caughtup.models.state.spark_looks import apply_looks
from caughtup.models.watching import Watching, WatchPatterns
from tests.support.checkpoints import Checkpoint
from tests.support.groups.records import START_MS

ORDERS = TopicPartition("orders", 0)


class Watched:
    """A state, and looks at checkpoints that are applied to it."""

    def __init__(self, *entries: str | Path, patterns: WatchPatterns | None = None) -> None:
        self.looks = CheckpointLooks(map(str, entries))
        self.state = ClusterState("cluster-1", {}, Watching(patterns))
        self.now_ms = START_MS

    def look(self, after_ms: int = 10_000) -> ClusterState:
        self.now_ms += after_ms
        found = self.looks.look(self.state.spark.known(), self.now_ms)
        for _ in apply_looks(self.state, found, self.now_ms):
            pass
        return self.state

    def committed(self) -> dict[tuple[str, TopicPartition], int]:
        return {(group, one): found.committed for group, one, found in self.state.commits}

    def problems(self) -> dict[str, str]:
        return {Path(p).name: one.reason for p, one in self.state.spark.problems.items()}


def twelve_batches(folder: Path) -> Checkpoint:
    """Make the checkpoint of a query with twelve committed batches, ten seconds apart."""
    made = Checkpoint(folder)
    for number in range(12):
        at_ms = START_MS - 120_000 + number * 10_000
        made.batch(number, at_ms, {"orders": {0: 100 * (number + 1), 1: 5}})
    return made
