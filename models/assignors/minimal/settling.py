"""Keep a group from building copies that later plans throw away.

Where tags and balance are at odds, the plan of a group with a warm-up may be another one than the
plan that began it, and that one's may be the first again: copies would be built for ever.
"""

from __future__ import annotations

from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.minimal.copies import Copies
from caughtup.models.assignors.minimal.plan import Plan, find_plan, spread_of, worth_in
from caughtup.models.assignors.minimal.staging import Stage, stage

#: Within so many rebalances a plan has to lead to something better than what is there.
_REBALANCES = 4


def staged_plan(scenario: Scenario, copies: Copies) -> tuple[Plan, Stage]:
    """Find where the copies belong, and what of that can be done now.

    What is there stays, as well as it is spread, unless a few rebalances lead to something better.
    Each few rebalances make a group better then, so that it comes to rest. Raises ScenarioError as
    ``find_plan`` does.
    """
    plan = find_plan(scenario, copies)
    now = _staged(scenario, copies, plan)
    spread = spread_of(scenario)
    if not spread.matters or not plan.clients:
        return plan, now
    kept = copies.trimmed(len(plan.clients[0]), spread.values)
    if kept is None or kept == plan.clients or _improves(scenario, copies, now, kept):
        return plan, now
    return Plan(kept), _staged(scenario, copies, Plan(kept))


def _improves(scenario: Scenario, copies: Copies, now: Stage, kept: list[list[int]]) -> bool:
    """Return whether going on from a stage leads to something better than what is kept."""
    worth, values = worth_in(scenario), spread_of(scenario).values
    bar, size = worth(kept), len(kept[0])
    for _ in range(_REBALANCES):
        assigned = [[active, *own] for active, own in zip(now.actives, now.standbys, strict=True)]
        copies = copies.carried_out(assigned)
        there = copies.trimmed(size, values)
        if there is not None and worth(there) < bar:
            return True
        now = _staged(scenario, copies, find_plan(scenario, copies))
    return False


def _staged(scenario: Scenario, copies: Copies, plan: Plan) -> Stage:
    capacities = [client.capacity for client in scenario.clients]
    return stage(copies, plan, capacities, scenario.configs.max_warmup_replicas)
