"""End offsets that are unknown: to this service at a moment, or to the leader itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from caughtup.models.assignment.scenario import Scenario
from caughtup.models.decisions.inputs.gathering import unsettled_limits
from caughtup.models.histories.offset_sums import EndOffsetSum
from caughtup.models.ids import TaskId
from caughtup.models.offsets import LATEST_OFFSET, UNKNOWN_OFFSET_SUM
from caughtup.models.partition_assignor.rebalance import ClientMetadata


def limits_by_task(
    clients: Iterable[ClientMetadata], ends: Mapping[TaskId, EndOffsetSum | None]
) -> Mapping[TaskId, list[tuple[int, int]]]:
    """Return, by task, the acceptable.recovery.lags for which its end isn't known exactly enough.

    Tasks that are settled with any lag are left out, as are those whose end is completely unknown.
    """
    everyone = [*clients]
    reported: dict[TaskId, list[int]] = {}
    for client in everyone:
        for task, offset_sum in client.offset_sums.items():
            reported.setdefault(task, []).append(offset_sum)
    return {
        task: limits
        for task, end in ends.items()
        if end is not None
        and (limits := unsettled_limits(reported.get(task, ()), len(everyone), end))
    }


def without_ends(scenario: Scenario) -> Scenario:
    """Return a scenario of a leader without end offsets: only running actives' lags are known."""
    clients = (
        replace(
            client,
            lags={
                task: lag if lag == LATEST_OFFSET else UNKNOWN_OFFSET_SUM
                for task, lag in client.lags.items()
            },
        )
        for client in scenario.clients
    )
    return replace(scenario, clients=tuple(clients))
