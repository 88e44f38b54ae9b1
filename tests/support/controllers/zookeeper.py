"""The ZooKeeper controllers' reassignment: phases U, A and B, as the rows that are observable.

Source: Kafka 3.3's KafkaController, onPartitionReassignment, whose step names are used here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import NamedTuple

from caughtup.models.reassignments.controllers import reverted, target
from tests.support.controllers.partition_state import PartitionState


class Step(NamedTuple):
    """A step of the controller (``A2``, ``B3`` …), its row, and the state after it.

    The state is the durable one, in ZooKeeper. From B2 on, the controller no longer keeps added and
    removed replicas in memory.
    """

    name: str
    row: int
    state: PartitionState


def updated(state: PartitionState, wanted: tuple[int, ...]) -> PartitionState:
    """Return the state after phase U: a request for other replicas, or for the original ones.

    The request is relative to the original replicas (ORS). Brokers that an earlier request was
    adding and that are no longer requested are stopped at once. Source: ReplicaAssignment,
    reassignTo.
    """
    original = reverted(state)
    replicas = tuple(dict.fromkeys((*wanted, *original)))
    asked = replace(
        state,
        replicas=replicas,
        adding=tuple(replica for replica in replicas if replica not in original),
        removing=tuple(replica for replica in replicas if replica not in wanted),
    )
    for replica in state.replicas:
        if replica not in replicas:
            asked = _offline(asked, replica)
    return asked


def proceeded(state: PartitionState, alive: Collection[int]) -> Iterator[Step]:
    """Yield the controller's steps after phase U, a change of the ISR, or a broker's start.

    A new active controller repeats them for every reassignment in progress. The leader epoch rises
    at each pass through phase A, at B3, and at B4 for each removed replica that is still in the
    ISR. ``alive``: the brokers that may lead.
    """
    lasting = target(state)
    if not frozenset(lasting) <= frozenset(state.isr):
        yield Step("A2", 2, replace(state, leader_epoch=state.leader_epoch + 1))
        return
    yield Step("B2", 3, state)
    state = _led(state, lasting, alive)
    yield Step("B3", 4, state)
    for replica in state.removing:
        state = _offline(state, replica)
    yield Step("B4", 5, state)
    yield Step("B6", 6, replace(state, replicas=lasting, adding=(), removing=()))


def _led(state: PartitionState, lasting: tuple[int, ...], alive: Collection[int]) -> PartitionState:
    """Keep a live leader that remains a replica, or elect the first eligible replica (B3)."""
    leader = state.leader
    if leader not in lasting or leader not in alive:
        able = (replica for replica in lasting if replica in alive and replica in state.isr)
        leader = next(able, None)
        if leader is None:
            return state
    return replace(state, leader=leader, leader_epoch=state.leader_epoch + 1)


def _offline(state: PartitionState, replica: int) -> PartitionState:
    """Stop a replica: remove it from the ISR, unless it is the last member."""
    if replica not in state.isr:
        return state
    isr = tuple(one for one in state.isr if one != replica)
    leader = None if state.leader == replica else state.leader
    return replace(state, isr=isr or state.isr, leader=leader, leader_epoch=state.leader_epoch + 1)
