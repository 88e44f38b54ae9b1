"""Which way of doing something costs least: configs and orders tried, and those worth choosing."""

from __future__ import annotations

from dataclasses import replace

from caughtup.models.simulation.streams.plan import PlannedActions
from caughtup.models.what_if.question import Answer, ask
from caughtup.models.what_if.setting import Playable, Setting

_STANDBYS = "num.standby.replicas"
_WARMUPS = "max.warmup.replicas"
_LAG = "acceptable.recovery.lag"


def best_plans(group: Playable, plan: PlannedActions, setting: Setting) -> list[Answer]:
    """Play a plan under the configs and in the orders that matter, and return the frontier.

    The frontier: nothing else stands still for less time with as few offsets copied. The plan as
    it was asked for comes first, then the frontier by the longest time that a task stands still.
    Standbys that there aren't yet would have to be built first: what that costs isn't counted
    here, and a config that changes them is played as if they were to come with the plan.
    Raises UnknownClientError, and ScenarioError for a config that Kafka refuses.
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
    best: list[Answer] = []
    for one in sorted(frontier, key=_cost):
        if _cost(one) not in seen and one is not asked:
            seen.add(_cost(one))
            best.append(one)
    return [asked, *best]


def _plans(plan: PlannedActions) -> list[PlannedActions]:
    """Return the orders in which it can be done, and with the group told or not."""
    orders = [plan, replace(plan, leave_group=not plan.leave_group)]
    if len(plan.restart) > 1:
        orders += [replace(one, at_once=not plan.at_once) for one in orders]
    return orders


def _configs(group: Playable, setting: Setting) -> list[tuple[tuple[str, int], ...]]:
    """Return the configs to try, those that somebody set fixed."""
    now = group.config
    fixed = dict(setting.config)
    lag = now.get(_LAG, 10_000)
    choices = {
        _STANDBYS: sorted({_int(now.get(_STANDBYS, 0)), 0, 1}),
        _WARMUPS: sorted({_int(now.get(_WARMUPS, 2)), 2, 8}),
        _LAG: sorted({_int(lag), 10 * _int(lag)}),
    }
    found: list[tuple[tuple[str, int], ...]] = [tuple(fixed.items())]
    for name, values in choices.items():
        if name not in fixed:
            found = [(*one, (name, value)) for one in found for value in values]
    return found


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def _cost(answer: Answer) -> tuple[int, int]:
    return answer.slow.figures.longest_still_ms, answer.slow.offsets_restored


def _beats(one: Answer, other: Answer) -> bool:
    (still, offsets), (other_still, other_offsets) = _cost(one), _cost(other)
    return still <= other_still and offsets <= other_offsets and (still, offsets) != _cost(other)
