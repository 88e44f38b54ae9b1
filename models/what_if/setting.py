"""How a plan is played, and what of a group it takes to play it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from caughtup.models.errors import ScenarioError
from caughtup.models.simulation.streams.run import RunningInstance
from caughtup.models.simulation.streams.topology import STREAMS_TIMINGS, SimulatedApplication
from caughtup.models.simulation.streams.topology import AssignmentProtocol as GroupProtocol
from caughtup.models.what_if.beginning import Speeds


@dataclass(frozen=True, slots=True)
class Setting:
    """How a plan is played: what is other than it is, and by which protocol.

    ``static_members``: as if every thread had a ``group.instance.id``; else as the group is.
    ``protocol``: as if the group were on that one; None: as it is.
    """

    assignor: str | None = None
    config: tuple[tuple[str, Any], ...] = ()
    eager: bool = False
    waits_for_thread: bool = False
    static_members: bool = False
    protocol: GroupProtocol | None = None


AS_IT_IS = Setting()


class Playable(Protocol):
    """A group as it is, ready to be played.

    ``speeds.restore`` is None where nobody saw a copy restore: seconds of restoring are unknown
    then, and every figure of them is a least one. ``now_ms`` is when it was like that (epoch ms),
    ``epoch`` its generation. ``leaves``: who stops in order tells the group unless asked not to.
    """

    @property
    def name(self) -> str:
        """The group's name."""

    @property
    def speeds(self) -> Speeds:
        """How fast things go."""

    @property
    def now_ms(self) -> int:
        """When it was like that."""

    @property
    def epoch(self) -> int:
        """Its generation."""

    @property
    def leaves(self) -> bool:
        """Whether who stops in order leaves the group."""

    @property
    def clients(self) -> list[str]:
        """The names of its instances, sorted."""

    @property
    def config(self) -> Mapping[str, Any]:
        """Its configs, as far as they are known."""

    @property
    def open_configs(self) -> Mapping[str, str]:
        """The configs that aren't known for certain, with the values that are left."""

    def running(self, application: SimulatedApplication) -> tuple[RunningInstance, ...]:
        """Return its instances as they are by now, restoring as fast as ``application`` does."""

    def application(self, setting: Setting, restore_per_second: float) -> SimulatedApplication:
        """Describe it as it is to be played. Raises ScenarioError for what Kafka refuses."""


def as_played(application: SimulatedApplication, setting: Setting) -> SimulatedApplication:
    """Return a Kafka Streams application as a setting has it played.

    Raises ScenarioError ``unsupported`` for what there isn't on a protocol.
    """
    if setting.protocol is GroupProtocol.CONSUMER:
        raise ScenarioError(
            "unsupported",
            "Kafka Streams' tasks have no consumer group: its protocols are cooperative, eager "
            "and streams",
        )
    if setting.protocol is GroupProtocol.STREAMS:
        if setting.assignor is not None or setting.static_members:
            raise ScenarioError(
                "unsupported",
                "the coordinator of a streams group has one assignor, sticky, and no static members",
            )
        return replace(
            application,
            protocol=GroupProtocol.STREAMS,
            timings=STREAMS_TIMINGS,
            static_members=False,
            waits_for_thread=False,
            follower=None,
        )
    if application.protocol is GroupProtocol.CLASSIC:
        application = replace(application, eager=setting.eager)
    return replace(
        application,
        waits_for_thread=setting.waits_for_thread,
        static_members=setting.static_members or application.static_members,
    )
