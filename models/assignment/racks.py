"""In which racks the clients are, and in which the replicas of what their tasks read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from caughtup.models.assignment.configs import Configs
from caughtup.models.assignment.placement import Placement
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import TaskId, TopicPartition

#: The racks that have a replica, for each partition that a task reads.
PartitionRacks = tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class Racks:
    """The racks of a group in which nothing lacks one, so that tasks can be assigned by rack.

    ``clients`` has each client's, in ProcessId order, and ``partitions`` those of its replicas.
    """

    clients: tuple[str, ...]
    partitions: Mapping[TopicPartition, frozenset[str]]
    sources: Mapping[TaskId, Sequence[TopicPartition]]
    changelogs: Mapping[TaskId, Sequence[TopicPartition]]

    def of_sources(self, task: TaskId) -> PartitionRacks:
        """Look up what a task reads. Raises ScenarioError ``missing_field`` where Kafka fails."""
        return self._look_up(task, self.sources[task], "source")

    def of_changelogs(self, task: TaskId) -> PartitionRacks:
        """Look up what a standby reads. Raises ScenarioError ``missing_field`` where Kafka fails."""
        return self._look_up(task, self.changelogs[task], "changelog")

    def _look_up(
        self, task: TaskId, partitions: Sequence[TopicPartition], kind: str
    ) -> PartitionRacks:
        if not partitions:
            raise ScenarioError(
                "missing_field", f"tasks.{task}.{kind}_partitions: there must be at least one"
            )
        for partition in partitions:
            if partition not in self.partitions:
                raise ScenarioError("missing_field", f"replicas.{partition}: is missing")
        return tuple(self.partitions[partition] for partition in partitions)


def find_racks(
    placement: Placement | None, configs: Configs, clients: Sequence[str | None]
) -> Racks | None:
    """Find the racks of clients and replicas; None when Kafka leaves them alone.

    That is with the strategy "none", or when a client has no rack, or a replica of a partition
    that counts, or a partition has no replicas. ``clients`` are the clients' racks. Changelogs
    count when there are to be standbys.

    Source: KIP-925, RackAwareTaskAssignor.canEnableRackAwareAssignor.
    """
    by_client = tuple(rack for rack in clients if rack is not None)
    if placement is None or len(by_client) < len(clients):
        return None
    sources, changelogs, replicas = placement.sources, placement.changelogs, placement.replicas
    counted = {partition for own in sources.values() for partition in own}
    if configs.num_standby_replicas:
        # Kafka asks for all partitions of these topics, even those that no task has.
        topics = {partition.topic for own in changelogs.values() for partition in own}
        if topics - {partition.topic for partition in replicas}:
            return None
        counted |= {partition for partition in replicas if partition.topic in topics}
    if any(not (own := replicas.get(partition)) or None in own for partition in counted):
        return None
    racks = {p: frozenset(rack for rack in own if rack is not None) for p, own in replicas.items()}
    return Racks(by_client, racks, sources, changelogs)
