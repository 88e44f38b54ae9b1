"""The cases of the document on task assignors: its clients m1, m2 and m3, and its task t1.

``begin`` makes a group; tests/oracle runs the same tests with groups that hold every rebalance
against the published jar's.
"""

from __future__ import annotations

from itertools import permutations

import pytest

from tests.models.assignors.walk import Begin, Walk

T1 = {"t1": "0_0"}
#: Who of m1, m2 and m3 comes first, second and third in the order of process ids.
ORDERS = list(permutations((1, 2, 3)))


@pytest.fixture
def begin() -> Begin:
    return Walk


def test_high_availability_moves_a_stateless_task_for_nothing_when_m3_joins(begin: Begin) -> None:
    """m1: [t1] m2: [] becomes m1: [] m2: [t1] m3: [], as in the document."""
    group = begin("high_availability", stateless="t1", names=T1)
    group.join("m1", process=2, has="t1")
    group.join("m2", process=1)
    group.join("m3", process=3)
    generation = group.rebalance()
    assert generation.active == {"m2": "t1"}
    assert not generation.probing


@pytest.mark.parametrize("order", ORDERS)
def test_high_availability_gives_a_stateless_task_to_the_first_process_whoever_had_it(
    begin: Begin, order: tuple[int, int, int]
) -> None:
    """Nobody has anything yet, so that the least process id decides: m2 or m3 get t1 in four of
    six orders, though m1 has it.
    """
    group = begin("high_availability", stateless="t1", names=T1)
    for name, process in zip(("m1", "m2", "m3"), order, strict=True):
        group.join(name, process=process, has="t1" if name == "m1" else "")
    first = {1: "m1", 2: "m2", 3: "m3"}[1 + order.index(1)]
    assert group.rebalance().active == {first: "t1"}


def test_high_availability_moves_the_same_task_again_with_every_smaller_process_id(
    begin: Begin,
) -> None:
    group = begin("high_availability", stateless="t1", names=T1)
    group.join("m1", process=3)
    assert group.rebalance().active == {"m1": "t1"}
    group.join("m2", process=2)
    assert group.rebalance().active == {"m2": "t1"}
    group.join("m3", process=1)
    assert group.rebalance().active == {"m3": "t1"}
    group.leave("m3")
    assert group.rebalance().active == {"m2": "t1"}


@pytest.mark.parametrize("order", ORDERS)
def test_sticky_leaves_t1_where_it_is_for_as_long_as_m1_is_there(
    begin: Begin, order: tuple[int, int, int]
) -> None:
    m1, m2, m3 = order
    group = begin("sticky", stateless="t1", names=T1)
    group.join("m1", process=m1)
    assert group.rebalance().active == {"m1": "t1"}
    group.join("m2", process=m2)
    assert group.rebalance().active == {"m1": "t1"}
    group.join("m3", process=m3)
    assert group.rebalance().active == {"m1": "t1"}
    group.leave("m2")
    assert group.rebalance().active == {"m1": "t1"}
    group.leave("m1")
    assert group.rebalance().active == {"m3": "t1"}


def test_sticky_hands_a_stateful_task_to_a_client_that_has_to_restore_it_first(
    begin: Begin,
) -> None:
    """For this downtime's sake HighAvailabilityTaskAssignor came with Kafka 2.6."""
    group = begin("sticky", stateful="0_0 0_1")
    group.join("m1", process=1)
    assert group.rebalance().active == {"m1": "0_0 0_1"}
    group.join("m2", process=2)
    generation = group.rebalance()
    assert generation.active == {"m1": "0_1", "m2": "0_0"}
    assert generation.standby == {}
    assert not generation.probing


@pytest.mark.parametrize(
    ("lag", "runs_it", "warms_up"),
    [
        (0, "m2", {}),
        (9_999, "m2", {}),
        (10_000, "m2", {}),
        (10_001, "m1", {"m2": "t1"}),
        (100_000, "m1", {"m2": "t1"}),
    ],
)
def test_high_availability_gives_a_stateful_task_to_a_caught_up_client_only(
    begin: Begin, lag: int, runs_it: str, warms_up: dict[str, str]
) -> None:
    """Caught up is who lags acceptable.recovery.lag offsets at most: 10,000 unless configured."""
    group = begin("high_availability", stateful="t1", names=T1)
    group.join("m1", process=2, has="t1")
    group.join("m2", process=1)
    group.lag("m2", "t1", lag)
    generation = group.rebalance()
    assert generation.active == {runs_it: "t1"}
    assert generation.warmup == generation.standby == warms_up
    assert generation.probing == bool(warms_up)


def test_high_availability_warms_up_first_and_moves_the_task_after_a_probing_rebalance(
    begin: Begin,
) -> None:
    group = begin("high_availability", stateful="t1", names=T1)
    group.join("m1", process=2)
    assert group.rebalance().active == {"m1": "t1"}

    group.join("m2", process=1)
    joined = group.rebalance()
    assert (joined.active, joined.warmup) == ({"m1": "t1"}, {"m2": "t1"})
    assert joined.probing

    group.lag("m2", "t1", 10_001)
    probed = group.rebalance()
    assert probed == joined

    group.lag("m2", "t1", 10_000)
    caught_up = group.rebalance()
    assert (caught_up.active, caught_up.standby) == ({"m2": "t1"}, {})
    assert not caught_up.probing

    assert group.rebalance() == caught_up


def test_high_availability_does_not_wait_where_nobody_is_caught_up(begin: Begin) -> None:
    """The document says that a warm-up comes first; with m1 gone there is nothing to wait for."""
    group = begin("high_availability", stateful="t1", names=T1)
    group.join("m1", process=1, has="t1")
    group.join("m2", process=2)
    group.join("m3", process=3)
    group.leave("m1")
    generation = group.rebalance()
    assert (generation.active, generation.standby) == ({"m2": "t1"}, {})
    assert not generation.probing


def test_high_availability_has_the_client_that_lags_least_serve_where_nobody_is_caught_up(
    begin: Begin,
) -> None:
    group = begin("high_availability", stateful="t1", names=T1)
    group.join("m2", process=1)
    group.join("m3", process=2)
    group.lag("m3", "t1", 50_000)
    generation = group.rebalance()
    assert (generation.active, generation.warmup) == ({"m3": "t1"}, {"m2": "t1"})
    assert generation.probing
    group.catch_up()
    assert group.rebalance().active == {"m2": "t1"}
