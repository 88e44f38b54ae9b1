"""Metrics of groups: of each partition, of which there may be millions, and of the group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from caughtup.agents.web.metrics.families import Family, Scrape
from caughtup.agents.web.metrics.group_labels import GroupLabels, Slice
from caughtup.agents.web.metrics.group_lines import (
    EVERY,
    MOST,
    SUM,
    Figures,
    Fold,
    Totals,
    escaped,
    fill,
)
from caughtup.models.histories.end_columns import NEVER_MS
from caughtup.models.lag.assessed import Measure
from caughtup.models.lag.partition_lag import lag_columns, retention_columns
from caughtup.models.polls.column_reader import Rows
from caughtup.models.polls.commit_columns import NO_OFFSET
from caughtup.models.records.fields import or_none
from caughtup.models.state.cluster import ClusterState
from caughtup.models.verdicts import LAG

#: Returns the figures of a slice, and where they are known; None means everywhere.
Read = Callable[[ClusterState, Slice], tuple[Figures, Rows | None]]

#: Formats of figures; nine digits exceed the precision of any measure.
COUNT, _MOMENT, MEASURE = b"%d", b"%.3f", b"%.9g"
_PARTITION = ("cluster", "group", "topic", "partition")


def figures_by_partition(
    read: Read,
    family: Family,
    scrape: Scrape,
    _: None,
    *,
    form: bytes = COUNT,
    fold: Fold | None = None,
    before: Callable[[Scrape], str] = lambda scrape: f"{scrape.cluster_label},",
    labels: Callable[[Scrape], GroupLabels] = lambda scrape: scrape.group_labels,
) -> Iterator[bytes]:
    """Yield the lines of all groups' partitions, a slice at a time.

    ``form`` formats a figure; ``before`` returns the labels before the group's. ``fold`` reduces
    the figures of groups with a coarser granularity, which have no lines without it. ``labels``
    returns the cache of lines. A group that fails is left out.
    """
    start = f"{family.name}{{{before(scrape)}".encode()
    totals: Totals | None = None

    def written(part: Slice) -> bytes:
        nonlocal totals
        if part.keys is None:
            figures, known = read(scrape.state, part)
        else:
            if part.first:
                totals = None if fold is None else Totals(part.line_count, fold)
            if totals is None:
                return b""
            totals.add(part.keys, *read(scrape.state, part))
            if not part.last:
                return b""
            figures, known = totals.figures()
        text = fill(part.lines, start, form, figures, known)
        return text.replace(b" inf\n", b" +Inf\n") if form is MEASURE else text

    kept, state = labels(scrape), scrape.state
    for part in kept.slices(state, scrape.groups, scrape.isolated):
        try:
            yield written(part)
        except Exception:
            totals = None  # the group's other slices are left out, too
            if part.keys is not None and not (part.first and part.last):
                with scrape.isolated(part.groups[0][0]):
                    raise
            for group in [name for name, _ in part.groups]:
                with scrape.isolated(group):
                    for of_group in kept.slices(state, [group], scrape.isolated):
                        yield written(of_group)


def _lag(_: ClusterState, part: Slice) -> tuple[Figures, Rows]:
    lags = lag_columns(part.offset, part.commit_ms, part.ends)
    return lags.lag, lags.known


def log_end_lag(_: ClusterState, part: Slice) -> tuple[Figures, Rows]:
    """Return the lags up to the log end, open transactions included, as kafka_exporter's."""
    lags = lag_columns(part.offset, part.commit_ms, part.ends)
    return lags.lag_committed_view, lags.known


def committed(_: ClusterState, part: Slice) -> tuple[Figures, Rows]:
    """Return the committed offsets."""
    return part.offset, part.offset != NO_OFFSET


def _has_commit(_: ClusterState, part: Slice) -> tuple[Figures, None]:
    return part.offset != NO_OFFSET, None


def _last_commit(_: ClusterState, part: Slice) -> tuple[Figures, Rows]:
    return part.commit_ms / 1000, part.offset != NO_OFFSET


def _retention_used(_: ClusterState, part: Slice) -> tuple[Figures, Rows]:
    known, used = retention_columns(part.offset, part.ends)
    return used, known


def _assessed(measure: Measure) -> Read:
    """Return a reader of an assessed measure, unknown before an assessment and for deleted topics."""

    def read(state: ClusterState, part: Slice) -> tuple[Figures, Rows]:
        found: list[float] = []
        for group, partitions in part.groups:
            found += state.assessments.column(measure, group, partitions)
        values = np.array(found, np.float64)
        return values, ~np.isnan(values) & (part.ends.as_of_ms != NEVER_MS)

    return read


lag_seconds = _assessed("lag_seconds")


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
            for status in LAG.words
        )


