"""States of a cluster, made of encoded records; two have an example of everything."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from caughtup.models.decisions.application import Application
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.parameters import DEFAULTS, ApplicationParameters
from caughtup.models.polls.batch import Batch, Record, decode_batch
from caughtup.models.records.fields import json_values
from caughtup.models.records.reassignments import ReassignmentRecord
from caughtup.models.records.transactions import HeldPartition, OpenTransaction
from caughtup.models.state.cluster import ClusterState
from caughtup.models.wire.share_groups import ShareGroup, ShareGroupMember
from tests.support.groups.records import GROUP, SOURCE, START_MS, commit, consumer_generation
from tests.support.groups.streams import CHANGELOG, WARMING, generation
from tests.support.reassignments.observations import a_reassignment

#: Settings with everything about the application that the wire doesn't have.
TOLD = ApplicationParameters(config=dict(DEFAULTS), changelogs={0: (CHANGELOG,)})

#: The constant log end offsets of the changelog, by partition.
ENDS = {0: 50_000, 1: 50_000}
#: Valid group names that break incorrect quoting.
HOSTILE = '"><script>alert(1)</script>\\\n{x="y"}\r\ndata: é\u2028'
NOW_MS = START_MS + 10_000
#: The groups of ``judged``, and its time.
STOPPED, KEEPING_UP, GAINING, NEVER_COMMITTED = "stopped", "keeping-up", "gaining", "never"
JUDGED_MS = START_MS + 59 * 60_000


def cluster_state(parameters: ApplicationParameters = TOLD, group: str = GROUP) -> ClusterState:
    return ClusterState("cluster-1", {group: parameters})


def read(state: ClusterState, *records: Record, seen_ms: int = START_MS) -> None:
    """Read one poll of ``__consumer_offsets``."""
    state.apply_batch(decode_batch(records), seen_ms)


def publish(state: ClusterState, now_ms: int = START_MS) -> list[dict[str, Any]]:
    """Decide all due generations; return the records as their topic's consumers read them."""
    fields = map(json_values, state.decide(now_ms))
    return [json.loads(json.dumps(record)) for record in fields]


def application(state: ClusterState, group: str = GROUP) -> Application:
    return state.applications[group]


def list_ends(
    state: ClusterState, ends: Mapping[int, int] = ENDS, *, at_ms: int, topic: str = CHANGELOG
) -> None:
    """Apply the end offsets of a topic's partitions (partition → log end offset) at a time (ms)."""
    for partition, end in ends.items():
        sample = EndOffsets(0, end, end, at_ms)
        state.apply_ends(TopicPartition(topic, partition), sample)


def known_ends(state: ClusterState, since_ms: int = START_MS - 60_000) -> None:
    """Apply constant end offsets long before and long after the first generations."""
    list_ends(state, at_ms=since_ms)
    list_ends(state, at_ms=START_MS + 60_000)
    list_ends(state, dict.fromkeys(ENDS, 100), at_ms=START_MS + 60_000, topic=SOURCE)


def state_with_ends(*records: Record, parameters: ApplicationParameters = TOLD) -> ClusterState:
    """Return a state with all end offsets and these records."""
    state = cluster_state(parameters)
    known_ends(state)
    if records:
        read(state, *records)
    return state


def everything(hostile: str = HOSTILE) -> ClusterState:
    """Return a Streams application with a warm-up, plain groups, and partitions in movement.

    ``plain``: partition 0 committed behind an open transaction, 1 never; ``gone``: a commit on a
    deleted topic; ``hostile``: a group name that breaks incorrect quoting; ``sharing``: a share group.
    """
    partitions = tuple(TopicPartition("clicks", number) for number in (0, 1))
    state = state_with_ends(
        generation(7, *WARMING),
        commit(0, 60),
        commit(0, 40, topic="clicks", group="plain"),
        consumer_generation(3, {"c1": partitions[:1], "c2": partitions[1:]}, group="plain"),
        commit(0, 5, topic="deleted", group="gone"),
        commit(0, 9, topic="clicks", group=hostile),
        (b"\x00\x0f", b"a share group's record"),
        (b"\x00\x01\x00", b"a key cut short"),
    )
    member = ShareGroupMember("s1", "sharer", "/127.0.0.1", 4, ("clicks",), partitions)
    share = ShareGroup(4, 4, "simple", (member,), {partitions[0]: 30})
    state.apply_batch(Batch(share_groups={"sharing": share}), START_MS)
    for partition in partitions:
        state.apply_ends(partition, EndOffsets(20, 90, 100, START_MS))
    log_ends = {1: 900, 2: 900, 3: 100}
    moving = a_reassignment(TopicPartition(SOURCE, 0), at_ms=START_MS, log_ends=log_ends)
    state.reassignments.apply(moving)
    ended = TopicPartition("clicks", 1)
    state.reassignments.apply(ReassignmentRecord(2, *ended, START_MS, (2, 1), (2,), (1,), (1,)))
    state.reassignments.end(ended, (2,), (2,), START_MS + 500)
    for recommended in state.decide(START_MS):
        state.applications.count_published(recommended.group)
    state.transactions.apply([open_transaction(hostile, partitions)], START_MS)
    return state


def open_transaction(name: str, partitions: Iterable[TopicPartition]) -> OpenTransaction:
    """Return a transaction that has been open for a minute, and times out in four."""
    return OpenTransaction(
        transactional_id=name,
        producer_id=4_000,
        producer_epoch=1,
        state="Ongoing",
        verdict="Ongoing",
        started_at_ms=START_MS - 60_000,
        timeout_ms=300_000,
        ends_at_ms=START_MS + 240_000,
        last_write_ms=START_MS - 50_000,
        partitions=tuple(HeldPartition(*partition, 90) for partition in partitions),
        records_behind=20,
    )


def assess(state: ClusterState, now_ms: int = JUDGED_MS) -> None:
    """Assess every group."""
    for group in state.group_names():
        for _ in state.assess(group, now_ms):
            pass


def judged() -> ClusterState:
    """Return four groups after an hour of 100 records a minute on each of two partitions.

    ``STOPPED`` keeps up on partition 0 and stopped on 1 after ten minutes; ``GAINING`` reads 150 a
    minute from partition 0, where 4,000 were before; ``NEVER_COMMITTED`` has only a member.
    """
    state = cluster_state()
    list_ends(state, {0: 4_000, 1: 0}, at_ms=START_MS - 60_000, topic="clicks")
    owned = {"c1": (TopicPartition("clicks", 1),)}
    read(state, consumer_generation(1, owned, group=NEVER_COMMITTED))
    for _ in state.assess(NEVER_COMMITTED, START_MS):  # long before the verdict
        pass
    for minute in range(60):
        now_ms = START_MS + minute * 60_000
        came = 100 * minute
        list_ends(state, {0: 4_000 + came, 1: came}, at_ms=now_ms, topic="clicks")
        commits = {
            (STOPPED, 0): 4_000 + came,
            (STOPPED, 1): min(came, 1_000),
            (KEEPING_UP, 0): 4_000 + came,
            (GAINING, 0): 150 * minute,
        }
        read(
            state,
            *(
                commit(partition, offset, topic="clicks", group=group, at_ms=now_ms)
                for (group, partition), offset in commits.items()
                if (group, partition) != (STOPPED, 1) or minute <= 10
            ),
        )
    assess(state)
    return state
