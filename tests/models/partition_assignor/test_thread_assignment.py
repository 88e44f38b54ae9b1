"""How a client's tasks are dealt to its threads."""

from __future__ import annotations

from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.partition_assignor.rebalance import MemberSubscription, clients_of
from caughtup.models.partition_assignor.task_partitions import in_hash_order
from caughtup.models.partition_assignor.thread_assignment import (
    JavaTaskQueue,
    ThreadAssignment,
    ThreadTasks,
)
from tests.models.partition_assignor.building import RUNNING, task


def tasks(*partitions: int, subtopology: int = 0) -> list[TaskId]:
    return [TaskId(subtopology, partition) for partition in partitions]


def threads(lags: dict[int, int] | None = None, **reported: list[int]) -> ThreadAssignment:
    """Make a client of threads that report tasks of subtopology 0, whose lags are 0 unless said."""
    process = ProcessId.of(1)
    members = [
        MemberSubscription(name, process, offset_sums=dict.fromkeys(tasks(*own), RUNNING))
        for name, own in reported.items()
    ]
    known = {TaskId(0, n): 0 for n in range(9)} | {TaskId(0, n): v for n, v in (lags or {}).items()}
    return ThreadAssignment(clients_of(members)[process], known)


def numbers(given: ThreadTasks) -> dict[str, list[int]]:
    return {name: [one.partition for one in own] for name, own in given.items()}


def test_threads_keep_what_they_had() -> None:
    given = threads(a=[1, 3], b=[0, 2]).assign_stateful(tasks(0, 1, 2, 3))
    assert numbers(given) == {"a": [1, 3], "b": [0, 2]}


def test_a_thread_with_too_much_keeps_what_lags_least() -> None:
    given = threads({0: 50, 1: 7, 2: RUNNING, 3: 9}, a=[0, 1, 2, 3], b=[]).assign_stateful(
        tasks(0, 1, 2, 3)
    )
    assert numbers(given) == {"a": [2, 1], "b": [0, 3]}


def test_a_task_too_many_goes_to_the_thread_that_had_it_rather_than_to_the_first_one() -> None:
    given = threads(a=[0], b=[1, 2]).assign_stateful(tasks(0, 1, 2))
    assert numbers(given) == {"a": [0], "b": [1, 2]}


def test_of_two_tasks_too_many_a_thread_keeps_the_first_one_whatever_their_lags() -> None:
    given = threads({0: 50, 1: 7}, a=[0, 1], b=[], c=[]).assign_stateful(tasks(0, 1))
    assert numbers(given) == {"a": [0], "b": [1], "c": []}


def test_a_task_that_two_threads_had_goes_back_to_the_last_of_them() -> None:
    given = threads(a=[5], b=[5], c=[]).assign_stateful(tasks(5))
    assert numbers(given) == {"a": [], "b": [5], "c": []}


def test_new_tasks_go_round_the_threads_that_have_room() -> None:
    given = threads(a=[], b=[], c=[0, 1]).assign_stateful(tasks(0, 1, 2, 3, 4, 5))
    assert numbers(given) == {"a": [2, 4], "b": [3, 5], "c": [0, 1]}


def test_leftovers_go_out_as_the_array_of_javas_queue_has_them() -> None:
    """After one is taken out of the middle, the last one has its place."""
    given = threads(a=[], b=[], c=[1], d=[], e=[], f=[]).assign_stateful(
        in_hash_order(tasks(0, 1, 2, 3, 4))
    )
    assert numbers(given) == {"a": [0], "b": [3], "c": [1], "d": [2], "e": [4], "f": []}


def test_standbys_and_stateless_tasks_even_out_what_was_dealt_before() -> None:
    dealing = threads(a=[0, 5], b=[1], c=[])
    assert numbers(dealing.assign_stateful(tasks(0))) == {"a": [0], "b": [], "c": []}
    assert numbers(dealing.assign_stateful(tasks(5))) == {"a": [], "b": [5], "c": []}
    stateless = dealing.assign_stateless(tasks(0, 1, 2, 3, subtopology=7))
    assert numbers(stateless) == {"a": [0], "b": [1], "c": [2, 3]}


def test_who_had_a_stateless_task_means_nothing() -> None:
    given = threads(a=[1], b=[0]).assign_stateless(tasks(0, 1))
    assert numbers(given) == {"a": [0], "b": [1]}


def test_the_queue_gives_the_least_and_keeps_javas_layout() -> None:
    queue = JavaTaskQueue(tasks(4, 3, 2, 1, 0))
    assert queue.in_array_order() == tasks(0, 1, 2, 4, 3)
    queue.remove(task("0_1"))
    assert queue.in_array_order() == tasks(0, 3, 2, 4)
    assert task("0_1") not in queue
    assert queue.poll() == task("0_0")
    assert queue.in_array_order() == tasks(2, 3, 4)


def test_what_takes_the_place_of_a_removed_task_may_have_to_rise() -> None:
    queue = JavaTaskQueue(tasks(0, 5, 1, 6, 7, 2, 3))
    queue.remove(task("0_6"))
    assert queue.in_array_order() == tasks(0, 3, 1, 5, 7, 2)
