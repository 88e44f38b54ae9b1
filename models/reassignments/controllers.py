"""What a controller waits for before it completes a reassignment, by the release it runs.

KRaft controllers have had three rules, the ZooKeeper controllers one.
"""

from __future__ import annotations

from typing import Protocol

from caughtup.models.records.reassignments import (
    ClusterRecord,
    ReassignmentRecord,
)

#: The first releases that wait for the whole target (KAFKA-15665), and that again spare what
#: stays and was out of sync before (KAFKA-19975); and the newest that was compared.
WHOLE_TARGET = (3, 8)
ADDED_SUFFICE = (4, 3)
NEWEST_COMPARED = (4, 3)

#: What the ZooKeeper controller has done by the time a step of its walk can be observed.
ZOOKEEPER_STEPS = {
    2: "copying to the added replicas (phase A, step 2)",
    3: "the target is in sync (phase B)",
    4: "a replica of the target leads (phase B, step 3)",
    5: "the removed replicas are out of the ISR (phase B, step 4)",
}


class PartitionReplicas(Protocol):
    """The replicas of a reassigned partition: as observed, or as a controller keeps them."""

    @property
    def replicas(self) -> tuple[int, ...]:
        """All replicas (RS), in Kafka's order."""

    @property
    def adding(self) -> tuple[int, ...]:
        """Those being added (AR)."""

    @property
    def removing(self) -> tuple[int, ...]:
        """Those being removed (RR)."""

    @property
    def isr(self) -> tuple[int, ...]:
        """Those in sync."""


def target(partition: PartitionReplicas) -> tuple[int, ...]:
    """Return the replicas that a controller leaves when it completes this, in their order.

    A broker that is added and removed at once goes, as in Kafka's PartitionReassignmentReplicas.
    """
    return tuple(replica for replica in partition.replicas if replica not in partition.removing)


def reverted(partition: PartitionReplicas) -> tuple[int, ...]:
    """Return the replicas that cancelling this would leave: all but the added ones, in their order.

    As in Kafka's PartitionReassignmentRevert, and in the ZooKeeper controller. After a change of
    target KRaft no longer knows the original ones.
    """
    return tuple(replica for replica in partition.replicas if replica not in partition.adding)


def rule_known(cluster: ClusterRecord | None) -> bool:
    """Return whether it is known for what the cluster's controller waits, not only assumed."""
    if cluster is None:
        return False
    if cluster.zookeeper:
        return True
    return cluster.software is not None and cluster.software <= NEWEST_COMPARED


def required_isr(partition: PartitionReplicas, cluster: ClusterRecord | None) -> frozenset[int]:
    """Return the replicas that must be in the ISR before the controller completes this.

    Where the release is unknown, those of the newest rule.
    """
    if cluster is not None and cluster.zookeeper:
        return frozenset(target(partition))
    return required_isr_in_kraft(partition, cluster.software if cluster is not None else None)


def required_isr_in_kraft(
    partition: PartitionReplicas, software: tuple[int, int] | None
) -> frozenset[int]:
    """Return the replicas that must be in the ISR, by the KRaft controller's release.

    None is the newest rule. Up to 3.7 a removal waits for any replica that stays: then it is all
    of them while none is in the ISR, and else none. Source: Kafka's
    PartitionReassignmentReplicas, maybeCompleteReassignment.
    """
    adding, staying = frozenset(partition.adding), frozenset(target(partition))
    if software is not None and software < WHOLE_TARGET:
        return adding or (staying if staying.isdisjoint(partition.isr) else frozenset())
    if software is not None and software < ADDED_SUFFICE:
        return staying
    return adding | staying if len(partition.adding) < len(partition.removing) else adding


def missing_from_isr(
    partition: PartitionReplicas, cluster: ClusterRecord | None
) -> tuple[int, ...]:
    """Return the replicas that the required ISR lacks, ascending.

    A required broker that is being removed as well never counts as in it: up to 3.7 and from 4.3
    on, KRaft cannot complete such a reassignment.
    """
    return tuple(sorted(required_isr(partition, cluster) - in_target_isr(partition)))


def in_target_isr(partition: PartitionReplicas) -> frozenset[int]:
    """Return the replicas in the ISR that would be in it once this is completed."""
    return frozenset(partition.isr) - frozenset(partition.removing)


def zookeeper_step(observation: ReassignmentRecord) -> int:
    """Return the step, 2 to 5, that the ZooKeeper controller's walk is at (ZOOKEEPER_STEPS).

    1 is before it and 6 after it. Source: Kafka 3.3's KafkaController,
    onPartitionReassignment.
    """
    isr, staying = frozenset(observation.isr), frozenset(target(observation))
    if not staying <= isr:
        return 2
    if observation.leader not in staying:
        return 3
    return 5 if isr.isdisjoint(observation.removing) else 4


def phase(observation: ReassignmentRecord, cluster: ClusterRecord | None) -> str:
    """Return the phase of a partition that the controller lists as reassigned.

    ``U``: the brokers' metadata is older than the list, for its ISR or leader are none of the
    replicas. ``A``: a required replica is out of the ISR. After that ``completing`` in KRaft, where
    the same record that takes the last one into the ISR should have completed it, and ``B`` with
    ZooKeeper.
    """
    seen = (
        frozenset(observation.isr)
        if observation.leader is None
        else frozenset((*observation.isr, observation.leader))
    )
    if not observation.replicas or not seen <= frozenset(observation.replicas):
        return "U"
    if missing_from_isr(observation, cluster):
        return "A"
    return "B" if cluster is not None and cluster.zookeeper else "completing"
