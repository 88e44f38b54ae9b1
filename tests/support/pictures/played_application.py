"""A simulated Kafka Streams application; Kafka's own assignor decides each generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from caughtup.models.assignment.decision import Decision
from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.registry import decide
from caughtup.models.ids import CopyKey, ProcessId, TaskId
from caughtup.models.parameters import DEFAULTS, ApplicationParameters
from caughtup.models.tasks.positions import TaskPosition
from tests.support.groups.records import commit
from tests.support.groups.streams import RUNNING, Member, generation
from tests.support.pictures.played_cluster import SECOND, STEP_MS, Cluster, Topic, keeps_up


class Subtopology(NamedTuple):
    """A subtopology: its source topic and its changelog."""

    source: Topic
    changelog: Topic


@dataclass
class Instance:
    """A process with one thread: its tasks, and the positions of its copies, in offsets."""

    name: str
    number: int
    host: str
    active: tuple[str, ...] = ()
    standby: tuple[str, ...] = ()
    copied: dict[str, int] = field(default_factory=dict)

    @property
    def process(self) -> ProcessId:
        return ProcessId.of(self.number)


def parameters(config: Mapping[str, int], *subtopologies: Subtopology) -> ApplicationParameters:
    """Return settings with everything about an application that the wire doesn't have."""
    changelogs = {at: (one.changelog.name,) for at, one in enumerate(subtopologies)}
    return ApplicationParameters(config={**DEFAULTS, **config}, changelogs=changelogs)


