"""For how long tasks would stand still after a change of membership, played in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from caughtup.models.assignment.compact import read_compact
from caughtup.models.assignment.configs import read_configs
from caughtup.models.simulation.membership import Timings
from caughtup.models.simulation.streams.plan import PlannedActions, simulate
from caughtup.models.simulation.streams.scenarios import (
    AT_ONCE,
    application_of,
    instances_of,
    sources_of,
)
from caughtup.models.simulation.time_line import Activity


@dataclass(frozen=True, slots=True)
class StandingStill:
    """For how long nobody processed tasks, in seconds: all of them together, and the worst one."""

    seconds: float
    longest_seconds: float


def standing_still(
    scenario: Mapping[str, Any], rate: float | None, as_of_ms: int
) -> StandingStill | None:
    """Play a group from the rebalance on that a scenario is decided in, until it is at rest.

    ``scenario`` is as ``caughtup assign`` reads it, and ``rate`` what a thread restores, in
    offsets a second. None where it never comes to rest, and where the rate isn't known and an
    active has to restore its state: nobody knows for how long then. Raises ScenarioError where the
    assignor does.
    """
    compact = read_compact(scenario)
    application = application_of(
        sources_of(compact),
        compact,
        {},
        assignor=compact.assignor,
        configs=read_configs(compact.config),
        timings=Timings(),
        writes={},
        restore_per_second=AT_ONCE if rate is None else rate,
    )
    played = simulate(
        application, instances_of(compact), PlannedActions(rebalance=True), epoch_ms=as_of_ms
    )
    restored = any(span.activity is Activity.RESTORING for span in played.spans)
    if played.endless is not None or (rate is None and restored):
        return None
    figures = played.figures
    return StandingStill(figures.all_still_ms / 1_000, figures.longest_still_ms / 1_000)
