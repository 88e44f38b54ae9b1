"""Metrics of groups' partitions computed one by one, for comparison with the columnar code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from caughtup.agents.web.metrics.group_lines import escaped
from caughtup.models.histories.end_offsets import EndOffsetHistory
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.assessed import Assessed
from caughtup.models.lag.partition_lag import PartitionLag, partition_lag
from caughtup.models.lag.rates import retention_used
from caughtup.models.offsets import LONG_MAX, sum_offsets
from caughtup.models.state.cluster import ClusterState


class Known(NamedTuple):
    """What is known of a group's partition; None for unknown."""

    offset: int | None
    time_ms: int | None
    ends: EndOffsetHistory | None
    assessed: Assessed | None

    @property
    def lag(self) -> PartitionLag | None:
        if self.ends is None:
            return None
        return partition_lag(self.offset, self.ends.latest, self.time_ms)


def _retention_used(known: Known) -> float | None:
    if known.offset is None or known.ends is None:
        return None
    return retention_used(known.offset, known.ends.latest)


def _assessed(figure: str) -> Callable[[Known], float | None]:
    def read(known: Known) -> float | None:
        if known.ends is None or known.assessed is None:
            return None
        found: float | None = getattr(known.assessed, figure)
        return found

    return read


#: By series: a figure's format and function.
_OURS: dict[str, tuple[str, Callable[[Known], float | None]]] = {
    "lag_records": ("%d", lambda known: known.lag and known.lag.lag),
    "committed_offset": ("%d", lambda known: known.offset),
    "has_commit": ("%d", lambda known: known.offset is not None),
    "last_commit_timestamp_seconds": (
        "%.3f",
        lambda known: None if known.time_ms is None else known.time_ms / 1000,
    ),
    "retention_used_ratio": ("%.9g", _retention_used),
    "lag_seconds": ("%.9g", _assessed("lag_seconds")),
    "lag_velocity": ("%.9g", _assessed("velocity")),
    "catchup_eta_seconds": ("%.9g", _assessed("eta_seconds")),
}
_KAFKA_EXPORTERS: dict[str, tuple[str, Callable[[Known], float | None]]] = {
    "kafka_consumergroup_lag": ("%d", lambda known: known.lag and known.lag.lag_committed_view),
    "kafka_consumergroup_current_offset": ("%d", lambda known: known.offset),
    "kafka_consumergroup_uncommitted_offsets": (
        "%d",
        lambda known: known.lag and known.lag.lag_committed_view,
    ),
    "kafka_consumer_lag_millis": ("%.9g", lambda known: _millis(_assessed("lag_seconds")(known))),
}


def _millis(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def plain_lines(state: ClusterState) -> list[str]:
    """Write the lines of every group's partitions, in the order of ``/metrics``."""
    found = []
    for name, (form, read) in _OURS.items():
        for group, (topic, number), known in _partitions(state):
            labels = f'cluster="{escaped(state.cluster)}",group="{escaped(group)}"'
            where = f'topic="{escaped(topic)}",partition="{number}"'
            if (value := read(known)) is not None:
                figure = (form % value).replace("inf", "+Inf")
                found.append(f"caughtup_group_{name}{{{labels},{where}}} {figure}")
    for name, (form, read) in _KAFKA_EXPORTERS.items():
        for group, (topic, number), known in _partitions(state):
            labels = f'consumergroup="{escaped(group)}",topic="{escaped(topic)}"'
            if (value := read(known)) is not None:
                found.append(f'{name}{{{labels},partition="{number}"}} {form % value}')
    return found


def plain_lag_sums(state: ClusterState) -> list[str]:
    """Write the sum of each group's lags on each topic, as kafka_exporter does."""
    found = []
    for group in state.group_names():
        sums: dict[str, int] = {}
        for of, (topic, _), known in _partitions(state):
            if of == group and known.lag is not None:
                sums[topic] = sums.get(topic, 0) + known.lag.lag_committed_view
        for topic, lag in sorted(sums.items()):
            labels = f'consumergroup="{escaped(group)}",topic="{escaped(topic)}"'
            found.append(f"kafka_consumergroup_lag_sum{{{labels}}} {min(lag, LONG_MAX)}")
    return found


def _partitions(state: ClusterState) -> Iterator[tuple[str, TopicPartition, Known]]:
    for group in state.group_names():
        partitions, offsets, times_ms = state.commits.last(group)
        membership = state.groups.membership(group)
        owned = () if membership is None else membership.owners
        commits = dict(zip(partitions, zip(offsets, times_ms, strict=True), strict=True))
        for partition in [*partitions, *(one for one in owned if one not in commits)]:
            offset, time_ms = commits.get(partition, (None, None))
            history = state.ends.history(partition)
            assessed = state.assessments.find(group, partition)
            yield group, partition, Known(offset, time_ms, history, assessed)


def plain_summary(state: ClusterState, group: str) -> dict[str, object]:
    """Summarize a group as the page does, one partition at a time."""
    rows = list(state.partition_rows(group))
    lags = [row.lag.lag for row in rows if row.lag is not None]
    found = [state.assessments.find(group, row.partition) for row in rows if row.ends is not None]
    worst: tuple[float, str] | None = None
    for assessed in found:
        if assessed is None or assessed.lag_seconds is None or assessed.lag_seconds_method is None:
            worst = None
            break
        if worst is None or assessed.lag_seconds > worst[0]:
            worst = assessed.lag_seconds, assessed.lag_seconds_method
    summary: dict[str, object] = {"partitions": len(rows)}
    if len(lags) == len(rows):
        summary["lag"] = sum_offsets(lags)
    if worst is not None:
        summary |= {"lag_seconds": worst[0], "lag_seconds_method": worst[1]}
    return summary
