"""A lower bound, by linear programs, of the copies with which any assignor balances a group."""

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

#: The clients that hold a task, by index.
Holders = tuple[int, ...]


def fewest_copies(scenario: Scenario) -> int | None:
    """Return the least number of copies that have to be built; None if no placement is balanced.

    Each task needs its active and its standbys on different clients, with different values of the
    tags over which standbys are spread as far as possible; the copies for each stream thread of any
    two clients may differ by one at most. A copy that a client had, or has partly, need not be
    built. Which copy is active does not matter, since changing that costs nothing.
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
    """Yield clients with the same value of a tag, and how many copies of a task they may have."""
    for key in scenario.configs.rack_aware_assignment_tags:
        values = [client.tags.get(key) for client in scenario.clients]
        for value in sorted({value for value in values if value is not None}):
            places = [place for place, other in enumerate(values) if other == value]
            yield places, max(1, ceil(size / len(set(values))))


def _windows(capacities: list[int], total: int, most: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield each client's least and most copies, for each possible load of the least loaded."""
    average = Fraction(total, sum(capacities))
    top = most if total == most * len(capacities) else ceil(average)
    levels = {
        Fraction(count, capacity)
        for capacity in set(capacities)
        for count in range(max(0, floor((average - 1) * capacity)), ceil(top * capacity) + 1)
    }
    # Clients that have every task already cannot get more, so that others may have any load.
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
    """Solve one linear program: x[kind, client] copies of the tasks with the same holders.

    Solutions are integers if the crowds do not overlap, as with one tag; otherwise the rounded-up
    value is still a bound.
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
    """Return a sparse matrix with a 1 in the given columns of each row."""
    from scipy.sparse import csr_array

    ends = [0]
    for row in columns:
        ends.append(ends[-1] + len(row))
    flat = [column for row in columns for column in row]
    return csr_array(([1.0] * len(flat), flat, ends), shape=(len(columns), len(cost)))
