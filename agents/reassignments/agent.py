"""The agent of caughtup-reassignments: applies records, and publishes events."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from caughtup.agents.clock import now_ms
from caughtup.agents.process.health import Health
from caughtup.agents.recent.words import partition_movement
from caughtup.agents.topics.applying import isolated_record
from caughtup.agents.topics.outbox import Outbox
from caughtup.agents.topics.publisher import TopicWriter
from caughtup.models.clocks import AHEAD_MS
from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.shown import recorded
from caughtup.models.records.decoding import TOO_MANY, RefusedError, require_past
from caughtup.models.records.fields import changed
from caughtup.models.records.keys import encode_partition
from caughtup.models.records.movements import PARTITIONS
from caughtup.models.records.reassignments import (
    CLUSTER_FORMAT,
    CLUSTER_KEY,
    ClusterRecord,
    ReassignmentRecord,
    read_reassignment,
)
from caughtup.models.records.topics import REASSIGNMENTS
from caughtup.models.state.cluster import ClusterState

if TYPE_CHECKING:  # commands apply records, too, and start faster without Faust
    import faust

    from caughtup.agents.topics.reader import Slice

#: The most reassignments that are tracked: those of a whole large cluster.
MOST_ONGOING = 200_000


def reassignments(
    app: faust.App,
    channel: faust.ChannelT[Slice],
    movements: TopicWriter,
    state: ClusterState,
    health: Health,
) -> None:
    """Register the agent: it applies slices of records to the tracker, and sends events.

    Only the instance that watches reassignments sends events; before it does, it reads those that
    were published.
    """
    outbox = Outbox(state.set_aside)

    @app.agent(channel, name="reassignments")
    async def apply(slices: faust.StreamT[Slice]) -> None:
        async for records in slices:
            for record in records:
                reassignment = apply_record(state, record.key, record.value)
                if reassignment is None:
                    continue
                if health.standby is None and health.cluster_wide():
                    for key, value in event_records(state, reassignment.topic_partition):
                        outbox.put(movements, key, value)
            await outbox.flush()


def event_records(state: ClusterState, partition: TopicPartition) -> list[tuple[bytes, bytes]]:
    """Return the event records of a reassignment, as keys and values; none if that fails."""
    with state.faults.isolated("movements", str(partition), now_ms()):
        key = encode_partition(partition)
        events = state.reassignment_events.new_events(state.reassignments, partition)
        for event in events:
            state.recent.happenings.note(partition_movement(event))
        return [(key, PARTITIONS.encode(event)) for event in events]
    return []


def apply_record(
    state: ClusterState, key: bytes | None, value: bytes | None, clock_ms: int | None = None
) -> ReassignmentRecord | None:
    """Apply one record of caughtup-reassignments; return it if it changed a reassignment.

    The result is None if the record is about no partition, refused or outdated. ``clock_ms``: the
    clock to check its times against; None for this machine's.
    """
    with isolated_record(state, REASSIGNMENTS, key, clock_ms) as clock:
        record = _read(key, value, clock)
        if isinstance(record, ClusterRecord):
            state.reassignments.apply_cluster(record)
        elif record is not None and not _is_outdated(state, record, clock):
            _apply(state, record)
            return record
    return None


def _read(
    key: bytes | None, value: bytes | None, clock_ms: int
) -> ClusterRecord | ReassignmentRecord | None:
    """Decode a record; None for a tombstone. Raises RefusedError."""
    if key == CLUSTER_KEY:
        if value is None:
            return None
        cluster = CLUSTER_FORMAT.decode(value)
        require_past(cluster.as_of_ms, clock_ms)
        return cluster
    _, record = read_reassignment(key, value)
    if record is not None:
        require_past(record.as_of_ms, clock_ms)
    return record


def _is_outdated(state: ClusterState, record: ReassignmentRecord, clock_ms: int) -> bool:
    """Return whether an observation is older than the tracked one.

    It is not outdated if it is also recent: then the clock was set back in between.
    """
    tracked = state.reassignments.ongoing.get(record.topic_partition)
    if tracked is None or record.as_of_ms >= tracked.latest.as_of_ms:
        return False
    return clock_ms - record.as_of_ms > AHEAD_MS


def _apply(state: ClusterState, record: ReassignmentRecord) -> None:
    tracker, partition, as_of_ms = state.reassignments, record.topic_partition, record.as_of_ms
    if partition not in tracker.ongoing and len(tracker.ongoing) >= MOST_ONGOING:
        raise RefusedError(TOO_MANY, "too many partitions are in movement")
    if record.ended:
        tracker.end(partition, record.replicas or None, record.isr, as_of_ms, certain=True)
    elif record.unlisted:
        tracker.unlisted(partition, as_of_ms)
    else:
        tracker.apply(record)


def read_back(
    known: dict[TopicPartition, ReassignmentRecord],
    key: bytes | None,
    value: bytes | None,
    clock_ms: int,
    unfinished: Collection[TopicPartition] = (),
) -> None:
    """Add the reassignment of a retained record to ``known``, or remove it if it has ended.

    Later records of a partition replace earlier ones. A reassignment that ended stays known while
    it is ``unfinished``: its end was written, but not yet its event. Raises RefusedError.
    """
    if key == CLUSTER_KEY:
        return
    partition, record = read_reassignment(key, value)
    if record is None or record.ended:
        if partition not in unfinished:
            known.pop(partition, None)
        return
    require_past(record.as_of_ms, clock_ms)
    since_ms = record.as_of_ms if record.since_ms is None else record.since_ms
    known[partition] = recorded(changed(record, since_ms=since_ms, unlisted=False), None)
