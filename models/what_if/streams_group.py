"""A Kafka Streams application whose coordinator assigns its tasks (KIP-1071), as it is now."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from caughtup.models.assignment.configs import read_configs
from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.errors import CaughtupError, ScenarioError
from caughtup.models.groups.generation import client_name
from caughtup.models.groups.streams import StreamsGroup
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.offsets import sum_offsets
from caughtup.models.partition_assignor.rebalance import TopicsInfo
from caughtup.models.partition_assignor.task_partitions import TaskPartitions, group_partitions
from caughtup.models.simulation.streams.run import RunningInstance, RunningThread
from caughtup.models.simulation.streams.topology import (
    STREAMS_TIMINGS,
    AssignmentProtocol,
    Changelog,
    SimulatedApplication,
)
from caughtup.models.state.cluster import ClusterState
from caughtup.models.what_if.beginning import Speeds, distinct_names, reached, speeds
from caughtup.models.what_if.setting import WhatIfSetting, with_setting

_STANDBYS = "num.standby.replicas"
_COUNT = re.compile(r"[0-9]{1,4}")


@dataclass(frozen=True, slots=True)
class BrokerAssignedGroup:
    """An application in a streams group.

    ``changelogs``: the end offset sum of each stateful task. A standby with an unknown position
    counts as caught up: only its application and its coordinator know the position.
    """

    name: str
    group: StreamsGroup
    rows: tuple[TaskCopy, ...]
    partitions: Mapping[str, int]
    changelogs: Mapping[TaskId, int]
    speeds: Speeds
    now_ms: int

    @property
    def epoch(self) -> int:
        """Its epoch."""
        return self.group.epoch or 0

    @property
    def leaves(self) -> bool:
        """False: Kafka Streams doesn't leave its group when it is closed."""
        return False

    @property
    def clients(self) -> list[str]:
        """The names of its instances, sorted."""
        return sorted(self._names().values())

    @property
    def config(self) -> Mapping[str, object]:
        """The only config of the coordinator's assignment, as last seen."""
        standbys = self.group.configs.get(_STANDBYS, "")
        return {_STANDBYS: int(standbys)} if _COUNT.fullmatch(standbys) else {}

    @property
    def open_configs(self) -> Mapping[str, str]:
        """Empty: the coordinator has the configs of the assignment."""
        return {}

    def running(self, application: SimulatedApplication) -> tuple[RunningInstance, ...]:
        """Return its instances with their tasks."""
        del application  # the time of the copies' positions is unknown
        threads: dict[str, dict[str, tuple[list[TaskId], list[TaskId]]]] = {}
        for member_id, read in sorted(self.group.members.items()):
            threads.setdefault(read.process_id, {})[member_id] = ([], [])
        for copy in self.group.copies():
            active, standby = threads[copy.member.process or ""][copy.member.member_id]
            (active if copy.role == "active" else standby).append(copy.task)
        sums = self._reached()
        names = self._names()
        return tuple(
            RunningInstance(
                names[process],
                _process_id(process, number),
                tuple(
                    RunningThread(tuple(sorted(active)), tuple(sorted(standby)))
                    for active, standby in own.values()
                ),
                sums.get(process, {}),
            )
            for number, (process, own) in enumerate(sorted(threads.items()))
        )

    def application(
        self, setting: WhatIfSetting, restore_per_second: float
    ) -> SimulatedApplication:
        """Return it as a simulated application. Raises ScenarioError for what Kafka refuses."""
        if setting.protocol not in {None, AssignmentProtocol.STREAMS} or setting.eager:
            raise ScenarioError(
                "unsupported",
                f"{self.name} uses the streams protocol: caughtup does not know its configs for the classic protocol",
            )
        application = SimulatedApplication(
            subtopologies=_subtopologies(self.group),
            partitions=self.partitions,
            changelogs={
                task: Changelog(end, self.speeds.writes.get(task, 0.0))
                for task, end in self.changelogs.items()
            },
            restore_per_second=restore_per_second,
            configs=read_configs({**self.config, **dict(setting.config)}),
            timings=STREAMS_TIMINGS,
            protocol=AssignmentProtocol.STREAMS,
        )
        return with_setting(application, replace(setting, protocol=AssignmentProtocol.STREAMS))

    def _reached(self) -> dict[str, dict[TaskId, int]]:
        """Return the positions of each process's copies that don't run."""
        sums: dict[str, dict[TaskId, int]] = {}
        for row in self.rows:
            if row.role == "active" or row.task not in self.changelogs:
                continue
            at = reached(row)
            sums.setdefault(row.process, {})[row.task] = (
                self.changelogs[row.task] if at is None else at
            )
        return sums

    def _names(self) -> dict[str, str]:
        """Return a name for each process: its client's, with a number if another one has it."""
        wanted: dict[str, str] = {}
        for _, read in sorted(self.group.members.items()):
            name = client_name(read.client_id) or read.process_id
            wanted.setdefault(read.process_id, name)
        return distinct_names(wanted.items())


def streams_group_of(
    state: ClusterState, name: str, now_ms: int, restore: tuple[float, float] | None = None
) -> BrokerAssignedGroup | None:
    """Return an application in a streams group as it is now.

    None if there is none of that name, it has no members, a topic that it reads is unknown, or a
    member has a task that isn't in its topology: then the topology changes, or its topics match a
    pattern. ``restore`` as in ``group_of``.
    """
    group = state.groups.streams.get(name)
    if group is None or not group.members:
        return None
    counts = state.ends.partition_counts()
    topics = {topic for topics in group.source_topics().values() for topic in topics}
    if not topics or not topics <= counts.keys():
        return None
    partitions = {topic: counts[topic] for topic in sorted(topics)}
    tasks = group_partitions(_subtopologies(group), partitions)
    if any(copy.task not in tasks.sources for copy in group.copies()):
        return None
    watch = state.watches.get(name)
    seen = speeds(watch.copies.values() if watch else ())
    return BrokerAssignedGroup(
        name,
        group,
        tuple(state.task_rows(name)),
        partitions,
        _ends(tasks, state.ends),
        Speeds(restore, seen.writes) if restore else seen,
        now_ms,
    )


def _subtopologies(group: StreamsGroup) -> dict[int, TopicsInfo]:
    sources = group.source_topics()
    return {
        number: TopicsInfo(tuple(sorted(sources.get(str(number), ()))), changelogs)
        for number, changelogs in sorted(group.changelogs().items())
    }


def _ends(tasks: TaskPartitions, ends: EndOffsetTable) -> dict[TaskId, int]:
    """Return the end offset sum of each stateful task.

    A changelog with an unknown end counts as 0.
    """
    known = {task: map(ends.latest, own) for task, own in tasks.changelogs.items()}
    return {
        task: sum_offsets([one.end_offset for one in latest if one is not None])
        for task, latest in known.items()
    }


def _process_id(process: str, number: int) -> ProcessId:
    """Return a process's id: a UUID from Kafka Streams, which another client's id need not be."""
    try:
        return ProcessId.parse(process)
    except CaughtupError:
        return ProcessId.of(number)
