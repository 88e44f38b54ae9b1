"""Metrics of groups: of each of their partitions, of which there may be millions, and of the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from caughtup.agents.web.metrics.families import Family, Scrape
from caughtup.agents.web.metrics.group_labels import Slice, escaped, filled
from caughtup.models.lag.assessment import Assessed
from caughtup.models.lag.partition_lag import PartitionLag, partition_lag
from caughtup.models.lag.rates import retention_used
from caughtup.models.lag.verdict import SEVERITY
from caughtup.models.state.cluster import ClusterState

#: Returns the figures of a slice of a group's partitions. None is unknown, and so are all of none.
Figures = Callable[[ClusterState, Slice], Sequence[float | None]]

#: How figures are written. Nine digits are more than any figure that isn't a count is good for.
_COUNT, _MOMENT, _MEASURE = b"%d", b"%.3f", b"%.9g"
_PARTITION = ("cluster", "group", "topic", "partition")


def figures_by_partition(
    figures: Figures,
    family: Family,
    scrape: Scrape,
    group: str,
    *,
    form: bytes = _COUNT,
    before_group: str | None = None,
) -> Iterator[bytes]:
    """Write the lines of a group's partitions, a slice at a time.

    ``form`` is how a figure is written, and ``before_group`` stands before the label ``group``:
    None for the cluster's.
    """
    before = f"{scrape.cluster_label}," if before_group is None else before_group
    start = f"{family.name}{{{before}".encode()
    for part in scrape.group_labels.slices(scrape.state, group):
        text = filled(part.lines, start, form, figures(scrape.state, part))
        yield text.replace(b" inf\n", b" +Inf\n") if form is _MEASURE else text


def _partition_lags(state: ClusterState, part: Slice) -> list[PartitionLag | None]:
    return [
        None if history is None else partition_lag(offset, history.latest, time_ms)
        for offset, time_ms, history in zip(
            part.offsets, part.times_ms, state.ends.histories(part.partitions), strict=True
        )
    ]


def _lag(state: ClusterState, part: Slice) -> list[int | None]:
    return [None if lag is None else lag.lag for lag in _partition_lags(state, part)]


def log_end_lag(state: ClusterState, part: Slice) -> list[int | None]:
    """Return the lags up to the log's end, in a transaction or not: kafka_exporter's."""
    return [None if lag is None else lag.lag_committed_view for lag in _partition_lags(state, part)]


def committed(_: ClusterState, part: Slice) -> Sequence[int | None]:
    """Return the committed offsets."""
    return part.offsets


def _has_commit(_: ClusterState, part: Slice) -> list[bool]:
    return [offset is not None for offset in part.offsets]


def _last_commit(_: ClusterState, part: Slice) -> list[float | None]:
    return [None if time_ms is None else time_ms / 1000 for time_ms in part.times_ms]


def _retention_used(state: ClusterState, part: Slice) -> list[float | None]:
    return [
        None if offset is None or history is None else retention_used(offset, history.latest)
        for offset, history in zip(part.offsets, state.ends.histories(part.partitions), strict=True)
    ]


def _assessed(figure: str) -> Figures:
    """Return what reads what was last worked out: nothing before, nor of topics that are gone."""
    at = Assessed._fields.index(figure)

    def figures(state: ClusterState, part: Slice) -> list[float | None]:
        found = [known[at] for known in state.assessments.of(part.group, part.partitions)]
        if found.count(None) == len(found):
            return []
        looks = state.ends.histories(part.partitions)
        return [None if look is None else value for look, value in zip(looks, found, strict=True)]

    return figures


def _members(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    membership = scrape.state.groups.membership(group)
    if membership is not None:
        labels = f'group="{escaped(group)}",group_type="{membership.group_type}"'
        yield family.line_of(f"{scrape.cluster_label},{labels}", len(membership.members))


def _statuses(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    found = scrape.state.assessments.verdicts.get(group)
    if found is not None:
        before = f'{scrape.cluster_label},group="{escaped(group)}",status='
        yield b"".join(
            family.line_of(f'{before}"{status}"', int(found.verdict == status))
            for status in SEVERITY
        )


def _groups(scrape: Scrape) -> list[str]:
    return scrape.groups


def _by_partition(name: str, documentation: str, figures: Figures, form: bytes = _COUNT) -> Family:
    """Declare a gauge of group-partitions."""
    lines = partial(figures_by_partition, figures, form=form)
    return Family(f"caughtup_group_{name}", documentation, _PARTITION, lines, _groups)


GROUP_FAMILIES = (
    _by_partition("lag_records", "Records a read_committed reader has yet to read", _lag),
    _by_partition("committed_offset", "Committed offset", committed),
    _by_partition("has_commit", "Whether the group ever committed here", _has_commit),
    _by_partition("last_commit_timestamp_seconds", "When it last committed", _last_commit, _MOMENT),
    _by_partition(
        "retention_used_ratio",
        "How near the log's start is to the commit; above 1 records were lost",
        _retention_used,
        _MEASURE,
    ),
    _by_partition(
        "lag_seconds", "Age of the oldest unread record", _assessed("lag_seconds"), _MEASURE
    ),
    _by_partition(
        "lag_velocity", "Records a second by which the lag grows", _assessed("velocity"), _MEASURE
    ),
    _by_partition(
        "catchup_eta_seconds",
        "Until it is caught up; +Inf is never",
        _assessed("eta_seconds"),
        _MEASURE,
    ),
)
#: Of the group as a whole.
GROUP_TOTALS = (
    Family(
        "caughtup_group_members",
        "Members of the group",
        ("cluster", "group", "group_type"),
        _members,
        _groups,
    ),
    Family(
        "caughtup_group_status",
        "How the group fares",
        ("cluster", "group", "status"),
        _statuses,
        _groups,
    ),
)
