"""The links of a group in order: what explains the others first, then what holds back more lag."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping

from caughtup.models.rebalances.rebalance import SURENESS
from caughtup.models.records.fields import or_none
from caughtup.models.state.cluster import ClusterState
from caughtup.models.why.brokers import broker_links, transaction_links
from caughtup.models.why.known import Known, gather
from caughtup.models.why.links import Figure, Kind, Link, Why, fitted
from caughtup.models.why.members import member_links, restless_links
from caughtup.models.why.pace import keeps_up, pace_links
from caughtup.models.why.tasks import connect_links, streams_links
from caughtup.models.why.unknown import not_known

#: What follows from causes: where the lag is, how it grows, and what that leads to.
_DEPTH: Mapping[Kind, int] = {
    "ok": 1,
    "no_progress": 1,
    "hot_partition": 2,
    "slow_consumer": 3,
    "bursts": 3,
    "retention_ahead": 4,
    "topic_deleted": 4,
}
#: Causes that explain other causes.
_EXPLAINS: Mapping[Kind, frozenset[Kind]] = {
    "broker_gone": frozenset({"no_leader", "reassignment"}),
    "connect_task_failed": frozenset({"no_members", "partition_without_member"}),
    "poll_interval_exceeded": frozenset(
        {"rebalance_storm", "recent_rebalance", "no_members", "partition_without_member"}
    ),
    "rebalance_storm": frozenset({"no_members", "partition_without_member", "restoring_tasks"}),
    "recent_rebalance": frozenset({"no_members", "partition_without_member", "restoring_tasks"}),
    "no_members": frozenset({"partition_without_member"}),
    "restoring_tasks": frozenset({"warmups_waiting"}),
}
#: It precedes what it explains even if it is only possible: its times alone fit two timeouts.
_ALWAYS_FIRST: Kind = "poll_interval_exceeded"
_LINKS: tuple[Callable[[Known], Iterator[Link]], ...] = (
    broker_links,
    transaction_links,
    connect_links,
    member_links,
    streams_links,
    pace_links,
)


def why(state: ClusterState, group: str, now_ms: int) -> Why | None:
    """Return why a group is as it is at ``now_ms``; None if there is no such group."""
    steps = why_steps(state, group, now_ms)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: Why | None = done.value
            return found


def why_steps(state: ClusterState, group: str, now_ms: int) -> Generator[None, None, Why | None]:
    """Return the same in steps, between which the caller may do other work."""
    is_connect = group in state.connect.groups
    if not is_connect and not (
        state.commits.changed(group) or state.groups.membership(group) is not None
    ):
        return None
    known = yield from gather(state, group, now_ms)
    yield
    verdict = known.verdict.verdict
    if is_connect:
        links = list(connect_links(known)) or [*_settled(known)]
    elif verdict == "ok":
        # Most of these are only possible then, and come after what says that the group keeps up.
        links = [*broker_links(known), *restless_links(known), *streams_links(known)]
        # One look cannot see for how long a last stable offset has stood still.
        links += [keeps_up(known), *transaction_links(known)]
    else:
        links = []
        for found in _LINKS:
            links += found(known)
            yield
    return fitted(group, verdict, ordered(links), list(not_known(known)))


def _settled(known: Known) -> Iterator[Link]:
    """Yield that no status of a Connect group's work is FAILED, if its statuses are known."""
    _, topics = known.state.connect.topics_of(known.group)
    if topics is not None:
        yield Link(
            kind="ok",
            sure="certain",
            text="The group is ok: no status of its connectors and tasks is FAILED.",
            evidence=[Figure("failed", 0, "caughtup_connect_contradictions")],
        )


def ordered(links: list[Link]) -> list[Link]:
    """Return the links so that each comes after all that explain it, those with more lag first."""
    left, found = sorted(links, key=_rank), list[Link]()
    while left:
        first = next(one for one in left if not any(_precedes(other, one) for other in left))
        left.remove(first)
        found.append(first)
    return found


def _rank(link: Link) -> tuple[bool, int, int, int, str]:
    """Return the key that sorts links of which neither explains the other."""
    sure = SURENESS.index(link.sure)
    return sure == 2, _DEPTH.get(link.kind, 0), -(or_none(link.lag) or 0), sure, link.text


def _precedes(link: Link, other: Link) -> bool:
    """Return whether a link explains another; a possible one explains nothing."""
    if {link.kind, other.kind} == {"hot_partition", "no_progress"}:
        hot, standing = (link, other) if link.kind == "hot_partition" else (other, link)
        # The others wait behind it unless it stands still itself: then its lag is part of theirs.
        waits = (or_none(hot.lag) or 0) > (or_none(standing.lag) or 0)
        return waits == (link is hot)
    if link.sure == "possible" and link.kind != _ALWAYS_FIRST:
        return False
    deeper = _DEPTH.get(other.kind, 0) > _DEPTH.get(link.kind, 0)
    return deeper or other.kind in _EXPLAINS.get(link.kind, ())
