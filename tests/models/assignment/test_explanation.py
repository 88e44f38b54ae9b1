"""Every movement says what moves, from where to where, and why."""

from __future__ import annotations

from caughtup.models.assignment.decision import Movement, MovementKind, Rule
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.registry import decide
from tests.models.assignors.building import client, scenario, task
from tests.support.groups.streams import process


def only_movement(given: Scenario) -> Movement:
    (movement,) = decide(given).movements
    return movement


def test_nothing_moves_where_everything_is_in_place() -> None:
    given = scenario(client(active=("0_0",)), client(active=("0_1",)), stateful=("0_0", "0_1"))
    assert decide(given).movements == ()


def test_a_caught_up_standby_takes_the_active_at_once() -> None:
    both = client(active=("0_0", "0_1"))
    caught_up = client({"0_1": 100}, standby=("0_1",))
    movement = only_movement(scenario(both, caught_up, stateful=("0_0", "0_1")))
    assert movement == Movement(
        task("0_1"),
        process(1),
        process(2),
        MovementKind.ACTIVE,
        "the destination lags 100 offsets, so it can take the task over at once",
        lag=100,
        source_lag=-2,
    )


def test_a_warm_up_names_who_serves_meanwhile_and_its_place_in_the_budget() -> None:
    both = client(active=("0_0", "0_1"))
    movement = only_movement(scenario(both, client({"0_1": 101}), stateful=("0_0", "0_1")))
    assert movement == Movement(
        task("0_1"),
        process(1),
        process(2),
        MovementKind.WARMUP,
        "the active belongs on the destination, which lags 101 offsets (100 accepted); "
        "the source runs it already and serves meanwhile: warm-up 1 of 2",
        lag=101,
        source_lag=-2,
        rule=Rule.CAUGHT_UP,
    )


def test_a_movement_without_a_warm_up_waits_and_says_what_for() -> None:
    tasks = ("0_0", "0_1", "0_2", "0_3")
    given = scenario(client(active=tasks), client(), stateful=tasks, warmups=1)
    warming, waiting = decide(given).movements
    assert (warming.task, warming.kind) == (task("0_1"), MovementKind.WARMUP)
    assert (waiting.task, waiting.kind) == (task("0_3"), MovementKind.WAITING)
    assert waiting.reason.endswith("; max.warmup.replicas (1) is used up")


def test_a_caught_up_standby_serves_in_the_place_of_the_active() -> None:
    """Client 1 should have the active and client 2 the standby; for now it is the other way."""
    given = scenario(client(), client(active=("0_0",)), stateful=("0_0",), standbys=1)
    swap, standby = decide(given).movements
    assert (swap.kind, swap.rule) == (MovementKind.SWAP, Rule.CAUGHT_UP_STANDBY)
    assert (swap.source, swap.destination) == (process(2), process(1))
    assert (standby.kind, standby.source, standby.destination) == (
        MovementKind.STANDBY,
        None,
        process(1),
    )
    assert standby.reason == "its standby is new here; the destination lags 100,000 offsets"


def test_a_cold_hand_over_is_called_one() -> None:
    """Nobody is caught up: client 2 lags least and gets the active, client 1 warms up."""
    given = scenario(client(), client({"0_0": 500}), stateful=("0_0",))
    cold, warming = decide(given).movements
    assert (cold.kind, cold.source, cold.destination) == (MovementKind.COLD, None, process(2))
    assert cold.reason == (
        "no client is caught up and none lags less than this one, which lags 500 offsets"
    )
    assert (warming.kind, warming.rule) == (MovementKind.WARMUP, Rule.MOST_CAUGHT_UP)
    assert (warming.source_lag, warming.lag) == (500, 100_000)


def test_an_unknown_lag_is_said_to_be_unknown() -> None:
    movement = only_movement(scenario(client({"0_0": -3}), stateful=("0_0",)))
    assert movement.kind == MovementKind.COLD
    assert movement.reason.endswith("which has an unknown lag")


def test_a_standby_says_which_one_it_stands_in_for() -> None:
    given = scenario(
        client(active=("0_0",)), client(), client({"0_0": 5}), stateful=("0_0",), standbys=1
    )
    warming, standing_in = decide(given).movements
    assert (warming.kind, warming.destination) == (MovementKind.WARMUP, process(2))
    assert warming.reason.startswith("the standby belongs on the destination")
    assert (standing_in.kind, standing_in.destination) == (MovementKind.STANDBY, process(3))
    assert standing_in.reason.startswith(
        "it stands by until the standby on the planned destination is caught up"
    )


def test_a_task_without_state_moves_without_a_lag() -> None:
    movement = only_movement(scenario(client(), client(active=("1_0",)), stateless=("1_0",)))
    assert movement.kind == MovementKind.STATELESS
    assert (movement.source, movement.destination) == (process(2), process(1))
    assert movement.lag is None


def test_movements_come_in_the_order_of_their_tasks() -> None:
    tasks = ("0_2", "0_10", "0_0")
    movements = decide(scenario(client(), stateful=tasks)).movements
    assert [str(m.task) for m in movements] == ["0_0", "0_2", "0_10"]
