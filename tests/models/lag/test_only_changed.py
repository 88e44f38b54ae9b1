"""Partitions with lag that didn't change aren't assessed again, and fare as if they were."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.commits.applying import made_commits
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.state.cluster import ClusterState
from tests.models.lag.test_at_rest import anew, assert_alike, round_of
from tests.support.groups.records import START_MS
from tests.support.sizes import daily
from tests.support.states import cluster_state

GROUP, TOPIC = "readers", "clicks"
PARTITIONS = range(4)


class Reading:
    """A group that reads four partitions, each with its own pace."""

    def __init__(self) -> None:
        self.state: ClusterState = cluster_state()
        self.ends = dict.fromkeys(PARTITIONS, 1_000)
        self.committed = dict.fromkeys(PARTITIONS, 500)
        self.now_ms = START_MS

    def sample(self, number: int, grown: int) -> None:
        self.ends[number] += grown
        end = self.ends[number]
        partition = TopicPartition(TOPIC, number)
        self.state.apply_ends(partition, EndOffsets(0, end, end, self.now_ms), None, self.now_ms)

    def commit(self, number: int, moved: int) -> None:
        self.committed[number] = max(0, self.committed[number] + moved)
        made = {TopicPartition(TOPIC, number): self.committed[number]}
        self.state.apply_commits(made_commits(GROUP, made, self.now_ms), self.now_ms)


numbers = st.sampled_from(PARTITIONS)
events = st.one_of(
    st.tuples(st.just("sample"), numbers, st.sampled_from([0, 0, 0, 1, 7, 300])),
    st.tuples(st.just("commit"), numbers, st.sampled_from([0, 1, 5, 40, 400, 2_000, -300])),
)
times = st.sampled_from([0, 1, 500, 1_000, 2_000, 5_000, 20_000, 61_000, 900_000, 8_000_000])


@settings(print_blob=True, deadline=None, max_examples=daily(60, 150))
@given(st.lists(st.tuples(st.lists(events, max_size=6), times), max_size=25))
def test_who_did_not_change_fares_as_if_it_were_assessed_again(
    rounds: list[tuple[list[tuple[str, int, int]], int]],
) -> None:
    reading = Reading()
    for happened, passed_ms in rounds:
        for kind, number, amount in happened:
            getattr(reading, kind)(number, amount)
            reading.now_ms += 100
        reading.now_ms += passed_ms
        round_of(reading.state, reading.now_ms)
        assert_alike(reading.state, anew(reading.state, reading.now_ms, None))


@pytest.mark.parametrize(("event", "steps"), [("commit", 2), ("sample", 2), (None, 0)])
def test_of_many_partitions_only_the_one_that_changed_is_assessed_again(
    event: str | None, steps: int
) -> None:
    reading = Reading()
    for _ in range(5):
        for number in PARTITIONS:
            reading.sample(number, 0)
            reading.commit(number, 10)
        reading.now_ms += 10_000_000  # ages are now said in hours
    for number in PARTITIONS:
        reading.sample(number, 0)
    round_of(reading.state, reading.now_ms)
    if event is not None:
        getattr(reading, event)(0, 1)
    assert round_of(reading.state, reading.now_ms + 1) == steps
