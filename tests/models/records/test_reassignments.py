"""What a round saw reads back from its records as it was."""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.histories.trend import Eta
from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.tracking.observation import (
    BrokerObservation,
    ClusterObservation,
    PartitionObservation,
    TopicThrottle,
)
from caughtup.models.reassignments.watch import AssessedReassignment
from caughtup.models.records import cluster_observations, reassignments
from caughtup.models.records.cluster_observations import (
    CLUSTER_KEY,
    ClusterRecord,
    read_cluster_observation,
)
from caughtup.models.records.fields import LATEST_MS
from caughtup.models.records.reassignments import ReassignmentRecord, read_reassignment
from tests.models.wire.strategies import thorough, topics
from tests.support.reassignments.one_reassignment import an_observation, judged, track

NUMBERS = st.integers(0, 2**63 - 1)
MAYBE = st.none() | NUMBERS
TIMES = st.integers(0, LATEST_MS)
MAYBE_INT = st.none() | st.integers(0, 2**31 - 1)
MAYBE_EPOCH = st.none() | st.integers(-1, 2**31 - 1)
BROKERS = st.lists(st.integers(0, 2**31 - 1), max_size=4).map(tuple)
BY_BROKER = st.dictionaries(st.integers(0, 2**31 - 1), NUMBERS, max_size=4)
OBSERVATIONS = st.builds(
    PartitionObservation,
    st.builds(TopicPartition, topics, st.integers(0, 2**31 - 1)),
    BROKERS,
    BROKERS,
    BROKERS,
    BROKERS,
    MAYBE_INT,
    TIMES,
    MAYBE_EPOCH,
    BROKERS,
    BY_BROKER,
    BY_BROKER,
    BROKERS,
    BROKERS,
)
BROKER_LOOKS = st.builds(
    BrokerObservation,
    st.none() | st.booleans(),
    MAYBE,
    MAYBE,
    MAYBE,
    MAYBE,
    st.lists(st.text(max_size=9), max_size=2).map(tuple),
)
CLUSTER_LOOKS = st.builds(
    ClusterObservation,
    TIMES,
    st.none() | st.dictionaries(st.integers(0, 2**31 - 1), BROKER_LOOKS, max_size=3),
    MAYBE_INT,
    MAYBE_EPOCH,
    st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9)),
    st.booleans(),
    st.dictionaries(
        topics,
        st.builds(TopicThrottle, st.text(max_size=9), st.text(max_size=9)),
        max_size=3,
    ),
    st.lists(st.text(max_size=9), max_size=2).map(tuple),
)


@thorough
@given(observation=OBSERVATIONS, since_ms=st.none() | TIMES, original=st.none() | BROKERS)
def test_an_observation_at_a_partition(
    observation: PartitionObservation, since_ms: int | None, original: tuple[int, ...] | None
) -> None:
    written = ReassignmentRecord.from_observation(observation, since_ms, original)
    partition, read = read_reassignment(written.key, reassignments.FORMAT.encode(written))
    assert read is not None
    assert (read.to_observation(), read.since_ms, read.original) == (
        observation,
        since_ms,
        original,
    )
    assert read.topic_partition == observation.partition == partition
    assert read.key == str(observation.partition).encode() != CLUSTER_KEY
    assert not read.ended
    assert not read.unlisted


@thorough
@given(observation=CLUSTER_LOOKS)
def test_an_observation_at_the_cluster(observation: ClusterObservation) -> None:
    written = cluster_observations.FORMAT.encode(ClusterRecord.from_observation(observation))
    assert read_cluster_observation(written).to_observation() == observation


def test_what_could_not_be_had_is_absent() -> None:
    observation = ClusterObservation(7, brokers={1: BrokerObservation()})
    found = msgspec.json.decode(
        cluster_observations.FORMAT.encode(ClusterRecord.from_observation(observation))
    )
    assert found == {"schema": 2, "as_of_ms": 7, "brokers": {"1": {}}}


def test_a_record_from_before_is_still_read() -> None:
    old = b'{"schema":1,"topic":"a","partition":3,"as_of_ms":7,"replicas":[2,1],"adding":[2]}'
    _, read = read_reassignment(b"a-3", old)
    assert read is not None
    assert read.to_observation() == PartitionObservation(
        TopicPartition("a", 3), (2, 1), (2,), (), (), None, 7
    )
    assert read.since_ms is None


def assessed(*copies: int) -> AssessedReassignment:
    """Assess a reassignment whose second copy was so far at each observation."""
    seen = [an_observation(step, {5: end}, isr=(1, 2, 3, 4)) for step, end in enumerate(copies)]
    return AssessedReassignment(*judged(seen), track(seen))


def written(record: ReassignmentRecord) -> dict[str, object]:
    value = reassignments.FORMAT.encode(record)
    read = read_reassignment(record.key, value)[1]
    assert read == record
    found: dict[str, object] = msgspec.json.decode(value)
    return found


def test_a_record_has_what_was_worked_out_of_it() -> None:
    record = ReassignmentRecord.from_observation(an_observation(9, {5: 200_000}))
    before = written(record)
    moving = assessed(*(20_000 * step for step in range(10)))
    record.judge(moving)
    found = written(record)
    assert found["verdict"] == "moving"
    assert found["rate_bytes_per_second"] == moving.figures.rate_bytes
    assert moving.figures.eta is not None
    assert found["eta_seconds"] == moving.figures.eta.seconds > 0
    assert "never" not in found
    added = ("verdict", "cause", "rate_bytes_per_second", "eta_seconds")
    assert {name: of for name, of in found.items() if name not in added} == before


def test_what_never_ends_has_no_time_to_go() -> None:
    stalled = assessed(*[50_000] * 60)
    record = ReassignmentRecord.from_observation(an_observation(59, {5: 50_000}))
    record.judge(stalled)
    found = written(record)
    assert (found["verdict"], found["never"]) == ("stalled", True)
    assert found["cause"] == stalled.verdict.cause
    assert "eta_seconds" not in found


def test_before_the_first_assessment_nothing_is_added() -> None:
    record = ReassignmentRecord.from_observation(an_observation(0, {5: 0}))
    record.judge(None)
    assert "verdict" not in written(record)


@pytest.mark.parametrize("beyond", [math.inf, math.nan, 1e300, -1e300])
def test_what_is_written_is_never_refused(beyond: float) -> None:
    moving = assessed(*(20_000 * step for step in range(10)))
    figures = replace(moving.figures, rate_bytes=beyond, eta=Eta(beyond, beyond, beyond))
    record = ReassignmentRecord.from_observation(an_observation(9, {5: 200_000}))
    record.judge(moving._replace(figures=figures))
    assert "rate_bytes_per_second" not in written(record)
