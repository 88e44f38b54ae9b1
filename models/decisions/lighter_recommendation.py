"""A recommendation without its heaviest parts, for one that is too large to be read.

What a follower reads always stays: who gets what, who had what, the configs, the next rebalance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from caughtup.models.decisions.recommendation import Recommendation


def lighter_recommendations(whole: Recommendation) -> Iterator[Recommendation]:
    """Yield a recommendation as it is, then without one part more each time.

    ``left_out`` names the parts that are missing: without lags nobody can decide it again.
    """
    yield whole
    lighter = whole
    for name, leave_out in _PARTS.items():
        lighter = replace(leave_out(lighter), left_out=(*lighter.left_out, name))
        yield lighter


def _without_lags(one: Recommendation) -> Recommendation:
    scenario = one.inputs.scenario
    clients = {process: replace(client, lags={}) for process, client in scenario.clients.items()}
    lighter = replace(scenario, greatest_lags={}, clients=clients)
    return replace(one, inputs=replace(one.inputs, scenario=lighter))


def _without_partitions(one: Recommendation) -> Recommendation:
    scenario = one.inputs.scenario
    tasks = {
        task: replace(given, sources=(), changelogs=()) for task, given in scenario.tasks.items()
    }
    return replace(one, inputs=replace(one.inputs, scenario=replace(scenario, tasks=tasks)))


def _without_end_offset_sums(one: Recommendation) -> Recommendation:
    return replace(one, inputs=replace(one.inputs, ends={}, unknown=()))


def _without_reasons(one: Recommendation) -> Recommendation:
    return replace(one, movements=tuple(m._replace(reason="") for m in one.movements))


def _without_movements(one: Recommendation) -> Recommendation:
    return replace(one, movements=())


#: What can be left out, by the name that ``left_out`` has for it, the heaviest first.
_PARTS: Mapping[str, Callable[[Recommendation], Recommendation]] = {
    "inputs.scenario.lags": _without_lags,
    "inputs.scenario.partitions": _without_partitions,
    "inputs.end_offset_sums": _without_end_offset_sums,
    "movements.reason": _without_reasons,
    "movements": _without_movements,
}
