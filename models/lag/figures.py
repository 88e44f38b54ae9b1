"""Everything that is known of a group's lag on one partition, in one value."""

from __future__ import annotations

from typing import NamedTuple

from caughtup.models.histories.commits import CommitHistory
from caughtup.models.histories.end_offsets import EndOffsetHistory
from caughtup.models.lag.partition_lag import PartitionLag, partition_lag
from caughtup.models.lag.rates import (
    INTERVALS_ALLOWED,
    GroupRates,
    eta_seconds,
    group_rates,
    records_lost,
    retention_used,
)
from caughtup.models.lag.seconds import LagSeconds, lag_seconds
from caughtup.models.offsets import EndOffsets

#: Kafka's default of ``max.poll.interval.ms``. A consumer that polls less often is thrown out of
#: its group, so it stands in for the interval of a group of which one commit is known.
MAX_POLL_INTERVAL_MS = 300_000


class LagFigures(NamedTuple):
    """A group's lag on a partition at one moment, and what a verdict on it rests on.

    Offsets in ``lag``, ``rates`` and ``records_lost``; the rest in seconds. None = unknown.
    ``age``: of the oldest unread record. ``rates`` over the last minute or some intervals,
    ``trend`` over all that is known, the latter only of a group that is out of its rhythm.
    ``interval_seconds``: from one step to the next, the group's own here or, while it has none,
    the longest that it has elsewhere. ``allowed_seconds``: how old an unread record may be while
    the group is in its rhythm. ``unmoved_seconds``: for how long at least it has had something to
    read and made no step. ``silent_seconds``: since its last commit, be it a repeated one.
    ``arrived``: for a partition without a commit, the age of the oldest record that came since
    the first sample and is still there; ``assigned_seconds``: for how long at least the group has
    been to read it.
    """

    lag: PartitionLag
    ends: EndOffsets
    committed: int | None
    rewound_from: int | None
    age: LagSeconds | None
    rates: GroupRates | None
    trend: GroupRates | None
    eta_seconds: float | None
    retention_used: float | None
    records_lost: int
    interval_seconds: float | None
    allowed_seconds: float
    unmoved_seconds: float
    silent_seconds: float | None
    arrived: LagSeconds | None
    assigned_seconds: float


def lag_figures(
    commits: CommitHistory | None,
    end_offsets: EndOffsetHistory,
    now_ms: int,
    group_interval_ms: int | None = None,
    max_poll_interval_ms: int = MAX_POLL_INTERVAL_MS,
    assigned_ms: int = 0,
) -> LagFigures:
    """Gather the figures of one group-partition at ``now_ms``; ``commits`` is None without any.

    ``group_interval_ms`` is ``CommitTable.interval_ms`` of the group; ``max_poll_interval_ms``
    what its members say, where they do (a classic member's rebalance timeout is its
    ``max.poll.interval.ms``). ``assigned_ms``: since when the group has been to read it, where that
    matters: without a commit. Our own samples resolve no less than the time between them, so the
    allowance is never below some of those.
    """
    ends = end_offsets.latest
    committed = made_ms = interval_ms = rewound_from = None
    if commits is not None:
        committed, made_ms = commits.committed, commits.commit_timestamp_ms
        interval_ms, rewound_from = commits.interval_ms, commits.rewound_from
    if interval_ms is None:
        interval_ms = group_interval_ms
    lag = partition_lag(committed, ends, made_ms)
    usable = None if lag.out_of_range else committed
    position = ends.start_offset if usable is None else max(usable, ends.start_offset)
    age = lag_seconds(position, lag.lag, end_offsets, now_ms)
    certain = 0.0 if age is None else age.certain_seconds
    rhythm_ms = max_poll_interval_ms if interval_ms is None else interval_ms
    allowed = INTERVALS_ALLOWED * max(rhythm_ms, end_offsets.spacing_ms) / 1000
    rates = trend = arrived = None
    unmoved = certain
    if commits is None:
        first = max(end_offsets.first.readable_end, position)
        arrived = lag_seconds(first, position + lag.lag - first, end_offsets, now_ms)
    else:
        unmoved = min(certain, _since(commits.step_ms, now_ms))
        if interval_ms is not None and usable is not None:
            rates = group_rates(commits, end_offsets, now_ms, interval_ms)
            if age is not None and age.seconds > allowed:
                trend = group_rates(commits, end_offsets, now_ms, interval_ms, whole=True)
    return LagFigures(
        lag=lag,
        ends=ends,
        committed=committed,
        rewound_from=rewound_from,
        age=age,
        rates=rates,
        trend=trend,
        eta_seconds=eta_seconds(lag.lag, rates),
        retention_used=None if usable is None else retention_used(usable, ends),
        records_lost=0 if usable is None else records_lost(usable, ends),
        interval_seconds=None if interval_ms is None else interval_ms / 1000,
        allowed_seconds=allowed,
        unmoved_seconds=unmoved,
        silent_seconds=None if made_ms is None else _since(made_ms, now_ms),
        arrived=arrived,
        assigned_seconds=_since(assigned_ms, now_ms),
    )


def _since(moment_ms: int, now_ms: int) -> float:
    return max(0, now_ms - moment_ms) / 1000
