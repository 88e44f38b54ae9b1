"""Random changes of a cluster's state: commits, log ends, members, assessments."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from caughtup.models.ids import TopicPartition
from caughtup.models.lag.partition_lag import CLOCK_ALLOWANCE_MS
from caughtup.models.offsets import LONG_MAX, EndOffsets
from caughtup.models.state.cluster import ClusterState
from tests.support.groups.records import START_MS, commit, consumer_generation, group_tombstone
from tests.support.states import assess, read

Change = Callable[[ClusterState], object]

groups = st.sampled_from(["a", 'b"%\n\r', "c"])
#: Partition numbers, some of them contiguous and some sparse.
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