def _leaderless(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    yield family.line((scrape.state.cluster,), scrape.health.leaderless_partitions)


def _not_watched(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    for reason, count in scrape.state.watching.counts().items():
        yield family.line((scrape.state.cluster, reason), count)


def _limited(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    yield family.line((scrape.state.cluster,), scrape.group_labels.limited())


def _objectives(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    seconds = scrape.settings.objectives.of(group)
    if seconds is not None:
        yield family.line((scrape.state.cluster, group), seconds)


def _rebalances(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    for cause, count in sorted(scrape.state.rebalances.counts(group).items()):
        yield family.line((scrape.state.cluster, group, cause), count)


def _decisions(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    for kind, count in sorted(scrape.state.group_decisions.counts(group).items()):
        yield family.line((scrape.state.cluster, group, *kind), count)


def _lost_seconds(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    seconds = scrape.state.rebalances.lost_seconds(group)
    if seconds is not None:
        yield family.line((scrape.state.cluster, group), seconds)


def _storm(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    storm = scrape.state.rebalances.storm(group, scrape.now_ms)
    if storm is not None:
        client = or_none(storm.client) or ""
        yield family.line((scrape.state.cluster, group, storm.cause, client), storm.rebalances)


def _share_starts(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    found = scrape.state.groups.share.get(group)
    if found is None or scrape.group_labels.detail.granularity != "partition":
        return
    for (topic, number), start in sorted(found.starts.items()):
        yield family.line((scrape.state.cluster, group, topic, str(number)), start)


def _groups(scrape: Scrape) -> list[str]:
    return scrape.groups


def _share_groups(scrape: Scrape) -> list[str]:
    share = scrape.state.groups.share
    return [group for group in scrape.groups if group in share] if share else []


def _by_partition(
    name: str, documentation: str, read: Read, fold: Fold, form: bytes = COUNT
) -> Family:
    """Declare a gauge of group-partitions."""
    lines = partial(figures_by_partition, read, form=form, fold=fold)
    return Family(f"caughtup_group_{name}", documentation, _PARTITION, lines)


GROUP_FAMILIES = (
    _by_partition(
        "lag_records", "Records that a read_committed consumer has yet to read", _lag, SUM
    ),
    _by_partition("committed_offset", "Offset that the group committed last", committed, SUM),
    _by_partition(
        "has_commit",
        "1 if the group ever committed on the partition; 0: its lag counts from the log start",
        _has_commit,
        EVERY,
    ),
    _by_partition(
        "last_commit_timestamp_seconds",
        "When the group last committed on the partition",
        _last_commit,
        MOST,
        _MOMENT,
    ),
    _by_partition(
        "retention_used_ratio",
        "Share of the log that lies behind the commit; above 1, records were deleted unread",
        _retention_used,
        MOST,
        MEASURE,
    ),
    _by_partition("lag_seconds", "Age of the oldest unread record", lag_seconds, MOST, MEASURE),
    _by_partition(
        "lag_velocity",
        "Change of the lag, in records a second; below 0 while the group catches up",
        _assessed("velocity"),
        SUM,
        MEASURE,
    ),
    _by_partition(
        "catchup_eta_seconds",
        "Seconds until the lag is 0 at the current rates; +Inf: never",
        _assessed("eta_seconds"),
        MOST,
        MEASURE,
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
        "1 for the group's verdict, 0 for the others",
        ("cluster", "group", "status"),
        _statuses,
        _groups,
    ),
    Family(
        "caughtup_group_share_start_offset",
        "Share-partition start offset of a share group: each record before it is done",
        ("cluster", "group", "topic", "partition"),
        _share_starts,
        _share_groups,
    ),
    Family(
        "caughtup_group_rebalances_total",
        "Rebalances of the group since the service started, by their surest cause",
        ("cluster", "group", "cause"),
        _rebalances,
        _groups,
        "counter",
    ),
    Family(
        "caughtup_group_decisions_total",
        "Assignments of the group, compared with what the assignor decides, since the service started",
        ("cluster", "group", "assignor", "client", "result"),
        _decisions,
        _groups,
        "counter",
    ),
    Family(
        "caughtup_group_rebalance_lost_seconds_total",
        "Seconds without a commit of partitions that had to stop for rebalances, at most: summed over them",
        ("cluster", "group"),
        _lost_seconds,
        _groups,
        "counter",
    ),
    Family(
        "caughtup_group_storm_rebalances",
        "Rebalances within ten minutes of a group that rebalances again and again",
        ("cluster", "group", "cause", "client"),
        _storm,
        _groups,
    ),
    Family(
        "caughtup_group_lag_objective_seconds",
        "Greatest age of the group's oldest unread record, by lag_objectives",
        ("cluster", "group"),
        _objectives,
        _groups,
        known=lambda scrape: bool(scrape.settings.objectives),
    ),
    Family(
        "caughtup_leaderless_partitions",
        "Partitions without a leader, whose end offsets are those of an earlier listing",
        ("cluster",),
        _leaderless,
    ),
    Family(
        "caughtup_groups_not_watched",
        "Groups that exist and are not watched",
        ("cluster", "reason"),
        _not_watched,
    ),
    Family(
        "caughtup_groups_limited",
        "Groups with series by topic or group only, because of metrics_group_limit",
        ("cluster",),
        _limited,
    ),
)
