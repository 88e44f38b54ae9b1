"""A group member that follows recommendations, independent of the client library."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from msgspec.structs import replace

from caughtup.followers.python.group_snapshot import (
    FollowerSubscription,
    Members,
    read_group,
    read_member,
)
from caughtup.followers.python.kafka.log_ends import Connection, LogEnds
from caughtup.followers.python.kafka.publisher import RecordPublisher
from caughtup.followers.python.kafka.recommendations import RecommendationReader
from caughtup.followers.python.rebalance import decide_rebalance, keep_in_place
from caughtup.followers.python.reports import PositionReports
from caughtup.followers.python.settings import FollowerSettings
from caughtup.followers.python.topology import Copies, Resume, Topology
from caughtup.models.assignment.configs import read_configs
from caughtup.models.assignors.following.follower import FollowerInputs, FollowUpCounter, backoff_ms
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.offsets import LATEST_OFFSET, sum_offsets
from caughtup.models.partition_assignor.member_assignment import MemberAssignment
from caughtup.models.partition_assignor.task_partitions import TaskPartitions
from caughtup.models.records.application_states import FORMAT
from caughtup.models.records.keys import encode_group
from caughtup.models.records.topics import APPLICATION_STATES, RECOMMENDATIONS, TASK_POSITIONS
from caughtup.models.wire.user_data import decode_assignment_info, encode_subscription_info

log = logging.getLogger("caughtup.followers")

_CONFIGS = (
    "acceptable.recovery.lag",
    "max.warmup.replicas",
    "num.standby.replicas",
    "probing.rebalance.interval.ms",
)
_READY_SECONDS = 10.0
_CLOSE_SECONDS = 2.0
_AGAIN_SECONDS = 30.0


class FollowingMember:
    """Writes this process's user data, decides rebalances as leader, and applies its assignment.

    None of these calls waits for Kafka or raises: reading and writing is done in the background,
    between ``start`` and ``stop``.
    """

    def __init__(
        self,
        group: str,
        topology: Topology,
        copies: Copies,
        connection: Connection,
        config: Mapping[str, object],
        settings: FollowerSettings,
        client_id: str,
    ) -> None:
        """Make a member; ``config`` has Kafka's names. Raises ScenarioError or ValueError."""
        other = sorted(config.keys() - set(_CONFIGS))
        if other:
            raise ValueError(f"{other[0]!r} is not among {', '.join(_CONFIGS)}")
        read_configs(config)
        self.topology = topology
        self.process = ProcessId.of(uuid.uuid4().int)
        self._group = group
        self._copies = copies
        self._config = dict(config)
        self._settings = settings
        self._active: frozenset[TaskId] = frozenset()
        self._joins = 0
        self._failures = 0
        self._follow_ups = FollowUpCounter(settings.patience)
        self._reader = RecommendationReader(
            connection, settings.topic(RECOMMENDATIONS), group, settings.signing_key_file
        )
        self._ends = LogEnds(connection, topology.changelogs, settings.positions_interval_ms)
        self._publisher = RecordPublisher(
            connection, (settings.topic(APPLICATION_STATES), settings.topic(TASK_POSITIONS))
        )
        self._reports = PositionReports(topology, group, self.process, client_id)
        self._background: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start reading and writing; wait a short time for a recommendation and end offsets."""
        work = (self._reader.run, self._ends.run, self._publisher.run, self._report)
        self._background = [asyncio.create_task(_forever(run)) for run in work]
        with suppress(TimeoutError):
            async with asyncio.timeout(_READY_SECONDS):
                await self._reader.known.wait()
                await self._ends.known.wait()

    async def stop(self) -> None:
        """Write tombstones for the published positions, and close all connections."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        self._publish_positions(gone=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._publisher.close()

    def user_data(self) -> bytes:
        """Return the user data for a join: the tasks that run here, and offset sums of copies."""
        self._ends.ask()
        self._joins += 1
        try:
            sums = self._offset_sums()
        except Exception:
            log.exception("cannot sum the copies' positions; joining without them")
            sums = {}
        return encode_subscription_info(self.process, sums, self._joins)

    def assign(
        self, counts: Mapping[str, int], members: Mapping[str, FollowerSubscription]
    ) -> dict[str, MemberAssignment]:
        """Decide a rebalance; ``counts``: the topics' numbers of partitions in the metadata.

        Topics to which not all members subscribe are not assigned yet.
        """
        known = set(self.topology.topics).intersection(*(one.topics for one in members.values()))
        tasks = self.topology.tasks(counts, known)
        read = {
            member: read_member(member, one.user_data) for member, one in sorted(members.items())
        }
        now_ms = int(time.time() * 1000)
        try:
            given = self._decide(tasks, read, now_ms)
        except Exception:
            log.exception("cannot decide a rebalance; every task stays where it is")
            first = self._settings.follow_up_ms
            most = read_configs(self._config).probing_rebalance_interval_ms
            after_ms = max(first, backoff_ms(first, most, self._failures))
            self._failures += 1
            return keep_in_place(tasks, read, self.process, now_ms + after_ms)
        self._failures = 0
        return given

    def on_assignment(self, user_data: bytes | None, resume: Resume) -> int | None:
        """Apply this member's assignment.

        ``resume`` as for ``Copies.assigned``. Returns when this member has to ask for the next
        rebalance: in ms on its own clock, 0 for at once, None for never.
        """
        try:
            info = decode_assignment_info(user_data or b"")
        except CaughtupError as error:
            log.error("the assignment can't be read, and nothing is run: %s", error)
            return None
        self._active = frozenset(info.active)
        stateful = frozenset(task for task in self._active if self.topology.stateful(task))
        try:
            self._copies.assigned(stateful, frozenset(info.standby), resume)
        except Exception:
            log.exception("the application could not take its tasks")
        return info.next_rebalance_ms

    def _decide(
        self, tasks: TaskPartitions, members: Members, now_ms: int
    ) -> dict[str, MemberAssignment]:
        clock_ms = time.monotonic() * 1000
        group = read_group(tasks, members, self._ends.ends, self._config)
        self._follow_ups.begin(group.ready(), clock_ms)
        newest, age_ms = self._reader.newest()
        inputs = FollowerInputs(newest, age_ms, self._follow_ups.waited, self._follow_ups.repeated)
        decided = decide_rebalance(
            self.topology, group, self.process, inputs, self._settings.patience, now_ms
        )
        self._follow_ups.count(decided.decision, clock_ms)
        self._publisher.publish(
            self._settings.topic(APPLICATION_STATES),
            encode_group(self._group),
            FORMAT.encode(
                replace(
                    decided.record,
                    group=self._group,
                    state_id=str(uuid.uuid4()),
                    published_at_ms=now_ms,
                )
            ),
        )
        log.info("%s: %s (%s)", self._group, decided.message, decided.decision.reason)
        return dict(decided.assignments)

    def _offset_sums(self) -> dict[TaskId, int]:
        """Return offset sums like Kafka Streams: -2 for running tasks, else sums of positions."""
        positions = self._copies.positions()
        there = {self.topology.task_restored_from(one) for one in positions}
        sums = {
            task: sum_offsets([positions.get(one, 0) for one in self._changelogs(task)])
            for task in there
            if task is not None
        }
        return sums | dict.fromkeys(self._running(), LATEST_OFFSET)

    def _running(self) -> set[TaskId]:
        return {
            task
            for task in self._active
            if not self.topology.stateful(task) or self._copies.restored(task)
        }

    def _changelogs(self, task: TaskId) -> list[TopicPartition]:
        return list(self.topology.tables_of(task).values())

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(self._settings.positions_interval_ms / 1000)
            self._publish_positions()

    def _publish_positions(self, *, gone: bool = False) -> None:
        """Publish the positions of copies that restore; with ``gone``, tombstones for them."""
        running = self._running()
        there = {self.topology.task_restored_from(one) for one in self._copies.positions()}
        copies = set() if gone else {task for task in there if task is not None} - running
        records = self._reports.records(
            restoring=copies & self._active,
            standby=copies - self._active,
            positions=self._copies.positions(),
            starts=self._ends.starts,
            ends=self._ends.ends,
            now_ms=int(time.time() * 1000),
            clock=time.monotonic(),
        )
        for key, value in records.items():
            self._publisher.publish(self._settings.topic(TASK_POSITIONS), key, value)


async def _forever(run: Callable[[], Awaitable[None]]) -> None:
    """Run background work again whenever it fails."""
    while True:
        try:
            await run()
            return
        except Exception:
            log.exception("background work of the follower failed; it goes on in a while")
            await asyncio.sleep(_AGAIN_SECONDS)
