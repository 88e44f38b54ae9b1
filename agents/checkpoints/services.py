"""The services that read Spark's checkpoints and commit their positions to Kafka."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from mode import Service

from caughtup.agents.checkpoints.reading import CheckpointLooks
from caughtup.agents.clock import now_ms
from caughtup.agents.configuration.s3_access import s3_variables
from caughtup.agents.election.agent import until_active
from caughtup.agents.kafka.clients import REQUEST_SECONDS, admin_client, result_of
from caughtup.agents.process.health import Health
from caughtup.agents.process.turns import done_in_turns
from caughtup.agents.settings import Settings
from caughtup.models.state.cluster import ClusterState
from caughtup.models.state.spark_looks import apply_looks

PROBE = "checkpoints"
#: The pause between two turns of applying.
_PAUSE_SECONDS = 0.008


class CheckpointReader(Service):
    """Reads the checkpoints that the settings name.

    A store that never answers blocks only this service; the figures of all queries then get old.
    """

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(self, settings: Settings, health: Health, state: ClusterState) -> None:
        super().__init__()
        self._settings = settings
        self._health = health
        self._state = state

    @Service.task
    async def _run(self) -> None:
        s3 = partial(s3_variables, self._settings)
        looks = CheckpointLooks(self._settings.spark_checkpoints, s3)
        thread = ThreadPoolExecutor(1, "checkpoints")
        try:
            while not self.should_stop:
                await self._look(looks, thread)
                await self.sleep(self._settings.spark_checkpoints_interval)
        finally:
            thread.shutdown(wait=False, cancel_futures=True)

    async def _look(self, looks: CheckpointLooks, thread: ThreadPoolExecutor) -> None:
        loop, at_ms = asyncio.get_running_loop(), now_ms()
        found = await loop.run_in_executor(thread, looks.look, self._state.spark.known(), at_ms)
        await done_in_turns(apply_looks(self._state, found, now_ms()), _PAUSE_SECONDS)
        self._health.succeeded(PROBE, at_ms)  # unreadable checkpoints are shown as problems


log = logging.getLogger(__name__)

#: All offsets are committed again after this time: those of a group without members expire, after a
#: day at the earliest with brokers' usual configs.
_AGAIN_SECONDS = 6 * 3600.0
#: The partitions of one request.
_MOST = 5_000

_Offsets = Mapping[tuple[str, int], int]


class CheckpointCommitter(Service):
    """Commits the offsets in each query's checkpoint, as they change, under a group of its own.

    Spark never reads these commits: it uses its checkpoint. ``may_publish`` is called before each
    commit.
    """

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(
        self,
        settings: Settings,
        state: ClusterState,
        health: Health,
        may_publish: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._settings = settings
        self._state = state
        self._health = health
        self._may_publish = may_publish
        self._clock = clock
        #: By group: the offsets that were committed, and when all of them were (monotonic seconds).
        self._committed: dict[str, tuple[_Offsets, float]] = {}

    @Service.task
    async def _run(self) -> None:
        await until_active(self, self._health)
        admin = admin_client(self._settings)
        while not self.should_stop:
            if self._health.is_alive:
                await self.round(admin)
            await self.sleep(self._settings.spark_checkpoints_interval)

    async def round(self, admin: AdminClient) -> None:
        """Commit changed offsets, and delete the groups of queries that are gone."""
        queries = sorted(self._state.spark.queries)
        for group in sorted(self._committed.keys() - set(queries)):
            await self._try(group, self._delete, admin, group)
        for group in queries:
            last = self._state.commits.last(group)
            offsets = {(*one,): of for one, of in zip(last.partitions, last.offsets, strict=True)}
            before, whole_at = self._committed.get(group, (None, self._clock()))
            if before is None or self._clock() - whole_at >= _AGAIN_SECONDS:
                before, whole_at = {}, self._clock()
            changed = {one: of for one, of in offsets.items() if before.get(one) != of}
            if changed and await self._try(group, _commit, admin, group, changed):
                self._committed[group] = offsets, whole_at

    def _delete(self, admin: AdminClient, group: str) -> None:
        (deleted,) = admin.delete_consumer_groups([group], request_timeout=REQUEST_SECONDS).values()
        result_of(deleted)
        del self._committed[group]

    async def _try(self, group: str, call: Callable[..., None], *arguments: object) -> bool:
        """Run a call for a group in a thread; return whether it succeeded. Failures are logged."""
        if not self._may_publish():
            return False
        try:
            await asyncio.to_thread(call, *arguments)
        except KafkaException as error:
            if self._health.failed(PROBE):
                log.warning(
                    "committing the position of %s: %s; trying again", group, error.args[0].str()
                )
            return False
        self._health.recovered(PROBE)
        return True


def _commit(admin: AdminClient, group: str, offsets: _Offsets) -> None:
    """Commit offsets of a group. Raises KafkaException, also for a missing partition."""
    partitions = [TopicPartition(*one, offset) for one, offset in sorted(offsets.items())]
    for start in range(0, len(partitions), _MOST):
        request = ConsumerGroupTopicPartitions(group, partitions[start : start + _MOST])
        (future,) = admin.alter_consumer_group_offsets(
            [request], request_timeout=REQUEST_SECONDS
        ).values()
        for one in result_of(future).topic_partitions:
            if one.error is not None:
                raise KafkaException(one.error)
