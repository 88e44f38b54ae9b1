"""A cluster's state read once, straight from Kafka: for commands that need no service."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from caughtup.agents.checkpoints.reading import CheckpointLooks
from caughtup.agents.clock import now_ms
from caughtup.agents.configuration.s3_access import s3_variables
from caughtup.agents.end_offsets import apply_record
from caughtup.agents.kafka.answered import REQUEST_SECONDS
from caughtup.agents.kafka.end_offset_listing import list_end_offsets, topic_ids
from caughtup.agents.kafka.first_contact import connect
from caughtup.agents.kafka.readable_ends import ReadableEnds
from caughtup.agents.kafka.replica_racks import replica_racks
from caughtup.agents.process.fault_log import FaultLog
from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.agents.topics.read_to_end import read_if_allowed, read_topic
from caughtup.agents.topics.reports import application_states, catch_up_rates
from caughtup.agents.topics.restoration import learned_configs, recommendations
from caughtup.models.decisions.undecided import LEADER_STATE_WAIT_MS
from caughtup.models.groups.generation_cuts import split_generations
from caughtup.models.polls.batch import decode_batch
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

_POLL_RECORDS = 10_000


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
        self._positions: dict[int, int] | None = None

    def look(self, progress: Progress) -> ClusterState:
        """Return the cluster as it is now; it is the same state each time."""
        state = self._state
        if self._positions is None:
            self._positions = {}
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
        batch: list[tuple[bytes | None, bytes | None]] = []
        for record in read_topic(
            self._settings, CONSUMER_OFFSETS, progress, positions=self._positions
        ):
            batch.append(record)
            if len(batch) >= _POLL_RECORDS:
                self._apply(batch)
                batch.clear()
        self._apply(batch)

    def _apply(self, batch: list[tuple[bytes | None, bytes | None]]) -> None:
        for part in split_generations(batch) if self._every_generation else [batch]:
            self._state.apply_batch(decode_batch(part), now_ms())
