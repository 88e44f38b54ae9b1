"""The result of a planned change to a group, at the least and the greatest restore rate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from caughtup.models.assignment.configs import read_configs
from caughtup.models.assignors.following.follower import Patience
from caughtup.models.decisions.exact.comparison import CLASSES, FOLLOWER, KAFKAS
from caughtup.models.decisions.inputs.gathering import RECOMMENDED
from caughtup.models.decisions.life import DecidedGeneration
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
from caughtup.models.what_if.setting import AS_IT_IS, Playable, WhatIfSetting, with_setting
from caughtup.models.what_if.streams_group import BrokerAssignedGroup, streams_group_of

#: Assignors' names in scenarios, by their names in exact mode; a follower does as recommended.
_ASSIGNORS = {**{kafkas: ours for ours, kafkas in CLASSES.items()}, FOLLOWER: RECOMMENDED}


@dataclass(frozen=True, slots=True)
class LeaderAssignedGroup:
    """A Kafka Streams application as it is now, on the classic protocol, ready to be simulated.

    ``speeds.restore`` is None if no copy was seen restoring: the seconds of restoring are unknown
    then, and every time is a lower bound.
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
        """Return its instances as they are now, restored at the rate of ``application``."""
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
        """False: Kafka Streams doesn't leave its group when it is closed."""
        return False

    @property
    def config(self) -> Mapping[str, object]:
        """Its configs, as far as they are known."""
        return self.decided.inputs.scenario.config

    @property
    def open_configs(self) -> Mapping[str, str]:
        """The configs that aren't known for certain, with the possible values."""
        return {one.name: one.values for one in self.decided.inputs.configs if one.would_tell}

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

    def application(
        self, setting: WhatIfSetting, restore_per_second: float
    ) -> SimulatedApplication:
        """Return it as a simulated application. Raises ScenarioError for what Kafka refuses."""
        scenario = self.decided.inputs.scenario
        follows = setting.assignor is None and self.decided.exact.leader.assignor == FOLLOWER
        application = application_of(
            self.generation.source_topics,
            scenario,
            {row.task: row.end_offset_sum for row in self.rows if row.end_offset_sum is not None},
            assignor=setting.assignor or _ASSIGNORS.get(self.decided.exact.leader.assignor, KAFKAS),
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
        return with_setting(own, setting)


@dataclass(frozen=True, slots=True)
class WhatIfAnswer:
    """The results of a plan at the fastest and the slowest observed restore rate.

    ``restoring_known``: whether any rate was observed. Without one, restoring takes no time in
    both.
    """

    plan: PlannedActions
    setting: WhatIfSetting
    fast: SimulationResult
    slow: SimulationResult
    restoring_known: bool


def group_of(
    state: ClusterState, name: str, now_ms: int, restore: tuple[float, float] | None = None
) -> LeaderAssignedGroup | None:
    """Return an application as it is now; None if none of that name has been decided.

    ``restore``: the least and the greatest restore rate of a thread, in offsets a second, if given;
    else the observed rates of copies.
    """
    application = state.applications.get(name)
    if application is None or application.decided is None:
        return None
    watch = state.watches.get(name)
    seen = speeds(watch.copies.values() if watch else ())
    decided = application.decided
    return LeaderAssignedGroup(
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
    setting: WhatIfSetting = AS_IT_IS,
    between_steps: Callable[[], None] = lambda: None,
) -> WhatIfAnswer:
    """Simulate a plan on a group.

    ``between_steps`` is called from time to time, and may raise to end it. Raises
    UnknownClientError, and ScenarioError for a config that Kafka refuses.
    """
    _refuse_unknown(plan, group.clients)
    rates = group.speeds.restore or (AT_ONCE, AT_ONCE)
    slow = fast = _simulated(group, plan, setting, rates[0], between_steps)
    if rates[1] != rates[0]:
        fast = _simulated(group, plan, setting, rates[1], between_steps)
    return WhatIfAnswer(plan, setting, fast, slow, group.speeds.restore is not None)


def _simulated(
    group: Playable,
    plan: PlannedActions,
    setting: WhatIfSetting,
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


def application_of_group(
    state: ClusterState, name: str, now_ms: int, restore: tuple[float, float] | None = None
) -> LeaderAssignedGroup | BrokerAssignedGroup | None:
    """Return an application as it is now, on either protocol; None if there is none of that name.

    ``restore`` as in ``group_of``.
    """
    return group_of(state, name, now_ms, restore) or streams_group_of(state, name, now_ms, restore)


_STANDBYS = "num.standby.replicas"
_WARMUPS = "max.warmup.replicas"
_LAG = "acceptable.recovery.lag"


def best_plans(group: Playable, plan: PlannedActions, setting: WhatIfSetting) -> list[WhatIfAnswer]:
    """Simulate a plan with the configs and in the orders that matter; return the Pareto frontier.

    On the frontier, no other way has a shorter standstill with as few offsets copied. The plan as
    asked comes first, then the frontier by the longest standstill of a task. A config that changes
    the number of standbys is simulated as if it came with the plan: the cost of building standbys
    beforehand doesn't count. Raises UnknownClientError, and ScenarioError for a config that Kafka
    refuses.
    """
    asked = ask(group, plan, setting)
    tried = [asked] + [
        ask(group, other, replace(setting, config=config))
        for other in _plans(plan)
        for config in _configs(group, setting)
        if (other, config) != (plan, setting.config)
    ]
    rest = [one for one in tried if one.slow.endless is None]
    frontier = [one for one in rest if not any(_beats(other, one) for other in rest)]
    seen: set[tuple[int, int]] = set()
    best: list[WhatIfAnswer] = []
    for one in sorted(frontier, key=_cost):
        if _cost(one) not in seen and one is not asked:
            seen.add(_cost(one))
            best.append(one)
    return [asked, *best]


def _plans(plan: PlannedActions) -> list[PlannedActions]:
    """Return the possible orders of a plan, each with and without leaving the group."""
    orders = [plan, replace(plan, leave_group=not plan.leave_group)]
    if len(plan.restart) > 1:
        orders += [replace(one, at_once=not plan.at_once) for one in orders]
    return orders


def _configs(group: Playable, setting: WhatIfSetting) -> list[tuple[tuple[str, object], ...]]:
    """Return the configs to try; those in the setting are fixed."""
    now = group.config
    fixed = dict(setting.config)
    lag = now.get(_LAG, 10_000)
    choices = {
        _STANDBYS: sorted({_int(now.get(_STANDBYS, 0)), 0, 1}),
        _WARMUPS: sorted({_int(now.get(_WARMUPS, 2)), 2, 8}),
        _LAG: sorted({_int(lag), 10 * _int(lag)}),
    }
    found: list[tuple[tuple[str, object], ...]] = [tuple(fixed.items())]
    for name, values in choices.items():
        if name not in fixed:
            found = [(*one, (name, value)) for one in found for value in values]
    return found


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def _cost(answer: WhatIfAnswer) -> tuple[int, int]:
    return answer.slow.figures.longest_still_ms, answer.slow.offsets_restored


def _beats(one: WhatIfAnswer, other: WhatIfAnswer) -> bool:
    (still, offsets), (other_still, other_offsets) = _cost(one), _cost(other)
    return still <= other_still and offsets <= other_offsets and (still, offsets) != _cost(other)
