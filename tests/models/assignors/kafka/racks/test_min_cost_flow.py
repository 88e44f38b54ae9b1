"""The networks' answers against all that could be answered instead."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from math import ceil
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.assignors.kafka.racks.min_cost_flow import FlowNetwork
from caughtup.models.assignors.kafka.racks.rack_aware import (
    reassign_for_balanced_subtopologies,
    reassign_for_min_traffic,
)
from tests.support.sizes import daily

TABLES = st.tuples(st.integers(1, 6), st.integers(1, 3)).flatmap(
    lambda shape: st.tuples(
        st.lists(st.integers(0, shape[1] - 1), min_size=shape[0], max_size=shape[0]),
        st.lists(
            st.lists(st.integers(-3, 20), min_size=shape[1], max_size=shape[1]),
            min_size=shape[0],
            max_size=shape[0],
        ),
        st.lists(st.integers(0, 2), min_size=shape[0], max_size=shape[0]).map(sorted),
    )
)


def cost(owners: tuple[int, ...] | list[int], costs: list[list[int]]) -> int:
    return sum(row[owner] for row, owner in zip(costs, owners, strict=True))


@settings(print_blob=True)
@given(TABLES)
def test_no_exchange_costs_less_than_min_traffic(
    drawn: tuple[list[int], list[list[int]], list[int]],
) -> None:
    owners, costs, subtopologies = drawn
    changed = reassign_for_min_traffic(owners, costs, subtopologies)
    assert Counter(changed) == Counter(owners)
    assert cost(changed, costs) == min(cost(other, costs) for other in permutations(owners))


@settings(print_blob=True)
@given(TABLES)
def test_no_exchange_within_the_shares_costs_less_than_balance_subtopology(
    drawn: tuple[list[int], list[list[int]], list[int]],
) -> None:
    owners, costs, subtopologies = drawn

    def within_shares(others: tuple[int, ...] | list[int]) -> bool:
        sizes, counts = Counter(subtopologies), Counter(owners)
        return all(
            number <= ceil(counts[owner] / len(owners) * sizes[subtopology])
            for (subtopology, owner), number in Counter(
                zip(subtopologies, others, strict=True)
            ).items()
        )

    changed = reassign_for_balanced_subtopologies(owners, costs, subtopologies)
    assert Counter(changed) == Counter(owners)
    assert within_shares(changed)
    assert cost(changed, costs) == min(
        cost(other, costs) for other in permutations(owners) if within_shares(other)
    )


def test_where_all_costs_are_the_same_min_traffic_changes_nothing() -> None:
    owners = [2, 0, 1, 1, 0]
    assert reassign_for_min_traffic(owners, [[7] * 3] * 5, [0] * 5) == owners


@settings(max_examples=daily(20, 50), deadline=None, print_blob=True)
@given(st.randoms(use_true_random=False), st.integers(2, 30), st.integers(2, 6))
def test_the_passes_that_are_left_out_would_change_nothing(
    rng: Random, tasks: int, clients: int
) -> None:
    owners = [rng.randrange(clients) for _ in range(tasks)]
    costs = [[rng.choice([0, 1, 10, 11, -2]) for _ in range(clients)] for _ in range(tasks)]
    subtopologies = sorted(rng.randrange(3) for _ in range(tasks))
    for reassign in (reassign_for_min_traffic, reassign_for_balanced_subtopologies):
        changed = reassign(owners, costs, subtopologies)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(FlowNetwork, "_repeats", lambda *_: False)
            assert reassign(owners, costs, subtopologies) == changed


def test_passes_are_left_out_where_a_cycle_goes_round_and_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two tasks that each are on the other's client, among many at home, would take 44 passes."""
    passes = 0
    repeats = FlowNetwork._repeats

    def counted(network: FlowNetwork, before: list[int], now: list[int]) -> bool:
        nonlocal passes
        passes += 1
        return repeats(network, before, now)

    monkeypatch.setattr(FlowNetwork, "_repeats", counted)
    owners = [1, 0] + [0, 1] * 18
    costs = [[0, 10], [10, 0]] * 19
    assert reassign_for_min_traffic(owners, costs, [0] * 38) == [0, 1] * 19
    assert 0 < passes < 10


def test_the_fullest_flow_goes_the_shortest_ways_and_back_where_it_has_to() -> None:
    """The only way of three edges, through both middle nodes, would block two ways of four."""
    network = FlowNetwork(8)
    ways = [(0, 1), (1, 2), (2, 7), (0, 3), (3, 4), (4, 2), (1, 5), (5, 6), (6, 7)]
    edges = {way: network.add_edge(*way, capacity=1) for way in ways}
    assert network.fill(0, 7) == 2
    assert network.flow(edges[1, 2]) == 0
    assert all(network.flow(edge) == 1 for way, edge in edges.items() if way != (1, 2))
