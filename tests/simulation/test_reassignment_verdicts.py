"""Simulated reassignments: nothing healthy is called stuck, and everything stuck is named in time."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from caughtup.models.verdicts import ENDLESS
from tests.simulation.brokers import Reassignment
from tests.simulation.healthy_reassignments import churn
from tests.simulation.observer import Observer
from tests.simulation.replication import Cluster
from tests.simulation.stuck_reassignments import STUCK, stuck_reassignment
from tests.support.sizes import daily

MINUTES = 30


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(daily(1, 10)))
def test_half_an_hour_of_healthy_churn_is_never_called_stuck(seed: int) -> None:
    """Twenty half hours with four to five reassigned partitions: 2,700 partition-minutes."""
    print(f"seed {seed}")
    told: Counter[str] = Counter()
    for judged in churn(random.Random(seed), MINUTES):
        told[judged.verdict.verdict] += 1
        assert judged.verdict.verdict not in ENDLESS, judged
    assert told["moving"] > 100


#: Under a throttle that writes use up it makes no difference what a broker could copy.
THROTTLED = sorted(STUCK.keys() - {"writes use the throttle up", "more is written than copied"})


@pytest.mark.parametrize(
    ("kind", "throttle"),
    [(kind, None) for kind in sorted(STUCK)] + [(kind, 5_000_000) for kind in THROTTLED],
)
@pytest.mark.parametrize("seed", range(daily(2, 6)))
def test_a_stuck_reassignment_is_named_within_two_minutes(
    kind: str, throttle: int | None, seed: int
) -> None:
    """Two minutes count from when nothing but the trouble is left, three if it diverges."""
    print(f"seed {seed}")
    stuck = STUCK[kind]
    chance = random.Random(f"{kind} {seed}")
    cluster = Cluster(chance, 6, stuck.software)
    if throttle is not None:
        cluster.throttle(throttle)
    size = chance.uniform(1e8, 3e8) if stuck.at_the_end else chance.uniform(2e10, 4e10)
    writes = chance.choice((0.0, chance.uniform(1e3, 3e5)))
    reassignment = stuck_reassignment(
        cluster, chance, size=size, writes=writes, throttled=throttle is not None
    )
    observer = Observer(cluster, chance)
    healthy_ms = 0 if stuck.at_the_end else chance.choice((0, chance.randint(0, 120_000)))
    for judged in observer.run(healthy_ms):
        assert judged.verdict.verdict not in ENDLESS, judged
    stuck.happens(cluster, reassignment)
    since_ms = cluster.now_ms
    for judged in observer.run(healthy_ms + 3_600_000):
        if judged.verdict.verdict in ENDLESS:
            assert judged.verdict.verdict == stuck.verdict, judged
            assert judged.verdict.cause == stuck.cause, judged
            assert judged.verdict.advice
            assert judged.now_ms - since_ms <= stuck.minutes * 60_000, judged
            return
        if stuck.at_the_end and not copied(reassignment):
            since_ms = cluster.now_ms
    pytest.fail("never named")


def copied(reassignment: Reassignment) -> bool:
    """Say whether all new replicas have what the leader has."""
    head = reassignment.ends[reassignment.leader or reassignment.old[0]]
    return all(reassignment.ends[replica] >= head - 1 for replica in reassignment.adding)
