"""What is known of a consumer group's assignment, in sentences: for the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterator

from caughtup.models.decisions.consumer_decision import ConsumerDecision
from caughtup.models.decisions.coordinator_decision import COORDINATOR
from caughtup.models.durations import counted, duration
from caughtup.models.records.fields import Absent, or_none
from caughtup.models.shown.consumer_group import ConsumerGroupExplanation, OtherSize, ranges

_CLIENTS = {"kafka-clients": "the Java client"}
#: The fewest parts of a member's greatest lag that another size has to take away to be called help.
_HELPS = 0.05


def decided_sentences(group: ConsumerGroupExplanation) -> Iterator[str]:
    """Yield who decided the assignment, whether as its assignor does, and who decides the next one."""
    yield from _decided(group)
    yield from _next(group)


def _decided(group: ConsumerGroupExplanation) -> Iterator[str]:
    if isinstance(group.decision, Absent):
        if not isinstance(group.assignor, Absent):
            yield f"The group coordinator assigns by its assignor {group.assignor}."
        return
    decision: ConsumerDecision = group.decision
    client = or_none(decision.client)
    by = "" if client is None else f" of {_CLIENTS.get(client, client)}"
    leader = or_none(decision.leader) or "unknown"
    who, knew = f"The leader {leader}", "the leader"
    if client is not None and client.startswith(COORDINATOR):
        release = client.removeprefix(COORDINATOR).strip()
        who, knew = "The group coordinator", "the coordinator"
        by = f" of Kafka {release}" if release else ""
    yield f"{who} decided by the assignor {decision.assignor}{by}."
    yield {
        "match": "The assignment is exactly what that assignor decides.",
        "consistent": f"The assignment is what that assignor decides for what {knew} knew: "
        f"{decision.why}.",
        "mismatch": f"That assignor decides otherwise: {decision.why}.",
        "undetermined": f"Whether that assignor decides so is not known: {decision.why}.",
    }[decision.result]


def _next(group: ConsumerGroupExplanation) -> Iterator[str]:
    """Yield by which assignor the coordinator says it assigns next, if it assigns."""
    name = or_none(group.next_assignor)
    if name is None:
        return
    if not name:
        yield "The assignor of its next assignment is not known: the coordinator names none."
    else:
        yield f"The coordinator says that it assigns by {name} next."


def sentences(group: ConsumerGroupExplanation, now_ms: int) -> Iterator[str]:
    """Yield what is between the assignment and its target, how uneven it is, and what would even it out."""
    yield from _reconciling(group, now_ms)
    yield from _uneven(group)


def _reconciling(group: ConsumerGroupExplanation, now_ms: int) -> Iterator[str]:
    """Yield who has to revoke what before others have their target assignments (KIP-848, KIP-1071)."""
    awaited = {
        partition: member.member
        for member in group.members
        for partition in or_none(member.awaits) or ()
    }
    for member in group.members:
        revokes = or_none(member.revokes)
        if revokes:
            waiting = sorted({awaited[one] for one in revokes if one in awaited})
            others = f", for which {', '.join(waiting)} waits" if waiting else ""
            since_ms = or_none(member.revokes_since_ms)
            for_long = (
                "" if since_ms is None else f", for {duration((now_ms - since_ms) / 1000)} now"
            )
            yield f"{member.member} still has to revoke {ranges(revokes)}{others}{for_long}."
    held = {one for member in group.members for one in member.assigned}
    for member in group.members:
        free = [one for one in or_none(member.awaits) or () if one not in held]
        if free:
            yield f"{member.member} gets {ranges(free)} with its next heartbeat."


def _uneven(group: ConsumerGroupExplanation) -> Iterator[str]:
    """Yield what is uneven, and what would even it out."""
    counts = [len(member.assigned) for member in group.members]
    lags = [or_none(member.lag) for member in group.members]
    spread = f"Members have {_span(min(counts), max(counts))} partitions"
    known = [lag for lag in lags if lag is not None]
    if len(known) == len(lags):
        spread += f", a lag of {_span(min(known), max(known))}"
    rates = [rate for member in group.members if (rate := or_none(member.rate)) is not None]
    if len(rates) == len(lags):
        spread += f", and {_span(round(min(rates)), round(max(rates)))} records a second to read"
    yield f"{spread}."
    if group.idle:
        names = ", ".join(member.member for member in group.idle[:3])
        few = sum(counts) < len(counts)
        why = " There are fewer partitions than members." if few else ""
        yield f"{counted(len(group.idle), 'member')} without a partition: {names}.{why}"
    hot = or_none(group.hot)
    if hot is not None:
        yield (
            f"{hot.topic}-{hot.partition} has {hot.share:.0%} of the lag: "
            "more members won't help, since one member reads a partition."
        )
    busiest = or_none(group.busiest)
    if busiest is not None:
        yield (
            f"{busiest.topic}-{busiest.partition} gets {busiest.share:.0%} of the records: "
            "one member reads all of them, however many there are."
        )
    most = max(known, default=None) if len(known) == len(lags) else None
    busy = max(rates, default=None) if len(rates) == len(lags) else None
    for size, words in ((group.one_more, "One member more"), (group.one_fewer, "One member fewer")):
        if not isinstance(size, Absent):
            yield f"{words}: {_other(size, most, busy)}."


def _other(size: OtherSize, most_lag: int | None, most_rate: float | None) -> str:
    moved = counted(size.moves, "partition")
    text = f"{moved} would move, and a member would have at most {size.most_partitions:,}"
    if size.idle:
        text += f", with {counted(size.idle, 'member')} idle"
    for what, after, before in (
        ("lag", or_none(size.most_lag), most_lag),
        ("records a second", or_none(size.most_rate), most_rate),
    ):
        if after is not None and before is not None:
            text += f"; the greatest {what} of a member would {_change(before, after)}"
    return text


def _change(before: float, after: float) -> str:
    if abs(after - before) <= _HELPS * before:
        return f"stay about {after:,.0f}"
    falls = "fall" if after < before else "rise"
    return f"{falls} from {before:,.0f} to {after:,.0f}"


def _span(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"
