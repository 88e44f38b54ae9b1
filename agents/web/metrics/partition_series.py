"""The series that there are most of, groups' and partitions', written as they are sent.

A million of them would take a metrics library seconds and gigabytes at once. Here each metric's
lines come in small pieces, between which others get their turn; what is written is valid in both
of Prometheus' formats, in which gauges look the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from caughtup.agents.clock import now_ms
from caughtup.agents.web.metrics.group_labels import GroupLabels, escaped, filled
from caughtup.agents.web.metrics.groups import (
    COMPATIBLE,
    GROUP_METRICS,
    MEASURE,
    GroupMetric,
    log_end_lag,
)
from caughtup.models.lag.verdict import SEVERITY
from caughtup.models.state.cluster import ClusterState

_START_OFFSET = "caughtup_partition_start_offset"
_END_OFFSET = "caughtup_partition_end_offset"
_MEMBERS = "caughtup_group_members"
_STATUS = "caughtup_group_status"
_LAG_SUM = "kafka_consumergroup_lag_sum"

#: What fails here is counted under this part of the service.
PART = "metrics"

Text = TypeVar("Text", str, bytes)
Subject = TypeVar("Subject")
#: The labels of each of these metrics, by its name.
LABELS = {f"caughtup_{m.name}": ("cluster", "group", "topic", "partition") for m in GROUP_METRICS}
LABELS[_START_OFFSET] = ("cluster", "topic", "partition")
LABELS[_END_OFFSET] = ("cluster", "topic", "partition", "isolation")
LABELS[_MEMBERS] = ("cluster", "group", "group_type")
LABELS[_STATUS] = ("cluster", "group", "status")


def partition_series(
    state: ClusterState, labels: GroupLabels, *, compatible: bool = False
) -> Iterator[bytes]:
    """Give the text of all series of partitions, in pieces of less than a millisecond's work.

    ``labels`` is what was kept from the last time. ``compatible`` adds the series under the names
    of kafka_exporter. The state may change between two pieces; a group or partition that comes or
    goes meanwhile has a line or none. A group whose lines can't be written has none.
    """
    groups = state.group_names()
    labels.keep_only(groups)
    cluster = f'cluster="{escaped(state.cluster)}"'
    for metric in GROUP_METRICS:
        name = f"caughtup_{metric.name}"
        yield from _family(state, labels, groups, metric, name, f"{name}{{{cluster},")
    for name, lines in (
        (_START_OFFSET, _start_offsets(state, cluster)),
        (_END_OFFSET, _end_offsets(state, cluster)),
        (_MEMBERS, _members(state, groups, cluster)),
        (_STATUS, _statuses(state, groups, cluster)),
    ):
        with state.faults.isolated(PART, name, now_ms()):
            yield from map(str.encode, lines)
    if compatible:
        for metric in COMPATIBLE:
            before_group = f"{metric.name}{{consumer"  # the label is consumergroup
            yield from _family(state, labels, groups, metric, metric.name, before_group)
        with state.faults.isolated(PART, _LAG_SUM, now_ms()):
            yield from map(str.encode, _sums(state, labels, groups))


def _family(
    state: ClusterState,
    labels: GroupLabels,
    groups: list[str],
    metric: GroupMetric,
    name: str,
    before_group: str,
) -> Iterator[bytes]:
    yield _head(name, metric.documentation).encode()
    start, figures, form = before_group.encode(), metric.figures, metric.form

    def lines(group: str) -> Iterator[bytes]:
        for part in labels.slices(state, group):
            text = filled(part.lines, start, form, figures(state, part))
            yield text.replace(b" inf\n", b" +Inf\n") if form is MEASURE else text

    yield from of_each(state, groups, lines)


def of_each(
    state: ClusterState, subjects: Iterable[Subject], lines: Callable[[Subject], Iterator[Text]]
) -> Iterator[Text]:
    """Give the lines of each group or partition; those of one that fails are left out."""
    isolated, now = state.faults.isolated, now_ms()
    for subject in subjects:
        with isolated(PART, str(subject), now):
            yield from lines(subject)


def _start_offsets(state: ClusterState, cluster: str) -> Iterator[str]:
    yield _head(_START_OFFSET, "Start of the log")
    for (topic, partition), ends in list(state.ends):
        labels = f'{cluster},topic="{escaped(topic)}",partition="{partition}"'
        yield f"{_START_OFFSET}{{{labels}}} {ends.start_offset}\n"


def _end_offsets(state: ClusterState, cluster: str) -> Iterator[str]:
    yield _head(_END_OFFSET, "End of the log")
    for (topic, partition), ends in list(state.ends):
        labels = f'{cluster},topic="{escaped(topic)}",partition="{partition}",isolation='
        yield (
            f'{_END_OFFSET}{{{labels}"read_committed"}} {ends.last_stable_offset}\n'
            f'{_END_OFFSET}{{{labels}"read_uncommitted"}} {ends.end_offset}\n'
        )


def _members(state: ClusterState, groups: list[str], cluster: str) -> Iterator[str]:
    yield _head(_MEMBERS, "Members of the group")

    def lines(group: str) -> Iterator[str]:
        membership = state.groups.membership(group)
        if membership is not None:
            labels = f'{cluster},group="{escaped(group)}",group_type="{membership.group_type}"'
            yield f"{_MEMBERS}{{{labels}}} {len(membership.members)}\n"

    yield from of_each(state, groups, lines)


def _statuses(state: ClusterState, groups: list[str], cluster: str) -> Iterator[str]:
    yield _head(_STATUS, "How the group fares")

    def lines(group: str) -> Iterator[str]:
        judged = state.assessments.verdicts.get(group)
        if judged is not None:
            before = f'{_STATUS}{{{cluster},group="{escaped(group)}",status="'
            yield "".join(
                [f'{before}{status}"}} {int(judged.verdict == status)}\n' for status in SEVERITY]
            )

    yield from of_each(state, groups, lines)


def _sums(state: ClusterState, labels: GroupLabels, groups: list[str]) -> Iterator[str]:
    """Give kafka_exporter's sums: the lag by group and topic, and the members."""
    yield _head(_LAG_SUM, "Offsets up to the log's end, of all partitions of a topic")

    def lag_sums(group: str) -> Iterator[str]:
        sums: dict[str, int] = {}
        for part in labels.slices(state, group):
            for partition, lag in zip(part.partitions, log_end_lag(state, part), strict=True):
                if lag is not None:
                    sums[partition.topic] = sums.get(partition.topic, 0) + lag
            yield ""  # a turn for others in a group with many partitions
        for topic, lag in sorted(sums.items()):
            of_topic = f'consumergroup="{escaped(group)}",topic="{escaped(topic)}"'
            yield f"{_LAG_SUM}{{{of_topic}}} {lag}\n"

    yield from of_each(state, groups, lag_sums)
    name = "kafka_consumergroup_members"
    yield _head(name, "Members of the group")

    def members(group: str) -> Iterator[str]:
        membership = state.groups.membership(group)
        if membership is not None:
            yield f'{name}{{consumergroup="{escaped(group)}"}} {len(membership.members)}\n'

    yield from of_each(state, groups, members)


def _head(name: str, documentation: str) -> str:
    return f"# HELP {name} {documentation}\n# TYPE {name} gauge\n"
