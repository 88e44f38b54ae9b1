"""A group of consumers, simulated as one whose coordinator assigns (KIP-848)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from caughtup.models.errors import ScenarioError
from caughtup.models.groups.membership import Member, Membership
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.partition_assignor.rebalance import TopicsInfo
from caughtup.models.simulation.streams.run import RunningInstance, RunningThread
from caughtup.models.simulation.streams.topology import (
    CONSUMER_TIMINGS,
    AssignmentProtocol,
    SimulatedApplication,
)
from caughtup.models.state.cluster import ClusterState
from caughtup.models.what_if.beginning import Speeds, distinct_names
from caughtup.models.what_if.setting import WhatIfSetting

#: The assignors of coordinators, the default first.
ASSIGNORS = ("uniform", "range")
#: The kinds of groups whose members are plain consumers.
_KINDS = frozenset({"consumer", "classic"})


@dataclass(frozen=True, slots=True)
class SimulatedConsumerGroup:
    """A group of consumers as it is now.

    Each of its partitions is simulated like a task of Streams. ``partitions`` has the number of
    partitions of each topic that it reads.
    """

    name: str
    membership: Membership
    partitions: Mapping[str, int]
    now_ms: int

    @property
    def speeds(self) -> Speeds:
        """No speeds: consumers restore nothing."""
        return Speeds(None, {})

    @property
    def epoch(self) -> int:
        """Its epoch, or its generation."""
        return self.membership.generation

    @property
    def leaves(self) -> bool:
        """True: a consumer leaves its group when it is closed."""
        return True

    @property
    def clients(self) -> list[str]:
        """The names of its members, sorted."""
        return sorted(_names(self.membership).values())

    @property
    def config(self) -> Mapping[str, object]:
        """Empty: no config of a consumer group affects the assignment."""
        return {}

    @property
    def open_configs(self) -> Mapping[str, str]:
        """Empty: the coordinator has the configs of the assignment."""
        return {}

    def running(self, application: SimulatedApplication) -> tuple[RunningInstance, ...]:
        """Return its members with their partitions."""
        del application  # nothing is restored, so that its rate doesn't matter
        numbers = {topic: number for number, topic in enumerate(sorted(self.partitions))}
        tasks: dict[str, list[TaskId]] = {}
        for partition, member in self.membership.owners.items():
            if partition.partition < self.partitions.get(partition.topic, 0):
                task = TaskId(numbers[partition.topic], partition.partition)
                tasks.setdefault(member.member_id, []).append(task)
        return tuple(
            RunningInstance(
                name, ProcessId.of(number), (RunningThread(tuple(sorted(tasks.get(member, ())))),)
            )
            for number, (member, name) in enumerate(sorted(_names(self.membership).items()))
        )

    def application(
        self, setting: WhatIfSetting, restore_per_second: float
    ) -> SimulatedApplication:
        """Return it as a simulated application. Raises ScenarioError for an unsupported setting."""
        del restore_per_second  # consumers have no state
        assignor = setting.assignor or ASSIGNORS[0]
        if assignor not in ASSIGNORS or setting.protocol not in {None, AssignmentProtocol.CONSUMER}:
            raise ScenarioError(
                "unsupported",
                f"{self.name} is a group of consumers: caughtup plays it on the consumer protocol, whose "
                f"assignors are {' and '.join(ASSIGNORS)}",
            )
        if setting.config or setting.static_members or setting.eager:
            raise ScenarioError(
                "unsupported", f"{self.name} is a group of consumers and has no such configs"
            )
        topics = sorted(self.partitions)
        return SimulatedApplication(
            subtopologies={number: TopicsInfo((topic,)) for number, topic in enumerate(topics)},
            partitions=self.partitions,
            changelogs={},
            restore_per_second=1.0,
            assignor=assignor,
            timings=CONSUMER_TIMINGS,
            protocol=AssignmentProtocol.CONSUMER,
            task_names={
                TaskId(number, partition): f"{topic}-{partition}"
                for number, topic in enumerate(topics)
                for partition in range(self.partitions[topic])
            },
        )


def consumer_group_of(
    state: ClusterState, name: str, now_ms: int, *, as_if: bool
) -> SimulatedConsumerGroup | None:
    """Return a group of consumers as it is now; None if there is none of that name.

    ``as_if``: return a group on the classic protocol, too, as if it were on the new one.
    """
    membership = state.groups.membership(name)
    if membership is None or membership.group_type not in _KINDS or not membership.members:
        return None
    if membership.group_type == "classic" and not as_if:
        return None
    counts = state.ends.partition_counts()
    widths: dict[str, int] = {topic: counts.get(topic, 0) for topic in membership.topics}
    for partition in membership.owners:
        widths[partition.topic] = max(widths.get(partition.topic, 0), partition.partition + 1)
    known = {topic: width for topic, width in widths.items() if width}
    return SimulatedConsumerGroup(name, membership, known, now_ms) if known else None


def _names(membership: Membership) -> dict[str, str]:
    """Return each member's name: its client id, with a number if several have it."""
    members = sorted(membership.members, key=_by_id)
    return distinct_names((member.member_id, member.client_id) for member in members)


def _by_id(member: Member) -> str:
    return member.member_id
