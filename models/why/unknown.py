"""What an answer lacks: questions that brokers did not answer, and what one look cannot see."""

from __future__ import annotations

from collections.abc import Iterator

from caughtup.models.durations import counted
from caughtup.models.why.known import Known

_SINK = "connect-"
#: The most reasons of one question to brokers: they also concern other groups.
_MOST_OF_ONE = 2


def not_known(known: Known) -> Iterator[str]:
    """Yield what isn't known, in words, the most important first."""
    state, group = known.state, known.group
    if group in state.connect.groups:
        if topics_why := state.connect.topics_of(group)[0].why:
            yield f"the statuses of its connectors and tasks: {topics_why}"
        return
    if known.verdict.verdict == "unknown":
        yield f"the verdict on its lag: {known.verdict.reason}"
    if known.without_end:
        count = counted(len(known.without_end), "partition")
        yield f"the lag on {count}: the log ends are not known"
    if known.verdict.verdict == "ok":
        return
    yield from _brokers(known)
    if known.has_members and group not in state.rebalances:
        yield "its rebalances: none of its assignments was seen yet"
    if group.startswith(_SINK) and not state.connect.groups:
        yield "whether a task of its connector failed: no Connect group was seen"
    for worker_cluster in sorted(state.connect.groups) if group.startswith(_SINK) else ():
        if topics_why := state.connect.topics_of(worker_cluster)[0].why:
            yield f"whether a task of its connector failed: {topics_why}"
    if group in state.applications and state.applications[group].decided is None:
        yield "its tasks: its last generation is not decided yet"


def _brokers(known: Known) -> Iterator[str]:
    """Yield what brokers did not tell about transactions and reassignments."""
    transactions, cluster = known.state.transactions, known.state.reassignments.cluster
    if transactions.observed_ms is None:
        yield "whether an open transaction holds it back: producers were not asked yet"
    yield from transactions.missing.reasons[:_MOST_OF_ONE]
    if known.state.leaderless is None:
        yield "whether its partitions have leaders: this instance lists no end offsets"
    if cluster is None:
        yield "whether its partitions are in a reassignment, and which brokers are down: not asked"
        return
    yield from cluster.missing[:_MOST_OF_ONE]
    if cluster.brokers is None:
        yield "which brokers are down: no broker told"
