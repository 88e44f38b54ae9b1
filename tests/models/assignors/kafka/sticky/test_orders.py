"""The sticky assignor in a real leader, whose hash tables decide between equals."""

from __future__ import annotations

from typing import Any

import pytest

from caughtup.models.assignment.scenario import Scenario, parse_scenario
from caughtup.models.assignors.kafka.sticky import (
    LeaderOrders,
    decide_fallback_prior,
    decide_sticky,
)
from caughtup.models.ids import ProcessId, TaskId
from tests.models.assignors.building import client, described, task
from tests.support.groups.streams import process

#: Clients by number, with the buckets that they have in a table of 16: 1, 0 and 0.
FIRST, SECOND, THIRD = process(1), process(16), process(32)


def scenario(tasks: tuple[str, ...], *numbers: int, standbys: int = 0) -> Scenario:
    given: dict[str, Any] = described(
        *(client() for _ in numbers), stateful=tasks, standbys=standbys
    )
    given["clients"] = {
        str(process(number)): one
        for number, one in zip(numbers, given["clients"].values(), strict=True)
    }
    return parse_scenario(given)


def orders(arrival: list[ProcessId], tasks: list[TaskId]) -> LeaderOrders:
    return LeaderOrders(arrival, tasks, tasks)


@pytest.mark.parametrize("decide", [decide_sticky, decide_fallback_prior])
def test_of_clients_with_the_same_room_the_first_in_hash_order_is_chosen(decide: Any) -> None:
    one = scenario(("0_0",), 1, 16)
    leader = orders([FIRST, SECOND], [task("0_0")])
    assert decide(one).clients[FIRST].active == (task("0_0"),)
    assert decide(one, leader).clients[SECOND].active == (task("0_0"),)


def test_within_a_bucket_the_client_that_arrived_first_is_chosen() -> None:
    one = scenario(("0_0",), 1, 16, 32)
    for arrival in ([FIRST, SECOND, THIRD], [THIRD, FIRST, SECOND]):
        decision = decide_sticky(one, orders(arrival, [task("0_0")]))
        chosen = min(arrival, key=lambda process_id: process_id == FIRST)
        assert decision.clients[chosen].active == (task("0_0"),)


def test_the_first_task_in_the_leaders_set_gets_the_empty_client_for_its_standby() -> None:
    one = scenario(("0_0", "0_1"), 1, 2, 3, standbys=1)
    tasks = [task("0_0"), task("0_1")]
    for order in (tasks, tasks[::-1]):
        leader = orders([process(1), process(2), process(3)], order)
        decision = decide_sticky(one, leader)
        assert [client.active for client in decision.clients.values()] == [
            (task("0_0"),),
            (task("0_1"),),
            (),
        ]
        assert decision.clients[process(3)].standby == (order[0],)
