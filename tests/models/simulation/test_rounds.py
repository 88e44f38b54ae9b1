"""A group played until it is stable: what is counted, and what time does to copies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.registry import decide
from caughtup.models.simulation.rounds import end_offsets, next_scenario, play, spread
from tests.models.assignors.building import client, scenario, task
from tests.support.groups.streams import process

TASKS = tuple(f"0_{n}" for n in range(12))


def grown(assignor: str, **rest: int) -> Scenario:
    """One client has all twelve tasks, the other has just joined."""
    group = scenario(client(active=TASKS), client(), stateful=TASKS, **rest)
    return replace(group, assignor=assignor)


def test_rounds_copies_and_offsets_are_counted_until_nothing_is_left_to_do() -> None:
    outcome = play(grown("minimal_movement"))
    assert outcome.converged
    assert outcome.rounds == 4
    assert outcome.copies_built == 6
    assert outcome.offsets_restored == 600_000
    assert outcome.active_hand_overs == 6
    assert outcome.cold_hand_overs == 0
    assert outcome.most_extra_copies == 2
    assert (outcome.active_spread, outcome.copy_spread) == (0, 0)
    assert not outcome.decision.probing_rebalance_needed
    assert len(outcome.scenario.clients[1].previous_active) == 6


def test_kafkas_assignor_moves_back_and_forth_what_need_not_move() -> None:
    """The published jar's own figures for 48 tasks and the fourth client: 36 copies, 19 rounds."""
    tasks = tuple(f"0_{n}" for n in range(48))
    whole = play(scenario(client(), client(), client(), stateful=tasks)).scenario
    joined = scenario(client(), client(), client(), client(), stateful=tasks).clients[-1]
    group = replace(whole, clients=(*whole.clients, joined))
    kafka = play(group)
    assert (kafka.copies_built, kafka.rounds, kafka.cold_hand_overs) == (36, 19, 0)
    ours = play(replace(group, assignor="minimal_movement"))
    assert (ours.copies_built, ours.rounds, ours.cold_hand_overs) == (12, 7, 0)


def test_a_group_that_starts_is_cold_and_nothing_of_that_is_avoidable() -> None:
    outcome = play(scenario(client(), client(), stateful=TASKS))
    assert (outcome.rounds, outcome.copies_built) == (1, 12)
    assert (outcome.cold_hand_overs, outcome.avoidable_cold_hand_overs) == (12, 0)


def test_a_cold_hand_over_is_avoidable_where_some_client_is_caught_up() -> None:
    """The sticky assignor pays no heed to lags: client 2 gets half of the tasks as they are."""
    outcome = play(grown("sticky"))
    assert outcome.cold_hand_overs == outcome.avoidable_cold_hand_overs == 6


def test_with_a_rate_copies_take_several_rounds() -> None:
    slow = play(grown("minimal_movement"), offsets_a_round=30_000)
    quick = play(grown("minimal_movement"))
    assert slow.converged
    assert slow.copies_built == quick.copies_built
    assert slow.wasted_warm_ups == 0
    assert slow.rounds == 3 * 4 + 1


def test_a_game_that_would_not_end_is_broken_off() -> None:
    outcome = play(grown("minimal_movement"), most_rounds=2)
    assert not outcome.converged
    assert outcome.rounds == 2
    assert outcome.decision.probing_rebalance_needed


def test_a_warm_up_that_is_taken_away_again_is_wasted() -> None:
    def fickle(group: Scenario) -> object:
        """Warm a task up on client 2 if it hasn't any, and else one on client 3."""
        second = group.clients[1]
        leaving = replace(group, clients=(group.clients[0], second, group.clients[2]))
        if second.previous_standby:
            leaving = replace(
                group,
                clients=(
                    group.clients[0],
                    replace(second, previous_standby=frozenset(), lags=group.clients[2].lags),
                    group.clients[2],
                ),
                configs=replace(group.configs, num_standby_replicas=0),
            )
        decision = decide(leaving)
        if second.previous_standby:
            (warm,) = second.previous_standby
            given = {
                who: replace(
                    one,
                    standby=tuple(t for t in one.standby if t != warm),
                    warmup=tuple(t for t in one.warmup if t != warm),
                )
                for who, one in decision.clients.items()
            }
            decision = replace(decision, clients=given)
        return decision

    group = scenario(client(active=TASKS[:4]), client(), client(), stateful=TASKS[:4], warmups=1)
    outcome = play(replace(group, assignor="minimal_movement"), decide=fickle, most_rounds=2)  # type: ignore[arg-type]
    assert outcome.wasted_warm_ups == 1


def test_what_is_no_longer_assigned_is_gone_and_what_runs_is_caught_up() -> None:
    group = scenario(
        client(active=("0_0",), standby=("0_1",)), client(active=("0_1",)), stateful=("0_0", "0_1")
    )
    ends = end_offsets(group)
    assert ends == {task("0_0"): 100_000, task("0_1"): 100_000}
    later = next_scenario(group, decide(group), ends)
    first = later.clients[0]
    assert first.process_id == process(1)
    assert first.lags == {task("0_0"): -2, task("0_1"): 100_000}
    assert first.previous_standby == frozenset()


@pytest.mark.parametrize(("threads", "expected"), [(1, 8.0), (3, 10 / 3 - 2)])
def test_the_spread_is_of_tasks_with_state_for_each_thread(threads: int, expected: float) -> None:
    group = scenario(
        client(active=(*TASKS[:10], "1_0"), capacity=threads),
        client(active=TASKS[10:]),
        stateful=TASKS,
        stateless=("1_0",),
    )
    assert spread(group, standbys=False) == pytest.approx(expected)
    assert spread(group, standbys=True) == spread(group, standbys=False)
