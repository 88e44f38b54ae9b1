"""What it takes until a group is balanced, if an assignor goes on deciding for it."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

from caughtup.models.assignment.decision import Decision, Kind
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.simulation.rounds import play

#: Movements that build a copy of state where there was none; the others only change roles.
BUILDING = frozenset({Kind.COLD, Kind.WARMUP, Kind.WAITING, Kind.STANDBY})
#: Movements that take turns with the warm-ups.
_TAKING_TURNS = frozenset({Kind.WARMUP, Kind.WAITING})
#: Tasks × clients × rounds that are played; of more, the first decision tells.
_MOST_PLAYED = 100_000


def plan_cost(scenario: Scenario, decision: Decision) -> Mapping[str, Any]:
    """Give the cost of carrying a plan out, by the fields of a recommendation.

    ``copies`` of state to build, ``offsets`` to restore for them as far as lags are known,
    probing ``rebalances``, and the ``seconds`` they take at probing.rebalance.interval.ms, every
    copy being caught up when the next is due. ``estimated`` where the rounds weren't played one
    by one: ``decision``, the first of them, has every movement of the plan.
    """
    turns = sum(movement.kind in _TAKING_TURNS for movement in decision.movements)
    rounds = ceil(turns / scenario.configs.max_warmup_replicas) + 1
    pairs = (len(scenario.stateful) + len(scenario.stateless)) * len(scenario.clients)
    if pairs * rounds <= _MOST_PLAYED:
        outcome = play(scenario, most_rounds=4 * rounds + 4)
        if outcome.converged:
            return _cost(
                scenario,
                outcome.copies_built,
                outcome.offsets_restored,
                outcome.rounds - 1,
                estimated=False,
            )
    building = [movement for movement in decision.movements if movement.kind in BUILDING]
    offsets = sum(m.lag for m in building if m.lag is not None and m.lag > 0)
    return _cost(scenario, len(building), offsets, rounds - 1, estimated=True)


def _cost(
    scenario: Scenario, copies: int, offsets: int | None, rebalances: int, *, estimated: bool
) -> Mapping[str, Any]:
    cost: dict[str, Any] = {"copies": copies}
    if offsets is not None:
        cost["offsets"] = offsets
    interval_ms = scenario.configs.probing_rebalance_interval_ms
    seconds = rebalances * interval_ms / 1000
    return {**cost, "rebalances": rebalances, "seconds": seconds, "estimated": estimated}
