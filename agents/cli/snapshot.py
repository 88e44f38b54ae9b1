"""A cluster's state read once, straight from Kafka: for commands that need no service."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from functools import partial

from aiokafka.errors import (
    KafkaError,
    LeaderNotAvailableError,
    NotLeaderForPartitionError,
    TopicAuthorizationFailedError,
)

from caughtup.agents.checkpoints.reading import CheckpointLooks
from caughtup.agents.clock import now_ms
from caughtup.agents.configuration.s3_access import s3_variables
from caughtup.agents.end_offsets import apply_record
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.clients import REQUEST_SECONDS
from caughtup.agents.kafka.end_offset_listing import list_end_offsets, replica_racks, topic_ids
from caughtup.agents.kafka.first_contact import connect, unreachable
from caughtup.agents.kafka.offset_log import OffsetLog
from caughtup.agents.kafka.partition_leaders import LogPartition
from caughtup.agents.kafka.readable_ends import ReadableEnds
from caughtup.agents.process.fault_log import FaultLog
from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.agents.topics.read_to_end import read_if_allowed
from caughtup.agents.topics.reports import application_states, catch_up_rates
from caughtup.agents.topics.restoration import learned_configs, recommendations
from caughtup.models.decisions.life import LEADER_STATE_WAIT_MS
from caughtup.models.polls.batch import Batch, decode_records, in_parts, split_generations
from caughtup.models.polls.records import FramedRecords
from caughtup.models.records.topics import (
    APPLICATION_STATES,
    CATCH_UP_RATES,
    END_OFFSETS,
    LEARNED_CONFIGS,
    RECOMMENDATIONS,
)
from caughtup.models.state.cluster import ClusterState
from caughtup.models.state.spark_looks import apply_looks
from caughtup.models.watching import Watching
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

#: Of what is applied at once: a step of each group is seen that often at least.
_POLL_RECORDS = 10_000
#: Without an answer the cluster is out of reach.
_PATIENCE_SECONDS = 30.0
_RETRY_SECONDS = 0.1


def read_snapshot(
    settings: Settings, progress: Progress, groups: Collection[str] = ()
) -> ClusterState:
    """Read groups, commits and end offsets of the cluster as it is now.

    ``groups`` are read whatever the settings leave out. Raises UserError when the cluster can't be
    reached or read.
    """
    return ClusterLooks(settings, groups).look(progress)


class ClusterLooks:
    """Looks at a cluster again and again: each time what came since is read, and the past is kept.

    ``groups`` are read whatever the settings leave out. ``every_generation``: of each group all
    generations that the log still has are applied, not the newest alone, which takes longer. Every
    call raises UserError when the cluster can't be reached or read.
    """

    def __init__(
        self, settings: Settings, groups: Collection[str] = (), *, every_generation: bool = False
    ) -> None:
        self._settings = settings
        self._every_generation = every_generation
        self._admin, cluster = connect(settings)
        watching = Watching(settings.watching(), groups)
        self._state = ClusterState(cluster, settings.parameters(), watching)
        FaultLog().attach(self._state)
        self._checkpoints = CheckpointLooks(
            settings.spark_checkpoints, partial(s3_variables, settings)
        )
        self._readable = ReadableEnds(settings, self._state)
        self._partitions: dict[int, LogPartition] = {}
        self._has_looked = False

    def look(self, progress: Progress) -> ClusterState:
        """Return the cluster as it is now; it is the same state each time."""
        state = self._state
        if not self._has_looked:
            self._has_looked = True
            self._read_own_topics(progress)
        self._read_groups(progress)
        for _ in apply_looks(
            state, self._checkpoints.look(state.spark.known(), now_ms()), now_ms()
        ):
            pass
        found = list_end_offsets(self._admin, state.wanted_topics()).found
        racked = state.racked_topics()
        if racked is not None:
            metadata = self._admin.list_topics(timeout=REQUEST_SECONDS)
            state.replicas = replica_racks(self._admin, metadata, racked)
        named = topic_ids(self._admin, state.unnamed_topics())
        self._readable.read(self._readable.suspects(found, at_once=True), found)
        for partition, ends in sorted(self._readable.complete(found).items()):
            state.apply_ends(partition, ends, named.get(partition.topic), now_ms())
        # The service's looks are the past of what is seen now, and no more.
        for partition in [partition for partition, _ in state.ends if partition not in found]:
            state.apply_ends(partition, None)
        state.applications.log_read_to_end()
        # Nobody tells a command more than there is: it waits for nothing.
        for _ in state.decide(now_ms() + LEADER_STATE_WAIT_MS):
            pass  # a snapshot publishes nothing; what was decided is in the state
        for group in state.group_names():
            for _ in state.assess(group, now_ms()):
                pass
        return state

    def _read_own_topics(self, progress: Progress) -> None:
        settings, state = self._settings, self._state
        for key, value in read_if_allowed(settings, RECOMMENDATIONS, progress):
            recommendations.apply_record(state, key, value)
        for key, value in read_if_allowed(settings, LEARNED_CONFIGS, progress):
            learned_configs.apply_record(state, key, value)
        for key, value in read_if_allowed(settings, APPLICATION_STATES, progress):
            application_states.apply_record(state, key, value)
        for key, value in read_if_allowed(settings, CATCH_UP_RATES, progress):
            catch_up_rates.apply_record(state, key, value)
        for key, value in read_if_allowed(settings, END_OFFSETS, progress):
            apply_record(state, key, value)

    def _read_groups(self, progress: Progress) -> None:
        try:
            asyncio.run(self._read_offsets(progress))
        except TopicAuthorizationFailedError as error:
            raise UserError(
                f"cannot read {CONSUMER_OFFSETS} ({error}): allow READ on the topic; "
                "`caughtup check` names all that is missing"
            ) from None
        except (KafkaError, TimeoutError) as error:
            raise unreachable(self._settings, None) from error

    async def _read_offsets(self, progress: Progress) -> None:
        """Read what came since the last look, up to the log's end as it is now."""
        limit = asyncio.timeout(_PATIENCE_SECONDS)
        async with limit, OffsetLog(self._settings, self._partitions) as offset_log:
            await _open(offset_log)
            left = offset_log.unread_at_open()
            with progress.task(f"reading {CONSUMER_OFFSETS}", left) as advance:

                async def take(batches: list[Batch], _: int) -> None:
                    nonlocal left
                    limit.reschedule(asyncio.get_running_loop().time() + _PATIENCE_SECONDS)
                    for batch in batches:
                        self._state.apply_batch(batch, now_ms())
                    before, left = left, offset_log.unread_at_open()
                    advance(before - left)

                await offset_log.read_to_open_end(self._decode, take)

    def _decode(self, records: FramedRecords) -> list[Batch]:
        if self._every_generation:
            parts = split_generations(records, _POLL_RECORDS)
        else:
            parts = in_parts(records, _POLL_RECORDS)
        return [decode_records(part) for part in parts]


async def _open(offset_log: OffsetLog) -> None:
    """Open a log, again while a leader is on the move: a new topic's always is."""
    while True:
        try:
            await offset_log.open()
        except (LeaderNotAvailableError, NotLeaderForPartitionError):
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            return
