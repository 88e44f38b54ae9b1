"""Who has what, and who comes next, as a follower reads a scenario."""

from __future__ import annotations

from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.following.placement import ClientStates, in_place, keep_actives
from tests.models.assignors.building import client, described, scenario, task
from tests.support.groups.streams import process

LONG_MAX = (1 << 63) - 1
ONE = task("0_0")


def test_the_nearest_comes_first_and_an_unknown_lag_last() -> None:
    states = ClientStates(
        scenario(
            client({"0_0": -3}),
            client({"0_0": 50}),
            client(active=("0_0",)),
            client({"0_0": 0}),
            client({"0_0": 50}),
            stateful=("0_0",),
        )
    )
    order = states.by_rank(states.clients, ONE)
    assert order == [process(number) for number in (3, 4, 2, 5, 1)]


def test_caught_up_is_as_kafka_s_own_assignor_has_it() -> None:
    clients = (client({"0_0": -3}), client({"0_0": 100}), client({"0_0": 101}))
    states = ClientStates(scenario(*clients, stateful=("0_0",)))
    assert states.may_run(ONE) == [process(2)]
    anything = ClientStates(scenario(*clients, stateful=("0_0",), acceptable=LONG_MAX))
    assert anything.may_run(ONE) == [process(1), process(2), process(3)]


def test_a_task_without_state_may_run_anywhere() -> None:
    states = ClientStates(scenario(client(), client(), stateless=("0_0",)))
    assert states.may_run(ONE) == [process(1), process(2)]


def test_threads_count_when_a_task_that_is_nowhere_finds_its_place() -> None:
    tasks = tuple(f"0_{number}" for number in range(6))
    states = ClientStates(scenario(client(), client(capacity=2), stateless=tasks))
    active = keep_actives(states)
    assert [active[task(text)] for text in tasks].count(process(2)) == 4


def test_what_a_client_had_of_tasks_that_are_gone_counts_for_nothing() -> None:
    had = described(client(active=("0_0",)), client(), stateful=("0_0",))
    had["clients"][str(process(1))]["previous_active"].append("9_9")
    assert ClientStates(parse_scenario(had)).owners == {ONE: [process(1)]}


def test_a_former_owner_s_copy_takes_no_warm_up_from_one_that_is_being_built() -> None:
    """After a hand-over: processes 1 and 2 still have 0_0 and 0_1, of which 3 builds two more."""
    tasks = tuple(f"0_{number}" for number in range(8))
    states = ClientStates(
        scenario(
            client({"0_0": 0}, active=("0_2", "0_4", "0_5"), standby=("0_0",)),
            client({"0_1": 0}, active=("0_3", "0_6", "0_7"), standby=("0_1",)),
            client({"0_2": 900, "0_3": 950}, active=("0_0", "0_1"), standby=("0_2", "0_3")),
            stateful=tasks,
        )
    )
    kept = in_place(states).standby
    assert kept == {process(1): set(), process(2): set(), process(3): {task("0_2"), task("0_3")}}


def test_a_copy_that_was_just_begun_where_there_are_few_tasks_stays() -> None:
    """As in the rebalance that hands two tasks over: 3 has begun two more, and restored nothing."""
    tasks = tuple(f"0_{number}" for number in range(8))
    nothing = {"0_2": 5_000, "0_3": 5_000}
    states = ClientStates(
        scenario(
            client({"0_0": 0, "0_3": 5_000}, active=("0_2", "0_4", "0_5"), standby=("0_0",)),
            client({"0_1": 0, "0_2": 5_000}, active=("0_3", "0_6", "0_7"), standby=("0_1",)),
            client(nothing, active=("0_0", "0_1"), standby=("0_2", "0_3")),
            stateful=tasks,
        )
    )
    assert states.is_empty(process(3), task("0_2"))
    assert in_place(states).standby[process(3)] == {task("0_2"), task("0_3")}


def test_a_copy_with_nothing_in_it_is_not_built_where_there_are_as_many_tasks() -> None:
    states = ClientStates(
        scenario(
            client({"0_1": 5_000}, active=("0_0",), standby=("0_1",)),
            client({"0_0": 5_000}, active=("0_1",)),
            client({"0_0": 5_000, "0_1": 5_000}, active=("0_2",)),
            stateful=("0_0", "0_1", "0_2"),
        )
    )
    assert not any(in_place(states).standby.values())
