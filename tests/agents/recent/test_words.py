"""What became of movements, in a sentence for a group."""

from __future__ import annotations

from caughtup.agents.recent.words import partition_movement, task_movements
from caughtup.models.records.movements import PartitionMovementRecord, TaskMovementRecord


def an_event(task: str, step: str, plan: str = "recommended") -> TaskMovementRecord:
    return TaskMovementRecord(
        schema=1,
        kind="warmup",
        event=step,  # type: ignore[arg-type]
        group="orders",
        generation=5,
        decision_id="d1",
        at_ms=1_000,
        task=task,
        to="p1",
        reason="balances the threads",
        plan=plan,  # type: ignore[arg-type]
        lag=9,
    )


def test_many_tasks_are_one_sentence_and_the_first_one_s_reason() -> None:
    events = [an_event("0_1", "planned"), an_event("0_2", "planned"), an_event("0_3", "warming")]
    (told,) = task_movements(events)
    assert told.text == "recommended movements: 2 planned, 1 begun to warm up"
    assert told.why == "0_1: balances the threads (and 2 more)"
    assert (told.group, told.at_ms, told.kind) == ("orders", 1_000, "movement")


def test_each_plan_has_its_own_and_one_movement_is_one() -> None:
    told = task_movements([an_event("0_1", "promoted", "leader"), an_event("0_1", "dropped")])
    assert [one.text for one in told] == [
        "the leader's movement: 1 carried out",
        "recommended movement: 1 given up",
    ]
    assert task_movements([]) == []


def test_a_reassignment_says_from_where_to_where() -> None:
    event = PartitionMovementRecord(1, "planned", "partition", "orders", 3, 7, (2, 4), (1, 2))
    told = partition_movement(event)
    assert (told.text, told.partition) == ("orders-3: brokers 1, 2 → 2, 4, begun", "orders-3")
