"""The fewest copies that any assignor could balance a group with: a bound, by linear programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import ceil, floor
from typing import TYPE_CHECKING

from caughtup.models.assignment.scenario import Scenario
from caughtup.models.ids import TaskId

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Some tasks' holders, by their place among the clients.
Holders = tuple[int, ...]


def fewest_copies(scenario: Scenario) -> int | None:
    """Count the copies that have to be built at least; None where no placement is balanced.

    Each task is to have its active and its standbys, on different clients and, where clients have
    the tags that standbys are spread over, with different ones as far as there are any; the
    actives and standbys for each stream thread of any two clients are to differ by one at most.
    What a client had, or lags less of than a client with nothing, needs not be built. This knows
    nothing of who the active is, which changes at no cost.
    """
    if not scenario.stateful:
        return 0
    members = scenario.clients
    size = 1 + min(scenario.configs.num_standby_replicas, len(members) - 1)
    kinds = Counter(_holders(scenario, task) for task in scenario.stateful)
    crowds = list(_crowds(scenario, size))
    capacities = [client.capacity for client in members]
    tasks = len(scenario.stateful)
    found = (
        _fewest(kinds, low, high, size, crowds)
        for low, high in _windows(capacities, tasks * size, tasks)
    )
    return min((count for count in found if count is not None), default=None)


def _holders(scenario: Scenario, task: TaskId) -> Holders:
    most = max(client.lags[task] for client in scenario.clients)
    return tuple(
        place
        for place, client in enumerate(scenario.clients)
        if task in client.previous_active
        or task in client.previous_standby
        or client.lags[task] in (-2, 0)
        or 0 <= client.lags[task] < most
    )


def _crowds(scenario: Scenario, size: int) -> Iterator[tuple[list[int], int]]:
    """Return clients that share a tag's value, and how many copies of a task they may have."""
    for key in scenario.configs.rack_aware_assignment_tags:
        values = [client.tags.get(key) for client in scenario.clients]
        for value in sorted({value for value in values if value is not None}):
            places = [place for place, other in enumerate(values) if other == value]
            yield places, max(1, ceil(size / len(set(values))))


def _windows(capacities: list[int], total: int, most: int) -> Iterator[tuple[list[int], list[int]]]:
    """Return each client's least and most copies, for each load the least loaded may have."""
    average = Fraction(total, sum(capacities))
    top = most if total == most * len(capacities) else ceil(average)
    levels = {
        Fraction(count, capacity)
        for capacity in set(capacities)
        for count in range(max(0, floor((average - 1) * capacity)), ceil(top * capacity) + 1)
    }
    # Clients that have every task already can't get more, so the others may be beyond any level.
    if any((average + 1) * capacity > most for capacity in capacities):
        levels |= {Fraction(count, c) for c in set(capacities) for count in range(most + 1)}
    for level in sorted(levels):
        low = [min(ceil(level * capacity), most) for capacity in capacities]
        high = [min(floor((level + 1) * capacity), most) for capacity in capacities]
        if sum(low) <= total <= sum(high):
            yield low, high


def _fewest(
    kinds: Mapping[Holders, int],
    low: Sequence[int],
    high: Sequence[int],
    size: int,
    crowds: Sequence[tuple[list[int], int]],
) -> int | None:
    """Solve one program: x[kind, client] copies of tasks that have the same holders.

    Its solutions are whole numbers where the crowds don't overlap, as with one tag; otherwise
    what is rounded up is still a bound.
    """
    from scipy.optimize import linprog

    clients, ordered = len(low), sorted(kinds)
    every = [kinds[holders] for holders in ordered]
    cost = [float(c not in holders) for holders in ordered for c in range(clients)]
    copies = _rows([[k * clients + c for c in range(clients)] for k in range(len(every))], cost)
    loads = _rows([list(range(c, len(cost), clients)) for c in range(clients)], cost)
    crowded = _rows(
        [
            [k * clients + c for c in places]
            for k, (places, _) in product(range(len(every)), crowds)
        ],
        cost,
    )
    from scipy.sparse import vstack

    solved = linprog(
        cost,
        A_eq=copies,
        b_eq=[count * size for count in every],
        A_ub=vstack([loads, -loads, crowded], format="csr"),
        b_ub=[*high, *(-least for least in low), *(n * most for n in every for _, most in crowds)],
        bounds=[(0, count) for count in every for _ in range(clients)],
        method="highs",
    )
    return ceil(solved.fun - 1e-6) if solved.status == 0 else None


def _rows(columns: Sequence[Sequence[int]], cost: Sequence[float]) -> csr_array:
    """Make a matrix with a 1 in each of these columns of each row."""
    from scipy.sparse import csr_array

    ends = [0]
    for row in columns:
        ends.append(ends[-1] + len(row))
    flat = [column for row in columns for column in row]
    return csr_array(([1.0] * len(flat), flat, ends), shape=(len(columns), len(cost)))
