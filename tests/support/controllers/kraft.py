"""A KRaft controller's changes of a reassigned partition's state.

Each change is one record. A reassignment that needs no copying completes in the record that starts
it, and a new active controller repeats nothing. Eligible leader replicas and unclean elections are
left out.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from caughtup.models.reassignments.controllers import (
    in_target_isr,
    required_isr_in_kraft,
    reverted,
    target,
)
from tests.support.controllers.partition_state import PartitionState

Release = tuple[int, int] | None


class Revert(NamedTuple):
    """The result of a cancellation; ``unclean``: its only in-sync replica may lack records."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    unclean: bool


def reassigned(
    state: PartitionState, wanted: tuple[int, ...], alive: Collection[int], software: Release
) -> PartitionState:
    """Return the state after a request for other replicas, relative to the present ones.

    Present replicas include those that an earlier request is still adding. If nothing new is added
    or removed, the earlier request's lists stay, so that a broker may be in both. ``alive``: the
    brokers that may lead. Source: Kafka's ReplicationControlManager, changePartitionReassignment.
    """
    removing = tuple(sorted(set(state.replicas) - set(wanted)))
    adding = tuple(sorted(set(wanted) - set(state.replicas)))
    asked = replace(
        state,
        replicas=(*wanted, *removing),
        adding=adding or state.adding,
        removing=removing or state.removing,
    )
    return _written(state, asked, alive, software)


def isr_changed(
    state: PartitionState, isr: tuple[int, ...], alive: Collection[int], software: Release
) -> PartitionState:
    """Return the state after the leader reported another ISR (AlterPartition)."""
    return _written(state, replace(state, isr=isr), alive, software)


def revert(state: PartitionState) -> Revert:
    """Return the replicas and ISR after a cancellation (Kafka's PartitionReassignmentRevert).

    If only added replicas are in sync, the ISR is the first of the others, which is unclean.
    """
    replicas = reverted(state)
    isr = tuple(replica for replica in state.isr if replica not in state.adding)
    return Revert(replicas, isr or replicas[:1], not isr)


def cancelled(
    state: PartitionState, alive: Collection[int], software: Release
) -> PartitionState | None:
    """Return the state after a cancellation; None if it is refused.

    It is refused if no reassignment is in progress, or no in-sync replica would remain.
    """
    replicas, isr, unclean = revert(state)
    if unclean or not state.in_progress:
        return None
    back = replace(state, replicas=replicas, isr=isr, adding=(), removing=())
    return _written(state, back, alive, software)


def _written(
    before: PartitionState, asked: PartitionState, alive: Collection[int], software: Release
) -> PartitionState:
    """Complete, elect a leader and update the leader epoch as Kafka's PartitionChangeBuilder does.

    The epoch rises when the leader changes or a replica is removed (metadata.version from 3.6 on).
    """
    after = _completed(asked, software)
    valid = [replica for replica in after.isr if replica in alive]
    leader = before.leader
    if leader not in valid:
        leader = next((replica for replica in after.replicas if replica in valid), None)
    gone = set(before.replicas) - set(after.replicas)
    bumped = leader != before.leader or bool(gone)
    return replace(after, leader=leader, leader_epoch=before.leader_epoch + bumped)


def _completed(asked: PartitionState, software: Release) -> PartitionState:
    staying = in_target_isr(asked)
    lasting = target(asked)
    done = asked.in_progress and lasting and (staying or not asked.removing)
    if not done or not required_isr_in_kraft(asked, software) <= staying:
        return asked
    isr = tuple(replica for replica in asked.isr if replica in staying)
    return replace(asked, replicas=lasting, isr=isr, adding=(), removing=())
