"""A rebalance as the document on Kafka Streams' rebalance walks through it, step by step.

The leader assigns: stateful actives in turn, balanced over threads; standbys; movements where a
client lags too much; tasks without state; and a probing rebalance while there are movements.
The document has no figures of its own, so the group is a small one with all of these in it.

``begin`` makes a group; tests/oracle runs the same tests with groups that hold every rebalance
against the published jar's.
"""

from __future__ import annotations

import pytest

from tests.models.assignors.walk import Begin, Walk

STATEFUL = "0_0 0_1 0_2 0_3 0_4 0_5"
STATELESS = "1_0 1_1 1_2"


@pytest.fixture
def begin() -> Begin:
    return Walk


def test_stateful_tasks_are_dealt_in_turn(begin: Begin) -> None:
    group = begin("high_availability", stateful=STATEFUL)
    group.join("A", process=1)
    group.join("B", process=2)
    assert group.rebalance().active == {"A": "0_0 0_2 0_4", "B": "0_1 0_3 0_5"}


def test_then_they_are_balanced_over_threads(begin: Begin) -> None:
    """A has 3 on a thread and B 3 on two: a skew of 1.5, and of 0 once 0_0 has gone to B."""
    group = begin("high_availability", stateful=STATEFUL)
    group.join("A", process=1)
    group.join("B", process=2, threads=2)
    assert group.rebalance().active == {"A": "0_2 0_4", "B": "0_0 0_1 0_3 0_5"}


def test_no_task_moves_where_that_would_only_turn_the_skew_around(begin: Begin) -> None:
    """A has 2 and B has 1; with one of A's, B would have the 2."""
    group = begin("high_availability", stateful="0_0 0_1 0_2")
    group.join("A", process=1)
    group.join("B", process=2)
    assert group.rebalance().active == {"A": "0_0 0_2", "B": "0_1"}


def test_who_had_a_task_before_does_not_matter_to_where_it_should_be(begin: Begin) -> None:
    """Both are caught up, so that where tasks should be is where they go at once."""
    group = begin("high_availability", stateful="0_0 0_1 0_2 0_3")
    group.join("A", process=1, has="0_1 0_3")
    group.join("B", process=2, has="0_0 0_2")
    for task in ("0_0", "0_2"):
        group.lag("A", task, 0)
    for task in ("0_1", "0_3"):
        group.lag("B", task, 0)
    assert group.rebalance().active == {"A": "0_0 0_2", "B": "0_1 0_3"}


def test_standbys_go_where_the_active_is_not(begin: Begin) -> None:
    group = begin("high_availability", stateful=STATEFUL, num_standby_replicas=1)
    group.join("A", process=1)
    group.join("B", process=2, threads=2)
    generation = group.rebalance()
    assert generation.standby == {"A": "0_0 0_1 0_3 0_5", "B": "0_2 0_4"}
    assert generation.warmup == {}


def test_tasks_without_state_go_to_the_client_with_the_fewest_actives_a_thread(
    begin: Begin,
) -> None:
    """All actives count, not only those without state: A has 2 on a thread, B 4 on two."""
    group = begin("high_availability", stateful=STATEFUL, stateless=STATELESS)
    group.join("A", process=1)
    group.join("B", process=2, threads=2)
    assert group.rebalance().active == {"A": "0_2 0_4 1_0", "B": "0_0 0_1 0_3 0_5 1_1 1_2"}


