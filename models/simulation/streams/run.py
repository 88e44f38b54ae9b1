"""An application in a group, in virtual time: instances come and go, the leader decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from caughtup.models.assignors.following.follower import Patience
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.partition_assignor.assignment import assign_partitions
from caughtup.models.partition_assignor.member_assignment import MemberAssignment
from caughtup.models.partition_assignor.rebalance import MemberSubscription, Rebalance
from caughtup.models.simulation.coordinator import ClassicCoordinator
from caughtup.models.simulation.streams.coordinated import CoordinatedGroup, assignment_of
from caughtup.models.simulation.streams.follower import Follower
from caughtup.models.simulation.streams.instance import Instance
from caughtup.models.simulation.streams.pauses import PausedThread, go_on, pause
from caughtup.models.simulation.streams.stage import Stage
from caughtup.models.simulation.streams.thread import StreamThread
from caughtup.models.simulation.streams.topology import Application, Protocol, changelog_ends
from caughtup.models.simulation.virtual_time import Event


@dataclass(frozen=True, slots=True)
class RunningThread:
    """What a stream thread has at a story's start, and when it asks for a rebalance (epoch ms)."""

    active: tuple[TaskId, ...]
    standby: tuple[TaskId, ...] = ()
    next_rebalance_ms: int | None = None

    @property
    def tasks(self) -> tuple[TaskId, ...]:
        """All that it has: its actives, then its standbys."""
        return (*self.active, *self.standby)


@dataclass(frozen=True, slots=True)
class RunningInstance:
    """An instance at a story's start.

    ``offset_sums``: how far each of its copies is, and each state on disk; not of actives that run.
    ``flushed``: how far its copies were when they were opened, where that is known.
    """

    name: str
    process: ProcessId
    threads: tuple[RunningThread, ...]
    offset_sums: Mapping[TaskId, int] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    rack: str | None = None
    flushed: Mapping[TaskId, float] = field(default_factory=dict)


