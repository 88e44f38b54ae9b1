"""The agent of caughtup-reassignments: applies its records, and publishes events of reassignments."""

from __future__ import annotations

import faust

from caughtup.agents.clock import now_ms
from caughtup.agents.process.health import Health
from caughtup.agents.reassignments.records import apply_record
from caughtup.agents.recent.words import partition_movement
from caughtup.agents.topics.outbox import Outbox
from caughtup.agents.topics.publisher import TopicWriter
from caughtup.agents.topics.reader import Slice
from caughtup.models.ids import TopicPartition
from caughtup.models.records.keys import encode_partition
from caughtup.models.records.movements import PARTITIONS
from caughtup.models.state.cluster import ClusterState


def reassignments(
    app: faust.App,
    channel: faust.ChannelT[Slice],
    movements: TopicWriter,
    state: ClusterState,
    health: Health,
) -> None:
    """Register the agent: it applies slices of records to the tracker, and sends events.

    An instance that stands by sends no events; before it becomes active it reads those that were
    published.
    """
    outbox = Outbox(state.set_aside)

    @app.agent(channel, name="reassignments")
    async def apply(slices: faust.StreamT[Slice]) -> None:
        async for records in slices:
            for record in records:
                reassignment = apply_record(state, record.key, record.value)
                if reassignment is None:
                    continue
                if health.standby is None:
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
