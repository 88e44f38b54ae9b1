"""A reassignment ends once list and metadata agree, or a second observation shows what the first did."""

from __future__ import annotations

import pytest

from caughtup.models.reassignments.ends import Endings
from caughtup.models.records.reassignments import ReassignmentRecord
from tests.support.reassignments.observations import ORDERS, a_reassignment


def known(
    replicas: tuple[int, ...],
    adding: tuple[int, ...] = (),
    removing: tuple[int, ...] = (),
    original: tuple[int, ...] | None = None,
) -> ReassignmentRecord:
    return a_reassignment(
        replicas=replicas, adding=adding, removing=removing, since_ms=1_000, original=original
    )


Metadata = tuple[tuple[int, ...] | None, tuple[int, ...]]


def info(replicas: tuple[int, ...], isr: tuple[int, ...] | None = None) -> Metadata:
    return replicas, replicas if isr is None else isr


MOVE = known((3, 1, 2), adding=(3,), removing=(2,))


@pytest.mark.parametrize(
    ("movement", "now"),
    [
        pytest.param(MOVE, info((3, 1)), id="completed"),
        pytest.param(MOVE, info((1, 2)), id="cancelled"),
        pytest.param(MOVE, info((2, 1)), id="cancelled, in another order"),
        pytest.param(
            known((4, 6, 1, 5), (4, 6), (1, 5), original=(1,)), info((1,)), id="all taken back"
        ),
        pytest.param(
            known((4, 6, 1, 5), (4, 6), (1, 5), original=(1,)),
            info((1, 5)),
            id="partly taken back",
        ),
        pytest.param(known((1, 2, 3), adding=(3,)), info((1, 2, 3)), id="added"),
        pytest.param(known((1, 2, 3), removing=(3,)), info((1, 2)), id="removed"),
        pytest.param(MOVE, (None, ()), id="gone"),
    ],
)
def test_an_end_that_metadata_shows_is_told_at_once(
    movement: ReassignmentRecord, now: Metadata
) -> None:
    assert Endings().is_over(movement, *now)


@pytest.mark.parametrize(
    ("movement", "now"),
    [
        pytest.param(MOVE, info((3, 1, 2), (1, 2)), id="as before"),
        pytest.param(known((1, 2, 3), adding=(3,)), info((1, 2, 3), (1, 2)), id="not yet there"),
        pytest.param(known((1, 2, 3), removing=(3,)), info((1, 2, 3)), id="not yet gone"),
        pytest.param(MOVE, info((7, 8)), id="neither"),
    ],
)
def test_an_end_that_metadata_does_not_show_waits_for_a_second_observation(
    movement: ReassignmentRecord, now: Metadata
) -> None:
    endings = Endings()
    assert not endings.is_over(movement, *now)
    assert endings.is_over(movement, now[0], (1,))


def test_metadata_that_comes_late_tells_the_end_that_it_was() -> None:
    endings = Endings()
    assert not endings.is_over(MOVE, *info((3, 1, 2), (1, 2)))
    assert endings.is_over(MOVE, *info((3, 1)))


def test_metadata_that_changes_from_observation_to_observation_is_waited_for() -> None:
    endings = Endings()
    for replicas in ((7, 8), (8, 9), (7, 8)):
        assert not endings.is_over(MOVE, *info(replicas))
    assert endings.is_over(MOVE, *info((7, 8)))


def test_what_is_listed_again_has_not_ended() -> None:
    endings = Endings()
    assert not endings.is_over(MOVE, *info((3, 1, 2)))
    endings.forget(ORDERS)
    assert not endings.is_over(MOVE, *info((3, 1, 2)))
