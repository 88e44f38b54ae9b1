"""Generate one large Kafka Streams group, as records of ``__consumer_offsets``.

Its leader decides like HighAvailabilityTaskAssignor, each process has one stream thread, and every
copy is restored before the next generation.
"""

from __future__ import annotations

from collections.abc import Iterator

from caughtup.demo.fleet.encoding import (
    EncodedMember,
    encode_assignment,
    encode_group_key,
    encode_group_metadata,
    encode_subscription,
)
from caughtup.demo.fleet.group import RUNNING
from caughtup.demo.fleet.offset_commits import commit_key, commit_value
from caughtup.models.assignment.decision import ClientDecision
from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.registry import decide
from caughtup.models.ids import ProcessId, TopicPartition
from caughtup.models.parameters import DEFAULTS
from caughtup.models.wire.user_data import encode_assignment_info, encode_subscription_info

GROUP = "generated-large"
SOURCE = "generated-large-in"
CHANGELOG = f"{GROUP}-counts-changelog"
#: In offsets: the end of each partition of both topics, a standby's lag, and
#: acceptable.recovery.lag. They are small, so that as many real records can be written.
END_OFFSET = 50
_BEHIND = 5
_ACCEPTABLE = 10
_TIMEOUT_MS = 45_000
_PROBING_MS = 600_000

Record = tuple[bytes, bytes]


class LargeGroup:
    """The group, with numbers of processes, tasks, and standbys of each task.

    ``config``: its assignor configs by Kafka's names.
    """

    def __init__(self, processes: int, tasks: int, standbys: int = 0) -> None:
        self.tasks = tasks
        self.config = {
            **DEFAULTS,
            "acceptable.recovery.lag": _ACCEPTABLE,
            "num.standby.replicas": standbys,
        }
        self._number = 0
        self._held: dict[ProcessId, ClientDecision] = {}
        self.join(processes)

    def join(self, processes: int) -> None:
        """Add processes without tasks."""
        for number in range(len(self._held), len(self._held) + processes):
            self._held[ProcessId.of(number)] = ClientDecision((), (), ())

    def rebalance(self, at_ms: int) -> Record:
        """Complete the next generation at a time (ms); return its record."""
        self._number += 1
        decision = decide(parse_scenario(self._scenario()))
        due_ms = at_ms + _PROBING_MS if decision.probing_rebalance_needed else None
        members = [
            _member(process, held, decision.clients[process], None if place else due_ms)
            for place, (process, held) in enumerate(sorted(self._held.items()))
        ]
        self._held = dict(decision.clients)
        leader = members[0].member_id
        value = encode_group_metadata(self._number, "stream", leader, at_ms, members)
        return encode_group_key(GROUP), value

    def _scenario(self) -> dict[str, object]:
        """Return the leader's scenario in the format of ``caughtup assign``."""
        tasks = [f"0_{number}" for number in range(self.tasks)]
        return {
            "assignor": "high_availability",
            "config": self.config,
            "tasks": {task: {"stateful": True} for task in tasks},
            "greatest_lags": dict.fromkeys(tasks, END_OFFSET),
            "clients": {
                str(process): {
                    "capacity": 1,
                    "previous_active": [str(task) for task in held.active],
                    "previous_standby": [str(task) for task in held.standby],
                    "lags": dict.fromkeys(map(str, held.standby), _BEHIND)
                    | dict.fromkeys(map(str, held.active), RUNNING),
                }
                for process, held in self._held.items()
            },
        }

    def commits(self, at_ms: int) -> Iterator[Record]:
        """Yield the commits of every source partition at a time (ms)."""
        for number in range(self.tasks):
            yield commit_key(GROUP, number, SOURCE), commit_value(END_OFFSET, at_ms)

    def partitions(self) -> Iterator[TopicPartition]:
        """Yield the partitions of the source and the changelog; each ends at ``END_OFFSET``."""
        for topic in (SOURCE, CHANGELOG):
            for number in range(self.tasks):
                yield TopicPartition(topic, number)


def _member(
    process: ProcessId, held: ClientDecision, given: ClientDecision, due_ms: int | None
) -> EncodedMember:
    """Encode the member of a process, with its former copies and its new assignment."""
    name = f"{process}-StreamThread-1-consumer"
    sums = dict.fromkeys(held.standby, END_OFFSET - _BEHIND) | dict.fromkeys(held.active, RUNNING)
    active = [task.partition for task in given.active]
    standby = {task: [TopicPartition(SOURCE, task.partition)] for task in given.standby}
    return EncodedMember(
        name,
        name,
        "/127.0.0.1",
        _TIMEOUT_MS,
        _TIMEOUT_MS,
        encode_subscription([SOURCE], encode_subscription_info(process, sums, 0)),
        encode_assignment(SOURCE, active, encode_assignment_info(given.active, standby, due_ms)),
    )
