"""Keep a group from building copies that its next plan throws away.

Where tags and balance are at odds, the plan of a group with a warm-up may be another one than the
plan that began it, and that one's may be the first again: copies would be built for ever.
"""

from __future__ import annotations

from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.minimal.copies import Copies
from caughtup.models.assignors.minimal.plan import Plan, find_plan, spread_of
from caughtup.models.assignors.minimal.staging import Stage, stage

#: So many plans are tried, each the one that the plan before it leads to.
_MOST_PLANS = 4


def staged_plan(scenario: Scenario, copies: Copies) -> tuple[Plan, Stage]:
    """Find where the copies belong, and what of that can be done now.

    A plan whose first warm-ups the next one has no use for isn't begun. The next one may be; if
    none of some is, what is there stays, as well as it is spread. Raises ScenarioError as
    ``find_plan`` does.
    """
    capacities = [client.capacity for client in scenario.clients]
    budget = scenario.configs.max_warmup_replicas
    plan = first = find_plan(scenario, copies)
    spread = spread_of(scenario)
    for _ in range(_MOST_PLANS if spread.matters else 1):
        now = stage(copies, plan, capacities, budget)
        later = _later_plan(scenario, copies, now) if spread.matters else None
        if later is None:
            return plan, now
        plan = later
    kept = copies.trimmed(len(first.clients[0]), spread.values)
    plan = first if kept is None else Plan(kept)
    return plan, stage(copies, plan, capacities, budget)


def _later_plan(scenario: Scenario, copies: Copies, now: Stage) -> Plan | None:
    """Return the next rebalance's plan if it lacks a warm-up that is built until then, else None."""
    built = [
        one
        for one in now.replacements
        if one.warm_up is not None and one.client not in copies.holders[one.task]
    ]
    if not built:
        return None
    assigned = [[active, *own] for active, own in zip(now.actives, now.standbys, strict=True)]
    later = find_plan(scenario, copies.carried_out(assigned))
    return later if any(one.client not in later.clients[one.task] for one in built) else None
