"""What a leader decides, why, and what it remembers: each rule in the least group that shows it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from caughtup.models.connect.assignors import decide_incremental, revocation_backoff_ms
from caughtup.models.connect.decision import NO_MEMORY, Memory
from caughtup.models.connect.work import written
from tests.models.connect.building import (
    assigned,
    decided,
    reasons,
    revoked,
    round_of,
    work,
    work_set,
)

D_MS = 300_000
TWO = {"A": 1, "B": 1}
BOTH = {"W1": "A A-0", "W2": "B B-0"}


def test_new_work_goes_to_whoever_has_least_of_its_kind_and_then_by_name():
    decision, memory = decided([round_of({"W2": "", "W1": "A A-0"}, {"A": 1, "B": 3})])
    assert assigned(decision) == {"W2": "B B-0 B-1", "W1": "B-2"}
    assert set(reasons(decision.assigned_because).values()) == {"new"}
    assert (decision.delay_ms, decision.delayed, decision.reassign_at_ms) == (0, None, None)
    assert memory == Memory(
        assigned=work_set("A A-0 B B-0 B-1 B-2"), members=frozenset({"W1", "W2"})
    )


def test_work_of_who_left_waits_and_says_until_when_and_for_whom():
    alone, here = round_of(BOTH, TWO), {"W1": "A A-0"}
    decision, memory = decided([alone, round_of(here, TWO, 1_000)])
    assert (decision.delay_ms, decision.delayed) == (D_MS, "departed")
    assert decision.reassign_at_ms == D_MS + 1_000
    assert written(decision.unassigned) == ["B", "B-0"]
    back = round_of({**here, "W3": ""}, TWO, 101_000)
    decision, memory = decide_incremental(back, memory)
    assert (decision.delay_ms, decision.delayed) == (D_MS - 100_000, "waiting")
    assert (decision.candidates, decision.reassign_at_ms) == (("W3",), D_MS + 1_000)
    over = round_of({**here, "W3": ""}, TWO, D_MS + 1_000)
    decision, memory = decide_incremental(over, memory)
    assert assigned(decision) == {"W1": "", "W3": "B B-0"}
    assert reasons(decision.assigned_because) == {"B": "came_back", "B-0": "came_back"}
    assert not decision.unassigned
    assert (memory.candidates, memory.scheduled_rebalance_ms) == ((), 0)


def test_a_millisecond_before_its_delay_is_over_lost_work_still_waits():
    first, here = round_of(BOTH, TWO), {"W1": "A A-0"}
    gone = round_of(here, TWO)
    early, _ = decided([first, gone, round_of(here, TWO, D_MS - 1)])
    assert (early.delay_ms, assigned(early)) == (1, {"W1": ""})
    over, _ = decided([first, gone, round_of(here, TWO, D_MS)])
    assert (over.delay_ms, assigned(over)) == (0, {"W1": "B B-0"})
    assert reasons(over.assigned_because) == {"B": "delay_over", "B-0": "delay_over"}


def test_without_a_delay_lost_work_is_dealt_at_once():
    decision, _ = decided([round_of(BOTH, TWO), round_of({"W1": "A A-0"}, TWO)], max_delay_ms=0)
    assert assigned(decision) == {"W1": "B B-0"}
    assert set(reasons(decision.assigned_because).values()) == {"no_delay"}


def test_work_that_its_worker_never_got_is_given_again_without_a_delay():
    decision, _ = decided([round_of(BOTH, TWO), round_of({"W1": "A A-0", "W2": ""}, TWO, 5)])
    assert assigned(decision) == {"W1": "", "W2": "B B-0"}
    assert set(reasons(decision.assigned_because).values()) == {"not_received"}


def test_a_leader_whose_round_failed_deals_what_nobody_has_as_new():
    here = {"W1": "A A-0"}
    decision, _ = decided([round_of(BOTH, TWO), round_of(here, TWO, last_completed=False)])
    assert assigned(decision) == {"W1": "B B-0"}
    assert set(reasons(decision.assigned_because).values()) == {"new"}
    assert decision.delay_ms == 0


def test_what_is_not_configured_any_more_is_revoked_and_nothing_else_moves():
    decision, memory = decided([round_of(BOTH, TWO), round_of(BOTH, {"A": 1})])
    assert revoked(decision) == {"W1": "", "W2": "B B-0"}
    assert reasons(decision.revoked_because) == {"B": "deleted", "B-0": "deleted"}
    assert memory.assigned == work_set("A A-0")


def test_what_two_run_both_let_go_and_the_next_round_deals():
    twice = round_of({"W1": "A A-0", "W2": "A-0 B B-0"}, TWO)
    decision, memory = decided([round_of(BOTH, TWO), twice])
    assert revoked(decision) == {"W1": "A-0", "W2": "A-0"}
    assert reasons(decision.revoked_because) == {"A-0": "duplicated"}
    assert written(decision.unassigned) == ["A-0"]
    after, _ = decide_incremental(round_of({"W1": "A", "W2": "B B-0"}, TWO), memory)
    assert assigned(after) == {"W1": "A-0", "W2": ""}


def test_a_worker_with_more_than_its_share_gives_the_first_that_it_names():
    decision, memory = decided([round_of({"W1": "A A-2 A-0 A-1", "W2": ""}, {"A": 3})])
    assert revoked(decision) == {"W1": "A-2", "W2": ""}
    assert reasons(decision.revoked_because) == {"A-2": "balance"}
    assert (memory.revoked, memory.revoked_last) == (work_set("A-2"), True)


def test_a_second_revoking_round_in_a_row_backs_off():
    four = {"A": 8}
    everything = " ".join(("A", *(f"A-{number}" for number in range(8))))
    first = round_of({"W1": everything}, four)
    joined = round_of({"W1": everything, "W2": ""}, four, 10)
    _, memory = decided([first, joined])
    uneven = {"W1": "A A-4 A-5 A-6 A-7", "W2": "", "W3": ""}
    decision, memory = decide_incremental(round_of(uneven, four, 20), memory)
    assert (decision.delay_ms, decision.delayed, decision.reassign_at_ms) == (40, "back_off", 60)
    assert revoked(decision) == {"W1": "", "W2": "", "W3": ""}
    assert {name: written(one.postponed) for name, one in decision.workers.items()} == {
        "W1": ["A-4"],
        "W2": [],
        "W3": [],
    }
    assert (memory.successive_revocations, memory.scheduled_rebalance_ms) == (1, 60)


@pytest.mark.parametrize(
    ("max_delay_ms", "delays"),
    [
        (300_000, [40, 1_600, 64_000, 300_000, 300_000]),
        (60_000, [40, 1_600, 60_000, 60_000]),
        (1_000, [40, 999, 999]),
        (40, [40, 40]),
        (1, [1, 1]),
        (0, [0, 0]),
    ],
)
def test_the_back_off_is_what_connect_waits(max_delay_ms, delays):
    times = range(1, len(delays) + 1)
    assert [revocation_backoff_ms(number, max_delay_ms) for number in times] == delays


def test_a_worker_without_work_that_leaves_after_a_revoking_round_begins_a_delay():
    """Nothing is lost, and yet all wait: that is Connect's rule."""
    first = round_of({"W1": "A A-0 B B-0", "W2": "", "W3": ""}, TWO)
    after = {"W1": "B B-0", "W2": "A A-0"}
    decision, memory = decided([first, round_of(after, TWO, 100)])
    assert (decision.delay_ms, decision.delayed) == (D_MS, "departed")
    assert not decision.unassigned
    assert not memory.revoked_last


