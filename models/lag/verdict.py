"""How a group fares, in one word and one line, without a threshold that anybody has to set.

What is normal is the group's own rhythm: its *interval*, the time from one step of its commit to
the next while there is something to read (``CommitHistory.interval_ms``; a partition that has
none yet goes by the group's longest). The *allowance* is three intervals. *Behind* means that
the oldest unread record is older than the allowance, and nobody is called stopped or stalled
unless it is so for certain; how many records or commits that are doesn't matter. Of these, from
the top, the first that holds is the verdict:

==========  ===================================================================================
rewound     the commit lies beyond the log's end: the log was recreated or lost its tail
ok          nothing is left to read: after the commit come at most transaction markers, aborted
            records and open transactions
unknown     the log's end was sampled only once
stopped     no commit ever, though a record that came since the first sample is older than allowed,
            and the group has been to read the partition for longer than that
unknown     no commit ever
unknown     no step for longer than the allowance, but all that is left is one offset of which
            nobody knows whether it is a transaction marker
stopped     something to read, but no step and no commit for longer than the allowance
stalled     the same, but it goes on committing the offset that it has
rewound     its commits went back and haven't reached where they were, nor the log's end
ok          not behind
unknown     perhaps behind: its interval or the age of the oldest unread record isn't known
diverging   behind, and the lag grows: now, and by more than is produced in an interval over the
            last span or over all that is known
slow        behind, but the lag falls or stays
==========  ===================================================================================

A group's verdict is that of its worst partition, in the order of ``models/verdicts.py``. Of a group of which
only one commit is known, Kafka's ``max.poll.interval.ms`` stands in for the interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from caughtup.models.durations import counted, duration
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.figures import LagFigures
from caughtup.models.lag.rates import INTERVALS_ALLOWED
from caughtup.models.verdicts import LAG


class Verdict(NamedTuple):
    """A verdict on a group's partition, why, and how old its oldest unread record is (s)."""

    verdict: str
    reason: str
    behind_seconds: float


NOTHING_TO_READ = Verdict("ok", "at the end", 0.0)


class GroupVerdict(NamedTuple):
    """A group's verdict, the partition that it is due to (None if all are well), and why."""

    verdict: str
    partition: TopicPartition | None
    reason: str


def partition_verdict(figures: LagFigures) -> Verdict:
    """Judge one group-partition. The table in this module's docstring is what it does."""
    verdict, reason = _judge(figures)
    if lost := figures.records_lost:
        verb = "was" if lost == 1 else "were"
        reason += f"; {counted(lost, 'offset')} {verb} deleted unread"
    age = figures.age
    return Verdict(verdict, reason, 0.0 if age is None else age.seconds)


def group_verdict(
    verdicts: Iterable[tuple[TopicPartition, Verdict]], at_the_end: int = 0
) -> GroupVerdict:
    """Judge a group by its worst partition: of several the one that is furthest behind in time.

    ``at_the_end`` counts further ones that have read all there is. Partitions without end offsets, of topics that are gone, have no verdict and belong left out.
    """
    ordered = sorted(verdicts)
    count = len(ordered) + at_the_end
    if not count:
        return GroupVerdict("unknown", None, "the end offsets of its partitions are not known")
    partition, worst = max(
        ordered,
        key=lambda item: (LAG.severity(item[1].verdict), item[1].behind_seconds),
        default=(None, NOTHING_TO_READ),
    )
    if worst.verdict == "ok":
        keeping = "its partition keeps" if count == 1 else f"all {count:,} partitions keep"
        return GroupVerdict("ok", None, f"{keeping} up")
    alike = sum(verdict.verdict == worst.verdict for _, verdict in ordered)
    return GroupVerdict(
        worst.verdict,
        partition,
        f"{partition}: {worst.reason} (partitions {worst.verdict}: {alike} of {count})",
    )


