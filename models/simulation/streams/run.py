"""An application in a group, in virtual time: instances come and go, the leader decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.partition_assignor.assignment import assign_partitions
from caughtup.models.partition_assignor.rebalance import Member, Rebalance
from caughtup.models.simulation.coordinator import ClassicCoordinator
from caughtup.models.simulation.streams.ends import Ends
from caughtup.models.simulation.streams.instance import Instance
from caughtup.models.simulation.streams.topology import Application, changelog_ends
from caughtup.models.simulation.time_line import Activity, TimeLine
from caughtup.models.simulation.virtual_time import VirtualTime


class StreamsRun:
    """An application as it runs. ``epoch_ms`` is the leader's clock at the story's start."""

    def __init__(self, application: Application, *, epoch_ms: int = 0) -> None:
        self.application = application
        self.epoch_ms = epoch_ms
        self.time = VirtualTime()
        self.line = TimeLine()
        self.tasks = application.tasks()
        self.ends = Ends(self.time, application.changelogs, self._growth_changed)
        self.instances: dict[str, Instance] = {}
        self.copies_built = 0
        self.offsets_to_restore = 0.0
        self.coordinator = ClassicCoordinator(
            self.time, self._decide, application.timings, self._completed
        )

    def add(
        self,
        name: str,
        process: ProcessId,
        threads: int = 1,
        *,
        tags: Mapping[str, str] | None = None,
        rack: str | None = None,
    ) -> Instance:
        """Add an instance, which is started by ``start``."""
        instance = Instance(self, name, process, threads, tags=tags or {}, rack=rack)
        self.instances[name] = instance
        return instance

    def start(self, name: str) -> None:
        """Start an instance: each of its threads joins the group."""
        instance = self.instances[name]
        self.line.mark(self.time.now_ms, "start", f"{name} starts")
        for thread in instance.start(self._ask):
            self.coordinator.join(thread)

    def stop(self, name: str, *, leave_group: bool = False) -> None:
        """Stop an instance in order: states are checkpointed.

        Kafka Streams does not leave the group unless it is told to: without ``leave_group`` the
        coordinator learns of it by the session timeout.
        """
        self.line.mark(self.time.now_ms, "stop", f"{name} stops")
        self._end(name, checkpoint=True, leave_group=leave_group)

    def kill(self, name: str, *, keep_state: bool = True) -> None:
        """Kill an instance: its states are as they were checkpointed, or lost with its disk."""
        self.line.mark(self.time.now_ms, "kill", f"{name} is killed")
        self._end(name, checkpoint=keep_state, leave_group=False)
        if not keep_state:
            self.instances[name].lose_states()

    def does(self, task: TaskId, instance: Instance, activity: Activity | None) -> None:
        """Note what an instance's copy of a task does."""
        self.line.does(self.time.now_ms, str(task), instance.name, activity)

    def restores(self, task: TaskId, instance: Instance, at: float) -> None:
        """Count what a copy has to restore, from an offset sum on."""
        end = self.ends.end(task)
        self.offsets_to_restore += max(end - at, 0.0)
        if at <= 0 < end:
            self.copies_built += 1
            self.line.mark(self.time.now_ms, "copy", f"{instance.name} builds {task}")

    def _end(self, name: str, *, checkpoint: bool, leave_group: bool) -> None:
        for thread in self.instances[name].stop(checkpoint=checkpoint):
            if leave_group:
                self.coordinator.leave(thread.member_id)
            else:
                self.coordinator.falls_silent(thread.member_id)

    def _ask(self, member_id: str) -> None:
        self.coordinator.rejoin_now(member_id)

    def _completed(self, generation: int, members: list[str]) -> None:
        self.line.mark(
            self.time.now_ms, "rebalance", f"generation {generation}: {len(members)} members"
        )

    def _growth_changed(self, task: TaskId) -> None:
        for instance in self.instances.values():
            for thread in instance.threads:
                if task in thread.restoration:
                    thread.restoration.replan()

    def _decide(self, leader: str, said: Mapping[str, Any]) -> Mapping[str, Any]:
        members: tuple[Member, ...] = tuple(said.values())
        application = self.application
        return assign_partitions(
            Rebalance(
                name=None,
                assignor=application.assignor,
                configs=application.configs,
                now_ms=self.epoch_ms + self.time.now_ms,
                leader=said[leader].process,
                subtopologies=application.subtopologies,
                partitions=application.partitions,
                new_topics=frozenset(),
                replicas={},
                end_offsets=changelog_ends(self.tasks, self.ends.sums()),
                committed={},
                members=members,
            )
        )
