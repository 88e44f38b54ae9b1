"""A Kafka Streams application from a scenario of ``caughtup assign``, or from a recorded one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from caughtup.models.assignment.compact import CompactScenario
from caughtup.models.assignment.configs import read_configs
from caughtup.models.assignors.registry import ASSIGNORS
from caughtup.models.errors import ScenarioError
from caughtup.models.simulation.membership import Timings
from caughtup.models.simulation.streams.run import RunningInstance
from caughtup.models.simulation.streams.scenarios import (
    application_of,
    instances_of,
    sources_of,
)
from caughtup.models.simulation.streams.topology import SimulatedApplication
from caughtup.models.what_if.beginning import Speeds
from caughtup.models.what_if.setting import WhatIfSetting, with_setting


@dataclass(frozen=True, slots=True)
class RecordedGroup:
    """An application of a scenario. Its threads share the tasks of their process.

    A copy with an unknown position counts as yet to be built, except an active, which runs.
    ``speeds.restore`` is None unless the restore rate of threads is given.
    """

    scenario: CompactScenario
    speeds: Speeds

    @property
    def name(self) -> str:
        """The scenario's name."""
        return self.scenario.name or "the scenario"

    @property
    def now_ms(self) -> int:
        """0: a scenario has no time."""
        return 0

    @property
    def epoch(self) -> int:
        """1: a scenario has no generation."""
        return 1

    @property
    def leaves(self) -> bool:
        """False: Kafka Streams doesn't leave its group when it is closed."""
        return False

    @property
    def clients(self) -> list[str]:
        """The names of its instances, sorted."""
        return sorted(one.name for one in instances_of(self.scenario))

    @property
    def config(self) -> Mapping[str, Any]:
        """The scenario's configs."""
        return self.scenario.config

    @property
    def open_configs(self) -> Mapping[str, str]:
        """Empty: a scenario has all of its configs."""
        return {}

    def running(self, application: SimulatedApplication) -> tuple[RunningInstance, ...]:
        """Return its instances as they are."""
        del application  # a scenario has no time since which copies could have restored
        return instances_of(self.scenario)

    def application(
        self, setting: WhatIfSetting, restore_per_second: float
    ) -> SimulatedApplication:
        """Return it as a simulated application. Raises ScenarioError for what Kafka refuses."""
        assignor = setting.assignor or self.scenario.assignor
        if assignor not in ASSIGNORS:
            raise ScenarioError("unsupported", f"assignor: {assignor!r:.80} can't be played")
        application = application_of(
            sources_of(self.scenario),
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
        return with_setting(application, setting)
