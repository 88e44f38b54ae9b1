"""The series of groups' partitions from columns against those made one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caughtup.agents.process.health import Health
from caughtup.agents.web.metrics import exposition as metrics
from caughtup.agents.web.metrics import group_labels
from caughtup.agents.web.metrics.group_labels import GroupLabels
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.partition_lag import CLOCK_ALLOWANCE_MS
from caughtup.models.offsets import LONG_MAX, EndOffsets
from caughtup.models.state.cluster import ClusterState
from tests.support.plain_scrape import plain_lag_sums, plain_lines
from tests.support.states import assess
from tests.support.streams import (
    START_MS,
    cluster_state,
    commit,
    consumer_generation,
    group_tombstone,
    read,
)

Change = Callable[[ClusterState], object]

#: A group's partitions are more than a slice, and so are those of several groups.
SLICE = 5
groups = st.sampled_from(["a", 'b"%\n\r', "c"])
#: Some partitions lie in a block, some far apart.
partitions = st.builds(
    TopicPartition,
    st.sampled_from(["orders", "clicks%d"]),
    st.sampled_from([0, 1, 2, 3, 4, 7, 30, 999_999_999]),
)
offsets = st.integers(0, 20) | st.integers(LONG_MAX - 9, LONG_MAX)
times = st.integers(0, 3).map(lambda ms: START_MS + ms * CLOCK_ALLOWANCE_MS // 2)


@st.composite
def end_offsets(draw: st.DrawFn) -> EndOffsets:
    start, stable, end = sorted(draw(st.tuples(offsets, offsets, offsets)))
    readable = draw(st.none() | st.integers(start, stable))
    return EndOffsets(start, stable, end, draw(times), readable)


def commits_are(group: str, made: dict[TopicPartition, tuple[int | None, int]]) -> Change:
    def change(state: ClusterState) -> None:
        read(
            state,
            *(
                commit(number, offset, topic=topic, group=group, at_ms=at_ms)
                for (topic, number), (offset, at_ms) in made.items()
            ),
        )

    return change


def ends_are(seen: dict[TopicPartition, EndOffsets | None]) -> Change:
    def change(state: ClusterState) -> None:
        for partition, ends in seen.items():
            state.apply_ends(partition, ends)

    return change


def owned(group: str, owners: list[TopicPartition]) -> Change:
    return lambda state: read(state, consumer_generation(1, {"c": tuple(owners)}, group=group))


changes = st.lists(
    st.one_of(
        st.builds(
            commits_are,
            groups,
            st.dictionaries(partitions, st.tuples(st.none() | offsets, times), max_size=9),
        ),
        st.builds(ends_are, st.dictionaries(partitions, st.none() | end_offsets(), max_size=9)),
        st.builds(owned, groups, st.lists(partitions, unique=True, max_size=6)),
        st.builds(lambda group: lambda state: read(state, group_tombstone(group)), groups),
        st.just(lambda state: assess(state, START_MS + 60_000)),
    ),
    max_size=8,
)


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_labels, "SLICE", SLICE)
    monkeypatch.setattr(metrics, "now_ms", lambda: START_MS)


def pieces(state: ClusterState, labels: GroupLabels) -> Iterator[bytes]:
    return metrics.exposition(state, Health(ready=True), labels, compatible=True)


def of_partitions(text: bytes) -> list[str]:
    """The lines of groups' partitions."""
    lines = text.decode().split("\n")
    found = [line for line in lines if ",partition=" in line and "group=" in line]
    return [line for line in found if not line.startswith("#")]


same_fixture = settings(
    print_blob=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@same_fixture
@given(changes)
def test_every_scrape_has_the_lines_that_are_made_one_by_one(made: list[Change]) -> None:
    state, labels = cluster_state(), GroupLabels()
    for change in made:
        change(state)
        text = b"".join(pieces(state, labels))
        assert of_partitions(text) == plain_lines(state)
        sums = [
            line
            for line in text.decode().split("\n")
            if line.startswith("kafka_") and "sum{" in line
        ]
        assert sums == plain_lag_sums(state)
        assert not state.faults.totals


@same_fixture
@given(changes, changes)
def test_no_series_comes_twice_whatever_changes_between_two_pieces(
    before: list[Change], meanwhile: list[Change]
) -> None:
    state, labels = cluster_state(), GroupLabels()
    for change in before:
        change(state)
    list(pieces(state, labels))
    waiting, text = iter(meanwhile * 20), b""
    for piece in pieces(state, labels):
        text += piece
        next(waiting, lambda _: None)(state)
    series = [line.rpartition(" ")[0] for line in of_partitions(text)]
    assert len(set(series)) == len(series)
    assert of_partitions(b"".join(pieces(state, labels))) == plain_lines(state)
    assert not state.faults.totals
