"""What somebody asks before doing something to a group: one plan, played for the least and the most."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from caughtup.models.assignment.configs import read_configs
from caughtup.models.assignors.following.follower import Patience
from caughtup.models.decisions.exact.generation import CLASSES, FOLLOWER, KAFKAS
from caughtup.models.decisions.generation import DecidedGeneration
from caughtup.models.decisions.inputs.gathering import RECOMMENDED
from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.errors import CaughtupError
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.simulation.membership import Timings
from caughtup.models.simulation.streams.plan import PlannedActions, SimulationResult, simulate
from caughtup.models.simulation.streams.run import RunningInstance
from caughtup.models.simulation.streams.scenarios import AT_ONCE, application_of
from caughtup.models.simulation.streams.topology import SimulatedApplication
from caughtup.models.state.cluster import ClusterState
from caughtup.models.what_if.beginning import (
    Speeds,
    instance_names,
    running_instances,
    speeds,
)
from caughtup.models.what_if.setting import AS_IT_IS, Playable, Setting, as_played

#: Assignors as scenarios call them, by what exact mode calls them; a follower moves as recommended.
_ASSIGNORS = {**{kafkas: ours for ours, kafkas in CLASSES.items()}, FOLLOWER: RECOMMENDED}


@dataclass(frozen=True, slots=True)
class Group:
    """A Kafka Streams application as it is now, ready to be played.

    ``speeds.restore`` is None where nobody saw a copy restore: seconds of restoring are unknown
    then, and every figure of them is a least one.
    """

    name: str
    generation: StreamsGeneration
    decided: DecidedGeneration
    rows: tuple[TaskCopy, ...]
    speeds: Speeds
    now_ms: int

    @property
    def clients(self) -> list[str]:
        """The names of its instances, sorted."""
        return sorted(instance_names(self.generation).values())

    def running(self, application: SimulatedApplication) -> tuple[RunningInstance, ...]:
        """Return its instances as they are by now, restoring as fast as ``application`` does."""
        ends = {task: one.end for task, one in application.changelogs.items()}
        return running_instances(
            self.generation, self.rows, ends, self.now_ms, application.restore_per_second
        )

    @property
    def epoch(self) -> int:
        """Its generation."""
        return self.generation.generation

    @property
    def leaves(self) -> bool:
        """Kafka Streams doesn't leave its group when it is closed."""
        return False

    @property
    def config(self) -> Mapping[str, Any]:
        """Its configs, as far as they are known."""
        return self.decided.inputs.scenario.config

    @property
    def open_configs(self) -> Mapping[str, str]:
        """The configs that aren't known for certain, with the values that are left."""
        return {one.name: one.text for one in self.decided.inputs.configs if one.would_tell}

    @property
    def static_members(self) -> bool:
        """Whether every stream thread has a ``group.instance.id``."""
        members = list(self.generation.members())
        return bool(members) and all(one.instance_id is not None for one in members)

    def timings(self) -> Timings:
        """Return Kafka's timings, with the session timeout that the group's members have."""
        members = list(self.generation.members())
        if not members:
            return Timings()
        return Timings(session_timeout_ms=max(one.session_timeout_ms for one in members))

    def application(self, setting: Setting, restore_per_second: float) -> SimulatedApplication:
        """Describe it as it is to be played. Raises ScenarioError for what Kafka refuses."""
        scenario = self.decided.inputs.scenario
        follows = setting.assignor is None and self.decided.exact.assignor == FOLLOWER
        application = application_of(
            self.generation.source_topics,
            scenario,
            {row.task: row.end_offset_sum for row in self.rows if row.end_offset_sum is not None},
            assignor=setting.assignor or _ASSIGNORS.get(self.decided.exact.assignor, KAFKAS),
            configs=read_configs({**scenario.config, **dict(setting.config)}),
            timings=self.timings(),
            writes=self.speeds.writes,
            restore_per_second=restore_per_second,
        )
        own = replace(
            application,
            static_members=self.static_members,
            follower=Patience() if follows else None,
        )
        return as_played(own, setting)


@dataclass(frozen=True, slots=True)
class Answer:
    """A plan's end for the fastest and the slowest restoring that was seen.

    ``restoring_known``: whether any was seen. Where none was, both are without restoring.
    """

    plan: PlannedActions
    setting: Setting
    fast: SimulationResult
    slow: SimulationResult
    restoring_known: bool


def group_of(
    state: ClusterState, name: str, now_ms: int, restore: tuple[float, float] | None = None
) -> Group | None:
    """Return an application as it is known now; None if none of that name has been decided.

    ``restore``: the least and the greatest that a thread restores, in offsets a second, where
    somebody says so; else what copies were seen to.
    """
    application = state.applications.get(name)
    if application is None or application.decided is None:
        return None
    watch = state.watches.get(name)
    seen = speeds(watch.copies.values() if watch else ())
    decided = application.decided
    return Group(
        name,
        decided.generation,
        decided,
        tuple(state.task_rows(name)),
        replace(seen, restore=restore) if restore else seen,
        now_ms,
    )


class UnknownClientError(CaughtupError):
    """A plan names a client that the group doesn't have."""


def ask(
    group: Playable,
    plan: PlannedActions,
    setting: Setting = AS_IT_IS,
    between_steps: Callable[[], None] = lambda: None,
) -> Answer:
    """Play a plan on a group.

    ``between_steps`` is called now and then, and may raise to end it. Raises UnknownClientError, and ScenarioError for a config that Kafka refuses.
    """
    _refuse_unknown(plan, group.clients)
    rates = group.speeds.restore or (AT_ONCE, AT_ONCE)
    slow = fast = _played(group, plan, setting, rates[0], between_steps)
    if rates[1] != rates[0]:
        fast = _played(group, plan, setting, rates[1], between_steps)
    return Answer(plan, setting, fast, slow, group.speeds.restore is not None)


def _played(
    group: Playable,
    plan: PlannedActions,
    setting: Setting,
    rate: float,
    between_steps: Callable[[], None],
) -> SimulationResult:
    between_steps()
    application = group.application(setting, rate)
    return simulate(
        application,
        group.running(application),
        plan,
        generation=group.epoch,
        epoch_ms=group.now_ms,
        between_steps=between_steps,
    )


def _refuse_unknown(plan: PlannedActions, clients: Sequence[str]) -> None:
    for name in (*plan.stop, *plan.kill, *plan.restart):
        if name not in clients:
            raise UnknownClientError(
                "unknown_client", f"{name!r:.120} is not among {', '.join(sorted(clients)[:20])}"
            )
