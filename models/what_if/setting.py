"""The setting of a simulation, and the interface of a group that can be simulated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from caughtup.models.errors import ScenarioError
from caughtup.models.simulation.streams.run import RunningInstance
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
    config: tuple[tuple[str, Any], ...] = ()
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
    def config(self) -> Mapping[str, Any]:
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
