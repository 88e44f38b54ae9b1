"""The shown value of a group: the totals of its partitions."""

from __future__ import annotations

from collections.abc import Collection

from caughtup.models.lag.assessed import AT_THE_END, Assessed
from caughtup.models.lag.group_lag import group_lag
from caughtup.models.records.fields import Part, changed
from caughtup.models.state.cluster import ClusterState
from caughtup.models.verdicts import LAG


class GroupLine(Part, kw_only=True, omit_defaults=True):
    """A group with its total lag, which is absent if the lag of any partition is unknown.

    ``lag_at_least`` is the lag of the other partitions then, in offsets. ``lag_seconds``: the age
    of the oldest unread record, with ``lag_seconds_method`` of ``LagSeconds``; partitions of deleted
    topics count neither in it nor in the verdict, ``status``. For a Spark query: its
    ``checkpoint``, its last committed ``batch`` and the time of that, ``batch_ms``, and
    ``started_ms``, when the present batch began. ``since_ms``: since when the group hasn't been ok,
    on the page; ``since_at_least``: it wasn't when the service first assessed it.
    """

    group: str
    group_type: str | None = None
    members: int | None = None
    partitions: int
    lag: int | None = None
    lag_at_least: int | None = None
    generation: int | None = None
    status: str | None = None
    why: str | None = None
    lag_seconds: float | None = None
    lag_seconds_method: str | None = None
    checkpoint: str | None = None
    query_id: str | None = None
    batch: int | None = None
    batch_ms: int | None = None
    started_ms: int | None = None
    since_ms: int | None = None
    since_at_least: bool = False


def group_rank(line: GroupLine) -> tuple[int, int, str]:
    """Return a sort key by which the worst groups come first, those with more lag before others."""
    return -LAG.severity(line.status), -(line.lag or line.lag_at_least or 0), line.group


class CheckpointProblem(Part):
    """A checkpoint of Spark, or a folder of them, that can't be read, and why."""

    checkpoint: str
    problem: str
    why: str


def group_line(state: ClusterState, group: str) -> GroupLine:
    """Return the line of a group."""
    membership = state.groups.membership(group)
    summed = group_lag(state.commits, group, membership, state.ends)
    judged = state.assessments.verdicts.get(group)
    seconds, method = _oldest_unread(state, group, summed.known)
    line = GroupLine(
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
    )
    if (query := state.spark.queries.get(group)) is not None:
        line.checkpoint, line.query_id = query.checkpoint, query.last.query_id
        line.batch, line.batch_ms = query.batch, query.batch_ms
        line.started_ms = query.last.started_ms
    return line


class KeptGroupLines:
    """The lines of groups, each made again only after something of the group has changed.

    So what they cost doesn't grow with the cluster, but with what happens there.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        #: Each group's line, what it was at rest by, and when its ages were looked at (ms).
        self._kept: dict[str, tuple[GroupLine, object, int]] = {}

    def of(self, group: str) -> GroupLine:
        """Return the line of a group; it isn't to be changed."""
        by = self._state.at_rest(group)
        kept = self._kept.pop(group, None)
        if by is None:
            return group_line(self._state, group)
        looked_ms = self._state.assessments.looked_ms(group)
        if kept is None or kept[1] is not by:
            kept = group_line(self._state, group), by, looked_ms
        elif kept[2] != looked_ms and kept[0].lag_seconds:
            seconds = kept[0].lag_seconds + (looked_ms - kept[2]) / 1000
            kept = changed(kept[0], lag_seconds=seconds), by, looked_ms
        self._kept[group] = kept
        return kept[0]

    def keep_only(self, groups: Collection[str]) -> None:
        """Forget all other groups."""
        for group in self._kept.keys() - groups:
            del self._kept[group]


def with_since(state: ClusterState, line: GroupLine) -> GroupLine:
    """Return a group's line with ``since_ms``."""
    since = state.recent.not_ok_since(line.group)
    if since is None:
        return line
    return changed(line, since_ms=since.at_ms, since_at_least=since.at_least)


def checkpoint_problems(state: ClusterState) -> list[CheckpointProblem]:
    """Return the checkpoints, and folders of them, that can't be read."""
    return [
        CheckpointProblem(path, of.reason, of.message)
        for path, of in sorted(state.spark.problems.items())
    ]


def _oldest_unread(state: ClusterState, group: str, known: int) -> tuple[float | None, str | None]:
    """Return the greatest lag in seconds and its method, None if that of any partition is unknown.

    ``known`` is the number of the group's partitions with a known log end offset.
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
        return AT_THE_END.lag_seconds, AT_THE_END.lag_seconds_method
    seconds, method = _worst([assessments.find(group, partition) for partition in behind])
    # If all are 0, the method is that of the first partition.
    if seconds == 0 and len(behind) < known:
        rows = state.partition_rows(group)
        first = next(row.partition for row in rows if row.ends is not None)
        return _worst([assessments.find(group, first)])
    return seconds, method


def _worst(partitions: list[Assessed | None]) -> tuple[float | None, str | None]:
    worst: tuple[float, str] | None = None
    for assessed in partitions:
        if assessed is None:
            return None, None
        seconds, method = assessed.lag_seconds, assessed.lag_seconds_method
        if seconds is None or method is None:
            return None, None
        if worst is None or seconds > worst[0]:
            worst = seconds, method
    return worst or (None, None)
