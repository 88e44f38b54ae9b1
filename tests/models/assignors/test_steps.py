"""The assignor's steps, one by one: balance, standbys, who is caught up, queues."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.assignment.client_state import UNBOUNDED, CatchUp, ClientState, is_caught_up
from caughtup.models.assignment.scenario import Client
from caughtup.models.assignors.java.priority_queue import JavaNumberQueue, JavaPriorityQueue
from caughtup.models.assignors.kafka.high_availability.assignor import balance_over_threads
from caughtup.models.assignors.kafka.high_availability.task_movement import (
    ConstrainedPrioritySet,
)
from caughtup.models.assignors.kafka.standbys import assign_default_standbys
from caughtup.models.ids import TaskId
from tests.support.groups.streams import process

TASK = TaskId(0, 0)


def states(*capacities: int) -> list[ClientState]:
    return [
        ClientState(Client(process(number), capacity, frozenset(), frozenset(), {}))
        for number, capacity in enumerate(capacities, 1)
    ]


def lagging(*lags: int) -> list[ClientState]:
    return [
        ClientState(Client(process(number), 1, frozenset(), frozenset(), {TASK: lag}))
        for number, lag in enumerate(lags, 1)
    ]


def test_tasks_move_to_idle_threads_in_task_order() -> None:
    clients = states(1, 3)
    clients[0].active.update(TaskId(0, partition) for partition in range(4))
    balance_over_threads(clients, "active")
    assert clients[0].active == {TaskId(0, 3)}
    assert clients[1].active == {TaskId(0, 0), TaskId(0, 1), TaskId(0, 2)}


def test_a_standby_does_not_move_to_where_the_active_is() -> None:
    clients = states(1, 1)
    clients[0].standby.update(TaskId(0, partition) for partition in range(3))
    clients[1].active.add(TaskId(0, 0))
    balance_over_threads(clients, "standby")
    assert clients[0].standby == {TaskId(0, 0), TaskId(0, 2)}
    assert clients[1].standby == {TaskId(0, 1)}


@settings(print_blob=True)
@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 30)), min_size=1, max_size=12))
def test_after_balancing_no_single_move_would_help(shape: list[tuple[int, int]]) -> None:
    clients = states(*(capacity for capacity, _ in shape))
    for subtopology, (client, (_, count)) in enumerate(zip(clients, shape, strict=True)):
        client.active.update(TaskId(subtopology, partition) for partition in range(count))
    balance_over_threads(clients, "active")
    assert sum(client.task_count() for client in clients) == sum(count for _, count in shape)
    for source in clients:
        for destination in clients:
            if source is not destination:
                lowered = (source.task_count() - 1) / source.capacity
                assert lowered < (destination.task_count() + 1) / destination.capacity


def test_standbys_go_to_the_least_loaded_clients_without_a_copy() -> None:
    clients = states(1, 1, 2)
    clients[0].active.add(TASK)
    assign_default_standbys(clients, [TASK, TaskId(0, 1)], 1)
    assert [sorted(client.standby) for client in clients] == [[], [TASK], [TaskId(0, 1)]]


def test_a_task_gets_fewer_standbys_when_there_are_too_few_clients() -> None:
    clients = states(1, 1)
    clients[0].active.add(TASK)
    assign_default_standbys(clients, [TASK], 3)
    assert [client.task_count() for client in clients] == [1, 1]


@given(st.integers(1, 4), st.integers(0, 5))
def test_as_many_standbys_as_other_clients_go_to_all_of_them(count: int, more: int) -> None:
    clients = states(*range(1, count + 1))
    tasks = [TaskId(0, partition) for partition in range(7)]
    for turn, task in enumerate(tasks):
        clients[turn % count].active.add(task)
    assign_default_standbys(clients, tasks, count - 1 + more)
    assert [client.active | client.standby for client in clients] == [set(tasks)] * count
    assert [client.active & client.standby for client in clients] == [set()] * count


@pytest.mark.parametrize(
    ("lag", "acceptable", "caught_up"),
    [
        (-2, 0, True),
        (0, 0, True),
        (1, 0, False),
        (99, 100, True),
        (100, 100, True),
        (101, 100, False),
        (-3, 100, False),
        (-3, UNBOUNDED, True),
        (UNBOUNDED, UNBOUNDED, True),
    ],
)
def test_caught_up_means_running_or_within_the_acceptable_lag(
    lag: int, acceptable: int, caught_up: bool
) -> None:
    assert is_caught_up(lag, acceptable) is caught_up


def catching_up(*lags: int) -> CatchUp:
    return CatchUp(lagging(*lags), [TASK], 100)


def test_a_copy_waits_only_where_another_client_lags_less() -> None:
    catch_up = catching_up(500, 400, 50)
    assert catch_up.caught_up(TASK) == {2}
    assert [catch_up.waiting(place, [TASK]) for place in range(3)] == [[TASK], [TASK], []]
    level = catching_up(500, 500)
    assert [level.waiting(place, [TASK]) for place in range(2)] == [[], []]
    all_there = catching_up(100, 50)
    assert [all_there.waiting(place, [TASK]) for place in range(2)] == [[], []]


def test_an_unknown_lag_sorts_before_a_running_active_as_it_does_in_kafka() -> None:
    catch_up = catching_up(500, -2, -3)
    assert catch_up.most_caught_up(TASK, 0, ()) == 2
    assert catch_up.most_caught_up(TASK, 0, {2}) == 1
    assert catch_up.waiting(2, [TASK]) == []


def test_of_equal_lags_the_first_process_serves_and_never_one_after_the_destination() -> None:
    catch_up = catching_up(400, 400, 500)
    assert catch_up.most_caught_up(TASK, 2, ()) == 0
    assert catch_up.most_caught_up(TASK, 1, ()) == 0
    assert catch_up.most_caught_up(TASK, 0, ()) is None


def test_the_least_loaded_eligible_client_is_taken_and_the_others_stay() -> None:
    clients = states(1, 1, 4)
    clients[0].active.add(TaskId(0, 1))
    clients[2].active.add(TaskId(0, 2))
    queue = ConstrainedPrioritySet(clients)
    assert queue.poll({0, 2}) == 2
    assert queue.poll({2}) is None
    clients[2].active.update(TaskId(1, partition) for partition in range(4))
    queue.offer_changed(2, 0)
    assert [queue.poll({0, 1, 2}) for _ in range(4)] == [1, 0, 2, None]


@settings(print_blob=True)
@given(st.lists(st.integers()), st.data())
def test_a_queue_whose_keys_stand_still_hands_out_the_least(
    numbers: list[int], data: st.DataObject
) -> None:
    queue = JavaPriorityQueue[int]({number: number for number in numbers})
    left = list(numbers)
    for number in numbers:
        queue.offer(number)
    for number in data.draw(st.lists(st.sampled_from(numbers), unique=True)) if numbers else []:
        queue.remove(number)
        left.remove(number)
    assert [queue.poll() for _ in range(len(queue))] == sorted(left)


@settings(print_blob=True)
@given(st.permutations(range(24)), st.lists(st.integers(0, 10_000), max_size=60))
def test_a_queue_of_numbers_is_the_same_heap_as_javas_harmed_or_not(
    ranks: list[int], steps: list[int]
) -> None:
    keys = [rank * 100 for rank in ranks]  # of places, which the general queue holds
    general, numbers = JavaPriorityQueue[int](keys), JavaNumberQueue[int]()
    general.offer_all(range(len(keys)))
    numbers.offer_all(keys)
    left = set(range(len(keys)))
    for step in steps:
        place, kind = step % len(keys), step // 2_500
        if place not in left:
            general.offer(place)
            numbers.offer(keys[place])
            left.add(place)
        elif kind == 0:
            polled = general.poll()
            assert numbers.poll() == keys[polled]
            left.remove(polled)
        elif kind == 1:
            general.remove(place)
            numbers.remove(keys[place])
            left.remove(place)
        else:
            changed = step * 100 + place  # no other place's key ever
            numbers.change(keys[place], changed)
            keys[place] = changed
    polls = [keys[general.poll()] for _ in range(len(left))]
    assert numbers.drain() == polls
    assert not len(numbers)


def test_taking_from_an_empty_queue_or_what_is_not_there_is_an_error() -> None:
    queue = JavaPriorityQueue[int]([])
    with pytest.raises(IndexError):
        queue.poll()
    with pytest.raises(ValueError, match="not in list"):
        queue.remove(1)
