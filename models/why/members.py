"""Links about a group's members: none, partitions without one, rebalances and what caused them."""

from __future__ import annotations

from collections.abc import Iterator

from caughtup.models.durations import counted, duration
from caughtup.models.rebalances.rebalance import CAUSES, Cause, CauseKind, GroupRebalance
from caughtup.models.records.fields import ABSENT, changed, or_none
from caughtup.models.why.known import Known
from caughtup.models.why.links import Figure, Link, Name, and_others, named, verb

#: A rebalance counts as recent for this long (ms).
RECENT_MS = 10 * 60_000
_MEMBERS = "caughtup_group_members"
_REBALANCES = "caughtup_group_rebalances_total"
_STORM = "caughtup_group_storm_rebalances"


def member_links(known: Known) -> Iterator[Link]:
    """Yield the links about members, and about the group's last rebalances."""
    yield from _no_members(known)
    yield from _without_member(known)
    yield from _rebalances(known)


def _no_members(known: Known) -> Iterator[Link]:
    if known.has_members or known.group in known.state.spark.queries:
        return
    evidence = [
        Figure("members", 0, _MEMBERS),
        Figure("lag", known.lag, "caughtup_group_lag_records"),
    ]
    if known.membership is None:
        if known.of_verdict("slow", "diverging", "stalled", "blocked"):
            return  # it commits, so somebody reads
        text = (
            "No record of the group names a member: nobody reads, or its consumers assign "
            "partitions themselves (assign instead of subscribe)."
        )
        yield Link(kind="no_members", sure="possible", text=text, evidence=evidence, lag=known.lag)
        return
    text = "The group has no members: no consumer reads its partitions."
    yield Link(kind="no_members", sure="certain", text=text, evidence=evidence, lag=known.lag)


def _without_member(known: Known) -> Iterator[Link]:
    """Yield partitions with commits and lag that no member is assigned."""
    lacking = [one for one in known.without_member if known.lags.get(one)]
    if not known.has_members or not lacking:
        return
    first = max(lacking, key=lambda one: (known.lags[one] or 0, one))
    lag = known.sum_of(lacking)
    topics = known.membership.topics if known.membership is not None else frozenset[str]()
    why = "" if first.topic in topics else "; no member is assigned any partition of this topic"
    yield Link(
        kind="partition_without_member",
        sure="certain",
        text=f"{named(first)}{and_others(lacking)} {verb(lacking, 'is', 'are')} "
        f"assigned to no member{why}.",
        evidence=[
            Figure("lag on them", lag, "caughtup_group_lag_records"),
            Figure("partitions", len(lacking)),
            Figure("members", len(known.membership.members) if known.membership else 0, _MEMBERS),
        ],
        lag=lag,
        topic=first.topic,
        partition=first.partition,
    )


def restless_links(known: Known) -> Iterator[Link]:
    """Yield what keeps a group rebalancing though it is ok: slow polls and storms of the last minutes."""
    for link in _rebalances(known):
        if link.kind != "recent_rebalance":
            yield link


def _rebalances(known: Known) -> Iterator[Link]:
    rebalances = known.state.rebalances
    storm = rebalances.storm(known.group, known.now_ms)
    recent = [
        one
        for one in rebalances.of(known.group)
        if (at_ms := or_none(one.at_ms)) is not None
        and known.now_ms - at_ms < RECENT_MS
        and not is_first(one)
    ]
    slow = [
        (one, cause)
        for one in recent
        for cause in one.causes
        if cause.kind == "poll_interval_exceeded"
    ]
    if slow:
        yield _too_slow_to_poll(known, slow)
    if storm is not None:
        client = or_none(storm.client)
        whose = "" if client is None else f", and member {Name(client)} causes most of them"
        yield Link(
            kind="rebalance_storm",
            sure="likely",
            text=f"The group rebalances again and again: {counted(storm.rebalances, 'rebalance')} "
            f"in ten minutes, {storm.of_cause} because {_because(storm.cause)}{whose}.",
            evidence=[
                Figure("rebalances in ten minutes", storm.rebalances, _STORM),
                _lost(known),
            ],
            lag=known.lag,
            client=storm.client,
        )
    elif recent and not (slow and slow[0][0] is recent[0]):
        yield from _recent(known, recent[0])


def is_first(rebalance: GroupRebalance) -> bool:
    """Return whether a group's first members got its partitions: no member had to stop for that."""
    return or_none(rebalance.after) in (None, 0) and rebalance.cause.kind != "protocol_converted"


def _because(kind: CauseKind) -> str:
    words = CAUSES[kind]
    if kind.startswith("topic_"):
        return f"a topic {words}"
    return words if words.startswith(("the ", "a ", "partitions ")) else f"a member {words}"


def _too_slow_to_poll(known: Known, slow: list[tuple[GroupRebalance, Cause]]) -> Link:
    """Return the link of the member that last did not poll in time."""
    rebalance, cause = slow[0]
    client = cause.about or "a member"
    ago = duration(max(known.now_ms - (or_none(rebalance.at_ms) or 0), 0) / 1000)
    count = sum(or_none(one.client) == or_none(cause.client) for _, one in slow)
    often = f", {counted(count, 'time')} in ten minutes" if count > 1 else ""
    link = Link(
        kind="poll_interval_exceeded",
        sure=cause.sure,
        text=f"{Name(client)} did not poll for max.poll.interval.ms and lost its partitions "
        f"{ago} ago{often}: it takes too long with the records of a poll.",
        evidence=[Figure("times in ten minutes", count, _REBALANCES), _lost(known)],
        lag=known.lag,
    )
    return _about(link, cause)


def _recent(known: Known, rebalance: GroupRebalance) -> Iterator[Link]:
    """Yield the last rebalance, if the group has not caught up since."""
    at_ms = or_none(rebalance.at_ms) or known.now_ms
    ago, cause = max(known.now_ms - at_ms, 0) / 1000, rebalance.cause
    words = CAUSES[cause.kind]
    if cause.about is not None:
        words = f"{Name(cause.about)} {words}"
    text = f"The group rebalanced {duration(ago)} ago ({words})"
    if rebalance.unsettled:
        text += f", and has not committed on {counted(rebalance.unsettled, 'partition')} since"
    elif (stood := or_none(rebalance.stood_still_seconds)) is not None:
        text += f", and a partition stood still for {duration(stood)}"
    evidence = [
        Figure("seconds ago", round(ago, 1)),
        Figure("partitions without a commit since", rebalance.unsettled),
        _lost(known),
    ]
    if (moved := or_none(rebalance.moved)) is not None:
        evidence.insert(2, Figure("partitions that moved", moved))
    partitions = or_none(rebalance.partitions)
    whole = rebalance.unsettled and partitions is not None and rebalance.unsettled >= partitions
    link = Link(
        kind="recent_rebalance",
        sure="likely" if rebalance.unsettled else "possible",
        text=f"{text}.",
        evidence=evidence,
        lag=known.lag if whole else ABSENT,
    )
    yield _about(link, cause)


def _about(link: Link, cause: Cause) -> Link:
    """Return the link with the names of the member or topic that caused the rebalance."""
    return changed(
        link, client=cause.client, member=cause.member, host=cause.host, topic=cause.topic
    )


def _lost(known: Known) -> Figure:
    seconds = known.state.rebalances.lost_seconds(known.group) or 0.0
    metric = "caughtup_group_rebalance_lost_seconds_total"
    return Figure("seconds that partitions stood still for rebalances", round(seconds, 1), metric)
