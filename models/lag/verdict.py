"""The verdict on a group's lag: one word and one sentence, without a threshold to configure.

A group is compared with itself. Its *interval* is the time between two advances of its commit while
there is something to read (``CommitHistory.interval_ms``; a partition without one uses the group's
longest). The *allowance* is three intervals. A group is *behind* if its oldest unread record is
older than the allowance; for stopped and stalled, even its least possible age must exceed the allowance. The numbers of
records and of commits don't matter. The first line that holds is the verdict:

==========  ===================================================================================
rewound     the commit lies beyond the log end: the topic was recreated or the log lost its tail
blocked     nothing to read, because an open transaction has held back the last stable offset for
            longer than the allowance; unless the group was seen to read beyond one, uncommitted
ok          nothing to read: only transaction markers, aborted records or open transactions follow
            the commit
unknown     the log end was sampled only once
stopped     no commit ever, though a record that arrived since the first sample is older than the
            allowance, and the partition has been assigned to the group for longer than that
unknown     no commit ever
unknown     no advance for longer than the allowance, but the only offset left may be a transaction
            marker
stopped     something to read, but no advance and no commit for longer than the allowance
stalled     the same, but the group commits the same offset again and again
rewound     the commits went back, and have not yet reached their former offset or the log end
ok          not behind
unknown     perhaps behind: the interval or the age of the oldest unread record is unknown
diverging   behind; the lag grows now, and over the last span or the whole histories it grew by
            more than is produced in an interval
slow        behind, but the lag doesn't grow
==========  ===================================================================================

A group's verdict is that of its worst partition, in the order of ``models/verdicts.py``. Kafka's
``max.poll.interval.ms`` replaces the interval of a group of which only one commit is known. While
the reader is late, ``unread.unless_unread`` replaces verdicts that follow from missing commits
with ``unknown``. Where coordinators are asked instead of their log read, ``stalled`` is not told from
``stopped``: an answer doesn't show that an offset was committed again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from caughtup.models.durations import counted, duration
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.figures import LagFigures, LagSeconds
from caughtup.models.lag.rates import INTERVALS_ALLOWED
from caughtup.models.transactions.holders import described
from caughtup.models.verdicts import LAG

#: Stands in a text for a time that grows.
_GROWS = "\0"


class GrowingReason(NamedTuple):
    """A reason with a time that grows while nothing happens, and that time now (s)."""

    text: str
    seconds: float


def grown(text: str, seconds: float) -> str:
    """Return the text of a ``GrowingReason`` when its time has grown to ``seconds``."""
    return text.replace(_GROWS, duration(seconds), 1)


class Verdict(NamedTuple):
    """A verdict on a group's partition, its reason, and the age of the oldest unread record (s).

    ``growing`` is the reason again, if a time in it grows.
    """

    verdict: str
    reason: str
    behind_seconds: float
    growing: GrowingReason | None = None


#: Before the numbers of partitions in a group's reason.
_PARTITIONS = " (partitions "
NOTHING_TO_READ = Verdict("ok", "at the end of the log", 0.0)


class GroupVerdict(NamedTuple):
    """A group's verdict, the partition that causes it (None if all are ok), and the reason."""

    verdict: str
    partition: TopicPartition | None
    reason: str


def partition_verdict(figures: LagFigures) -> Verdict:
    """Return the verdict on one partition, by the table in this module's docstring."""
    verdict, text, seconds = _judge(figures)
    if lost := figures.records_lost:
        verb = "was" if lost == 1 else "were"
        text += f"; {counted(lost, 'offset')} {verb} deleted unread"
    age = figures.age
    behind = 0.0 if age is None else age.seconds
    if verdict == "blocked":
        behind = figures.held_seconds or 0.0
    if seconds is None:
        return Verdict(verdict, text, behind)
    return Verdict(verdict, grown(text, seconds), behind, GrowingReason(text, seconds))


