"""The cost of rebalancing: of a plan in advance, and after instances joined or left."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil

from caughtup.models.assignment.decision import Decision, MovementKind
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.groups.generation import StreamsClient, StreamsGeneration
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.lag.partition_lag import CLOCK_ALLOWANCE_MS
from caughtup.models.records.fields import or_absent
from caughtup.models.records.recommendations import CostRecord
from caughtup.models.simulation.rounds import play

#: Movements that build a new copy of state; the others only change roles.
BUILDING = frozenset(
    {MovementKind.COLD, MovementKind.WARMUP, MovementKind.WAITING, MovementKind.STANDBY}
)
#: Movements limited by ``max.warmup.replicas``.
_WARMUPS = frozenset({MovementKind.WARMUP, MovementKind.WAITING})
#: The most tasks × clients × rounds to simulate; beyond, the cost is estimated.
_MOST_SIMULATED = 100_000


def plan_cost(scenario: Scenario, decision: Decision) -> CostRecord:
    """Return the cost until the group is balanced by a plan whose first round is ``decision``.

    The time assumes that every copy is caught up at the next probing rebalance, one each
    probing.rebalance.interval.ms. If estimated, ``decision`` counts as all movements of the plan.
    """
    warmups = sum(movement.kind in _WARMUPS for movement in decision.movements)
    rounds = ceil(warmups / scenario.configs.max_warmup_replicas) + 1
    pairs = (len(scenario.stateful) + len(scenario.stateless)) * len(scenario.clients)
    if pairs * rounds <= _MOST_SIMULATED:
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


_RESTORING_ROLES = ("standby", "warmup", "restoring")


@dataclass(frozen=True, slots=True)
class MembershipChange:
    """The last time that instances joined or left an application, and its cost so far.

    ``at_ms`` is the time of the first generation with ``joined`` and without ``left``, which counts
    among ``rebalances``; ``at_rest_ms`` that of the first one in which every task is assigned and
    no further rebalance is scheduled, None until then. ``waits`` is the number of scheduled
    rebalances that the application waited for, ``waited_ms`` the total time. ``copies`` is the
    number of copies built from nothing.
    """

    at_ms: int
    joined: tuple[str, ...]
    left: tuple[str, ...]
    rebalances: int = 0
    waits: int = 0
    waited_ms: int = 0
    copies: int = 0
    at_rest_ms: int | None = None


def add_generation(
    change: MembershipChange | None,
    before: StreamsGeneration | None,
    generation: StreamsGeneration,
    copies: Iterable[TaskCopy],
) -> MembershipChange | None:
    """Return the membership change that a generation belongs to, with the generation's cost added.

    ``before`` is the generation decided before it; ``copies`` are from ``assigned_copies``. None if
    no instance joined or left since the first known generation. Generations after the application
    is at rest add nothing.
    """
    if before is None:
        return None
    if before.clients.keys() != generation.clients.keys():
        joined = generation.clients.keys() - before.clients.keys()
        left = before.clients.keys() - generation.clients.keys()
        change = MembershipChange(
            generation.as_of_ms, _names(generation.clients, joined), _names(before.clients, left)
        )
        rebalances, waited = 1, 0
    elif change is None or change.at_rest_ms is not None:
        return change
    else:
        rebalances = max(generation.generation - before.generation, 1)
        waited = waited_ms(before, generation)
    return replace(
        change,
        rebalances=change.rebalances + rebalances,
        waits=change.waits + (waited > 0),
        waited_ms=change.waited_ms + waited,
        copies=change.copies + count_new_copies(before, copies),
        at_rest_ms=generation.as_of_ms if _is_at_rest(generation) else None,
    )


def waited_ms(before: StreamsGeneration, generation: StreamsGeneration) -> int:
    """Return how long (ms) a group waited for a generation that the one before had scheduled.

    0 if it was scheduled at once, or came earlier for another reason. The scheduled time is by the
    leader's clock, which may be ahead.
    """
    due = before.next_rebalance()
    if due is None:
        return 0
    scheduled, waited = due[0] - before.as_of_ms, generation.as_of_ms - before.as_of_ms
    early = min(CLOCK_ALLOWANCE_MS, scheduled // 2)
    return waited if 0 < scheduled <= waited + early else 0


def count_new_copies(before: StreamsGeneration, copies: Iterable[TaskCopy]) -> int:
    """Return the number of copies to be built from nothing that the generation before didn't have.

    Their processes reported no offsets of them, and their state isn't empty.
    """
    clients = {str(process): client for process, client in before.clients.items()}
    assigned: dict[str, set[TaskId]] = {}
    count = 0
    for copy in copies:
        if copy.role not in _RESTORING_ROLES or copy.offset_sum != 0 or copy.end_offset_sum == 0:
            continue
        if copy.process not in assigned:
            client = clients.get(copy.process)
            assigned[copy.process] = client.active() | client.standby() if client else set()
        count += copy.task not in assigned[copy.process]
    return count


def _is_at_rest(generation: StreamsGeneration) -> bool:
    if generation.next_rebalance() is not None:
        return False
    running = {task for client in generation.clients.values() for task in client.active()}
    return generation.all_tasks() == running


def _names(
    clients: dict[ProcessId, StreamsClient], processes: Iterable[ProcessId]
) -> tuple[str, ...]:
    return tuple(sorted(clients[process].name for process in processes))
