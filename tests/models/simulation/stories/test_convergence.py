"""Kafka's own bounds for how soon a group converges (TaskAssignorConvergenceTest), in virtual time.

A round there is a decision after which every copy has caught up. Here it is a probing rebalance; the
rebalances that follow at once because something was let go of belong to the one before. With
standbys the bound is that of Kafka's random groups, which random stories are held to as well.
"""

from __future__ import annotations

from functools import partial

import pytest

from caughtup.models.simulation.streams.run import StreamsRun
from caughtup.models.simulation.time_line import TimeLineFigures
from tests.models.simulation.stories.telling import MINUTE, SECOND, application, join, later, told

ASSIGNORS = ("high_availability", "minimal_movement")


def group(assignor: str, stateful: int, stateless: int, clients: int, standbys: int) -> StreamsRun:
    """Clients that joined one after the other, before the group was left alone."""
    run = StreamsRun(
        application(
            stateful,
            stateless,
            assignor=assignor,
            configs={
                "acceptable_recovery_lag": 100,
                "max_warmup_replicas": 2,
                "num_standby_replicas": standbys,
            },
        )
    )
    for number, name in enumerate("ABCDEFG"[:clients]):
        run.time.at(number * SECOND, partial(join, run, name))
    return run


def after(run: StreamsRun) -> TimeLineFigures:
    """Run for an hour after the clients had settled, and return what happened in it."""
    _, figures = told(run, 60 * MINUTE, 60 * MINUTE)
    assert figures.calm_ms is not None
    assert all(still < MINUTE for still in figures.still_ms.values())
    return figures


@pytest.mark.parametrize("assignor", ASSIGNORS)
@pytest.mark.parametrize("standbys", [0, 1])
def test_nothing_moves_in_a_group_that_is_left_alone(assignor: str, standbys: int) -> None:
    figures = after(group(assignor, 11, 7, 5, standbys))
    assert (figures.rebalances, figures.probing, figures.copies_built) == (0, 0, 0)


@pytest.mark.parametrize("assignor", ASSIGNORS)
@pytest.mark.parametrize(("standbys", "rounds"), [(0, 11 // 2 + 1), (1, 2 * (11 + 11))])
def test_a_client_that_comes_takes_kafkas_number_of_rounds_at_most(
    assignor: str, standbys: int, rounds: int
) -> None:
    run = group(assignor, 11, 7, 5, standbys)
    later(run, SECOND, lambda: join(run, "F"))
    assert after(run).probing + 1 <= rounds


@pytest.mark.parametrize("assignor", ASSIGNORS)
@pytest.mark.parametrize(("standbys", "rounds"), [(0, 13 // 2 + 2), (1, 2 * (13 + 13))])
def test_a_client_that_goes_takes_kafkas_number_of_rounds_at_most(
    assignor: str, standbys: int, rounds: int
) -> None:
    run = group(assignor, 13, 11, 7, standbys)
    later(run, SECOND, lambda: run.stop("D", leave_group=True))
    assert after(run).probing + 1 <= rounds
