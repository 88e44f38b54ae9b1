"""Labels of groups' partitions are kept from scrape to scrape, and never for too long."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from caughtup.agents.web.metrics.group_labels import SLICE, GroupLabels, Slice
from caughtup.agents.web.metrics.group_lines import fill
from caughtup.models.ids import NUMBER_MAX, TopicPartition
from caughtup.models.polls.commit_columns import NO_OFFSET
from caughtup.models.state.cluster import ClusterState
from tests.support.groups.records import commit, consumer_generation, group_tombstone
from tests.support.states import cluster_state, read

GROUP = "readers"
Sample = tuple[str, str, str, float]

#: Names with what any of the syntaxes they pass through could take for its own.
names = st.text(st.one_of(st.sampled_from('%"\\\n{}\r\0ÿþ=, d'), st.characters(codec="utf-8")))


def slices(state: ClusterState, labels: GroupLabels, *groups: str) -> list[Slice]:
    return list(labels.slices(state, groups or [GROUP], lambda _: nullcontext()))


def samples(state: ClusterState, labels: GroupLabels, group: str = GROUP) -> list[Sample]:
    """Write the committed offsets of a group, and read them as Prometheus does."""
    text = b"".join(
        fill(part.lines, b"m{", b"%d", part.offset, part.offset != NO_OFFSET)
        for part in slices(state, labels, group)
    )
    return [
        (s.labels["group"], s.labels["topic"], s.labels["partition"], s.value)
        for family in text_string_to_metric_families(text.decode())
        for s in family.samples
    ]


@given(
    group=names.filter(bool),
    offsets=st.dictionaries(
        st.tuples(names.filter(bool), st.integers(0, NUMBER_MAX)),
        st.one_of(st.none(), st.integers(0, 2**63 - 1)),
        max_size=8,
    ),
)
def test_what_is_written_is_what_prometheus_reads(
    group: str, offsets: dict[tuple[str, int], int | None]
) -> None:
    state = cluster_state()
    owned = tuple(TopicPartition(*p) for p, offset in offsets.items() if offset is None)
    read(
        state,
        consumer_generation(1, {"c": owned}, group=group),
        *(
            commit(number, offset, topic=topic, group=group)
            for (topic, number), offset in offsets.items()
            if offset is not None
        ),
    )
    expected = [
        (group, topic, str(number), offset)
        for (topic, number), offset in offsets.items()
        if offset is not None
    ]
    assert sorted(samples(state, GroupLabels(), group)) == sorted(expected)


def test_a_group_that_commits_elsewhere_has_other_lines_at_the_next_scrape() -> None:
    state, labels = cluster_state(), GroupLabels()
    read(state, commit(0, 5, topic="a", group=GROUP), commit(1, 6, topic="a", group=GROUP))
    assert samples(state, labels) == [(GROUP, "a", "0", 5), (GROUP, "a", "1", 6)]
    read(state, commit(0, 7, topic="a", group=GROUP))
    assert samples(state, labels) == [(GROUP, "a", "0", 7), (GROUP, "a", "1", 6)]
    # As many partitions as before, but others.
    read(state, commit(0, None, topic="a", group=GROUP), commit(0, 8, topic="b", group=GROUP))
    assert samples(state, labels) == [(GROUP, "a", "1", 6), (GROUP, "b", "0", 8)]


def test_partitions_without_a_commit_come_and_go_with_their_owners() -> None:
    state, labels = cluster_state(), GroupLabels()

    def partitions() -> list[int]:
        found = [of for part in slices(state, labels) for _, of in part.groups]
        return [one.partition for some in found for one in some]

    read(state, commit(0, 5, topic="a", group=GROUP, at_ms=1))
    assert partitions() == [0]
    owned = tuple(TopicPartition("a", number) for number in (0, 1))
    read(state, consumer_generation(1, {"c": owned}, group=GROUP))
    assert partitions() == [0, 1]
    (part,) = slices(state, labels)
    assert part.commit_ms.astype(bool).tolist() == [True, False]
    assert part.offset.tolist() == [5, NO_OFFSET]
    read(state, commit(1, 5, topic="a", group=GROUP), group_tombstone(GROUP))
    assert partitions() == [0, 1]
    read(state, commit(1, None, topic="a", group=GROUP))
    assert partitions() == [0]


def test_a_group_with_many_partitions_comes_in_slices() -> None:
    state = cluster_state()
    read(state, *(commit(number, number, topic="a", group=GROUP) for number in range(SLICE + 1)))
    found = slices(state, GroupLabels())
    assert [len(part.offset) for part in found] == [SLICE, 1]
    assert len(samples(state, GroupLabels())) == SLICE + 1


def test_groups_that_are_gone_are_forgotten() -> None:
    state, labels = cluster_state(), GroupLabels()
    read(state, commit(0, 5, topic="a", group=GROUP))
    assert len(slices(state, labels)[0].offset) == 1
    read(state, commit(0, None, topic="a", group=GROUP))
    assert len(slices(state, labels)[0].offset) == 0
    labels.keep_only(state.group_names())
    assert len(labels) == 0


def test_a_figure_that_is_not_known_takes_its_line_away() -> None:
    state = cluster_state()
    read(state, *(commit(number, 1, topic="a", group=GROUP) for number in range(3)))
    (part,) = slices(state, GroupLabels())
    values = np.arange(3)
    left = fill(part.lines, b"m{", b"%d", values, np.array([True, False, True]))
    assert [line.rpartition(b" ")[2] for line in left.splitlines()] == [b"0", b"2"]
    assert fill(part.lines, b"m{", b"%d", values, np.zeros(3, np.bool_)) == b""
    assert fill(part.lines, b"m{", b"%d", values).count(b"\n") == 3


def test_small_groups_come_together() -> None:
    state = cluster_state()
    wide = [commit(number, number, topic="a", group="wide") for number in range(SLICE + 1)]
    small = [commit(0, 1, topic="a", group=group) for group in ("a", "b", "x", "y")]
    read(state, *wide, *small)
    found = slices(state, GroupLabels(), "a", "b", "wide", "x", "y")
    assert [[group for group, _ in part.groups] for part in found] == [
        ["a", "b"],
        ["wide"],
        ["wide"],
        ["x", "y"],
    ]
