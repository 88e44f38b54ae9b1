"""What a KRaft controller makes of a partition that is reassigned, cancelled, or in sync.

Each change is one record, a reassignment that needs no copying is complete in the same record,
and the log is all there is: nothing is redone when another controller becomes active. Eligible
leader replicas and unclean elections are left out.
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
    """What cancelling leads to; ``unclean``: its only in-sync replica may lack records."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    unclean: bool


def reassigned(
    state: PartitionState, wanted: tuple[int, ...], alive: Collection[int], software: Release
) -> PartitionState:
    """Return the state after a request for other replicas, which count from the present ones.

    Present ones include those that an earlier request is still adding. Where nothing is new to
    be added or removed, what the earlier request listed stays, so that a broker may be both.
    ``alive``: the brokers that may lead. Source: Kafka's ReplicationControlManager,
    changePartitionReassignment.
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
    """Return the replicas and ISR that cancelling leads to (Kafka's PartitionReassignmentRevert).

    Where only added replicas are in sync, the first of the others would be, uncleanly.
    """
    replicas = reverted(state)
    isr = tuple(replica for replica in state.isr if replica not in state.adding)
    return Revert(replicas, isr or replicas[:1], not isr)


def cancelled(
    state: PartitionState, alive: Collection[int], software: Release
) -> PartitionState | None:
    """Return the state after a cancellation; None if it is refused.

    It is where nothing is in progress, or where no replica in sync would be left.
    """
    replicas, isr, unclean = revert(state)
    if unclean or not state.in_progress:
        return None
    back = replace(state, replicas=replicas, isr=isr, adding=(), removing=())
    return _written(state, back, alive, software)


def _written(
    before: PartitionState, asked: PartitionState, alive: Collection[int], software: Release
) -> PartitionState:
    """Complete, elect and count the leader epoch as Kafka's PartitionChangeBuilder does.

    The epoch rises when the leader changes or a replica goes (metadata.version from 3.6 on).
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
