"""The ISR that a controller requires before it completes a reassignment, by its release.

KRaft controllers have had three rules, ZooKeeper controllers one.
"""

from __future__ import annotations

from typing import Protocol

from caughtup.models.records.reassignments import (
    ClusterRecord,
    ReassignmentRecord,
)

#: The first release that waits for the whole target (KAFKA-15665), the first that waits again
#: for the added replicas only (KAFKA-19975), and the newest release that was compared.
WHOLE_TARGET = (3, 8)
ADDED_SUFFICE = (4, 3)
NEWEST_COMPARED = (4, 3)

#: What the ZooKeeper controller has done when a step of its procedure can be observed.
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
        """The replicas being added (AR)."""

    @property
    def removing(self) -> tuple[int, ...]:
        """The replicas being removed (RR)."""

    @property
    def isr(self) -> tuple[int, ...]:
        """The in-sync replicas."""


def target(partition: PartitionReplicas) -> tuple[int, ...]:
    """Return the replicas after completion, in order.

    A broker that is both added and removed is not among them, as in Kafka's
    PartitionReassignmentReplicas.
    """
    return tuple(replica for replica in partition.replicas if replica not in partition.removing)


def reverted(partition: PartitionReplicas) -> tuple[int, ...]:
    """Return the replicas after a cancellation, all but the added ones, in order.

    Kafka's PartitionReassignmentRevert and the ZooKeeper controller do the same. After a change
    of target KRaft no longer knows the original replicas.
    """
    return tuple(replica for replica in partition.replicas if replica not in partition.adding)


def rule_known(cluster: ClusterRecord | None) -> bool:
    """Return whether the rule of the cluster's controller is known, not only assumed."""
    if cluster is None:
        return False
    if cluster.zookeeper:
        return True
    return cluster.software is not None and cluster.software <= NEWEST_COMPARED


def required_isr(partition: PartitionReplicas, cluster: ClusterRecord | None) -> frozenset[int]:
    """Return the replicas that must be in the ISR before the controller completes this.

    If the release is unknown, the newest rule counts.
    """
    if cluster is not None and cluster.zookeeper:
        return frozenset(target(partition))
    return required_isr_in_kraft(partition, cluster.software if cluster is not None else None)


def required_isr_in_kraft(
    partition: PartitionReplicas, software: tuple[int, int] | None
) -> frozenset[int]:
    """Return the replicas that must be in the ISR, by the KRaft controller's release.

    None stands for the newest rule. Up to 3.7 a removal waits for any one replica that stays: the
    result is then all of them while none is in the ISR, else none. Source: Kafka's
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

    A required broker that is also being removed always counts as missing: up to 3.7 and from 4.3
    on, KRaft cannot complete such a reassignment.
    """
    return tuple(sorted(required_isr(partition, cluster) - in_target_isr(partition)))


def in_target_isr(partition: PartitionReplicas) -> frozenset[int]:
    """Return the replicas of the ISR that remain after completion."""
    return frozenset(partition.isr) - frozenset(partition.removing)


def zookeeper_step(observation: ReassignmentRecord) -> int:
    """Return the step of ZOOKEEPER_STEPS, 2 to 5, at which the ZooKeeper controller is.

    Steps 1 and 6, the first and the last, cannot be observed. Source: Kafka 3.3's
    KafkaController, onPartitionReassignment.
    """
    isr, staying = frozenset(observation.isr), frozenset(target(observation))
    if not staying <= isr:
        return 2
    if observation.leader not in staying:
        return 3
    return 5 if isr.isdisjoint(observation.removing) else 4


def phase(observation: ReassignmentRecord, cluster: ClusterRecord | None) -> str:
    """Return the phase of a partition that the controller lists as reassigned.

    ``U``: the brokers' metadata is older than the list, since its ISR or leader are not among the
    replicas. ``A``: a required replica is out of the ISR. After that ``completing`` in KRaft, whose
    record that adds the last replica to the ISR should also have completed it, and ``B`` with
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
