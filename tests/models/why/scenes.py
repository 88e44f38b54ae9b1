"""Groups in trouble, a second at a time: what the tests of ``models/why`` ask about."""

from __future__ import annotations

from collections.abc import Mapping

from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.state.cluster import ClusterState
from caughtup.models.why.explain import why
from caughtup.models.why.links import Link, Why
from tests.support.groups.records import START_MS, commit, consumer_generation
from tests.support.states import assess, cluster_state, read

GROUP, TOPIC = "readers", "clicks"
SECONDS = 120
NOW_MS = START_MS + SECONDS * 1_000
ZERO, ONE = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)


def scene(
    reads: Mapping[int, float],
    *,
    writes: int = 10,
    until: int = SECONDS,
    owners: Mapping[str, tuple[TopicPartition, ...]] | None = None,
    start: int = 0,
    group: str = GROUP,
    topic: str = TOPIC,
) -> ClusterState:
    """Return a group after two minutes: ``reads`` is the records it reads a second, by partition.

    ``writes`` records a second are written to each partition; from ``until`` on it reads none.
    """
    state = cluster_state()
    partitions = tuple(TopicPartition(topic, number) for number in reads)
    members = {"c1": partitions} if owners is None else owners
    read(state, consumer_generation(1, members, group=group))
    for second in range(SECONDS):
        at_ms = START_MS + second * 1_000
        for partition in partitions:
            end = 1_000 + second * writes
            state.apply_ends(partition, EndOffsets(start, end, end, at_ms), now_ms=at_ms)
        if second < until:
            read(
                state,
                *(
                    commit(
                        number, 1_000 + int(second * rate), topic=topic, group=group, at_ms=at_ms
                    )
                    for number, rate in reads.items()
                ),
                seen_ms=at_ms,
            )
    return state


def held_back(state: ClusterState, partition: TopicPartition = ZERO, offsets: int = 400) -> None:
    """Let an open transaction have held back the last stable offset for a minute."""
    latest = state.ends.latest(partition)
    assert latest is not None
    stable = latest.end_offset
    for second in range(SECONDS - 60, SECONDS):
        at_ms = START_MS + second * 1_000
        sample = EndOffsets(latest.start_offset, stable, stable + offsets, at_ms)
        state.apply_ends(partition, sample, now_ms=at_ms)


def asked(state: ClusterState, group: str = GROUP, now_ms: int = NOW_MS) -> Why:
    """Assess all groups and ask why."""
    assess(state, now_ms)
    found = why(state, group, now_ms)
    assert found is not None
    return found


def kinds(found: Why) -> list[str]:
    return [link.kind for link in found.links]


def link_of(found: Why, kind: str) -> Link:
    [link] = [one for one in found.links if one.kind == kind]
    return link


def figures(link: Link) -> dict[str, object]:
    return {one.name: one.value for one in link.evidence}
