"""The gauges of groups' partitions, and the figure that each of them has of a partition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from caughtup.agents.web.metrics.group_labels import Slice
from caughtup.models.lag.assessment import Assessed
from caughtup.models.lag.partition_lag import PartitionLag, partition_lag
from caughtup.models.lag.rates import retention_used
from caughtup.models.state.cluster import ClusterState

#: Gives the figures of a slice of a group's partitions. None is unknown, and so are all of none.
Figures = Callable[[ClusterState, Slice], Sequence[float | None]]

#: How figures are written. Nine digits are more than any figure that isn't a count is good for.
_COUNT, _MOMENT, MEASURE = b"%d", b"%.3f", b"%.9g"


class GroupMetric(NamedTuple):
    """A gauge of group-partitions."""

    name: str
    documentation: str
    figures: Figures
    form: bytes = _COUNT


def _partition_lags(state: ClusterState, part: Slice) -> list[PartitionLag | None]:
    return [
        None
        if looks is None
        else partition_lag(None, looks.latest)
        if commits is None
        else partition_lag(commits.committed, looks.latest, commits.commit_timestamp_ms)
        for commits, looks in zip(part.commits, state.ends.histories(part.partitions), strict=True)
    ]


def _lag(state: ClusterState, part: Slice) -> list[int | None]:
    return [None if lag is None else lag.lag for lag in _partition_lags(state, part)]


def log_end_lag(state: ClusterState, part: Slice) -> list[int | None]:
    """Give the lags up to the log's end, in a transaction or not: kafka_exporter's."""
    return [None if lag is None else lag.lag_committed_view for lag in _partition_lags(state, part)]


def _committed(_: ClusterState, part: Slice) -> list[int | None]:
    return [None if commits is None else commits.committed for commits in part.commits]


def _has_commit(_: ClusterState, part: Slice) -> list[bool]:
    return [commits is not None for commits in part.commits]


def _last_commit(_: ClusterState, part: Slice) -> list[float | None]:
    return [
        None if commits is None else commits.commit_timestamp_ms / 1000 for commits in part.commits
    ]


def _retention_used(state: ClusterState, part: Slice) -> list[float | None]:
    return [
        None
        if commits is None or looks is None
        else retention_used(commits.committed, looks.latest)
        for commits, looks in zip(part.commits, state.ends.histories(part.partitions), strict=True)
    ]


def _assessed(figure: str) -> Figures:
    """Give what was last worked out: nothing before, nor of topics that are gone."""
    at = Assessed._fields.index(figure)

    def figures(state: ClusterState, part: Slice) -> list[float | None]:
        found = [known[at] for known in state.assessments.of(part.group, part.partitions)]
        if found.count(None) == len(found):
            return []
        looks = state.ends.histories(part.partitions)
        return [None if look is None else value for look, value in zip(looks, found, strict=True)]

    return figures


GROUP_METRICS = (
    GroupMetric("group_lag_records", "Records a read_committed reader has yet to read", _lag),
    GroupMetric("group_committed_offset", "Committed offset", _committed),
    GroupMetric("group_has_commit", "Whether the group ever committed here", _has_commit),
    GroupMetric(
        "group_last_commit_timestamp_seconds", "When it last committed", _last_commit, _MOMENT
    ),
    GroupMetric(
        "group_retention_used_ratio",
        "How near the log's start is to the commit; above 1 records were lost",
        _retention_used,
        MEASURE,
    ),
    GroupMetric(
        "group_lag_seconds", "Age of the oldest unread record", _assessed("lag_seconds"), MEASURE
    ),
    GroupMetric(
        "group_lag_velocity",
        "Records a second by which the lag grows",
        _assessed("velocity"),
        MEASURE,
    ),
    GroupMetric(
        "group_catchup_eta_seconds",
        "Until it is caught up; +Inf is never",
        _assessed("eta_seconds"),
        MEASURE,
    ),
)
#: The same under kafka_exporter's names, and with its labels.
COMPATIBLE = (
    GroupMetric("kafka_consumergroup_lag", "Offsets up to the log's end", log_end_lag),
    GroupMetric("kafka_consumergroup_current_offset", "Committed offset", _committed),
)
