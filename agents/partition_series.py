"""The series that there are most of, groups' and partitions', written as they are sent.

A million of them would take a metrics library seconds and gigabytes at once. Here each metric's
lines come in chunks, between which others get their turn; what is written is valid in both of
Prometheus' formats, in which gauges look the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from caughtup.models.assessment import Assessed
from caughtup.models.commit_history import CommitHistory
from caughtup.models.end_offsets import EndOffsetHistory
from caughtup.models.ids import TopicPartition
from caughtup.models.lag import PartitionLag, partition_lag
from caughtup.models.lag_verdict import SEVERITY
from caughtup.models.progress import retention_used
from caughtup.models.state import ClusterState

#: Lines written in one go: a few milliseconds' work.
CHUNK_LINES = 2_000


#: A figure of a group's partition, from its commits, the looks at its log's end, and what was last
#: worked out of it. None, of those or of the figure, is unknown; commits are None without any.
Figure = Callable[
    [CommitHistory | None, EndOffsetHistory | None, Assessed | None], float | str | None
]


class GroupMetric(NamedTuple):
    """A gauge of group-partitions; a figure of None makes no line."""

    name: str
    documentation: str
    figure: Figure
    is_assessed: bool = False


def _lag(
    commits: CommitHistory | None, looks: EndOffsetHistory | None, _: Assessed | None
) -> int | None:
    lag = _partition_lag(commits, looks)
    return None if lag is None else lag.lag


def _log_end_lag(
    commits: CommitHistory | None, looks: EndOffsetHistory | None, _: Assessed | None
) -> int | None:
    lag = _partition_lag(commits, looks)
    return None if lag is None else lag.lag_committed_view


def _partition_lag(
    commits: CommitHistory | None, looks: EndOffsetHistory | None
) -> PartitionLag | None:
    if looks is None:
        return None
    if commits is None:
        return partition_lag(None, looks.latest)
    return partition_lag(commits.committed, looks.latest, commits.commit_timestamp_ms)


def _committed(commits: CommitHistory | None, *_: object) -> int | None:
    return None if commits is None else commits.committed


def _has_commit(commits: CommitHistory | None, *_: object) -> int:
    return 0 if commits is None else 1


def _last_commit(commits: CommitHistory | None, *_: object) -> float | None:
    return None if commits is None else commits.commit_timestamp_ms / 1000


def _retention_used(
    commits: CommitHistory | None, looks: EndOffsetHistory | None, _: Assessed | None
) -> float | None:
    if commits is None or looks is None:
        return None
    return retention_used(commits.committed, looks.latest)


def _lag_seconds(_: object, looks: object, assessed: Assessed | None) -> float | None:
    return None if assessed is None or looks is None else assessed.lag_seconds


def _velocity(_: object, looks: object, assessed: Assessed | None) -> float | None:
    return None if assessed is None or looks is None else assessed.velocity


def _eta_seconds(_: object, looks: object, assessed: Assessed | None) -> float | str | None:
    if assessed is None or looks is None:
        return None
    return "+Inf" if assessed.eta_seconds == math.inf else assessed.eta_seconds


GROUP_METRICS = (
    GroupMetric("group_lag_records", "Records a read_committed reader has yet to read", _lag),
    GroupMetric("group_committed_offset", "Committed offset", _committed),
    GroupMetric("group_has_commit", "Whether the group ever committed here", _has_commit),
    GroupMetric("group_last_commit_timestamp_seconds", "When it last committed", _last_commit),
    GroupMetric(
        "group_retention_used_ratio",
        "How near the log's start is to the commit; above 1 records were lost",
        _retention_used,
    ),
    GroupMetric(
        "group_lag_seconds", "Age of the oldest unread record", _lag_seconds, is_assessed=True
    ),
    GroupMetric(
        "group_lag_velocity", "Records a second by which the lag grows", _velocity, is_assessed=True
    ),
    GroupMetric(
        "group_catchup_eta_seconds",
        "Until it is caught up; +Inf is never",
        _eta_seconds,
        is_assessed=True,
    ),
)
_END_OFFSET = "caughtup_partition_end_offset"
_MEMBERS = "caughtup_group_members"
_STATUS = "caughtup_group_status"
#: The labels of each of these metrics, by its name.
LABELS = {f"caughtup_{m.name}": ("cluster", "group", "topic", "partition") for m in GROUP_METRICS}
LABELS[_END_OFFSET] = ("cluster", "topic", "partition", "isolation")
LABELS[_MEMBERS] = ("cluster", "group", "group_type")
LABELS[_STATUS] = ("cluster", "group", "status")


def partition_series(state: ClusterState, *, compatible: bool = False) -> Iterator[str]:
    """Give the text of all series of partitions, in chunks.

    ``compatible`` adds them under the names of kafka_exporter. The state may change between two
    chunks; a group or partition that comes or goes meanwhile has a line or none.
    """
    cluster = f'cluster="{escaped(state.cluster)}"'
    for metric in GROUP_METRICS:
        yield from _chunks(_family(state, metric, f"caughtup_{metric.name}", cluster))
    yield from _chunks(_end_offsets(state, cluster))
    yield from _chunks(_members(state, cluster))
    yield from _chunks(_statuses(state, cluster))
    if compatible:
        for metric in (
            GroupMetric("kafka_consumergroup_lag", "Offsets up to the log's end", _log_end_lag),
            GroupMetric("kafka_consumergroup_current_offset", "Committed offset", _committed),
        ):
            yield from _chunks(_family(state, metric, metric.name, None))
        yield from _chunks(_sums(state))


def _family(
    state: ClusterState, metric: GroupMetric, name: str, cluster: str | None
) -> Iterator[str]:
    """Give a metric's lines. ``cluster`` is None under kafka_exporter's names, which have none."""
    yield _head(name, metric.documentation)
    group_label = "consumergroup" if cluster is None else "group"
    before_group = f"{name}{{" if cluster is None else f"{name}{{{cluster},"
    figure, history, find = metric.figure, state.ends.history, state.assessments.find
    for group in state.group_names():
        start = f'{before_group}{group_label}="{escaped(group)}",topic="'
        topic, before = None, ""
        for partition, commits in _partitions(state, group):
            assessed = find(group, partition) if metric.is_assessed else None
            value = figure(commits, history(partition), assessed)
            if value is None:
                yield ""  # a turn for others where there is much to walk over and little to tell
                continue
            if partition.topic != topic:
                topic = partition.topic
                before = f'{start}{escaped(topic)}",partition="'
            yield f'{before}{partition.partition}"}} {value}\n'


def _partitions(
    state: ClusterState, group: str
) -> list[tuple[TopicPartition, CommitHistory | None]]:
    """Give a group's partitions, as they are now, with what it committed on them."""
    commits = state.commits.of(group)
    found: list[tuple[TopicPartition, CommitHistory | None]] = list(commits.items())
    membership = state.groups.membership(group)
    if membership is not None:
        found += [(owned, None) for owned in membership.owners if owned not in commits]
    return found


