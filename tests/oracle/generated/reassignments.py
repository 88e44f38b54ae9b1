"""Partitions made from a seed, and what a KRaft controller is asked of them, one after another."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from caughtup.models.reassignments.controllers import reverted
from tests.support.controllers.kraft import Release, cancelled, isr_changed, reassigned, revert
from tests.support.controllers.partition_state import PartitionState

BROKERS = range(8)
STEPS = 8


class Asked(NamedTuple):
    """Something asked of a controller: ``reassign``, ``isr``, ``cancel`` or ``revert``."""

    what: str
    state: PartitionState
    brokers: tuple[int, ...]
    alive: tuple[int, ...]

    def line(self) -> str:
        """Write it as ControllerOracle reads it."""
        state = self.state
        fields = (state.replicas, state.isr, state.leader, state.leader_epoch)
        lists = (state.adding, state.removing, self.brokers, self.alive)
        return "|".join((self.what, *map(written, (*fields, *lists))))

    def answer(self, software: Release) -> str:
        """Return the answer of ControllerOracle, by our own rules."""
        after = self.after(software)
        if self.what == "revert" and after is not None:
            replicas, isr, unclean = revert(self.state)
            return "|".join((written(replicas), written(isr), str(unclean).lower()))
        if after is None:
            return "refused"
        fields = (after.replicas, after.isr, after.leader, after.leader_epoch)
        return "|".join(map(written, (*fields, after.adding, after.removing)))

    def after(self, software: Release) -> PartitionState | None:
        """Return the state after it; None if it is refused."""
        if self.what == "reassign":
            return reassigned(self.state, self.brokers, self.alive, software)
        if self.what == "isr":
            return isr_changed(self.state, self.brokers, self.alive, software)
        if self.what == "revert":
            return self.state if self.state.in_progress else None
        return cancelled(self.state, self.alive, software)


def written(value: tuple[int, ...] | int | None) -> str:
    """Write brokers with commas, and no leader as Kafka does."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(-1 if value is None else value)


def generate_walk(seed: int, software: Release) -> Iterator[Asked]:
    """Make a partition and ask a few things of it; each of the state that the last one left.

    Every third partition begins in a state that no request leads to.
    """
    rng = random.Random(seed)
    state = _any_state(rng) if seed % 3 == 0 else _settled(rng)
    for _ in range(STEPS):
        alive = tuple(sorted(rng.sample(BROKERS, rng.choice([8, 8, 8, 7, 5, 2]))))
        what = rng.choice(["reassign", "reassign", "isr", "isr", "isr", "cancel"])
        brokers: tuple[int, ...] = ()
        if what == "reassign":
            brokers = _wanted(rng, state)
        elif what == "isr":
            brokers = _isr(rng, state)
        elif not reverted(state):
            continue
        if reverted(state):
            yield Asked("revert", state, (), alive)
        asked = Asked(what, state, brokers, alive)
        yield asked
        state = asked.after(software) or state


def _settled(rng: random.Random) -> PartitionState:
    replicas = tuple(rng.sample(BROKERS, rng.randint(1, 4)))
    isr = tuple(rng.sample(replicas, rng.randint(1, len(replicas))))
    return PartitionState(replicas, isr, rng.choice((*isr, None)), rng.randint(0, 20))


def _any_state(rng: random.Random) -> PartitionState:
    state = _settled(rng)
    adding = sorted(rng.sample(BROKERS, rng.randint(0, 3)))
    removing = sorted(rng.sample(BROKERS, rng.randint(0, 3)))
    return PartitionState(
        state.replicas, state.isr, state.leader, 0, tuple(adding), tuple(removing)
    )


def _wanted(rng: random.Random, state: PartitionState) -> tuple[int, ...]:
    """Draw other replicas, mostly with some of the present ones, or only another order."""
    others = [broker for broker in BROKERS if broker not in state.replicas]
    kept = rng.sample(state.replicas, rng.randint(0 if others else 1, len(state.replicas)))
    new = rng.sample(others, rng.randint(0 if kept else 1, min(3, len(others))))
    wanted = [*kept, *new]
    rng.shuffle(wanted)
    return tuple(wanted)


def _isr(rng: random.Random, state: PartitionState) -> tuple[int, ...]:
    """Report what the leader would: mostly a replica more, or any part of the replicas."""
    missing = [replica for replica in state.replicas if replica not in state.isr]
    if missing and rng.random() < 0.7:
        return (*state.isr, *rng.sample(missing, rng.choice([1, len(missing)])))
    return tuple(rng.sample(state.replicas, rng.randint(1, len(state.replicas))))
