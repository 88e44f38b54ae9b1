"""The best ways to carry out a plan: configs and orders are tried, and the best are returned."""

from __future__ import annotations

from dataclasses import replace

from caughtup.models.simulation.streams.plan import PlannedActions
from caughtup.models.what_if.question import WhatIfAnswer, ask
from caughtup.models.what_if.setting import Playable, WhatIfSetting

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


def _configs(group: Playable, setting: WhatIfSetting) -> list[tuple[tuple[str, int], ...]]:
    """Return the configs to try; those in the setting are fixed."""
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


def _cost(answer: WhatIfAnswer) -> tuple[int, int]:
    return answer.slow.figures.longest_still_ms, answer.slow.offsets_restored


def _beats(one: WhatIfAnswer, other: WhatIfAnswer) -> bool:
    (still, offsets), (other_still, other_offsets) = _cost(one), _cost(other)
    return still <= other_still and offsets <= other_offsets and (still, offsets) != _cost(other)
