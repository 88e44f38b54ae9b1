"""What observations of a partition show: what it waits for by release, its phase, its step."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from caughtup.models.reassignments.controllers import (
    ZOOKEEPER_STEPS,
    missing_from_isr,
    phase,
    required_isr,
    reverted,
    rule_known,
    target,
    zookeeper_step,
)
from caughtup.models.records.reassignments import (
    ClusterRecord,
    ReassignmentRecord,
)
from tests.support.reassignments.observations import MOVING

ZOOKEEPER = ClusterRecord(2, 0, zookeeper=True)
UNKNOWN = ClusterRecord(2, 0)


def kraft(major: int, minor: int) -> ClusterRecord:
    return ClusterRecord(2, 0, software=(major, minor))


REMOVING = replace(MOVING, replicas=(1, 3, 2), adding=(), removing=(2,), isr=(2,), leader=2)
SHRINKING = replace(MOVING, replicas=(3, 1, 2, 5), adding=(3,), removing=(2, 5))
ALL = (kraft(3, 3), kraft(3, 7), kraft(3, 8), kraft(4, 2), kraft(4, 3), kraft(5, 0), ZOOKEEPER)


def test_the_target_and_what_a_cancellation_leaves_keep_the_order_of_the_replicas() -> None:
    assert (target(MOVING), reverted(MOVING)) == ((3, 4, 1), (1, 2))


def test_a_broker_in_both_lists_is_in_neither_the_target_nor_what_a_cancellation_leaves() -> None:
    both = replace(MOVING, replicas=(4, 5, 2, 1, 3, 6), adding=(4, 5, 6), removing=(1, 3, 6))
    assert (target(both), reverted(both)) == ((4, 5, 2), (2, 1, 3))


@pytest.mark.parametrize(
    ("observation", "waits"),
    [
        pytest.param(MOVING, "added added whole whole added added whole", id="two for one"),
        pytest.param(SHRINKING, "added added whole whole whole whole whole", id="one for two"),
        pytest.param(REMOVING, "whole whole whole whole whole whole whole", id="only fewer"),
    ],
)
def test_what_must_be_in_sync_depends_on_the_release(
    observation: ReassignmentRecord, waits: str
) -> None:
    sets = {"added": frozenset(observation.adding), "whole": frozenset(target(observation))}
    assert [required_isr(observation, cluster) for cluster in ALL] == [
        sets[name] for name in waits.split()
    ]


def test_a_removal_waits_up_to_3_7_until_any_that_stays_is_in_sync() -> None:
    assert missing_from_isr(REMOVING, kraft(3, 7)) == (1, 3)
    one_stays = replace(REMOVING, isr=(2, 3))
    assert [missing_from_isr(one_stays, cluster) for cluster in (kraft(3, 7), kraft(3, 8))] == [
        (),
        (1,),
    ]


def test_a_replica_that_stays_may_be_out_of_sync_but_from_3_8_to_4_2_and_with_zookeeper() -> None:
    without_1 = replace(MOVING, isr=(2, 3, 4))
    waits = [missing_from_isr(without_1, cluster) for cluster in ALL]
    assert waits == [(), (), (1,), (1,), (), (), (1,)]


@pytest.mark.parametrize("isr", [(1, 2), (1, 2, 3, 4, 5, 6)])
def test_a_broker_in_both_lists_stays_pending_where_kraft_can_never_complete_it(
    isr: tuple[int, ...],
) -> None:
    """The original replicas were asked for again while others were being added."""
    back = replace(
        MOVING,
        replicas=(1, 2, 3, 4, 5, 6),
        adding=(4, 5, 6),
        removing=(4, 5, 6),
        isr=(*isr, 3) if 3 not in isr else isr,
    )
    assert missing_from_isr(back, kraft(4, 3)) == missing_from_isr(back, kraft(3, 7)) == (4, 5, 6)
    assert missing_from_isr(back, kraft(4, 2)) == ()


@pytest.mark.parametrize("cluster", [None, UNKNOWN])
def test_without_the_release_the_newest_rule_holds_and_is_only_assumed(
    cluster: ClusterRecord | None,
) -> None:
    for observation in (MOVING, SHRINKING, REMOVING):
        assert required_isr(observation, cluster) == required_isr(observation, kraft(4, 3))
    assert not rule_known(cluster)


def test_the_rule_is_known_of_the_releases_that_were_compared_and_with_zookeeper() -> None:
    assert [rule_known(cluster) for cluster in ALL] == [True] * 5 + [False, True]


@pytest.mark.parametrize(
    ("change", "kraft_phase", "zookeeper_phase"),
    [
        pytest.param({}, "A", "A", id="nothing in sync"),
        pytest.param({"isr": (1, 2, 3)}, "A", "A", id="one of two in sync"),
        pytest.param({"isr": (1, 2, 3, 4)}, "completing", "B", id="all in sync"),
        pytest.param({"isr": (3, 4)}, "completing", "A", id="all but one that stays"),
        pytest.param({"isr": (1, 2, 7)}, "U", "U", id="the ISR of other replicas"),
        pytest.param({"leader": 7}, "U", "U", id="a leader of other replicas"),
        pytest.param({"replicas": (), "isr": (), "leader": None}, "U", "U", id="no replicas"),
        pytest.param({"isr": (), "leader": None}, "A", "A", id="nobody in sync"),
        pytest.param({"isr": (1, 2, 3, 4), "leader": None}, "completing", "B", id="no leader"),
    ],
)
def test_the_phase_is_a_until_what_the_controller_waits_for_is_in_sync(
    change: dict[str, tuple[int, ...]], kraft_phase: str, zookeeper_phase: str
) -> None:
    observation = replace(MOVING, **change)
    assert [phase(observation, cluster) for cluster in (kraft(4, 3), None, ZOOKEEPER)] == [
        kraft_phase,
        kraft_phase,
        zookeeper_phase,
    ]


@pytest.mark.parametrize(
    ("isr", "leader", "number"),
    [
        ((1, 2), 1, 2),
        ((1, 2, 3), 3, 2),
        ((1, 2, 3, 4), 2, 3),
        ((1, 2, 3, 4), None, 3),
        ((1, 2, 3, 4), 1, 4),
        ((1, 3, 4), 3, 5),
        ((1, 3, 4), 2, 3),
    ],
)
def test_the_row_of_the_zookeeper_controllers_walk_shows_in_the_isr_and_the_leader(
    isr: tuple[int, ...], leader: int | None, number: int
) -> None:
    assert zookeeper_step(replace(MOVING, isr=isr, leader=leader)) == number
    assert number in ZOOKEEPER_STEPS
