"""Reassignments that end by themselves, under load, with brokers that restart."""

from __future__ import annotations

import random
from collections.abc import Iterator

from caughtup.models.ids import TopicPartition
from tests.simulation.brokers import Reassignment
from tests.simulation.observer import Judged, Observer
from tests.simulation.replication import Cluster

#: Bytes a second of the throttles that reassignments run under, None for none.
THROTTLES = (None, None, 1_000_000, 3_000_000, 10_000_000)
RELEASES = ((3, 7), (4, 1), (4, 3))
MOST_AT_ONCE = 6


def churn(chance: random.Random, minutes: int) -> Iterator[Judged]:
    """Reassign random partitions of six brokers for some minutes, and judge them all the while.

    Now and then the controllers change, or a broker is away for up to 40 s and loses up to a
    megabyte of its copies.
    """
    cluster = Cluster(chance, 6, chance.choice(RELEASES))
    rate = chance.choice(THROTTLES)
    if rate is not None:
        cluster.throttle(rate)
    for _ in range(chance.randint(1, 5)):
        _reassign(cluster, chance, rate)
    returns: dict[int, int] = {}
    for judged in Observer(cluster, chance).run(minutes * 60_000):
        yield judged
        if chance.random() < 0.003:
            cluster.fail_over()
        if chance.random() < 0.003 and not returns:
            broker = chance.randint(1, 6)
            cluster.stop(broker)
            returns[broker] = cluster.now_ms + chance.randint(5_000, 40_000)
        for broker, at_ms in list(returns.items()):
            if cluster.now_ms >= at_ms:
                cluster.start(broker, lost=chance.choice((0, 1e6)))
                del returns[broker]
        if len(cluster.ongoing) < MOST_AT_ONCE and (
            chance.random() < 0.02 or len(cluster.ongoing) < 2
        ):
            _reassign(cluster, chance, rate)


def lone_reassignment(
    chance: random.Random, throttle: int | None, copies_of_it: int = 2
) -> tuple[Cluster, Reassignment]:
    """Reassign a partition, for two to fifteen minutes, with writes of up to a third of the pace."""
    cluster = Cluster(chance, 6, (4, 3))
    if throttle is not None:
        cluster.throttle(throttle)
    slowest = min(cluster.brokers[broker].pace for broker in (4, 5))
    pace = slowest if throttle is None else min(slowest, throttle / copies_of_it)
    reassignment = Reassignment(
        TopicPartition("events", 0),
        (1, 2, 3),
        (2, 4, 5),
        pace * chance.uniform(120, 900),
        chance.choice((0.0, pace * chance.uniform(0, 0.3))),
        throttle is not None,
        0,
        chance.randint(0, 10**9),
    )
    cluster.reassignments.append(reassignment)
    return cluster, reassignment


def _reassign(cluster: Cluster, chance: random.Random, rate: int | None) -> None:
    brokers = chance.sample(sorted(cluster.brokers), len(cluster.brokers))
    factor = chance.choice((1, 2, 3))
    stays = chance.randint(0, factor - 1)
    writes = chance.uniform(1e3, 2e5 if rate is None else rate / 60)
    cluster.reassignments.append(
        Reassignment(
            TopicPartition(f"topic-{len(cluster.reassignments)}", 0),
            tuple(brokers[:factor]),
            (*brokers[:stays], *brokers[factor : 2 * factor - stays]),
            chance.uniform(2e7, 2e9),
            chance.choice((0.0, writes, writes)),
            rate is not None,
            cluster.now_ms,
            chance.randint(0, 10**9),
        )
    )
