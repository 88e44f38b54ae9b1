"""An application in a group, in virtual time: instances come and go, the leader decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from caughtup.models.assignors.following.follower import Patience
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.partition_assignor.assignment import assign_partitions
from caughtup.models.partition_assignor.member_assignment import MemberAssignment
from caughtup.models.partition_assignor.rebalance import MemberSubscription, Rebalance
from caughtup.models.simulation.coordinator import ClassicCoordinator
from caughtup.models.simulation.streams.coordinated import CoordinatedGroup, assignment_of
from caughtup.models.simulation.streams.follower import FollowingLeader
from caughtup.models.simulation.streams.instance import SimulatedInstance
from caughtup.models.simulation.streams.shared_state import SharedState
from caughtup.models.simulation.streams.thread import SimulatedThread
from caughtup.models.simulation.streams.topology import (
    AssignmentProtocol,
    SimulatedApplication,
    changelog_ends,
)
from caughtup.models.simulation.virtual_time import Event


@dataclass(frozen=True, slots=True)
class RunningThread:
    """A stream thread at the start: its tasks, and when it requests a rebalance (epoch ms)."""

    active: tuple[TaskId, ...]
    standby: tuple[TaskId, ...] = ()
    next_rebalance_ms: int | None = None

    @property
    def tasks(self) -> tuple[TaskId, ...]:
        """All its tasks: actives, then standbys."""
        return (*self.active, *self.standby)


@dataclass(frozen=True, slots=True)
class RunningInstance:
    """An instance at the start.

    ``offset_sums``: of each of its copies, and of each state on disk; not of running actives.
    ``flushed``: the offset sums of its copies when they were opened, if known.
    """

    name: str
    process: ProcessId
    threads: tuple[RunningThread, ...]
    offset_sums: Mapping[TaskId, int] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    rack: str | None = None
    flushed: Mapping[TaskId, float] = field(default_factory=dict)


class PausedThread(NamedTuple):
    """What a thread had when its process was paused.

    ``unfinished``: the actives that it was still restoring. ``next_rebalance_ms``: when it was to
    request a rebalance, on the leader's clock.
    """

    thread: SimulatedThread
    active: tuple[TaskId, ...]
    unfinished: frozenset[TaskId]
    standby: tuple[TaskId, ...]
    next_rebalance_ms: int | None


class StreamsRun:
    """An application that runs. ``epoch_ms`` is the leader's clock at the start."""

    def __init__(self, application: SimulatedApplication, *, epoch_ms: int = 0) -> None:
        self.application = application
        self.shared = SharedState(application, epoch_ms, self._growth_changed)
        self.time, self.line = self.shared.time, self.shared.line
        self.tasks = self.shared.tasks
        self.instances: dict[str, SimulatedInstance] = {}
        self._threads: dict[str, list[SimulatedThread]] = {}
        self._paused: dict[str, Event] = {}
        self._grown: set[TaskId] = set()
        self._follower = FollowingLeader(self.time, application.follower or Patience())
        self.coordinator = (
            ClassicCoordinator(self.time, self._decide, application.timings, self._completed)
            if application.protocol is AssignmentProtocol.CLASSIC
            else CoordinatedGroup(self.time, application, self.tasks, self._completed)
        )

    def add(
        self,
        name: str,
        process: ProcessId,
        threads: int = 1,
        *,
        tags: Mapping[str, str] | None = None,
        rack: str | None = None,
        restores: float = 1.0,
    ) -> SimulatedInstance:
        """Add an instance without starting it.

        ``restores``: its speed of restoring, as a share of the application's.
        """
        instance = SimulatedInstance(
            self.shared, name, process, threads, tags=tags or {}, rack=rack, restores=restores
        )
        self.instances[name] = instance
        return instance

    def start(self, name: str) -> None:
        """Start an instance; each of its threads joins the group."""
        instance = self.instances[name]
        self.shared.mark("start", f"{name} starts")
        self._threads[name] = [
            SimulatedThread(self.shared, instance, number, member_id, self._ask)
            for number, member_id in enumerate(instance.start(), start=1)
        ]
        for thread in self._threads[name]:
            self.coordinator.join(thread)

    def resume(self, running: Sequence[RunningInstance], generation: int) -> None:
        """Begin with instances that are in a stable group.

        The first thread of all is the leader.
        """
        given: dict[str, MemberAssignment] = {}
        for one in running:
            instance = self.add(
                one.name, one.process, len(one.threads), tags=one.tags, rack=one.rack
            )
            instance.start()
            instance.flushed.update(one.flushed)
            threads = self._threads[one.name] = []
            assigned = {task for thread in one.threads for task in thread.tasks}
            for number, has in enumerate(one.threads, start=1):
                member_id = instance.members[number - 1]
                thread = SimulatedThread(self.shared, instance, number, member_id, self._ask)
                thread.resume(has.active, has.standby, one.offset_sums, has.next_rebalance_ms)
                threads.append(thread)
                given[member_id] = assignment_of(
                    self.tasks, has.active, has.standby, has.next_rebalance_ms
                )
            for task, at in one.offset_sums.items():
                if task not in assigned:
                    instance.leave_state(task, at, checkpoint=True)
        self._follower.begin_with(instance.process for instance in self.instances.values())
        members = self.running_threads()
        self.coordinator.resume(members, generation, members[0].member_id, given)

    def stop(self, name: str, *, leave_group: bool = False) -> None:
        """Stop an instance in order, with checkpoints of its states.

        Kafka Streams does not leave the group by default: without ``leave_group`` the coordinator
        notices the stop by the session timeout.
        """
        self.shared.mark("stop", f"{name} stops")
        self._end(name, checkpoint=True, leave_group=leave_group)

    def kill(self, name: str, *, keep_state: bool = True) -> None:
        """Kill an instance: its states are as last flushed, or lost with its disk."""
        self.shared.mark("kill", f"{name} is killed")
        self._end(name, checkpoint=False, leave_group=False)
        if not keep_state:
            self.instances[name].lose_states()

    def pause(self, name: str, for_ms: int) -> None:
        """Pause an instance for a while, as by SIGSTOP or a long garbage collection.

        Its threads neither process nor restore, and send no heartbeats. If the coordinator has
        removed them by the time they go on, they have lost their tasks and join as new members;
        their states are on disk.
        """
        self.shared.mark("pause", f"{name} stands still")
        instance = self.instances[name]
        instance.pause()
        paused = [pause(thread) for thread in self._threads[name]]
        for one in paused:
            self.coordinator.falls_silent(one.thread.member_id)
        self._paused[name] = self.time.after(for_ms, lambda: self._go_on(instance, paused))

    def rebalance(self) -> None:
        """Make the group's first thread request a rebalance."""
        self._ask(self.running_threads()[0].member_id)

    def running_threads(self) -> list[SimulatedThread]:
        """Return the threads of all running instances, in their order."""
        return [thread for threads in self._threads.values() for thread in threads]

    @property
    def quiet(self) -> bool:
        """Whether no rebalance goes on or is planned, and nothing is restored."""
        return self.calm and not any(thread.probes for thread in self.running_threads())

    @property
    def calm(self) -> bool:
        """Whether the group is stable and no active restores."""
        return self.coordinator.stable and not any(
            thread.restoration.restoring for thread in self.running_threads()
        )

    @property
    def warming(self) -> bool:
        """Whether a standby or a warm-up of a running instance isn't caught up."""
        return any(thread.restoration.behind for thread in self.running_threads())

    @property
    def processed(self) -> set[TaskId]:
        """The tasks that an instance processes."""
        return {
            task
            for thread in self.running_threads()
            for task, runs in thread.active.items()
            if runs
        }

    def _go_on(self, instance: SimulatedInstance, paused: Sequence[PausedThread]) -> None:
        """Resume an instance: threads that are no longer in the group join it as new members."""
        del self._paused[instance.name]
        self.shared.mark("go on", f"{instance.name} goes on")
        instance.go_on()
        known = set(self.coordinator.members)
        threads = self._threads[instance.name] = []
        for number, one in enumerate(paused, start=1):
            member_id = one.thread.member_id
            if member_id in known:
                threads.append(one.thread)
                go_on(one, instance, self.shared.epoch_ms + self.time.now_ms)
                self.coordinator.speaks_again(member_id)
            else:
                new = instance.renew(member_id)
                threads.append(SimulatedThread(self.shared, instance, number, new, self._ask))
                self.coordinator.join(threads[-1])

    def _end(self, name: str, *, checkpoint: bool, leave_group: bool) -> None:
        if name in self._paused:
            self._paused.pop(name).cancel()
        self.instances[name].end()
        for thread in self._threads.pop(name, ()):
            thread.stop(checkpoint=checkpoint)
            if leave_group:
                self.coordinator.leave(thread.member_id)
            else:
                self.coordinator.falls_silent(thread.member_id)

    def _ask(self, member_id: str) -> None:
        self.coordinator.rejoin_now(member_id)

    def _completed(self, generation: int, members: list[str]) -> None:
        self.shared.mark("rebalance", f"generation {generation}: {len(members)} members")

    def _growth_changed(self, task: TaskId) -> None:
        """Plan one update of all copies whose changelogs' growth changes at this moment."""
        if not self._grown:
            self.time.after(0, self._replan)
        self._grown.add(task)

    def _replan(self) -> None:
        for threads in self._threads.values():
            for thread in threads:
                if not self._grown.isdisjoint(thread.standby):
                    thread.restoration.replan()
        self._grown.clear()

    def _decide(
        self, leader: str, subscriptions: Mapping[str, MemberSubscription]
    ) -> Mapping[str, MemberAssignment]:
        members = tuple(subscriptions.values())
        application = self.application
        follower = self._follower if application.follower else None
        assigned = assign_partitions(
            Rebalance(
                name=None,
                assignor=application.assignor,
                configs=application.configs,
                now_ms=self.shared.epoch_ms + self.time.now_ms,
                leader=subscriptions[leader].process,
                subtopologies=application.subtopologies,
                partitions=application.partitions,
                new_topics=frozenset(),
                replicas=application.replicas,
                end_offsets=changelog_ends(self.tasks, self.shared.ends.sums()),
                committed={},
                members=members,
            ),
            self.tasks,
            decide=follower.decide if follower else None,
        )
        return follower.with_follow_up(assigned, self.shared.epoch_ms) if follower else assigned


def pause(thread: SimulatedThread) -> PausedThread:
    """Pause a thread; meanwhile its states are on disk, at their present offsets.

    Of a thread that gave its tasks up to join again only these states are kept.
    """
    active = tuple(sorted(thread.active)) if thread.owned else ()
    paused = PausedThread(
        thread,
        active,
        frozenset(task for task in active if task in thread.restoration),
        tuple(sorted(thread.standby)),
        thread.next_rebalance_ms,
    )
    thread.stop(checkpoint=True)
    return paused


def go_on(paused: PausedThread, instance: SimulatedInstance, now_ms: int) -> None:
    """Resume a thread with its tasks. ``now_ms`` is on the leader's clock."""
    found = {task: instance.take_state(task) for task in (*paused.active, *paused.standby)}
    behind = {*paused.unfinished, *paused.standby}
    due_ms = paused.next_rebalance_ms
    paused.thread.resume(
        paused.active,
        paused.standby,
        {task: int(at) for task, at in found.items() if task in behind},
        None if due_ms is None else max(due_ms, now_ms),
    )
