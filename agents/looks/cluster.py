"""Snapshots of a cluster, read directly from Kafka, for commands without a service."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from aiokafka.errors import (
    KafkaError,
)
from confluent_kafka import KafkaException

from caughtup.agents.checkpoints.reading import CheckpointLooks
from caughtup.agents.clock import now_ms
from caughtup.agents.configuration.s3_access import s3_variables
from caughtup.agents.connect.reader import ConnectTopics
from caughtup.agents.connect.watcher import decide_due
from caughtup.agents.errors import UserError
from caughtup.agents.kafka import first_contact
from caughtup.agents.kafka.clients import WEDGED_SECONDS
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.end_offset_listing import ANSWER_SECONDS
from caughtup.agents.kafka.partition_leaders import held_offsets
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.decoding import explain_failure
from caughtup.agents.looks.groups import GroupsLook
from caughtup.agents.looks.reassignments import ReassignmentObservations
from caughtup.agents.probes import assignors
from caughtup.agents.probes.end_offsets import EndOffsetObserver, ObservedEnds
from caughtup.agents.probes.transactions import (
    MOST_PARTITIONS,
    NONE_HELD,
    TIMEOUT_SECONDS,
    TransactionObserver,
)
from caughtup.agents.process.fault_log import FaultLog
from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.agents.topics.applying import AppliedTopic
from caughtup.agents.topics.permissions import with_source
from caughtup.agents.topics.read_to_end import read_if_allowed
from caughtup.agents.topics.reports import (
    application_states,
    catch_up_rates,
    end_offsets,
    task_positions,
)
from caughtup.agents.topics.restoration import learned_configs, recommendations
from caughtup.models.connect_clusters.table import PATIENCE_MS
from caughtup.models.decisions.life import LEADER_STATE_WAIT_MS
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.records.transactions import OpenTransaction
from caughtup.models.state.cluster import ClusterState
from caughtup.models.state.spark_looks import apply_looks
from caughtup.models.transactions.table import Missing, held_partitions
from caughtup.models.watching import Watching
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

#: How long a look waits for the topics of Connect's worker clusters.
_CONNECT_SECONDS = 60.0
#: The own topics that a look begins with.
_OWN_TOPICS: tuple[AppliedTopic[Any], ...] = (
    recommendations,
    learned_configs,
    application_states,
    catch_up_rates,
    task_positions,
    end_offsets,
)


def read_snapshot(
    settings: Settings, progress: Progress, groups: Collection[str] = ()
) -> ClusterState:
    """Read groups, commits and end offsets of the cluster as it is now.

    ``groups`` are read even if the settings exclude them. Raises UserError when the cluster can't be
    reached or read.
    """
    return ClusterLooks(settings, groups).look(progress)


class ClusterLooks:
    """Takes snapshots of a cluster: each reads what is new, and keeps what earlier ones read.

    ``groups`` are read even if the settings exclude them. ``connect``: also apply each group's older
    generations that the log still has, and read the topics of Connect's worker clusters, which takes
    longer. ``reassignments``: observe these, too. Every call raises UserError when the cluster cannot
    be reached or read.
    """

    def __init__(
        self,
        settings: Settings,
        groups: Collection[str] = (),
        *,
        connect: bool = False,
        reassignments: bool = False,
    ) -> None:
        self._settings = settings
        self._groups = frozenset(groups)
        self._connect = connect
        self._reassignments = ReassignmentObservations(settings) if reassignments else None
        admin, cluster = first_contact.connect(settings)
        try:
            self._settings = settings = with_source(admin, settings)
        except (KafkaException, KafkaError) as error:
            raise UserError(f"cannot ask about {CONSUMER_OFFSETS}: {error}") from None
        watching = Watching(settings.watching(), groups)
        self._state = ClusterState(cluster, settings.parameters(), watching)
        FaultLog().attach(self._state)
        self._checkpoints = CheckpointLooks(
            settings.spark_checkpoints, partial(s3_variables, settings)
        )
        self._ends = EndOffsetObserver(settings, self._state, admin)
        self._connect_topics: ConnectTopics | None = None
        self._group_look = GroupsLook(settings, self._state, self._groups, every_generation=connect)
        self._has_looked = False

    def look(self, progress: Progress) -> ClusterState:
        """Return the cluster as it is now; it is the same state each time."""
        state = self._state
        if not self._has_looked:
            self._has_looked = True
            self._read_own_topics(progress)
        self._group_look.read(progress)
        for _ in apply_looks(
            state, self._checkpoints.look(state.spark.known(), now_ms()), now_ms()
        ):
            pass
        self._read_ends()
        self._observe_transactions()
        self._ask_for_assignors()
        if self._connect:
            self._read_connect()
        if self._reassignments is not None:
            self._reassignments.observe(state)
        state.applications.log_read_to_end()
        # Waiting would not bring leaders' states to a look, so it decides as if the wait were over.
        for _ in state.decide(now_ms() + LEADER_STATE_WAIT_MS):
            pass  # a look publishes nothing; what was decided is in the state
        for group in state.group_names():
            for _ in state.assess(group, now_ms()):
                pass
        return state

    def close(self) -> None:
        """Close the connections that are kept between looks."""
        if self._reassignments is not None:
            self._reassignments.close()

    def _read_own_topics(self, progress: Progress) -> None:
        settings, state = self._settings, self._state
        for topic in _OWN_TOPICS:
            for key, value in read_if_allowed(settings, topic.topic, progress):
                topic.apply_record(state, key, value)

    def _read_ends(self) -> None:
        state = self._state
        observed = asyncio.run(self._observe_ends())
        for partition, ends in sorted(observed.ends.items()):
            state.apply_ends(partition, ends, observed.topic_ids.get(partition.topic), now_ms())
        # The service's end offsets serve as history only: a partition that is not listed now is gone.
        for partition in [
            partition for partition, _ in state.ends if partition not in observed.ends
        ]:
            state.apply_ends(partition, None)

    async def _observe_ends(self) -> ObservedEnds:
        protocol = ClusterProtocol(aiokafka_config(self._settings), ANSWER_SECONDS)
        async with protocol.connections:
            return await self._ends.observe(
                protocol,
                self._state.wanted_topics(),
                patience_seconds=WEDGED_SECONDS,
                at_once=True,
            )

    def _observe_transactions(self) -> None:
        """Ask who holds back last stable offsets; what can't be asked is missing, and no error."""
        state, now = self._state, now_ms()
        ends, left_out = held_partitions(state.ends, now, MOST_PARTITIONS)
        ends |= held_offsets(self._group_look.partitions, now)
        found, missing = asyncio.run(_ask_for_holders(self._settings, ends)) if ends else NONE_HELD
        left_out += missing.partitions
        state.transactions.apply(found, now, Missing(missing.reasons, left_out))

    def _ask_for_assignors(self) -> None:
        """Ask by which assignor the groups of this look are assigned next; without an answer: unknown."""
        known = self._state.groups
        if self._groups & (known.consumer.keys() | known.streams.keys()):
            with contextlib.suppress(KafkaError, OSError, TimeoutError):
                asyncio.run(self._assignors())

    async def _assignors(self) -> None:
        config = aiokafka_config(self._settings)
        async with ClusterProtocol(config, assignors.TIMEOUT_SECONDS) as protocol:
            await assignors.ask_for_assignors(protocol, self._state, sorted(self._groups))

    def _read_connect(self) -> None:
        """Read what the topics of worker clusters have by now, and decide as their leaders did."""
        state = self._state
        if state.connect.groups:
            try:
                if self._connect_topics is None:
                    self._connect_topics = ConnectTopics(self._settings)
                self._connect_topics.read_to_end(state, _CONNECT_SECONDS)
            except KafkaException as error:
                raise UserError(f"cannot read the topics of Connect ({error.args[0]})") from None
        # Waiting would not bring a missing configuration.
        decide_due(state, now_ms() + PATIENCE_MS)


async def _ask_for_holders(
    settings: Settings, ends: Mapping[TopicPartition, EndOffsets]
) -> tuple[list[OpenTransaction], Missing]:
    try:
        async with ClusterProtocol(aiokafka_config(settings), TIMEOUT_SECONDS) as protocol:
            return await TransactionObserver(protocol).observe(ends)
    except KafkaError as error:
        return [], Missing((f"transactions: {explain_failure(error)}",), len(ends))
