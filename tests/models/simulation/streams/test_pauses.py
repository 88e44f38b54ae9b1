"""A process that stands still: the group waits for its session, then goes on without it."""

from __future__ import annotations

import pytest

from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.simulation.streams.run import StreamsRun
from caughtup.models.simulation.streams.topology import STREAMS_TIMINGS, AssignmentProtocol
from tests.models.simulation.stories.telling import (
    MINUTE,
    SECOND,
    application,
    join,
    later,
    running,
)

#: By default a classic member's session lasts 45 s.
SHORT_MS, LONG_MS = 20 * SECOND, 2 * MINUTE


def paused(for_ms: int, until_ms: int = 5 * MINUTE, **changes: object) -> StreamsRun:
    """Let B of two instances stand still after a while, and go on until a moment after that."""
    run = running(application(4, **changes), ["A", "B"])
    later(run, 0, lambda: run.pause("B", for_ms))
    run.time.run(run.time.now_ms + until_ms)
    return run


def rebalances(run: StreamsRun, kind: str = "rebalance") -> int:
    began = next(one.at_ms for one in run.line.marks if one.kind == "pause")
    return sum(one.kind == kind and one.at_ms > began for one in run.line.marks)


def owned(run: StreamsRun) -> dict[str, set[TaskId]]:
    return {thread.member_id: set(thread.active) for thread in run.running_threads()}


def test_a_short_pause_is_no_rebalance_and_tasks_go_on_where_they_were() -> None:
    before = owned(running(application(4), ["A", "B"]))
    run = paused(SHORT_MS)
    assert rebalances(run) == 0
    assert owned(run) == before
    assert run.processed == run.tasks.sources.keys()
    assert run.shared.copies_built == 4  # those of the beginning


@pytest.mark.parametrize(("stateful", "stateless"), [(4, 0), (0, 4)])
def test_tasks_that_were_about_to_run_do_so_when_it_goes_on(stateful: int, stateless: int) -> None:
    run = StreamsRun(application(stateful, stateless, task_start_ms=5 * SECOND))
    for client in ("A", "B"):
        join(run, client)
    while not any(thread.active for thread in run.running_threads()):
        run.time.run(run.time.now_ms + SECOND)
    assert not run.processed
    run.pause("B", 2 * SECOND)
    run.time.run(run.time.now_ms + MINUTE)
    assert run.processed == run.tasks.sources.keys()


def test_while_it_stands_still_its_tasks_do() -> None:
    run = paused(SHORT_MS, until_ms=SHORT_MS // 2)
    assert len(run.processed) == 2
    assert not run.instances["B"].answers


def test_after_its_session_others_take_over_and_it_comes_back_as_a_new_member() -> None:
    during = paused(LONG_MS, until_ms=LONG_MS - SECOND)
    assert during.processed == during.tasks.sources.keys()
    assert during.coordinator.members == ["A-1-1"]
    run = paused(LONG_MS)
    assert run.coordinator.members == ["A-1-1", "B-1-1-again"]
    assert {len(tasks) for tasks in owned(run).values()} == {2}
    assert run.processed == run.tasks.sources.keys()


def test_the_leader_may_stand_still_before_it_decided() -> None:
    run = running(application(4), ["A", "B"])
    later(run, 0, run.rebalance)
    while run.coordinator.stable:
        run.time.run(run.time.now_ms + 1)
    run.pause("A", SHORT_MS)
    run.time.run(run.time.now_ms + MINUTE)
    assert run.coordinator.stable
    assert run.processed == run.tasks.sources.keys()
    assert run.coordinator.members == ["A-1-1", "B-1-1"]


def test_who_joined_and_stood_still_is_given_what_was_decided_meanwhile() -> None:
    run = running(application(4), ["A", "B"])
    run.pause("B", SHORT_MS)
    run.time.run(run.time.now_ms + SECOND)
    generation = run.coordinator.generation
    later(run, 2 * SECOND, run.rebalance)
    run.time.run(run.time.now_ms + MINUTE)
    assert run.coordinator.generation > generation
    assert run.coordinator.members == ["A-1-1", "B-1-1"]
    assert run.processed == run.tasks.sources.keys()


@pytest.mark.parametrize("for_ms", [SHORT_MS, LONG_MS])
def test_a_group_whose_broker_assigns_waits_for_its_session_too(for_ms: int) -> None:
    run = paused(for_ms, protocol=AssignmentProtocol.STREAMS, timings=STREAMS_TIMINGS)
    assert bool(rebalances(run)) == (for_ms > STREAMS_TIMINGS.session_timeout_ms)
    assert run.processed == run.tasks.sources.keys()
    assert len(run.coordinator.members) == 2


def test_one_that_is_killed_while_it_stands_still_does_not_go_on() -> None:
    run = paused(LONG_MS, until_ms=SECOND)
    run.kill("B")
    run.time.run(run.time.now_ms + 2 * LONG_MS)
    assert rebalances(run, "go on") == 0
    assert run.coordinator.members == ["A-1-1"]
    assert run.processed == run.tasks.sources.keys()


def restored_ms(restores: float) -> int:
    """Return how long the one instance takes for its four states of 10,000 offsets."""
    run = StreamsRun(application(4))
    run.add("A", ProcessId(0, 1), restores=restores)
    run.start("A")
    while run.processed != run.tasks.sources.keys():
        run.time.run(run.time.now_ms + SECOND)
    return run.time.now_ms


def test_an_instance_that_restores_slowly_takes_longer() -> None:
    assert restored_ms(1.0) < MINUTE < restored_ms(0.1) < 10 * MINUTE