def _end_offsets(state: ClusterState, cluster: str) -> Iterator[str]:
    yield _head(_END_OFFSET, "End of the log")
    for (topic, partition), ends in list(state.ends):
        labels = f'{cluster},topic="{escaped(topic)}",partition="{partition}",isolation='
        yield f'{_END_OFFSET}{{{labels}"read_committed"}} {ends.last_stable_offset}\n'
        yield f'{_END_OFFSET}{{{labels}"read_uncommitted"}} {ends.end_offset}\n'


def _members(state: ClusterState, cluster: str) -> Iterator[str]:
    yield _head(_MEMBERS, "Members of the group")
    for group in state.group_names():
        membership = state.groups.membership(group)
        if membership is not None:
            labels = f'{cluster},group="{escaped(group)}",group_type="{membership.group_type}"'
            yield f"{_MEMBERS}{{{labels}}} {len(membership.members)}\n"


def _statuses(state: ClusterState, cluster: str) -> Iterator[str]:
    yield _head(_STATUS, "How the group fares")
    for group, judged in sorted(state.assessments.verdicts.items()):
        labels = f'{cluster},group="{escaped(group)}",status='
        for verdict in SEVERITY:
            yield f'{_STATUS}{{{labels}"{verdict}"}} {int(judged.verdict == verdict)}\n'


def _sums(state: ClusterState) -> Iterator[str]:
    """Give kafka_exporter's sums: the lag by group and topic, and the members."""
    name = "kafka_consumergroup_lag_sum"
    yield _head(name, "Offsets up to the log's end, of all partitions of a topic")
    history = state.ends.history
    for group in state.group_names():
        sums: dict[str, int] = {}
        for partition, commits in _partitions(state, group):
            lag = _log_end_lag(commits, history(partition), None)
            if lag is not None:
                sums[partition.topic] = sums.get(partition.topic, 0) + lag
        for topic, lag in sorted(sums.items()):
            yield f'{name}{{consumergroup="{escaped(group)}",topic="{escaped(topic)}"}} {lag}\n'
    name = "kafka_consumergroup_members"
    yield _head(name, "Members of the group")
    for group in state.group_names():
        membership = state.groups.membership(group)
        if membership is not None:
            yield f'{name}{{consumergroup="{escaped(group)}"}} {len(membership.members)}\n'


def _head(name: str, documentation: str) -> str:
    return f"# HELP {name} {documentation}\n# TYPE {name} gauge\n"


def escaped(value: str) -> str:
    """Write a label's value so that nothing in it is taken for syntax."""
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
    return value


def _chunks(lines: Iterable[str]) -> Iterator[str]:
    chunk: list[str] = []
    for line in lines:
        chunk.append(line)
        if len(chunk) == CHUNK_LINES:
            yield "".join(chunk)
            chunk.clear()
    if chunk:
        yield "".join(chunk)
