"""What a round saw reads back from its records as it was."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.tracking.observation import (
    BrokerObservation,
    ClusterObservation,
    PartitionObservation,
    TopicThrottle,
)
from caughtup.models.records import cluster_observations, reassignments
from caughtup.models.records.cluster_observations import (
    CLUSTER_KEY,
    ClusterRecord,
    read_cluster_observation,
)
from caughtup.models.records.fields import LATEST_MS
from caughtup.models.records.reassignments import ReassignmentRecord, read_reassignment
from tests.models.wire.strategies import thorough, topics

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
