"""A simulated group whose coordinator assigns, of Streams (KIP-1071) or consumers (KIP-848)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from caughtup.models.assignors.consumer.group import ConsumerGroupSpec, ConsumerMember
from caughtup.models.assignors.consumer.ranges import assign_coordinator_range
from caughtup.models.assignors.consumer.uniform import assign_uniform, in_target_order
from caughtup.models.assignors.java.strings import in_hash_map_order
from caughtup.models.assignors.kafka.streams_group import MemberTasks, assign_sticky
from caughtup.models.ids import TaskId
from caughtup.models.partition_assignor.member_assignment import MemberAssignment
from caughtup.models.partition_assignor.task_partitions import TaskPartitions
from caughtup.models.simulation.heartbeats import HeartbeatCoordinator, Tasks
from caughtup.models.simulation.streams.thread import SimulatedThread
from caughtup.models.simulation.streams.topology import AssignmentProtocol, SimulatedApplication
from caughtup.models.simulation.virtual_time import VirtualTime

RANGE = "range"


class CoordinatedGroup:
    """A coordinator with the same interface to a StreamsRun as the classic one."""

    def __init__(
        self,
        time: VirtualTime,
        application: SimulatedApplication,
        tasks: TaskPartitions,
        completed: Callable[[int, list[str]], None],
    ) -> None:
        self._application = application
        self._tasks = tasks
        self._process_of: dict[str, str] = {}
        self._heartbeats = HeartbeatCoordinator(time, self._assign, application.timings, completed)

    @property
    def members(self) -> list[str]:
        """Member ids, in the order in which they joined the group."""
        return self._heartbeats.members

    @property
    def stable(self) -> bool:
        """Whether every member has its newest target."""
        return self._heartbeats.stable

    def resume(
        self,
        threads: Iterable[SimulatedThread],
        epoch: int,
        _leader: str,
        assignments: Mapping[str, MemberAssignment],
    ) -> None:
        """Begin with a stable group, which has no leader."""
        members = []
        for thread in threads:
            has = assignments[thread.member_id]
            process = self._process_of[thread.member_id] = _process(thread)
            tasks = Tasks(frozenset(has.active), frozenset(has.standby))
            members.append((_ThreadMember(thread, self._tasks), process, tasks))
        self._heartbeats.resume(members, epoch)

    def join(self, thread: SimulatedThread) -> None:
        """Let a thread join."""
        process = self._process_of[thread.member_id] = _process(thread)
        self._heartbeats.join(_ThreadMember(thread, self._tasks), process)

    def leave(self, member_id: str) -> None:
        """Let a member leave."""
        self._heartbeats.leave(member_id)

    def falls_silent(self, member_id: str) -> None:
        """Expire a member, its session timeout after its last heartbeat."""
        self._heartbeats.falls_silent(member_id)

    def speaks_again(self, member_id: str) -> None:
        """Resume a member that was silent and is still in the group."""
        self._heartbeats.speaks_again(member_id)

    def rejoin_now(self, _member_id: str) -> None:
        """Do nothing: no member requests a rebalance where the coordinator assigns."""

    def _assign(self, members: Mapping[str, Tasks]) -> Mapping[str, Tasks]:
        if self._application.protocol is AssignmentProtocol.STREAMS:
            return self._assign_tasks(members)
        sources = self._tasks.sources
        readers = self._tasks.readers
        topics = self._application.partitions
        members_now = {
            member: ConsumerMember(
                tuple(topics),
                owned=in_target_order(
                    topics, (one for task in members[member].active for one in sources[task])
                ),
            )
            for member in in_hash_map_order(members)
        }
        group = ConsumerGroupSpec(members_now, topics)
        ranges = self._application.assignor == RANGE
        assigned = assign_coordinator_range(group) if ranges else assign_uniform(group)
        return {
            member: Tasks(frozenset(readers[one] for one in own))
            for member, own in assigned.items()
        }

    def _assign_tasks(self, members: Mapping[str, Tasks]) -> Mapping[str, Tasks]:
        had = {
            member: MemberTasks(
                self._process_of[member], members[member].active, members[member].standby
            )
            for member in in_hash_map_order(members)
        }
        assigned = assign_sticky(
            had,
            self._tasks.sources,
            self._tasks.changelogs.keys(),
            self._application.configs.num_standby_replicas,
        )
        return {
            member: Tasks(frozenset(own.active), frozenset(own.standby))
            for member, own in assigned.items()
        }


class _ThreadMember(NamedTuple):
    """A thread with the interface of a member to the coordinator."""

    thread: SimulatedThread
    tasks: TaskPartitions

    @property
    def member_id(self) -> str:
        return self.thread.member_id

    @property
    def answers(self) -> bool:
        return self.thread.answers

    def given(self, epoch: int, tasks: Tasks) -> None:
        self.thread.assigned(epoch, assignment_of(self.tasks, tasks.active, tasks.standby))


def assignment_of(
    tasks: TaskPartitions,
    active: Iterable[TaskId],
    standby: Iterable[TaskId],
    next_rebalance_ms: int | None = None,
) -> MemberAssignment:
    """Return the assignment of a member that has these tasks."""
    read = sorted((one, task) for task in active for one in tasks.sources[task])
    return MemberAssignment(
        partitions=tuple(one for one, _ in read),
        active=tuple(task for _, task in read),
        standby={task: tasks.sources[task] for task in sorted(standby)},
        next_rebalance_ms=next_rebalance_ms,
    )


def _process(thread: SimulatedThread) -> str:
    return str(thread.subscription().process)
