"""A Kafka Streams application as a scenario has it: one of ``caughtup assign``, or a recorded one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from caughtup.models.assignment.catch_up import RUNNING, UNKNOWN
from caughtup.models.assignment.compact import CompactScenario
from caughtup.models.assignment.configs import read_configs
from caughtup.models.assignors.registry import ASSIGNORS
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.simulation.membership import Timings
from caughtup.models.simulation.streams.run import RunningInstance, RunningThread
from caughtup.models.simulation.streams.topology import Application
from caughtup.models.what_if.beginning import Speeds, application_of
from caughtup.models.what_if.setting import Setting, as_played


@dataclass(frozen=True, slots=True)
class RecordedGroup:
    """An application as a scenario has it. Its threads share what their process had.

    A copy of which nobody knows how far it is counts as one that is yet to be built, but for an
    active, which runs. ``speeds.restore`` is None unless somebody says how fast threads restore.
    """

    scenario: CompactScenario
    speeds: Speeds

    @property
    def name(self) -> str:
        """The scenario's name."""
        return self.scenario.name or "the scenario"

    @property
    def now_ms(self) -> int:
        """A scenario has no time: its story begins at 0."""
        return 0

    @property
    def epoch(self) -> int:
        """A scenario has no generation: its story begins with the first one."""
        return 1

    @property
    def leaves(self) -> bool:
        """Kafka Streams doesn't leave its group when it is closed."""
        return False

    @property
    def clients(self) -> list[str]:
        """The names of its instances, sorted."""
        return sorted(_names(self.scenario).values())

    @property
    def config(self) -> Mapping[str, Any]:
        """The scenario's configs."""
        return self.scenario.config

    def running(self) -> tuple[RunningInstance, ...]:
        """Return its instances as they are."""
        names = _names(self.scenario)
        return tuple(
            self._instance(process, name)
            for process, name in sorted(names.items(), key=lambda one: one[0])
        )

    def application(self, setting: Setting, restore_per_second: float) -> Application:
        """Describe it as it is to be played. Raises ScenarioError for what Kafka refuses."""
        assignor = setting.assignor or self.scenario.assignor
        if assignor not in ASSIGNORS:
            raise ScenarioError("unsupported", f"assignor: {assignor!r:.80} can't be played")
        application = application_of(
            _sources(self.scenario),
            self.scenario,
            {},
            assignor=assignor,
            configs=read_configs({**self.config, **dict(setting.config)}),
            timings=Timings(),
            writes=self.speeds.writes,
            restore_per_second=restore_per_second,
        )
        missing = sorted(application.tasks().sources.keys() - self.scenario.tasks.keys())
        if missing:
            raise ScenarioError("missing_field", f"tasks.{missing[0]}: is missing")
        return as_played(application, setting)

    def _instance(self, process: ProcessId, name: str) -> RunningInstance:
        client = self.scenario.clients[process]
        active, standby = sorted(client.previous_active), sorted(client.previous_standby)
        sums = {}
        for task, one in self.scenario.tasks.items():
            reached = self._reached(process, task) if one.stateful else None
            if reached is not None:
                sums[task] = reached
        threads = tuple(
            RunningThread(tuple(active[n :: client.capacity]), tuple(standby[n :: client.capacity]))
            for n in range(client.capacity)
        )
        return RunningInstance(name, process, threads, sums, tags=client.tags, rack=client.rack)

    def _reached(self, process: ProcessId, task: TaskId) -> int | None:
        """Return the offset sum of a copy that isn't a running active, as far as there is one."""
        lag = self.scenario.lag_of(process, task)
        client = self.scenario.clients[process]
        end = max(self.scenario.greatest_lags.get(task, 0), 0)
        if task in client.previous_active and (lag in {None, RUNNING, UNKNOWN} or lag == 0):
            return None
        if lag is None or lag == UNKNOWN or lag >= end:
            return 0 if task in client.previous_active | client.previous_standby else None
        return end - max(lag, 0)


def _sources(scenario: CompactScenario) -> dict[str, int]:
    """Return each source topic's subtopology, with a name for those that the scenario leaves out."""
    found: dict[str, int] = {}
    for task, one in scenario.tasks.items():
        topics = {source.topic for source in one.sources} or {f"sources of {task.subtopology}"}
        found.update(dict.fromkeys(topics, task.subtopology))
    return found


def _names(scenario: CompactScenario) -> dict[ProcessId, str]:
    """Return a name for each process: its clients' where the scenario has it, else its own id."""
    names: dict[ProcessId, str] = {}
    for process in scenario.clients:
        ids = scenario.client_ids.get(process)
        name = ids[0].split("-StreamThread-")[0] if ids else str(process)
        names[process] = name if name not in names.values() else str(process)
    return names