def group_verdict(
    verdicts: Iterable[tuple[TopicPartition, Verdict]], at_the_end: int = 0
) -> GroupVerdict:
    """Return the verdict of a group's worst partition; among equals, the one with the oldest record.

    ``at_the_end`` is the number of further partitions without lag. Partitions of deleted topics
    have no end offsets and must be left out.
    """
    count, most = at_the_end, -1
    worst_ones: list[tuple[TopicPartition, Verdict]] = []
    for one in verdicts:
        count += 1
        severity = LAG.severity(one[1].verdict)
        if severity > most:
            most, worst_ones = severity, [one]
        elif severity == most:
            worst_ones.append(one)
    if not count:
        return GroupVerdict("unknown", None, "the end offsets of its partitions are not known")
    partition, worst = min(
        worst_ones,
        key=lambda one: (-one[1].behind_seconds, one[0]),
        default=(None, NOTHING_TO_READ),
    )
    if worst.verdict == "ok":
        keeping = "its partition keeps" if count == 1 else f"all {count:,} partitions keep"
        return GroupVerdict("ok", None, f"{keeping} up")
    return GroupVerdict(
        worst.verdict,
        partition,
        f"{partition}: {worst.reason}{_PARTITIONS}{worst.verdict}: {len(worst_ones)} of {count})",
    )


def told_again(verdict: GroupVerdict, reason: str) -> GroupVerdict:
    """Return a group's verdict with the present reason of the partition that causes it."""
    after = verdict.reason.rindex(_PARTITIONS)
    return verdict._replace(reason=f"{verdict.partition}: {reason}{verdict.reason[after:]}")


def holds_seconds(figures: LagFigures) -> float:
    """Return for how long a verdict stays as it is if nothing happens, in seconds.

    Ages grow meanwhile: each may come to its limit. Infinity if none will; 0 where something else
    depends on the time.
    """
    age, arrived, allowed = figures.age, figures.arrived, figures.allowed_seconds
    if figures.held_seconds is not None or (age is not None and age.seconds == 0):
        return 0.0
    ages = [
        figures.unmoved_seconds,
        figures.assigned_seconds,
        math.inf if age is None else age.seconds,
        math.inf if arrived is None else arrived.certain_seconds,
        math.inf if figures.silent_seconds is None else figures.silent_seconds,
    ]
    left = math.inf
    for seconds in ages:  # of a million partitions: no generator, no call
        if seconds <= allowed and allowed - seconds < left:
            left = allowed - seconds
    if figures.step_seconds is not None and figures.interval_seconds is not None:
        until_late = INTERVALS_ALLOWED * figures.interval_seconds - figures.step_seconds
        if 0 <= until_late < left:
            left = until_late
    return left


#: A verdict's word, its reason, and the time (s) that stands for _GROWS there, None without it.
_Judged = tuple[str, str, float | None]


def _judge(figures: LagFigures) -> _Judged:
    lag, age = figures.lag, figures.age
    if lag.out_of_range:
        reason = (
            f"the commit {figures.committed:,} lies beyond the log, which ends at "
            f"{figures.ends.end_offset:,}: the topic was recreated, or the log lost its tail"
        )
        return "rewound", reason, None
    if lag.lag == 0 and _is_blocked(figures):
        return "blocked", _blocked(figures), None
    if lag.lag == 0:
        beyond = lag.lag_committed_view
        if not beyond:
            return "ok", "at the end of the log", None
        return "ok", f"nothing to read, {counted(beyond, 'offset')} not readable", None
    if age is None:
        return "unknown", f"{_to_read(lag.lag)}, for an unknown time", None
    if not lag.has_commit:
        return _without_commit(figures)
    if figures.unmoved_seconds > figures.allowed_seconds:
        return _without_step(figures)
    if figures.rewound_from is not None:
        reason = (
            f"its commits went back from {figures.rewound_from:,} and are at {figures.committed:,}; "
            f"{_catch_up(figures)}"
        )
        return "rewound", reason, None
    if age.seconds <= figures.allowed_seconds:
        return _within_interval(figures)
    behind = f"{_to_read(lag.lag)}, the oldest for {_age(age)}, {_usual_interval(figures)}"
    verdict = "diverging" if _diverges(figures) else "slow"
    return verdict, f"{behind}; {_catch_up(figures)}", age.seconds


