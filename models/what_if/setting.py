"""The setting of a simulation, the interface of a group that can be simulated, and a recorded group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

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
from caughtup.models.simulation.streams.topology import (
    STREAMS_TIMINGS,
    AssignmentProtocol,
    SimulatedApplication,
)
from caughtup.models.what_if.beginning import Speeds


@dataclass(frozen=True, slots=True)
class WhatIfSetting:
    """What differs from the group as it is, and the protocol.

    ``static_members``: as if every thread had a ``group.instance.id``; else as in the group.
    ``protocol``: as if the group were on that one; None: as it is.
    """

    assignor: str | None = None
    config: tuple[tuple[str, object], ...] = ()
    eager: bool = False
    waits_for_thread: bool = False
    static_members: bool = False
    protocol: AssignmentProtocol | None = None


AS_IT_IS = WhatIfSetting()


class Playable(Protocol):
    """A group as it is now, ready to be simulated.

    ``speeds.restore`` is None if no copy was seen restoring: the seconds of restoring are unknown
    then, and every time is a lower bound. ``now_ms`` is the time of this state (epoch ms),
    ``epoch`` its generation. ``leaves``: an instance that stops in order leaves the group by
    default.
    """

    @property
    def name(self) -> str:
        """The group's name."""

    @property
    def speeds(self) -> Speeds:
        """The speeds of the application."""

    @property
    def now_ms(self) -> int:
        """The time of this state (epoch ms)."""

    @property
    def epoch(self) -> int:
        """Its generation."""

    @property
    def leaves(self) -> bool:
        """Whether an instance that stops in order leaves the group."""

    @property
    def clients(self) -> list[str]:
        """The names of its instances, sorted."""

    @property
    def config(self) -> Mapping[str, object]:
        """Its configs, as far as they are known."""

    @property
    def open_configs(self) -> Mapping[str, str]:
        """The configs that aren't known for certain, with the possible values."""

    def running(self, application: SimulatedApplication) -> tuple[RunningInstance, ...]:
        """Return its instances as they are now, restored at the rate of ``application``."""

    def application(
        self, setting: WhatIfSetting, restore_per_second: float
    ) -> SimulatedApplication:
        """Return it as a simulated application. Raises ScenarioError for what Kafka refuses."""


def with_setting(application: SimulatedApplication, setting: WhatIfSetting) -> SimulatedApplication:
    """Return a Kafka Streams application under a setting.

    Raises ScenarioError ``unsupported`` for a setting that its protocol doesn't have.
    """
    if setting.protocol is AssignmentProtocol.CONSUMER:
        raise ScenarioError(
            "unsupported",
            "Kafka Streams' tasks have no consumer group: its protocols are cooperative, eager "
            "and streams",
        )
    if setting.protocol is AssignmentProtocol.STREAMS:
        if setting.assignor is not None or setting.static_members:
            raise ScenarioError(
                "unsupported",
                "the coordinator of a streams group has one assignor, sticky, and no static members",
            )
        return replace(
            application,
            protocol=AssignmentProtocol.STREAMS,
            timings=STREAMS_TIMINGS,
            static_members=False,
            waits_for_thread=False,
            follower=None,
        )
    if application.protocol is AssignmentProtocol.CLASSIC:
        application = replace(application, eager=setting.eager)
    return replace(
        application,
        waits_for_thread=setting.waits_for_thread,
        static_members=setting.static_members or application.static_members,
    )


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
    def config(self) -> Mapping[str, object]:
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