def test_lost_work_that_its_candidate_would_have_too_much_of_is_taken_away_as_it_is_given():
    """Kafka tells W2 to let go of a task that it never had, and nobody has it until the next round."""
    three = {"A": 3, "B": 1}
    first = round_of({"W1": "A A-0", "W2": "B B-0", "W3": "A-1 A-2"}, three)
    gone = round_of({"W1": "A A-0"}, three)
    back = round_of({"W1": "A A-0", "W2": ""}, three, 5)
    over = round_of({"W1": "A A-0", "W2": ""}, three, D_MS)
    decision, memory = decided([first, gone, back, over])
    assert assigned(decision) == {"W1": "", "W2": "B A-2 B-0"}
    assert revoked(decision) == {"W1": "", "W2": "A-1"}
    assert written(decision.unassigned) == ["A-1"]
    assert "A-1" in map(str, memory.assigned.tasks)


def test_a_revocation_that_a_worker_did_not_get_is_decided_anew():
    first = round_of({"W1": "A A-0 B B-0", "W2": ""}, TWO)
    decision, memory = decided([first])
    assert revoked(decision)["W1"] == "A A-0"
    again, _ = decide_incremental(round_of({"W1": "A A-0 B B-0", "W2": ""}, TWO, 5), memory)
    assert (again.delayed, again.delay_ms) == ("back_off", 40)


def test_what_a_new_leader_finds_running_that_is_not_configured_stays_for_a_round():
    found = round_of({"W1": "A A-0 X X-0", "W2": "B B-0"}, TWO)
    decision, memory = decided([found])
    assert revoked(decision) == {"W1": "A A-0", "W2": ""}
    later = round_of({"W1": "X X-0", "W2": "B B-0"}, TWO, 5)
    decision, _ = decide_incremental(later, memory)
    assert revoked(decision) == {"W1": "X X-0", "W2": ""}
    assert reasons(decision.revoked_because) == {"X": "deleted", "X-0": "deleted"}


def test_a_leader_that_got_the_lead_back_finds_nothing_lost():
    first, gone = round_of(BOTH, TWO), round_of({"W1": "A A-0"}, TWO)
    _, memory = decided([first, gone])
    back = round_of({"W1": "A A-0", "W3": ""}, TWO, 9, last_completed=False)
    decision, after = decide_incremental(back, memory)
    # Nothing is lost for it, and so its delay is over.
    assert (decision.delay_ms, assigned(decision)) == (0, {"W1": "", "W3": "B B-0"})
    assert memory.scheduled_rebalance_ms == D_MS
    assert after.scheduled_rebalance_ms == 0


def test_a_decision_is_of_values_and_the_same_for_the_same_ones():
    round_ = round_of({"W1": "A A-0 B B-0", "W2": ""}, TWO)
    memory = replace(NO_MEMORY, assigned=work_set("A A-0 B B-0"))
    assert decide_incremental(round_, memory) == decide_incremental(round_, memory)
    assert round_.workers["W1"] == work("A A-0 B B-0")