def test_a_new_client_is_warmed_up_task_by_task_until_no_probing_rebalance_is_needed(
    begin: Begin,
) -> None:
    """The whole of it, from the start of the application until C has its share."""
    group = begin(
        "high_availability",
        stateful=STATEFUL,
        stateless=STATELESS,
        num_standby_replicas=1,
        max_warmup_replicas=2,
    )
    group.join("A", process=1)
    group.join("B", process=2, threads=2)
    started = group.rebalance()
    assert started.active == {"A": "0_2 0_4 1_0", "B": "0_0 0_1 0_3 0_5 1_1 1_2"}
    assert started.standby == {"A": "0_0 0_1 0_3 0_5", "B": "0_2 0_4"}
    assert not started.probing
    group.catch_up()

    # C takes no active with state, since it has none; it warms up two, and more wait.
    group.join("C", process=3)
    joined = group.rebalance()
    assert joined.active == {"A": "0_0 0_3 1_2", "B": "0_1 0_2 0_4 0_5", "C": "1_0 1_1"}
    assert joined.standby == {"A": "0_1 0_2 0_4 0_5", "B": "0_0 0_3", "C": "0_2 0_4"}
    assert joined.warmup == {"C": "0_2 0_4"}
    assert joined.probing

    # Until C has caught up, probing rebalances find that nothing has to change.
    assert group.rebalance() == joined

    # It has: 0_2 is C's, 0_4 is C's standby, and 0_5 warms up.
    group.catch_up()
    probed = group.rebalance()
    assert probed.active == {"A": "0_0 0_3 1_2", "B": "0_1 0_4 0_5 1_1", "C": "0_2 1_0"}
    assert probed.standby == {"A": "0_1 0_5", "B": "0_0 0_2 0_3", "C": "0_4 0_5"}
    assert probed.warmup == {"C": "0_5"}
    assert probed.probing

    group.catch_up()
    settled = group.rebalance()
    assert settled.active == {"A": "0_0 0_3 1_2", "B": "0_1 0_4 1_0 1_1", "C": "0_2 0_5"}
    assert settled.standby == {"A": "0_1", "B": "0_0 0_2 0_3 0_5", "C": "0_4"}
    assert settled.warmup == {}
    assert not settled.probing

    assert group.rebalance() == settled


def test_an_active_goes_to_the_standby_that_is_caught_up_when_its_client_leaves(
    begin: Begin,
) -> None:
    group = begin("high_availability", stateful="0_0 0_1", num_standby_replicas=1)
    for number, name in enumerate(("A", "B", "C"), 1):
        group.join(name, process=number)
    started = group.rebalance()
    assert started.active == {"A": "0_0", "B": "0_1"}
    assert started.standby == {"A": "0_1", "C": "0_0"}
    group.catch_up()

    # B's task goes to A, which is caught up, though C has fewer; C restores it from nothing.
    group.leave("B")
    left = group.rebalance()
    assert left.active == {"A": "0_0 0_1"}
    assert left.standby == {"C": "0_0 0_1"}
    assert left.probing

    # With C caught up, the two exchange the active and the standby.
    group.catch_up()
    settled = group.rebalance()
    assert settled.active == {"A": "0_0", "C": "0_1"}
    assert settled.standby == {"A": "0_1", "C": "0_0"}
    assert not settled.probing


def test_without_end_offsets_everybody_keeps_what_they_had_and_another_rebalance_follows(
    begin: Begin,
) -> None:
    """The leader then takes FallbackPriorTaskAssignor, unless it takes the sticky one anyway."""
    group = begin("high_availability", stateful=STATEFUL, stateless=STATELESS)
    group.join("A", process=1)
    group.join("B", process=2)
    started = group.rebalance()
    group.join("C", process=3)

    group.assignor = "fallback_prior"
    failed = group.rebalance()
    assert failed.active == started.active
    assert failed.probing

    group.assignor = "high_availability"
    joined = group.rebalance()
    assert joined.active == {"A": "0_0 0_2 0_4", "B": "0_1 0_3 0_5", "C": "1_0 1_1 1_2"}
    assert joined.warmup == {"A": "0_3", "C": "0_2"}
    assert joined.probing


def test_of_the_assignors_only_the_sticky_one_moves_no_more_than_it_has_to(begin: Begin) -> None:
    """A and B give C two actives of six; HighAvailabilityTaskAssignor has four change hands."""
    moved = {}
    for assignor in ("high_availability", "sticky"):
        group = begin(assignor, stateful=STATEFUL)
        group.join("A", process=1)
        group.join("B", process=2)
        before = group.rebalance()
        group.join("C", process=3)
        while group.rebalance().probing:
            group.catch_up()
        after = group.rebalance()
        stayed = sum(
            len(set(before.active.get(name, "").split()) & set(after.active[name].split()))
            for name in "ABC"
        )
        moved[assignor] = 6 - stayed
    assert moved == {"high_availability": 4, "sticky": 2}
