"""Links about reading itself: rewound, hot, without progress, too slow, in bursts, too late."""

from __future__ import annotations

import math
from collections.abc import Iterator

from caughtup.models.durations import counted, duration
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.hot import hot_partition
from caughtup.models.lag.rates import GroupRates, group_rates, records_lost, retention_used
from caughtup.models.why.known import Known
from caughtup.models.why.links import Figure, Kind, Link, Name, and_others, named, verb

#: The share of a log behind the commit from which on retention is ahead, as in the alert's warning.
RETENTION_SHARE = 0.8
#: A group whose oldest unread record is at least this old (s) though it keeps up reads in bursts.
_BURST_SECONDS = 60.0
#: Kafka Streams deletes what it has read of these topics, so their logs are short.
_REPARTITION = "-repartition"
_LAG, _AGE = "caughtup_group_lag_records", "caughtup_group_lag_seconds"


def pace_links(known: Known) -> Iterator[Link]:
    """Yield the links about a group that is not ok."""
    if rewound := known.of_verdict("rewound"):
        yield _by_verdict(known, "rewound", rewound)
    yield from _hot(known)
    if standing := known.of_verdict("stopped", "stalled"):
        yield _by_verdict(known, "no_progress", standing)
    if slow := known.of_verdict("slow", "diverging"):
        yield _slow(known, slow)
    yield from _retention(known)
    yield from _deleted(known)


def _hot(known: Known) -> Iterator[Link]:
    """Yield the partition with most of the lag, unless another one has as much."""
    hot = hot_partition(known.lags)
    if hot is None:
        return
    partition = TopicPartition(hot.topic, hot.partition)
    lag = known.lags[partition] or 0
    if sum(other == lag for other in known.lags.values()) > 1:
        return
    alone = ": one member reads it, whatever members join" if known.has_members else ""
    yield Link(
        kind="hot_partition",
        sure="certain",
        text=f"{named(partition)} has {hot.share:.0%} of the group's lag{alone}.",
        evidence=[
            Figure("share of the lag", round(hot.share, 3)),
            Figure("lag on it", lag, _LAG),
        ],
        lag=lag,
        topic=hot.topic,
        partition=hot.partition,
    )


def _by_verdict(known: Known, kind: Kind, partitions: list[TopicPartition]) -> Link:
    """Return a link whose text is the verdict's own reason."""
    first = partitions[0]
    _, assessed = known.behind[first]
    why = "" if assessed is None else assessed.why
    return Link(
        kind=kind,
        sure="certain",
        text=f"{named(first)}{and_others(partitions)}: {why}.",
        evidence=[
            Figure("lag on them", known.sum_of(partitions), _LAG),
            Figure("partitions", len(partitions)),
            *_age(known, first),
        ],
        lag=known.sum_of(partitions),
        topic=first.topic,
        partition=first.partition,
    )


def _age(known: Known, partition: TopicPartition) -> list[Figure]:
    _, assessed = known.behind[partition]
    if assessed is None or assessed.lag_seconds is None:
        return []
    return [
        Figure("age of the oldest unread record in seconds", round(assessed.lag_seconds, 1), _AGE)
    ]


def _slow(known: Known, partitions: list[TopicPartition]) -> Link:
    """Return that the group is too slow, about the partition with the oldest unread record."""
    first = partitions[0]
    _, assessed = known.behind[first]
    rates = _rates(known, first)
    evidence = [Figure("lag on them", known.sum_of(partitions), _LAG), *_age(known, first)]
    text = f"The group is too slow on {named(first)}{and_others(partitions)}"
    if rates is not None:
        consumed, produced = round(rates.consume_rate, 1), round(rates.produce_rate, 1)
        evidence += [Figure("committed a second", consumed), Figure("produced a second", produced)]
        text += f": it commits {consumed:,}/s there, and {produced:,}/s are produced"
    eta = None if assessed is None else assessed.eta_seconds
    if eta is not None:
        when = "it never catches up" if math.isinf(eta) else f"it catches up in {duration(eta)}"
        text += f"; at these rates {when}"
    return Link(
        kind="slow_consumer",
        sure="certain",
        text=f"{text}.",
        evidence=evidence,
        lag=known.sum_of(partitions),
        topic=first.topic,
        partition=first.partition,
    )


