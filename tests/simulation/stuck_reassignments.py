"""Reassignments that will not end unless somebody does something: one way of getting stuck each."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from caughtup.models.ids import TopicPartition
from tests.simulation.brokers import Reassignment
from tests.simulation.replication import Cluster


class Stuck(NamedTuple):
    """A way to get stuck: what happens, and by which verdict and cause it is to be named.

    ``at_the_end``: it shows only when everything is copied. ``minutes``: within which it is named.
    """

    happens: Callable[[Cluster, Reassignment], None]
    verdict: str
    cause: str
    software: tuple[int, int] = (4, 3)
    at_the_end: bool = False
    minutes: float = 2.0


def stuck_reassignment(
    cluster: Cluster, chance: random.Random, *, size: float, writes: float, throttled: bool = False
) -> Reassignment:
    """Reassign a partition from brokers 1, 2, 3 to 2, 4, 5, of six."""
    reassignment = Reassignment(
        TopicPartition("events", 0),
        (1, 2, 3),
        (2, 4, 5),
        size,
        writes,
        throttled,
        cluster.now_ms,
        chance.randint(0, 10**9),
    )
    cluster.reassignments.append(reassignment)
    return reassignment


def _down(cluster: Cluster, reassignment: Reassignment) -> None:
    cluster.stop(5)


def _fenced(cluster: Cluster, reassignment: Reassignment) -> None:
    cluster.brokers[5].fenced = True


def _flapping(cluster: Cluster, reassignment: Reassignment) -> None:
    reassignment.loses_copy_every_ms[5] = 20_000


def _stopped(cluster: Cluster, reassignment: Reassignment) -> None:
    reassignment.stopped.add(5)


def _full(cluster: Cluster, reassignment: Reassignment) -> None:
    cluster.brokers[5].disk_full = True


def _never_joins(cluster: Cluster, reassignment: Reassignment) -> None:
    reassignment.never_joins.add(5)


def _retained_down(cluster: Cluster, reassignment: Reassignment) -> None:
    cluster.stop(2)


def _never_completes(cluster: Cluster, reassignment: Reassignment) -> None:
    reassignment.never_completes = True


def _no_source(cluster: Cluster, reassignment: Reassignment) -> None:
    for broker in reassignment.old:
        cluster.stop(broker)


def _starved(cluster: Cluster, reassignment: Reassignment) -> None:
    reassignment.throttled, reassignment.writes = True, 900_000.0
    cluster.throttle(200_000)


def _outrun(cluster: Cluster, reassignment: Reassignment) -> None:
    reassignment.writes = 1.3 * cluster.brokers[5].pace


STUCK: dict[str, Stuck] = {
    "its destination dies": Stuck(_down, "dead target", "destination-broker-down"),
    "its destination is fenced": Stuck(_fenced, "dead target", "destination-broker-fenced"),
    "its copy starts over again and again": Stuck(_flapping, "stalled", "restart-loop"),
    "a fetcher stops": Stuck(_stopped, "stalled", "copy-stopped"),
    "a disk is full": Stuck(_full, "stalled", "disk-full"),
    "a replica never joins the ISR": Stuck(
        _never_joins, "blocked", "cannot-join-isr", at_the_end=True
    ),
    "a replica that stays is down": Stuck(
        _retained_down, "blocked", "retained-replica-down", (4, 1), at_the_end=True
    ),
    "the controller doesn't complete it": Stuck(
        _never_completes, "stalled", "controller-slow", at_the_end=True
    ),
    "all replicas in sync are down": Stuck(_no_source, "no source", "leader-missing"),
    "writes use the throttle up": Stuck(_starved, "throttled out", "throttle-starved"),
    "more is written than copied": Stuck(_outrun, "diverging", "leader-outruns-copy", minutes=3.0),
}
