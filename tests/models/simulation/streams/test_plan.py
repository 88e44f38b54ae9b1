"""Plans carried out on an application that runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from caughtup.models.assignment.configs import Configs
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.simulation.streams.plan import PlannedActions, simulate
from caughtup.models.simulation.streams.run import RunningInstance, RunningThread, StreamsRun
from caughtup.models.simulation.streams.topology import Changelog, SimulatedApplication, uniform

MINUTE = 60_000


def application(tasks: int, assignor: str = "high_availability") -> SimulatedApplication:
    """An application whose states have 100,000 offsets, of which a thread restores 10,000/s."""
    subtopologies, partitions, changelogs = uniform(tasks, 0, Changelog(100_000, 100.0))
    return SimulatedApplication(
        subtopologies,
        partitions,
        changelogs,
        restore_per_second=10_000,
        assignor=assignor,
        configs=Configs(probing_rebalance_interval_ms=MINUTE),
    )


def running(clients: int, tasks: int) -> list[RunningInstance]:
    """Clients ``c0``, ``c1``, … of one thread each, that share the tasks out in turn."""
    every = [TaskId(0, number) for number in range(tasks)]
    return [
        RunningInstance(
            f"c{client}", ProcessId(0, client + 1), (RunningThread(tuple(every[client::clients])),)
        )
        for client in range(clients)
    ]


@pytest.mark.parametrize(
    ("assignor", "copies"), [("high_availability", 18), ("minimal_movement", 6)]
)
def test_a_fourth_instance_of_24_tasks_costs_what_it_costs_on_real_ones(
    assignor: str, copies: int
) -> None:
    """Docs/measured.md has 18 and 6 of a real application, too."""
    end = simulate(application(24, assignor), running(3, 24), PlannedActions(add=1))
    assert end.figures.copies_built == copies
    assert end.endless is None
    assert end.figures.longest_still_ms < 10_000


def test_a_rolling_restart_stops_one_after_the_other() -> None:
    end = simulate(application(24), running(3, 24), PlannedActions(restart=("c0", "c1", "c2")))
    stops = [mark for mark in end.marks if mark.kind == "stop"]
    starts = [mark for mark in end.marks if mark.kind == "start"]
    assert [mark.what for mark in stops] == ["c0 stops", "c1 stops", "c2 stops"]
    assert all(later.at_ms > start.at_ms for start, later in zip(starts, stops[1:], strict=False))
    # Each is away until the group misses it, its session timeout after its last heartbeat.
    assert all(still <= 46_000 for still in end.figures.still_ms.values())
    assert end.figures.copies_built == 0


def test_static_members_that_are_restarted_in_time_make_no_rebalance() -> None:
    """For as long as each is away its own tasks stand still, and nothing else happens."""
    static = replace(application(24), static_members=True)
    plan = PlannedActions(restart=("c0", "c1", "c2"), down_ms=20_000)
    end = simulate(static, running(3, 24), plan)
    assert end.endless is None
    assert (end.figures.rebalances, end.figures.copies_built, end.offsets_restored) == (0, 0, 0)
    assert {round(still, -3) for still in end.figures.still_ms.values()} == {20_000}


def test_tasks_go_to_the_racks_of_what_they_read() -> None:
    """KIP-925: with min_traffic clients that start are given what is in their racks."""
    racked = application(4)
    topics = ("counted", "counts-changelog")
    replicas = {
        TopicPartition(topic, number): (f"r{number // 2}",)
        for topic in topics
        for number in range(4)
    }
    configs = replace(racked.configs, rack_aware_assignment_strategy="min_traffic")
    run = StreamsRun(replace(racked, configs=configs, replicas=replicas))
    for number in range(2):
        run.add(f"c{number}", ProcessId(0, number + 1), rack=f"r{number}")
        run.start(f"c{number}")
    run.time.run(MINUTE)
    active = {thread.member_id: sorted(thread.active) for thread in run.running_threads()}
    own = [[TaskId(0, 2 * rack), TaskId(0, 2 * rack + 1)] for rack in range(2)]
    assert active == {"c0-1-1": own[0], "c1-1-1": own[1]}


def test_at_once_costs_one_session_timeout_for_all() -> None:
    plan = PlannedActions(restart=("c0", "c1", "c2"), at_once=True, leave_group=True, down_ms=5_000)
    end = simulate(application(6), running(3, 6), plan)
    assert 5_000 <= end.figures.longest_still_ms < 12_000


def test_a_state_that_is_lost_is_restored_whole() -> None:
    end = simulate(application(6), running(3, 6), PlannedActions(kill=("c2",), keep_state=False))
    assert end.figures.copies_built >= 2
    assert end.offsets_restored >= 200_000


@pytest.mark.heavy
def test_100_clients_with_1000_tasks_can_be_restarted_in_turn() -> None:
    clients = running(100, 1_000)
    end = simulate(
        application(1_000), clients, PlannedActions(restart=tuple(one.name for one in clients))
    )
    assert end.endless is None
    assert max(end.figures.still_ms.values()) < 60_000


def test_what_never_comes_to_rest_is_stopped_and_said_to_go_round() -> None:
    """With lag 0 a copy of a task that writes is never caught up when it is asked."""
    restless = replace(
        application(6),
        configs=Configs(acceptable_recovery_lag=0, probing_rebalance_interval_ms=MINUTE),
    )
    end = simulate(restless, running(2, 6), PlannedActions(add=1), most_ms=60 * MINUTE)
    assert end.endless is not None
    assert "probing" in end.endless