def _is_blocked(figures: LagFigures) -> bool:
    held, committed = figures.held_seconds, figures.committed
    if held is None or held <= figures.allowed_seconds or figures.reads_uncommitted:
        return False
    return committed is None or committed <= figures.ends.last_stable_offset


def _blocked(figures: LagFigures) -> str:
    behind = counted(figures.lag.lag_committed_view, "offset")
    stable = figures.ends.last_stable_offset
    held = duration(figures.held_seconds or 0.0)
    return (
        f"cannot read the {behind} after the last stable offset {stable:,}, which has stood still "
        f"for {held}, if it reads only committed records: {described(figures.holder)}"
    )


def _without_commit(figures: LagFigures) -> _Judged:
    lag, arrived = figures.lag, figures.arrived
    if (
        arrived is None
        or min(arrived.certain_seconds, figures.assigned_seconds) <= figures.allowed_seconds
    ):
        reason = f"never committed; {_to_read(lag.lag)}, if its auto.offset.reset is earliest"
        return "unknown", reason, None
    reason = (
        f"never committed, though records arrived {_GROWS} ago; "
        f"{_to_read(lag.lag)}, {_usual_interval(figures)}"
    )
    return "stopped", reason, arrived.seconds


def _without_step(figures: LagFigures) -> _Judged:
    lag, unmoved = figures.lag.lag, figures.unmoved_seconds
    if lag == 1 and figures.ends.readable_end_offset is None:
        reason = (
            f"1 offset to read for {_GROWS}: "
            "a record or a transaction marker; the service has not read it"
        )
        return "unknown", reason, unmoved
    silent = figures.silent_seconds or 0.0
    if silent > figures.allowed_seconds:
        usual = _usual_interval(figures)
        if figures.source == "log":
            return "stopped", f"{_to_read(lag)} and no commit for {_GROWS}, {usual}", silent
        reason = f"{_to_read(lag)}, and it has stood still for {_GROWS}, {usual}"
        if figures.source == "ask":
            reason += "; by asking, a commit that repeats its offset is not seen"
        return "stopped", reason, silent
    reason = (
        f"{_to_read(lag)}, and for {_GROWS} it has committed "
        f"offset {figures.committed:,} again and again, {_usual_interval(figures)}"
    )
    return "stalled", reason, unmoved


def _within_interval(figures: LagFigures) -> _Judged:
    lag, age = figures.lag.lag, figures.age
    if figures.interval_seconds is None:
        reason = f"{_to_read(lag)}; its usual interval is not known after one commit"
        return "unknown", reason, None
    if age is None:
        return "unknown", f"{_to_read(lag)}, for an unknown time", None
    if age.method == "at_least":
        return "unknown", f"{_to_read(lag)}, for {_age(age)}", age.seconds
    reason = f"{_to_read(lag)}, the oldest for {_age(age)}, {_usual_interval(figures)}"
    return "ok", reason, age.seconds


def _diverges(figures: LagFigures) -> bool:
    """Return whether the lag grows by more than is produced between two commits."""
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
    does = "advances" if figures.source == "share" else "commits"
    return f"where it usually {does} every {duration(figures.interval_seconds)}"


def _to_read(offsets: int) -> str:
    return f"{counted(offsets, 'offset')} to read"


def _age(age: LagSeconds) -> str:
    if age.method == "at_least":
        return f"at least {_GROWS}"
    return f"{_GROWS} (±{duration(age.error_seconds or 0.0)})"
