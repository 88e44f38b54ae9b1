"""What a round saw reads back from its records as it was."""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.histories.trend import Eta
from caughtup.models.reassignments import shown
from caughtup.models.records.reassignment_lines import Reassignment
from caughtup.models.records.reassignments import (
    CLUSTER_FORMAT,
    CLUSTER_KEY,
    FORMAT,
    BrokerRecord,
    ClusterRecord,
    ReassignmentRecord,
    ThrottleRecord,
    read_reassignment,
)
from caughtup.models.wire.bounds import LATEST_MS
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
    ReassignmentRecord,
    schema=st.just(2),
    topic=topics,
    partition=st.integers(0, 2**31 - 1),
    as_of_ms=TIMES,
    **dict.fromkeys(("replicas", "adding", "removing", "isr"), BROKERS),
    **dict.fromkeys(("offline", "not_hosted", "unanswered"), BROKERS),
    leader=MAYBE_INT,
    leader_epoch=MAYBE_EPOCH,
    log_ends=BY_BROKER,
    sizes=BY_BROKER,
    since_ms=st.none() | TIMES,
    original=st.none() | BROKERS,
)
BROKER_LOOKS = st.builds(
    BrokerRecord,
    st.none() | st.booleans(),
    MAYBE,
    MAYBE,
    MAYBE,
    MAYBE,
    st.lists(st.text(max_size=9), max_size=2).map(tuple),
)
CLUSTER_LOOKS = st.builds(
    ClusterRecord,
    st.just(2),
    TIMES,
    st.none() | st.dictionaries(st.integers(0, 2**31 - 1), BROKER_LOOKS, max_size=3),
    MAYBE_INT,
    MAYBE_EPOCH,
    st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9)),
    st.booleans(),
    st.dictionaries(
        topics,
        st.builds(ThrottleRecord, st.text(max_size=9), st.text(max_size=9)),
        max_size=3,
    ),
    st.lists(st.text(max_size=9), max_size=2).map(tuple),
)


@thorough
@given(written=OBSERVATIONS)
def test_an_observation_at_a_partition(written: ReassignmentRecord) -> None:
    partition, read = read_reassignment(written.key, FORMAT.encode(written))
    assert read == written
    assert written.topic_partition == partition
    assert written.key == str(partition).encode() != CLUSTER_KEY


@thorough
@given(written=CLUSTER_LOOKS)
def test_an_observation_at_the_cluster(written: ClusterRecord) -> None:
    assert CLUSTER_FORMAT.decode(CLUSTER_FORMAT.encode(written)) == written


def test_what_could_not_be_had_is_absent() -> None:
    observation = ClusterRecord(2, 7, brokers={1: BrokerRecord()})
    found = msgspec.json.decode(CLUSTER_FORMAT.encode(observation))
    assert found == {"schema": 2, "as_of_ms": 7, "brokers": {"1": {}}}


def test_a_record_from_before_is_still_read() -> None:
    old = b'{"schema":1,"topic":"a","partition":3,"as_of_ms":7,"replicas":[2,1],"adding":[2]}'
    _, read = read_reassignment(b"a-3", old)
    assert read is not None
    assert read == ReassignmentRecord(1, "a", 3, 7, (2, 1), (2,))
    assert read.since_ms is None


SEEN = tuple(20_000 * step for step in range(10))


def assessed(*copies: int, **beyond: object) -> Reassignment:
    """Assess a reassignment whose second copy was so far at each observation."""
    seen = [an_observation(step, {5: end}, isr=(1, 2, 3, 4)) for step, end in enumerate(copies)]
    verdict, figures = judged(seen)
    row = shown.observed(track(seen), None, seen[-1].as_of_ms)
    return shown.judged(row, verdict, replace(figures, **beyond))  # type: ignore[arg-type]


def written(record: ReassignmentRecord, row: Reassignment | None = None) -> dict[str, object]:
    record = shown.recorded(record, row)
    value = FORMAT.encode(record)
    read = read_reassignment(record.key, value)[1]
    assert read == record
    found: dict[str, object] = msgspec.json.decode(value)
    return found


def test_a_record_has_what_was_worked_out_of_it() -> None:
    record = an_observation(9, {5: 200_000})
    moving = assessed(*SEEN)
    found = written(record, moving)
    assert found["verdict"] == "moving"
    assert found["rate_bytes_per_second"] == moving.rate_bytes_per_second
    assert moving.eta_seconds is not None
    assert found["eta_seconds"] == moving.eta_seconds > 0
    assert "never" not in found
    added = ("verdict", "cause", "rate_bytes_per_second", "eta_seconds")
    assert {name: of for name, of in found.items() if name not in added} == written(record)


def test_what_never_ends_has_no_time_to_go() -> None:
    stalled = assessed(*[50_000] * 60)
    found = written(an_observation(59, {5: 50_000}), stalled)
    assert (found["verdict"], found["never"]) == ("stalled", True)
    assert found["cause"] == stalled.cause
    assert "eta_seconds" not in found


def test_before_the_first_assessment_nothing_is_added() -> None:
    record = shown.recorded(an_observation(0, {5: 0}), assessed(*SEEN))
    assert "verdict" not in written(record)


@pytest.mark.parametrize("beyond", [math.inf, math.nan, 1e300, -1e300])
def test_what_is_written_is_never_refused(beyond: float) -> None:
    row = assessed(*SEEN, rate_bytes=beyond, eta=Eta(beyond, beyond, beyond))
    assert "rate_bytes_per_second" not in written(an_observation(9, {5: 200_000}), row)
