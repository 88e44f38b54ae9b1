"""A group in a row: what its partitions come to."""

from __future__ import annotations

from typing import Any

from caughtup.agents.views.copies import present
from caughtup.agents.views.spark import query_fields
from caughtup.models.lag.assessment import AT_THE_END, Assessed
from caughtup.models.lag.group_lag import group_lag
from caughtup.models.state.cluster import ClusterState


def group_summary(state: ClusterState, group: str) -> dict[str, Any]:
    """Sum a group up; its lag is absent if that of any partition is unknown.

    Then ``lag_at_least`` is that of the others.

    ``lag_seconds`` is the age of its oldest unread record, ``lag_seconds_method`` how that was had
    (``LagSeconds``); partitions of topics that are gone don't count in it, as in the verdict.
    """
    membership = state.groups.membership(group)
    summed = group_lag(state.commits, group, membership, state.ends)
    judged = state.assessments.verdicts.get(group)
    seconds, method = _oldest_unread(state, group, summed.known)
    return present(
        group=group,
        group_type=state.group_type(group),
        members=len(membership.members) if membership else None,
        partitions=summed.partitions,
        lag=summed.lag,
        lag_at_least=summed.at_least if summed.lag is None else None,
        generation=membership.generation if membership and membership.members else None,
        status=judged.verdict if judged else None,
        why=judged.reason if judged else None,
        lag_seconds=seconds,
        lag_seconds_method=method,
        **query_fields(state, group),
    )


def _oldest_unread(state: ClusterState, group: str, known: int) -> tuple[float | None, str | None]:
    """Return the worst lag in seconds and its method, or nothing if one of them isn't known.

    Of ``known`` partitions, those of the group whose log's end is known.
    """
    assessments = state.assessments
    if not known or not assessments.is_assessed(group):
        return None, None
    membership, has_commit = state.groups.membership(group), state.commits.has_commit(group)
    owned = {} if membership is None else membership.owners
    behind = [
        partition
        for partition in sorted(assessments.behind(group))
        if state.ends.history(partition) is not None
        and (partition in owned or has_commit(partition))
    ]
    if not behind:
        return AT_THE_END.lag_seconds, AT_THE_END.method
    seconds, method = _worst([assessments.find(group, partition) for partition in behind])
    if seconds == 0 and len(behind) < known:  # as that of those at their end: the first one's
        rows = state.partition_rows(group)
        first = next(row.partition for row in rows if row.ends is not None)
        return _worst([assessments.find(group, first)])
    return seconds, method


def _worst(partitions: list[Assessed | None]) -> tuple[float | None, str | None]:
    worst: tuple[float, str] | None = None
    for assessed in partitions:
        if assessed is None or assessed.lag_seconds is None or assessed.method is None:
            return None, None
        if worst is None or assessed.lag_seconds > worst[0]:
            worst = assessed.lag_seconds, assessed.method
    return worst or (None, None)
