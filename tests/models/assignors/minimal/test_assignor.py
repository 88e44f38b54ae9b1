"""minimal_movement: what moves, what waits, what stays, and what operators are told of it."""

from __future__ import annotations

from caughtup.models.assignment.decision import MovementKind
from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.minimal.assignor import remaining
from caughtup.models.assignors.registry import decide
from caughtup.models.simulation.rounds import end_offsets, next_scenario
from tests.models.assignors.building import client, described
from tests.models.assignors.minimal.building import FOUR, NOTHING, given, kinds, recommended
from tests.support.groups.streams import process


def test_a_new_client_warms_up_its_share_and_nothing_else_moves() -> None:
    scenario = recommended(
        client(active=FOUR[:2]), client(active=FOUR[2:]), client(), stateful=FOUR, warmups=1
    )
    decision = decide(scenario)
    assert decision.probing_rebalance_needed
    assert kinds(decision) == [("warmup", "0_2", 3)]
    assert given(decision, 2) == ("0_2 0_3", "", "")
    assert given(decision, 3) == ("", "0_2", "0_2")

    warm = decide(next_scenario(scenario, decision, end_offsets(scenario)))
    assert not warm.probing_rebalance_needed
    assert kinds(warm) == [("active", "0_2", 3)]
    assert given(warm, 2) == ("0_3", "", "")
    assert given(warm, 3) == ("0_2", "", "")


def test_asked_again_it_answers_the_same_and_moves_nothing() -> None:
    scenario = recommended(client(active=FOUR), client(), stateful=FOUR, warmups=4)
    ends = end_offsets(scenario)
    while (decision := decide(scenario)).probing_rebalance_needed:
        scenario = next_scenario(scenario, decision, ends)
    again = decide(next_scenario(scenario, decision, ends))
    assert again == decision
    assert again.movements == ()


def test_what_finds_no_warm_up_waits_and_is_served_where_it_is() -> None:
    decision = decide(recommended(client(active=FOUR), client(), stateful=FOUR, warmups=1))
    assert [kind for kind, _, _ in kinds(decision)] == ["warmup", "waiting"]
    assert given(decision, 1)[0] == "0_0 0_1 0_2 0_3"
    waiting = decision.movements[1]
    assert waiting.reason.endswith("; max.warmup.replicas (1) is used up")
    assert "serves meanwhile" in waiting.reason


def test_a_copy_that_is_half_restored_goes_on_before_others_begin() -> None:
    """0_3 was begun on client 2, though 0_1 has less to restore."""
    decision = decide(
        recommended(
            client(active=FOUR),
            client({"0_3": 60_000, "0_1": 50_000}, standby=("0_3",)),
            client({"0_1": 50_000}),
            stateful=FOUR,
            warmups=1,
        )
    )
    assert ("warmup", "0_3", 2) in kinds(decision)


def test_a_standby_takes_over_where_a_client_left_and_one_copy_is_built_for_each_lost() -> None:
    """Client 3 ran 0_2 and stood by for 0_0: it is gone."""
    decision = decide(
        recommended(
            client({"0_2": 0}, active=("0_0",), standby=("0_2",)),
            client({"0_0": NOTHING}, active=("0_1",)),
            stateful=("0_0", "0_1", "0_2"),
            standbys=1,
        )
    )
    assert not decision.probing_rebalance_needed
    assert ("active", "0_2", 1) in kinds(decision)
    assert [one for one in kinds(decision) if one[0] != "active"] == [
        ("standby", "0_0", 2),
        ("standby", "0_1", 1),
        ("standby", "0_2", 2),
    ]


def test_copies_that_are_missing_are_no_extra_copies() -> None:
    """Twelve standbys are built at once, though two warm-ups are allowed."""
    tasks = tuple(f"0_{n}" for n in range(12))
    decision = decide(
        recommended(client(active=tasks[:6]), client(active=tasks[6:]), stateful=tasks, standbys=1)
    )
    assert not decision.probing_rebalance_needed
    assert {kind for kind, _, _ in kinds(decision)} == {"standby"}
    assert len(kinds(decision)) == 12


def test_where_nobody_is_caught_up_the_one_that_lags_least_runs_the_task() -> None:
    decision = decide(
        recommended(client({"0_0": 5_000}), client({"0_0": 4_000}), stateful=("0_0",))
    )
    (cold,) = decision.movements
    assert (cold.kind, cold.destination, cold.lag) == (MovementKind.COLD, process(2), 4_000)


def test_state_on_disk_counts_though_nobody_was_assigned_it() -> None:
    """Both tasks are on the disk of client 2, which runs them until client 1 has its share."""
    decision = decide(
        recommended(client(), client({"0_0": 10, "0_1": 20}), stateful=("0_0", "0_1"))
    )
    assert given(decision, 2) == ("0_0 0_1", "", "")
    assert kinds(decision) == [("active", "0_0", 2), ("warmup", "0_0", 1), ("active", "0_1", 2)]