class Application:
    """Long-running instances, and those that ``join``.

    ``restores``: the offsets a second at which a copy is restored; ``reports``: whether instances
    report copies' positions between rebalances.
    """

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        instances: Sequence[str],
        subtopologies: Sequence[Subtopology],
        config: Mapping[str, int],
        *,
        generation: int = 41,
        restores: float = 3_000.0,
        reports: bool = True,
    ) -> None:
        self._cluster = cluster
        self._name = name
        self._subtopologies = subtopologies
        self._config = {**DEFAULTS, **config}
        self._number = generation - 1
        self._restores, self._reports = restores, reports
        self._tasks = {
            f"{at}_{number}": (one, number)
            for at, one in enumerate(subtopologies)
            for number in range(one.source.partitions)
        }
        self._instances: list[Instance] = []
        self._due: dict[int, tuple[str, ...]] = {}
        for instance in instances:
            self._add(instance)
        self._settle()
        self._rebalance(cluster.now_ms)
        cluster.players.append(self._step)

    def join(self, at_ms: int, *names: str) -> None:
        """Schedule instances to join at a time (ms), with a rebalance."""
        self._due[at_ms] = names

    def _add(self, name: str) -> None:
        place = len(self._instances) + 1
        # Ids in the order of names, whose bits look random.
        number = (place << 119) | ((place * 0x9E3779B97F4A7C15F39CC0605CEDC834) % (1 << 119))
        self._instances.append(Instance(name, number, f"/10.1.{place // 200}.{10 + place % 200}"))

    def _end(self, task: str, at_ms: int) -> int:
        one, number = self._tasks[task]
        return one.changelog.end(number, at_ms)

    def _settle(self) -> None:
        """Assign tasks until nothing moves: the state before the first generation."""
        now = self._cluster.now_ms
        for _ in range(20):
            before = [(one.active, one.standby) for one in self._instances]
            self._carry_out(self._decide(now))
            for one in self._instances:
                one.copied = {task: self._end(task, now) for task in one.standby}
            if before == [(one.active, one.standby) for one in self._instances]:
                return
        raise AssertionError("it never comes to rest")

    def _decide(self, at_ms: int) -> Decision:
        scenario: dict[str, Any] = {
            "assignor": "high_availability",
            "config": self._config,
            "tasks": {task: {"stateful": True} for task in self._tasks},
            "greatest_lags": {task: self._end(task, at_ms) for task in self._tasks},
            "clients": {
                str(one.process): {
                    "capacity": 1,
                    "previous_active": list(one.active),
                    "previous_standby": list(one.standby),
                    "lags": {
                        task: self._end(task, at_ms) - copied for task, copied in one.copied.items()
                    }
                    | dict.fromkeys(one.active, RUNNING),
                }
                for one in self._instances
            },
        }
        return decide(parse_scenario(scenario))

    def _carry_out(self, decision: Decision) -> dict[str, int | None]:
        """Apply a decision, except tasks whose owners have yet to revoke them.

        Returns when each instance requests the next rebalance: at once (0) if it waits for a task.
        """
        owners = {task: one for one in self._instances for task in one.active}
        interval_ms = self._config["probing.rebalance.interval.ms"]
        due = self._cluster.now_ms + interval_ms if decision.probing_rebalance_needed else None
        asked: dict[str, int | None] = {}
        for place, one in enumerate(self._instances):
            given = decision.clients[one.process]
            wanted = tuple(map(str, sorted(given.active)))
            one.active = tuple(task for task in wanted if owners.get(task, one) is one)
            waits = {task for task in wanted if task not in one.active and task in one.copied}
            one.standby = tuple(sorted({*map(str, given.standby), *waits}, key=TaskId.parse))
            asked[one.name] = 0 if one.active != wanted else due if place == 0 else None
        for one in self._instances:
            kept = {task: copied for task, copied in one.copied.items() if task in one.standby}
            was = {task for task, owner in owners.items() if owner is one}
            now = {task: self._end(task, self._cluster.now_ms) for task in was}
            one.copied = {task: kept.get(task, now.get(task, 0)) for task in one.standby}
        return asked

    def _rebalance(self, at_ms: int) -> None:
        """Complete the next generation at a time (ms), and read its record."""
        self._number += 1
        before = {one.name: (one.active, dict(one.copied)) for one in self._instances}
        asked = self._carry_out(self._decide(at_ms))
        members = [
            Member(
                one.name,
                one.number,
                owned=before[one.name][0],
                sums=before[one.name][1] | dict.fromkeys(before[one.name][0], RUNNING),
                active=one.active,
                standby=one.standby,
                probe_at_ms=asked[one.name],
                host=one.host,
            )
            for one in self._instances
        ]
        if 0 in asked.values():
            self._due[at_ms + STEP_MS] = ()
        sources = {one.source.name: at for at, one in enumerate(self._subtopologies)}
        record = generation(self._number, *members, group=self._name, sources=sources, at_ms=at_ms)
        self._cluster.read(record)

    def _step(self, now_ms: int) -> None:
        for at_ms in [at_ms for at_ms in self._due if at_ms <= now_ms]:
            for name in self._due.pop(at_ms):
                self._add(name)
            self._rebalance(now_ms)
        self._cluster.read(
            *(
                commit(
                    n,
                    keeps_up(one.source, n, now_ms),
                    at_ms=now_ms,
                    topic=one.source.name,
                    group=self._name,
                )
                for one in self._subtopologies
                for n in range(one.source.partitions)
            )
        )
        for one in self._instances:
            self._copy(one, now_ms)

    def _copy(self, one: Instance, now_ms: int) -> None:
        """Have an instance restore its copies, and report their positions."""
        behind = [task for task in one.standby if one.copied[task] < self._end(task, now_ms)]
        for task in one.standby:
            share = self._restores * STEP_MS / SECOND / max(1, len(behind))
            one.copied[task] = min(one.copied[task] + round(share), self._end(task, now_ms))
            if self._reports:
                lag = self._end(task, now_ms) - one.copied[task]
                topic = self._tasks[task][0].changelog.name
                told = TaskPosition("standby", lag, {topic: lag}, now_ms)
                key = CopyKey(str(one.process), TaskId.parse(task))
                self._cluster.state.positions.apply(self._name, key, told)
