"""Links about brokers and logs: brokers that are gone, leaders, reassignments, transactions."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from caughtup.models.durations import counted, duration
from caughtup.models.ids import TopicPartition
from caughtup.models.records.fields import ABSENT, or_absent, or_none
from caughtup.models.records.transactions import OpenTransaction
from caughtup.models.transactions.table import producer
from caughtup.models.why.known import Known
from caughtup.models.why.links import MOST_LINKS, Figure, Link, Name, and_others, named, verb

#: Log ends are listed each minute at least: an older one (ms), while others are newer, is overdue.
_OVERDUE_MS = 180_000
_LAG = "caughtup_group_lag_records"
_NO_SOURCE = "leader-missing"


def broker_links(known: Known) -> Iterator[Link]:
    """Yield the links about the group's partitions in reassignments, leaders and brokers."""
    state = known.state
    moving = sorted(state.reassignments.ongoing.keys() & known.lags.keys())
    leaderless = sorted(
        {one for one in moving if _lacks_leader(known, one)} | known.leaderless.keys()
    )
    yield from _gone(known, moving, leaderless)
    if leaderless:
        yield _leaderless(known, leaderless)
    yield from _overdue(known, leaderless)
    ranked = state.reassignment_watch.worst_first(state.reassignments) if moving else []
    others = [one for one in ranked if one in known.lags and one not in leaderless]
    if others:
        yield _reassignment(known, others)


def _leaderless(known: Known, partitions: list[TopicPartition]) -> Link:
    """Return the link of partitions without a leader, about the one with most lag."""
    first = max(partitions, key=lambda one: (known.lags[one] or 0, one))
    has = verb(partitions, "has", "have")
    return Link(
        kind="no_leader",
        sure="certain",
        text=f"{named(first)}{and_others(partitions)} {has} no leader: "
        "nobody can read or write there.",
        evidence=[
            *([_verdict_of(known, first)] if first in known.state.reassignments.ongoing else []),
            Figure("lag on them", known.sum_of(partitions), _LAG),
            Figure(
                "partitions without a leader", len(partitions), "caughtup_leaderless_partitions"
            ),
        ],
        lag=known.sum_of(partitions),
        topic=first.topic,
        partition=first.partition,
    )


def _lacks_leader(known: Known, partition: TopicPartition) -> bool:
    tracker = known.state.reassignments
    row = known.state.reassignment_watch.row(tracker, partition, known.now_ms)
    latest = tracker.ongoing[partition].latest
    return row.cause == _NO_SOURCE or (latest.has_metadata and latest.leader is None)


def _verdict_of(known: Known, partition: TopicPartition) -> Figure:
    row = known.state.reassignment_watch.row(known.state.reassignments, partition, known.now_ms)
    return Figure("verdict on the reassignment", row.verdict, "caughtup_reassignment_status")


def _gone(
    known: Known, moving: list[TopicPartition], leaderless: list[TopicPartition]
) -> Iterator[Link]:
    """Yield the brokers with replicas of the group's partitions that are gone, then fenced ones.

    It is likely that one of them explains the lag if a partition lacks a leader: consumers read
    from the leader alone.
    """
    tracker, lacking = known.state.reassignments, set(leaderless)
    brokers = None if tracker.cluster is None else tracker.cluster.brokers
    of: dict[int, list[TopicPartition]] = {}
    for partition in sorted({*moving, *known.leaderless}):
        gone = set(known.leaderless.get(partition, ()))
        if (tracked := tracker.ongoing.get(partition)) is not None:
            absent = set() if not brokers else set(tracked.latest.replicas) - brokers.keys()
            gone |= {*tracked.latest.offline, *absent}
        for broker in sorted(gone):
            of.setdefault(broker, []).append(partition)
    worst = heapq.nlargest(MOST_LINKS, sorted(of.items()), key=lambda one: known.sum_of(one[1]))
    for broker, partitions in worst:
        led = [one for one in partitions if one not in lacking]
        partitions = [one for one in partitions if one in lacking] or led
        harmless = f"; {verb(led, 'it has', 'they have')} a leader" if led == partitions else ""
        yield Link(
            kind="broker_gone",
            sure="possible" if led == partitions else "likely",
            text=f"Broker {broker}, which has replicas of {named(partitions[0])}"
            f"{and_others(partitions)}, is down{harmless}.",
            evidence=[Figure("partitions of the group", len(partitions))],
            lag=known.sum_of(partitions),
            broker=broker,
            topic=partitions[0].topic,
            partition=partitions[0].partition,
        )
    fenced = [one for one, record in sorted((brokers or {}).items()) if record.fenced]
    others = [one for one in fenced if one not in of]
    if others:
        first = f"{others[0]}{and_others(others, 'other')}"
        leads = "No partition of the group lacks a leader for it."
        if known.state.leaderless is None:
            leads = "Whether it leads partitions of the group is not known."
        yield Link(
            kind="broker_gone",
            sure="possible",
            text=f"The controller has fenced broker {first}, which is down or starts. {leads}",
            evidence=[Figure("fenced brokers", len(fenced))],
            broker=others[0],
        )