def _rates(known: Known, partition: TopicPartition) -> GroupRates | None:
    commits, ends = known.state.commits, known.state.ends.history(partition)
    history = commits.find(known.group, partition)
    if history is None or ends is None:
        return None
    interval_ms = history.interval_ms or commits.interval_ms(known.group)
    return None if not interval_ms else group_rates(history, ends, known.now_ms, interval_ms)


def _retention(known: Known) -> Iterator[Link]:
    """Yield partitions whose unread records were deleted, or are about to be."""
    used: list[tuple[float, TopicPartition]] = []
    lost = 0
    for partition, (row, _) in known.behind.items():
        if row.committed is None or row.ends is None or (row.lag and row.lag.out_of_range):
            continue
        share = retention_used(row.committed, row.ends)
        has_expired = row.ends.start_offset > 0  # retention has deleted some records before
        if share >= RETENTION_SHARE and has_expired and not partition.topic.endswith(_REPARTITION):
            used.append((share, partition))
            lost += records_lost(row.committed, row.ends)
    if not used:
        return
    used.sort(key=lambda one: (-one[0], one[1]))
    share, worst = used[0]
    partitions = [one for _, one in used]
    text = (
        f"Retention deleted {counted(lost, 'offset')} of {named(worst)}{and_others(partitions)} "
        "before the group had read them."
        if lost
        else f"{share:.0%} of the log of {named(worst)}{and_others(partitions)} lies behind the "
        "commit: unread records expire next."
    )
    yield Link(
        kind="retention_ahead",
        sure="certain",
        text=text,
        evidence=[
            Figure(
                "share of the log behind the commit",
                round(share, 3),
                "caughtup_group_retention_used_ratio",
            ),
            Figure("offsets deleted unread", lost),
        ],
        lag=known.sum_of(partitions),
        topic=worst.topic,
        partition=worst.partition,
    )


def _deleted(known: Known) -> Iterator[Link]:
    """Yield the topics of which no partition has a log end any more, though others do."""
    counts = known.state.ends.partition_counts()
    if not counts:
        return
    there = counts.keys() | {one.topic for one in known.leaderless}
    topics = sorted({one.topic for one in known.without_end} - there)
    if topics:
        yield Link(
            kind="topic_deleted",
            sure="likely",
            text=f"{Name(topics[0])}{and_others(topics, 'other topic')} "
            f"{verb(topics, 'does', 'do')} not exist any more; the group's commits on "
            f"{verb(topics, 'it', 'them')} stay until they expire.",
            evidence=[
                Figure("topics", len(topics)),
                Figure("partitions", sum(one.topic in topics for one in known.without_end)),
            ],
            topic=topics[0],
        )


def keeps_up(known: Known) -> Link:
    """Return the link of a group that is ok."""
    seconds, oldest = max(
        (
            (assessed.lag_seconds, partition)
            for partition, (_, assessed) in known.behind.items()
            if assessed is not None and assessed.lag_seconds is not None
        ),
        default=(0.0, None),
    )
    evidence = [
        Figure("lag", known.lag, _LAG),
        Figure("partitions", len(known.lags)),
        Figure(
            "members",
            len(known.membership.members) if known.membership else 0,
            "caughtup_group_members",
        ),
    ]
    if oldest is not None:
        evidence += _age(known, oldest)
        _, assessed = known.behind[oldest]
        if assessed is not None and seconds >= _BURST_SECONDS:
            return Link(
                kind="bursts",
                sure="certain",
                text=f"The group is ok; it commits in bursts, with long pauses: {named(oldest)} "
                f"has {assessed.why}.",
                evidence=evidence,
                topic=oldest.topic,
                partition=oldest.partition,
            )
    return Link(
        kind="ok",
        sure="certain",
        text=f"The group is ok: {known.verdict.reason}; {counted(known.lag, 'offset')} to read, "
        f"the oldest for {duration(seconds)}.",
        evidence=evidence,
    )