class StreamsRun:
    """An application as it runs. ``epoch_ms`` is the leader's clock at the story's start."""

    def __init__(self, application: Application, *, epoch_ms: int = 0) -> None:
        self.application = application
        self.stage = Stage(application, epoch_ms, self._growth_changed)
        self.time, self.line = self.stage.time, self.stage.line
        self.tasks = self.stage.tasks
        self.instances: dict[str, Instance] = {}
        self._threads: dict[str, list[StreamThread]] = {}
        self._paused: dict[str, Event] = {}
        self._grown: set[TaskId] = set()
        self._follower = Follower(self.time, application.follower or Patience())
        self.coordinator = (
            ClassicCoordinator(self.time, self._decide, application.timings, self._completed)
            if application.protocol is Protocol.CLASSIC
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
    ) -> Instance:
        """Add an instance, which is started by ``start``.

        ``restores``: how fast it restores, as a share of what the application's others do.
        """
        instance = Instance(
            self.stage, name, process, threads, tags=tags or {}, rack=rack, restores=restores
        )
        self.instances[name] = instance
        return instance

    def start(self, name: str) -> None:
        """Start an instance: each of its threads joins the group."""
        instance = self.instances[name]
        self.stage.mark("start", f"{name} starts")
        self._threads[name] = [
            StreamThread(self.stage, instance, number, member_id, self._ask)
            for number, member_id in enumerate(instance.start(), start=1)
        ]
        for thread in self._threads[name]:
            self.coordinator.join(thread)

    def resume(self, running: Sequence[RunningInstance], generation: int) -> None:
        """Begin with instances that are in a stable group; the first thread of all leads it."""
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
                thread = StreamThread(self.stage, instance, number, member_id, self._ask)
                thread.resume(has.active, has.standby, one.offset_sums, has.next_rebalance_ms)
                threads.append(thread)
                given[member_id] = assignment_of(
                    self.tasks, has.active, has.standby, has.next_rebalance_ms
                )
            for task, at in one.offset_sums.items():
                if task not in assigned:
                    instance.leave_state(task, at, checkpoint=True)
        self._follower.knows(instance.process for instance in self.instances.values())
        members = self.running_threads()
        self.coordinator.resume(members, generation, members[0].member_id, given)

    def stop(self, name: str, *, leave_group: bool = False) -> None:
        """Stop an instance in order: states are checkpointed.

        Kafka Streams does not leave the group unless it is told to: without ``leave_group`` the
        coordinator learns of it by the session timeout.
        """
        self.stage.mark("stop", f"{name} stops")
        self._end(name, checkpoint=True, leave_group=leave_group)

    def kill(self, name: str, *, keep_state: bool = True) -> None:
        """Kill an instance: its states are as they were flushed last, or lost with its disk."""
        self.stage.mark("kill", f"{name} is killed")
        self._end(name, checkpoint=False, leave_group=False)
        if not keep_state:
            self.instances[name].lose_states()

    def pause(self, name: str, for_ms: int) -> None:
        """Let an instance stand still for a while, as by SIGSTOP."""
        self.stage.mark("pause", f"{name} stands still")
        instance = self.instances[name]
        instance.pause()
        paused = [pause(thread) for thread in self._threads[name]]
        for one in paused:
            self.coordinator.falls_silent(one.thread.member_id)
        self._paused[name] = self.time.after(for_ms, lambda: self._go_on(instance, paused))

    def rebalance(self) -> None:
        """Let the group's first thread ask for a rebalance."""
        self._ask(self.running_threads()[0].member_id)

    def running_threads(self) -> list[StreamThread]:
        """Return the threads of all instances that run, in their order."""
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
        """The tasks that somebody processes."""
        return {
            task
            for thread in self.running_threads()
            for task, runs in thread.active.items()
            if runs
        }

    def _go_on(self, instance: Instance, paused: Sequence[PausedThread]) -> None:
        """Let an instance go on: who is no longer in the group joins it as a new member."""
        del self._paused[instance.name]
        self.stage.mark("go on", f"{instance.name} goes on")
        instance.go_on()
        known = set(self.coordinator.members)
        threads = self._threads[instance.name] = []
        for number, one in enumerate(paused, start=1):
            member_id = one.thread.member_id
            if member_id in known:
                threads.append(one.thread)
                go_on(one, instance, self.stage.epoch_ms + self.time.now_ms)
                self.coordinator.speaks_again(member_id)
            else:
                new = instance.renew(member_id)
                threads.append(StreamThread(self.stage, instance, number, new, self._ask))
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
        self.stage.mark("rebalance", f"generation {generation}: {len(members)} members")

    def _growth_changed(self, task: TaskId) -> None:
        """Let copies of a task look again at what is due, those of many tasks together at once."""
        if not self._grown:
            self.time.after(0, self._replan)
        self._grown.add(task)

    def _replan(self) -> None:
        for threads in self._threads.values():
            for thread in threads:
                if not self._grown.isdisjoint(thread.standby):
                    thread.restoration.replan()
        self._grown.clear()

    def _decide(self, leader: str, said: Mapping[str, Any]) -> Mapping[str, Any]:
        members: tuple[MemberSubscription, ...] = tuple(said.values())
        application = self.application
        follower = self._follower if application.follower else None
        assigned = assign_partitions(
            Rebalance(
                name=None,
                assignor=application.assignor,
                configs=application.configs,
                now_ms=self.stage.epoch_ms + self.time.now_ms,
                leader=said[leader].process,
                subtopologies=application.subtopologies,
                partitions=application.partitions,
                new_topics=frozenset(),
                replicas=application.replicas,
                end_offsets=changelog_ends(self.tasks, self.stage.ends.sums()),
                committed={},
                members=members,
            ),
            self.tasks,
            decide=follower.decide if follower else None,
        )
        return follower.asking(assigned, self.stage.epoch_ms) if follower else assigned
