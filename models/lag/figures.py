"""The figures of a group's lag on one partition, among them the lag in seconds.

The lag in seconds is the age of the oldest record that the group hasn't read. Samples of the log
end offset show when records after the committed offset arrived, so neither the producer's nor the
consumer's rate affects it. A record in a transaction counts from the end of the
transaction, because it can't be read before.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

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
from caughtup.models.offsets import EndOffsets
from caughtup.models.records.transactions import OpenTransaction

Method = Literal["caught_up", "interpolated", "at_least"]
#: The log of commits; a coordinator's answers, in which a commit that repeats its offset is not seen; or
#: the lag of a share group, which commits no offsets.
CommitSource = Literal["log", "ask", "share"]


class LagSeconds(NamedTuple):
    """An age in seconds, its greatest error, and how it was measured.

    ``caught_up``: nothing was unread at the last sample; a record may have arrived since, so the
    error is the age of that sample. ``interpolated``: the record arrived between two samples, and
    records are assumed to arrive evenly between them; the error is at most the time between the
    samples. ``at_least``: the record was there at the oldest sample, so it is that old or older,
    and ``error_seconds`` is None.
    """

    seconds: float
    error_seconds: float | None
    method: Method

    @property
    def certain_seconds(self) -> float:
        """The least possible age, in seconds."""
        return max(0.0, self.seconds - (self.error_seconds or 0.0))


def lag_seconds(
    position: int, lag: int, history: EndOffsetHistory, now_ms: int
) -> LagSeconds | None:
    """Return the age of the oldest unread record; None if it is unknown, as with one sample only.

    ``position`` is the first unread offset: the commit, or the log start if that is later. ``lag``
    is from ``partition_lag``; if it is 0, so is the age.
    """
    if lag <= 0:
        return LagSeconds(0.0, max(0, now_ms - history.last_ms) / 1000, "caught_up")
    if len(history) < 2:
        return None
    before, after = history.around(position)
    if after is None:
        return None
    if before is None:
        return LagSeconds(max(0, now_ms - history.first_ms) / 1000, None, "at_least")
    # Each record between two samples is placed in the middle of its equal share of the time.
    share = (position - before.readable_end + 0.5) / (after.readable_end - before.readable_end)
    elapsed = (after.at_ms - before.at_ms) * share
    error = max(elapsed, after.at_ms - before.at_ms - elapsed)
    age = max(0.0, now_ms - before.at_ms - elapsed)
    return LagSeconds(age / 1000, error / 1000, "interpolated")


#: Kafka's default of ``max.poll.interval.ms``. A consumer that polls less often is removed from its
#: group, so this replaces the commit interval of a group of which only one commit is known.
MAX_POLL_INTERVAL_MS = 300_000


class LagFigures(NamedTuple):
    """A group's lag on a partition at one moment, with the figures that a verdict needs.

    ``lag``, ``rates`` and ``records_lost`` are in offsets, the rest in seconds. None = unknown.
    ``age``: age of the oldest unread record. ``rates``: over the last minute or some intervals;
    ``trend``: over the whole histories, only if ``age`` exceeds ``allowed_seconds`` and the lag grows.
    ``interval_seconds``: time between two advances of the commit, on this partition or, if it has
    none, the longest on the group's other partitions. ``allowed_seconds``: the age that an unread
    record may have. ``unmoved_seconds``: least time during which there were unread records and the
    commit didn't advance. ``step_seconds``: time since it advanced. ``silent_seconds``: time since the last commit, advancing or not.
    ``arrived``: for a partition without a commit, the age of the oldest record that arrived since
    the first sample and still exists; ``assigned_seconds``: the least time for which that partition
    has been assigned to the group. ``held_seconds``: the least time for which an open transaction
    has held back the last stable offset where it is, with records behind it; ``holder``: that
    transaction. ``reads_uncommitted``: whether the group was seen beyond a last stable offset.
    ``source``: where its commits come from, see ``CommitSource``.
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
    step_seconds: float | None
    silent_seconds: float | None
    arrived: LagSeconds | None
    assigned_seconds: float
    held_seconds: float | None
    holder: OpenTransaction | None
    reads_uncommitted: bool
    source: CommitSource = "log"


def lag_figures(
    commits: CommitHistory | None,
    end_offsets: EndOffsetHistory,
    now_ms: int,
    interval_ms: int | None = None,
    max_poll_interval_ms: int = MAX_POLL_INTERVAL_MS,
    assigned_ms: int = 0,
    holder: OpenTransaction | None = None,
    reads_uncommitted: bool = False,
    source: CommitSource = "log",
) -> LagFigures:
    """Return the figures of a group on one partition at ``now_ms``; without commits, they are None.

    ``interval_ms`` is ``CommitHistory.interval_ms`` of the commits or, where that is None,
    ``CommitTable.interval_ms`` of the group; ``max_poll_interval_ms`` is from its members (a
    classic member's rebalance timeout is its ``max.poll.interval.ms``). ``assigned_ms`` is when the partition was assigned to the group; it matters without a commit
    only. ``holder`` is the transaction that holds back the last stable offset. The allowance is at
    least ``INTERVALS_ALLOWED`` times the time between two samples of the log end offset.
    """
    ends, held_ms = end_offsets.latest, end_offsets.held_ms
    committed = made_ms = rewound_from = None
    if commits is not None:
        committed, made_ms = commits.committed, commits.commit_timestamp_ms
        rewound_from = commits.rewound_from
    lag = partition_lag(committed, ends, made_ms)
    usable = None if lag.out_of_range else committed
    position = ends.start_offset if usable is None else max(usable, ends.start_offset)
    age = lag_seconds(position, lag.lag, end_offsets, now_ms)
    certain = 0.0 if age is None else age.certain_seconds
    usual_ms = max_poll_interval_ms if interval_ms is None else interval_ms
    allowed = INTERVALS_ALLOWED * max(usual_ms, end_offsets.spacing_ms) / 1000
    rates = trend = arrived = None
    unmoved = certain
    if commits is None:
        first = max(end_offsets.first.readable_end, position)
        arrived = lag_seconds(first, position + lag.lag - first, end_offsets, now_ms)
    else:
        unmoved = min(certain, _since(commits.step_ms, now_ms))
        if interval_ms is not None and usable is not None:
            rates = group_rates(commits, end_offsets, now_ms, interval_ms)
            grows = rates is not None and rates.velocity > 0
            if grows and age is not None and age.seconds > allowed:
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
        step_seconds=None if commits is None else _since(commits.step_ms, now_ms),
        silent_seconds=None if made_ms is None else _since(made_ms, now_ms),
        arrived=arrived,
        assigned_seconds=_since(assigned_ms, now_ms),
        held_seconds=None if held_ms is None else _since(held_ms, now_ms),
        holder=holder,
        reads_uncommitted=reads_uncommitted,
        source=source,
    )


def _since(moment_ms: int, now_ms: int) -> float:
    return max(0, now_ms - moment_ms) / 1000