def _judge(figures: LagFigures) -> tuple[str, str]:
    lag, age = figures.lag, figures.age
    if lag.out_of_range:
        return "rewound", (
            f"the commit {figures.committed:,} lies beyond the log, which ends at "
            f"{figures.ends.end_offset:,}: the topic was recreated, or the log lost its tail"
        )
    if lag.lag == 0:
        beyond = lag.lag_committed_view
        return (
            "ok",
            f"nothing to read, {counted(beyond, 'offset')} not readable"
            if beyond
            else "at the end",
        )
    if age is None:
        return "unknown", f"{_to_read(lag.lag)}, for an unknown time"
    if not lag.has_commit:
        return _without_commit(figures)
    if figures.unmoved_seconds > figures.allowed_seconds:
        return _without_step(figures)
    if figures.rewound_from is not None:
        return "rewound", (
            f"its commits went back from {figures.rewound_from:,} and are at {figures.committed:,}; "
            f"{_catch_up(figures)}"
        )
    if age.seconds <= figures.allowed_seconds:
        return _within_interval(figures)
    behind = f"{_to_read(lag.lag)}, the oldest for {_age(figures)}, {_usual_interval(figures)}"
    if _diverges(figures):
        return "diverging", f"{behind}; {_catch_up(figures)}"
    return "slow", f"{behind}; {_catch_up(figures)}"


def _without_commit(figures: LagFigures) -> tuple[str, str]:
    lag, arrived = figures.lag, figures.arrived
    if (
        arrived is None
        or min(arrived.certain_seconds, figures.assigned_seconds) <= figures.allowed_seconds
    ):
        return "unknown", (
            f"never committed; {_to_read(lag.lag)}, if its auto.offset.reset is earliest"
        )
    return "stopped", (
        f"never committed, though records arrived {duration(arrived.seconds)} ago; "
        f"{_to_read(lag.lag)}, {_usual_interval(figures)}"
    )


def _without_step(figures: LagFigures) -> tuple[str, str]:
    lag = figures.lag.lag
    if lag == 1 and figures.ends.readable_end_offset is None:
        return "unknown", (
            f"1 offset to read for {duration(figures.unmoved_seconds)}: "
            "a record or a transaction marker, at which the service has not looked"
        )
    silent = figures.silent_seconds or 0.0
    if silent > figures.allowed_seconds:
        return (
            "stopped",
            f"{_to_read(lag)} and no commit for {duration(silent)}, {_usual_interval(figures)}",
        )
    return "stalled", (
        f"{_to_read(lag)}, and for {duration(figures.unmoved_seconds)} it has committed "
        f"offset {figures.committed:,} again and again, {_usual_interval(figures)}"
    )


def _within_interval(figures: LagFigures) -> tuple[str, str]:
    lag = figures.lag.lag
    if figures.interval_seconds is None:
        return "unknown", f"{_to_read(lag)}; its usual interval is not known after one commit"
    if figures.age is None or figures.age.method == "at_least":
        return "unknown", f"{_to_read(lag)}, for {_age(figures)}"
    return "ok", f"{_to_read(lag)}, the oldest for {_age(figures)}, {_usual_interval(figures)}"


def _diverges(figures: LagFigures) -> bool:
    """Return whether the lag grows by more than the moment of the sample accounts for.

    Between two commits a lag grows by what is produced in the meantime; that is no growth.
    """
    rates, trend = figures.rates, figures.trend
    if rates is None or trend is None or rates.velocity <= 0:
        return False
    between_commits = figures.allowed_seconds / INTERVALS_ALLOWED
    return any(grown.growth > grown.produce_rate * between_commits for grown in (rates, trend))


def _catch_up(figures: LagFigures) -> str:
    rates, eta = figures.rates, figures.eta_seconds
    if rates is None or eta is None:
        return "its rates are not known yet"
    pace = f"reads {rates.consume_rate:,.1f}/s, {rates.produce_rate:,.1f}/s are produced"
    if math.isinf(eta):
        return f"{pace}: at these rates it never catches up"
    return f"{pace}: caught up in {duration(eta)}"


def _usual_interval(figures: LagFigures) -> str:
    if figures.interval_seconds is None:
        return "where its usual interval is not known"
    return f"where it usually commits every {duration(figures.interval_seconds)}"


def _to_read(offsets: int) -> str:
    return f"{counted(offsets, 'offset')} to read"


def _age(figures: LagFigures) -> str:
    if figures.age is None:
        return "an unknown time"
    if figures.age.method == "at_least":
        return f"at least {duration(figures.age.seconds)}"
    return f"{duration(figures.age.seconds)} (±{duration(figures.age.error_seconds or 0.0)})"