def test_who_ran_a_task_is_caught_up_even_where_no_lag_could_be_told() -> None:
    unknown = {"0_0": -3, "0_1": -3}
    runs = {**client(active=("0_0", "0_1")), "lags": unknown}
    decision = decide(recommended(runs, client(unknown), stateful=("0_0", "0_1")))
    assert given(decision, 1)[0] == "0_0 0_1"
    assert [kind for kind, _, _ in kinds(decision)] == ["warmup"]
    assert remaining(recommended(runs, client(unknown), stateful=("0_0", "0_1")))[0].offsets is None


def test_a_client_that_is_caught_up_takes_over_from_one_that_restores() -> None:
    decision = decide(
        recommended(
            client({"0_0": 70_000}, active=("0_0",)) | {"lags": {"0_0": 70_000}},
            client({"0_0": 50}, standby=("0_0",)),
            stateful=("0_0",),
            standbys=1,
        )
    )
    assert given(decision, 2)[0] == "0_0"
    assert given(decision, 1)[1] == "0_0"
    assert not decision.probing_rebalance_needed


def test_tasks_without_state_stay_unless_the_threads_are_out_of_balance() -> None:
    stateless = tuple(f"1_{n}" for n in range(4))
    still = recommended(
        client(active=(*FOUR[:2], "1_0")),
        client(active=(*FOUR[2:], *stateless[1:])),
        stateful=FOUR,
        stateless=stateless,
    )
    assert kinds(decide(still)) == [("stateless", "1_3", 1)]
    uneven = recommended(client(active=stateless), client(), stateless=stateless)
    assert kinds(decide(uneven)) == [("stateless", "1_2", 2), ("stateless", "1_3", 2)]


def test_a_client_gets_as_much_as_its_threads_can_do() -> None:
    tasks = tuple(f"0_{n}" for n in range(12))
    decision = decide(recommended(client(capacity=3), client(capacity=1), stateful=tasks))
    assert [len(one.active) for one in decision.clients.values()] == [9, 3]


def test_tasks_that_move_are_of_the_subtopology_of_which_most_are_there() -> None:
    """Client 1 gives away one of each subtopology instead of two with little to restore."""
    tasks = ("0_0", "0_1", "0_2", "1_0", "1_1", "1_2")
    small = {"0_0": 500, "0_1": 500, "0_2": 500}
    decision = decide(
        recommended(client(active=tasks), client(small), client(small), stateful=tasks, warmups=9)
    )
    moved = {number: {t[0] for _, t, to in kinds(decision) if to == number} for number in (2, 3)}
    assert moved == {2: {"0", "1"}, 3: {"0", "1"}}


def test_what_is_left_to_build_is_told_copy_by_copy() -> None:
    scenario = recommended(
        client(active=FOUR), client({"0_3": 700}, standby=("0_3",)), stateful=FOUR
    )
    begun, new = sorted(remaining(scenario), key=lambda copy: copy.new)
    assert (str(begun.task), begun.process_id, begun.offsets, begun.active) == (
        "0_3",
        process(2),
        700,
        True,
    )
    assert (new.process_id, new.offsets, new.active) == (process(2), NOTHING, True)


def test_the_order_of_tasks_and_clients_in_the_scenario_does_not_matter() -> None:
    data = {
        **described(client(active=FOUR), client(), client(), stateful=FOUR, standbys=1),
        "assignor": "minimal_movement",
    }
    turned = {
        **data,
        "tasks": dict(reversed(data["tasks"].items())),
        "clients": {
            name: {**one, "lags": dict(reversed(one["lags"].items()))}
            for name, one in reversed(data["clients"].items())
        },
    }
    one, other = decide(parse_scenario(data)), decide(parse_scenario(turned))
    assert one == other
    assert one.movements == other.movements


def test_a_group_without_tasks_gets_nothing() -> None:
    decision = decide(recommended(client(), client()))
    assert not decision.probing_rebalance_needed
    assert decision.movements == ()


def test_every_movement_says_why() -> None:
    scenario = recommended(client(active=FOUR), client(), stateful=FOUR, warmups=1, standbys=0)
    warm_up, waiting = decide(scenario).movements
    assert warm_up.reason == (
        "this is one of the fewest new copies that balance the threads; the destination lags "
        "100,000 offsets (100 accepted), and the source runs it already and serves meanwhile: "
        "warm-up 1 of 1"
    )
    assert waiting.kind == MovementKind.WAITING
    swap = recommended(
        client(active=("0_0", "0_1")),
        client({"0_0": 900, "0_1": 800}, standby=("0_0", "0_1")),
        stateful=("0_0", "0_1"),
        standbys=1,
    )
    (moved,) = decide(swap).movements
    assert moved.kind == MovementKind.SWAP
    assert moved.reason == (
        "the active belongs on the destination, which has the standby and lags 800 offsets "
        "(100 accepted); the source runs it already and serves meanwhile"
    )