def _overdue(known: Known, leaderless: list[TopicPartition]) -> Iterator[Link]:
    """Yield that log ends have not been listed for long, while others of the group have."""
    seen = {one: ms for one, ms in known.last_seen_ms.items() if one not in leaderless}
    newest = max(known.last_seen_ms.values(), default=0)
    late = sorted(one for one, ms in seen.items() if newest - ms > _OVERDUE_MS)
    if not late:
        return
    oldest = min(late, key=lambda one: (seen[one], one))
    silent = (known.now_ms - seen[oldest]) / 1000
    yield Link(
        kind="no_leader",
        sure="possible",
        text=f"The log end of {named(oldest)}{and_others(late)} was last listed "
        f"{duration(max(silent, 0.0))} ago, that of others since: no leader answers for it.",
        evidence=[
            Figure("seconds since its log end was listed", round(max(silent, 0.0), 1)),
            Figure("partitions", len(late)),
        ],
        lag=known.sum_of(late),
        topic=oldest.topic,
        partition=oldest.partition,
    )


def _reassignment(known: Known, partitions: list[TopicPartition]) -> Link:
    """Return the link of the group's partitions in movement, about the worst of them."""
    worst = partitions[0]
    row = known.state.reassignment_watch.row(known.state.reassignments, worst, known.now_ms)
    cause = f", cause {row.cause}" if row.cause else ""
    evidence = [
        _verdict_of(known, worst),
        Figure("partitions of the group in movement", len(partitions)),
    ]
    if row.cause:
        evidence.append(Figure("cause", row.cause, "caughtup_reassignment_cause"))
    if row.eta_seconds is not None:
        metric = "caughtup_reassignment_eta_seconds"
        evidence.append(Figure("seconds until it ends", round(row.eta_seconds, 1), metric))
    return Link(
        kind="reassignment",
        sure="possible",
        text=f"{named(worst)}{and_others(partitions)} {verb(partitions, 'is', 'are')} "
        f"in a reassignment, whose verdict is {row.verdict}{cause}.",
        evidence=evidence,
        lag=known.sum_of(partitions),
        topic=worst.topic,
        partition=worst.partition,
    )


def transaction_links(known: Known) -> Iterator[Link]:
    """Yield the open transactions that hold back a last stable offset before the group."""
    state, blocked = known.state, known.state.assessments.blocked.get(known.group, ())
    if known.group in state.assessments.reads_uncommitted:
        return
    holders = state.transactions.holders
    held: dict[tuple[int, int] | None, list[TopicPartition]] = {}
    for partition in sorted({*(holders.keys() & known.held.keys()), *blocked}):
        holder = holders.get(partition)
        held.setdefault(None if holder is None else producer(holder), []).append(partition)

    def behind(partitions: list[TopicPartition]) -> int:
        return sum(known.held.get(one, 0) for one in partitions)

    for partitions in heapq.nlargest(MOST_LINKS, held.values(), key=behind):
        holder = holders.get(partitions[0])
        yield _transaction(known, partitions, holder, sure=bool(set(partitions) & set(blocked)))


def _transaction(
    known: Known, partitions: list[TopicPartition], holder: OpenTransaction | None, *, sure: bool
) -> Link:
    behind = sum(known.held.get(one, 0) for one in partitions)
    evidence = [
        Figure("offsets beyond the last stable offset", behind, "caughtup_partition_end_offset"),
        Figure("partitions", len(partitions)),
    ]
    where = f"{named(partitions[0])}{and_others(partitions)}"
    what, then = "An open transaction, whose producer is not known yet,", ""
    if holder is not None:
        hanging = "A hanging transaction" if holder.hanging else "An open transaction"
        what = f"{hanging} of {Name(holder.name)}"
        then = f" {_ends(holder, known.now_ms)}"
        started_ms = or_none(holder.started_at_ms)
        if started_ms is not None:
            open_seconds = max(known.now_ms - started_ms, 0) / 1000
            metric = "caughtup_transaction_open_seconds"
            evidence.append(Figure("seconds since it began", open_seconds, metric))
    return Link(
        kind="open_transaction",
        sure="likely" if sure else "possible",
        text=f"{what} holds back the last stable offset of {where}: the group cannot read the "
        f"{counted(behind, 'offset')} after it, if it reads only committed records.{then}",
        evidence=evidence,
        lag=behind,
        topic=partitions[0].topic,
        partition=partitions[0].partition,
        transactional_id=ABSENT if holder is None else or_absent(or_none(holder.transactional_id)),
    )


def _ends(holder: OpenTransaction, now_ms: int) -> str:
    """Return what ends a transaction, in a short sentence without names."""
    if holder.hanging:
        return "No coordinator will end it."
    timeout_ms, started_ms = or_none(holder.timeout_ms), or_none(holder.started_at_ms)
    if timeout_ms is None or started_ms is None or holder.state.startswith("Prepare"):
        return ""
    left = max(0, started_ms + timeout_ms - now_ms) / 1000
    return f"Its coordinator aborts it in {duration(left)}, unless its producer ends it before."
