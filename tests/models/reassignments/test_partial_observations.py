"""Observations with holes: nothing is called stuck that isn't, and nothing makes an assessment fail."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from caughtup.models.reassignments.advice import advice
from caughtup.models.records.reassignments import (
    BrokerRecord,
    ClusterRecord,
    ReassignmentRecord,
    ThrottleRecord,
)
from caughtup.models.verdicts import ENDLESS, REASSIGNMENTS
from tests.support.reassignments.observations import any_observations
from tests.support.reassignments.one_reassignment import (
    CLUSTER,
    HEAD,
    PARTITION,
    an_observation,
    judged,
)
from tests.support.sizes import daily

BROKERS = st.integers(0, 6)
SOME = st.lists(BROKERS, max_size=5).map(tuple)
OFFSETS = st.dictionaries(BROKERS, st.integers(0, 2**62), max_size=6)

OBSERVATIONS = st.lists(
    any_observations(
        [PARTITION],
        BROKERS,
        offsets=OFFSETS,
        times=st.integers(0, 3_600_000),
        epochs=st.none() | st.integers(0, 9),
        sizes=OFFSETS,
        unanswered=SOME,
    ),
    min_size=1,
    max_size=12,
)
RATES = st.none() | st.integers(0, 2**63 - 1)
CLUSTERS = st.none() | st.builds(
    ClusterRecord,
    as_of_ms=st.integers(0, 3_600_000),
    brokers=st.none()
    | st.dictionaries(
        BROKERS,
        st.builds(
            BrokerRecord,
            fenced=st.none() | st.booleans(),
            leader_rate=RATES,
            follower_rate=RATES,
            usable_bytes=RATES,
            total_bytes=RATES,
            offline_directories=st.sampled_from([(), ("/data",)]),
        ),
        max_size=6,
    ),
    quorum_leader=st.none() | BROKERS,
    quorum_epoch=st.none() | BROKERS,
    software=st.none() | st.sampled_from([(3, 3), (3, 8), (4, 1), (4, 3), (5, 0)]),
    zookeeper=st.booleans(),
    throttles=st.dictionaries(
        st.just(PARTITION.topic),
        st.builds(ThrottleRecord, st.sampled_from(["", "*", "0:1"]), st.sampled_from(["*", "0:4"])),
    ),
)


@settings(print_blob=True, deadline=None, max_examples=daily(80, 400))
@given(
    seen=OBSERVATIONS,
    cluster=CLUSTERS,
    changed=st.none() | st.integers(0, 3_600_000),
    budget=st.none() | st.floats(0, 1e6),
    later=st.integers(0, 600_000),
)
def test_whatever_is_seen_there_is_a_verdict_that_can_be_written_down(
    seen: list[ReassignmentRecord],
    cluster: ClusterRecord | None,
    changed: int | None,
    budget: float | None,
    later: int,
) -> None:
    verdict, figures = judged(
        seen, cluster, quorum_changed_ms=changed, budget_seconds=budget, later_ms=later
    )
    assert verdict.verdict in REASSIGNMENTS.words
    json.dumps(verdict.evidence, allow_nan=False)
    if verdict.verdict in ENDLESS:
        assert verdict.cause
        assert verdict.advice
    if verdict.cause is not None:
        assert advice(verdict.cause, PARTITION, None, {})
    assert figures.age_seconds >= 0
    assert figures.idle_seconds >= 0


@st.composite
def full_of_holes(draw: st.DrawFn) -> list[ReassignmentRecord]:
    """Draw observations of a healthy copy, from each of which something may be missing."""
    pace = draw(st.integers(1_000, 40_000))
    seen = []
    for step in range(draw(st.integers(3, 40))):
        copied = pace * step
        if copied >= HEAD:
            break
        observation = an_observation(step, dict.fromkeys((4, 5), copied))
        lost = draw(st.frozensets(st.integers(1, 5), max_size=5))
        observation = replace(
            observation,
            log_ends={one: end for one, end in observation.log_ends.items() if one not in lost},
            sizes={} if draw(st.booleans()) else observation.sizes,
            unanswered=tuple(sorted(lost)),
        )
        if draw(st.integers(0, 4)) == 0:
            observation = replace(observation, isr=(), leader=None, leader_epoch=None)
        seen.append(observation)
    return seen


@settings(print_blob=True, deadline=None, max_examples=daily(80, 300))
@given(full_of_holes(), st.booleans())
def test_holes_make_no_healthy_copy_stuck(seen: list[ReassignmentRecord], known: bool) -> None:
    verdict, _ = judged(seen, CLUSTER if known else None)
    assert verdict.verdict not in ENDLESS, verdict
