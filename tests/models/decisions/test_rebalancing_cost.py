"""The cost of a membership change: rebalances, waits and copies, until the application is at rest."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from caughtup.models.assignment.scenario import Scenario, parse_scenario
from caughtup.models.assignors.registry import decide
from caughtup.models.decisions.rebalancing_cost import (
    MembershipChange,
    add_generation,
    count_new_copies,
    plan_cost,
)
from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.groups.generation import StreamsGeneration, read_streams_generation
from caughtup.models.ids import TaskId
from caughtup.models.lag.partition_lag import CLOCK_ALLOWANCE_MS
from caughtup.models.polls.batch import decode_batch
from caughtup.models.records.fields import json_values
from tests.support.groups.records import GROUP, START_MS
from tests.support.groups.streams import (
    HANDED_OVER,
    HANDING_OVER,
    RUNNING,
    WARMING,
    Member,
    generation,
    process,
)
from tests.support.states import application, cluster_state, list_ends, publish, read

BOTH = ("0_0", "0_1")
ALONE = (Member("a", 1, BOTH, dict.fromkeys(BOTH, RUNNING), BOTH),)
JOINED_MS, DUE_MS = START_MS + 10_000, START_MS + 70_000
#: The rebalance that was due, and the one that follows at once.
PROBED_MS, LAST_MS = DUE_MS + 500, DUE_MS + 2_000
WAITING = (replace(WARMING[0], probe_at_ms=DUE_MS), WARMING[1])


def copy_of(role: str, offset_sum: int | None, end: int | None) -> TaskCopy:
    """Return the copy of a task that b has, in offsets."""
    return TaskCopy(
        2, TaskId(0, 1), str(process(2)), "b", role, None, "unknown", offset_sum, end, JOINED_MS
    )


def generation_of(members: tuple[Member, ...], number: int = 1) -> StreamsGeneration:
    key, value = generation(number, *members, at_ms=START_MS + number)
    metadata = decode_batch([(key, value)]).groups[GROUP]
    assert metadata is not None
    read = read_streams_generation(GROUP, metadata, {})
    assert read is not None
    return read


def changes(*generations: tuple[int, int, tuple[Member, ...]]) -> list[MembershipChange | None]:
    """Decide generations (number, moment in ms, members); return the change after each."""
    state, found = cluster_state(), []
    list_ends(state, at_ms=START_MS - 60_000)
    for number, at_ms, members in generations:
        read(state, generation(number, *members, at_ms=at_ms), seen_ms=at_ms + 1)
        list_ends(state, at_ms=at_ms + 2)
        assert len(publish(state, at_ms + 3)) == 1
        found.append(application(state).change)
    return found


GROWN = (
    (1, START_MS, ALONE),
    (2, JOINED_MS, WAITING),
    (3, PROBED_MS, HANDING_OVER),
    (4, LAST_MS, HANDED_OVER),
)


def test_an_instance_that_joins_costs_copies_rebalances_and_waits() -> None:
    first, joined, probed, last = changes(*GROWN)
    assert first is None
    assert joined == MembershipChange(JOINED_MS, ("b",), (), 1, 0, 0, 1)
    waited = PROBED_MS - JOINED_MS
    assert probed == MembershipChange(JOINED_MS, ("b",), (), 2, 1, waited, 1)
    # The last one was asked for at once: nobody waited for it.
    assert last == replace(probed, rebalances=3, at_rest_ms=LAST_MS)


def test_what_comes_when_all_is_at_rest_adds_nothing() -> None:
    *_, before, after = changes(*GROWN, (5, LAST_MS + 9_000, HANDED_OVER))
    assert after == before


def test_generations_that_nobody_saw_are_counted() -> None:
    *_, last = changes(*GROWN[:2], (9, LAST_MS, HANDED_OVER))
    assert last is not None
    assert last.rebalances == 8


def test_a_rebalance_before_its_time_was_not_waited_for() -> None:
    *_, last = changes(*GROWN[:2], (3, DUE_MS - CLOCK_ALLOWANCE_MS - 1, HANDING_OVER))
    assert last is not None
    assert (last.waits, last.waited_ms) == (0, 0)


def test_a_rebalance_by_a_clock_that_is_ahead_was_waited_for() -> None:
    *_, last = changes(*GROWN[:2], (3, DUE_MS - CLOCK_ALLOWANCE_MS, HANDING_OVER))
    assert last is not None
    assert (last.waits, last.waited_ms) == (1, DUE_MS - CLOCK_ALLOWANCE_MS - JOINED_MS)


def test_an_instance_that_leaves_begins_another_change() -> None:
    alone = (replace(ALONE[0], owned=("0_0",), sums={"0_0": RUNNING, "0_1": 50_000}),)
    *_, last = changes(*GROWN, (5, LAST_MS + 60_000, alone))
    assert last is not None
    assert (last.joined, last.left, last.rebalances) == ((), ("b",), 1)
    # It still had all of the state.
    assert (last.copies, last.at_rest_ms) == (0, LAST_MS + 60_000)


@pytest.mark.parametrize(
    ("role", "offset_sum", "end", "counts"),
    [
        ("warmup", 0, 50_000, True),
        ("standby", 0, 50_000, True),
        ("restoring", 0, 50_000, True),
        ("warmup", 0, None, True),  # the end isn't known
        ("warmup", 0, 0, False),  # a copy of nothing
        ("warmup", 7, 50_000, False),  # count_new_copies before
        ("restoring", None, 50_000, False),  # it ran, or nobody knows what it has
        ("none", 0, 50_000, False),
        ("active", 0, 50_000, False),
    ],
)
def test_copies_that_are_built_from_nothing_are_named(
    role: str, offset_sum: int | None, end: int | None, counts: bool
) -> None:
    assert count_new_copies(generation_of(ALONE), [copy_of(role, offset_sum, end)]) == counts


def test_a_copy_that_is_being_built_already_does_not_begin() -> None:
    assert count_new_copies(generation_of(WAITING), [copy_of("warmup", 0, 50_000)]) == 0


def test_a_copy_that_was_dropped_and_begins_again_counts_twice() -> None:
    change = None
    idle = (replace(ALONE[0], probe_at_ms=DUE_MS), Member("b", 2))
    building = copy_of("warmup", 0, 50_000)
    seen = [
        generation_of(members, number)
        for number, members in enumerate((ALONE, idle, WAITING, idle, WAITING, WAITING))
    ]
    for before, now in pairwise(seen):
        copies = [building] if now.clients[process(2)].standby() else []
        change = add_generation(change, before, now, copies)
    assert change is not None
    assert (change.copies, change.at_rest_ms) == (2, None)


RUNNING, NOTHING = -2, 1_000


def joining(tasks: int, clients: int = 2, assignor: str = "high_availability") -> Scenario:
    """All tasks on the first clients, and one more that has nothing."""
    names = [f"0_{number}" for number in range(tasks)]
    owner = {name: number % (clients - 1) for number, name in enumerate(names)}
    data: dict[str, Any] = {
        "assignor": assignor,
        "config": {"acceptable.recovery.lag": 10, "max.warmup.replicas": 2},
        "tasks": {name: {"stateful": True} for name in names},
        "clients": {
            f"00000000-0000-0000-0000-{client:012d}": {
                "capacity": 1,
                "previous_active": [name for name in names if owner[name] == client],
                "previous_standby": [],
                "lags": {name: RUNNING if owner[name] == client else NOTHING for name in names},
            }
            for client in range(clients)
        },
    }
    return parse_scenario(data)


def cost(scenario: Scenario) -> dict[str, Any]:
    return json_values(plan_cost(scenario, decide(scenario)))


def test_every_copy_and_every_probing_rebalance_until_balanced_counts() -> None:
    assert cost(joining(8)) == {
        "copies": 4,
        "offsets": 4_000,
        "rebalances": 2,
        "seconds": 1_200.0,
        "estimated": False,
    }


def test_a_balanced_group_costs_nothing() -> None:
    assert cost(joining(1, clients=2))["copies"] == 0


def test_what_is_too_large_to_be_played_is_told_from_the_first_decision() -> None:
    large = cost(joining(600, clients=4))
    assert large["estimated"] is True
    assert large["copies"] == large["offsets"] / NOTHING
    assert large["rebalances"] == -(-large["copies"] // 2)
    assert large["seconds"] == large["rebalances"] * 600
