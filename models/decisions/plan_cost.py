"""What it takes until a group is balanced, if an assignor goes on deciding for it."""

from __future__ import annotations

from math import ceil

from caughtup.models.assignment.decision import Decision, MovementKind
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.records.fields import or_absent
from caughtup.models.records.recommendations import CostRecord
from caughtup.models.simulation.rounds import play

#: Movements that build a copy of state where there was none; the others only change roles.
BUILDING = frozenset(
    {MovementKind.COLD, MovementKind.WARMUP, MovementKind.WAITING, MovementKind.STANDBY}
)
#: Movements that take turns with the warm-ups.
_TAKING_TURNS = frozenset({MovementKind.WARMUP, MovementKind.WAITING})
#: Tasks × clients × rounds that are played; of more, the first decision tells.
_MOST_PLAYED = 100_000


def plan_cost(scenario: Scenario, decision: Decision) -> CostRecord:
    """Compute the cost of carrying a plan out, whose first round ``decision`` is.

    The seconds are probing rebalances at probing.rebalance.interval.ms, every copy being caught up
    when the next is due. Where it is estimated, that round has every movement of the plan.
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
) -> CostRecord:
    seconds = rebalances * scenario.configs.probing_rebalance_interval_ms / 1000
    return CostRecord(
        copies=copies,
        offsets=or_absent(offsets),
        rebalances=rebalances,
        seconds=seconds,
        estimated=estimated,
    )
