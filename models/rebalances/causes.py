"""What caused a rebalance: the differences between two decided assignments of a group, and times.

A coordinator writes down who is a member, and not why somebody isn't any more. A member that left, one
whose session timed out and one that was too slow to poll are told apart by the time since its last
commit, so they are never certain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from caughtup.models.durations import duration
from caughtup.models.groups.membership import NO_TOPICS, Member, Membership
from caughtup.models.ids import partition_counts
from caughtup.models.rebalances.rebalance import SURENESS, Cause, CauseKind, Sureness
from caughtup.models.records.fields import ABSENT, Absent, or_absent

#: ``session.timeout.ms`` of a group on the new protocol unless its brokers or its configs have another.
_SESSION_TIMEOUT_MS = 45_000
#: Its heartbeat interval: a commit is none there, so the last one may be so much later.
_HEARTBEAT_MS = 5_000
#: How much longer (ms) than a timeout the time since a member's last commit is: the time between two
#: commits, until the coordinator or the client notices, and until the other members rejoined.
_SLACK_MS = 15_000
#: How long (ms) after its last poll a client may commit, in the background: a usual commit interval.
_COMMITTED_LATER_MS = 5_000
#: A rebalance counts as the one that was due if it comes at most this long (ms) after its time.
_LATE_MS = 15_000
#: A coordinator's move this long (ms) before a rebalance may have caused it.
_MOVE_MS = 60_000
#: The assignors of the Java client that assign every partition in every generation.
_EAGER = frozenset({"range", "roundrobin", "sticky"})
#: The most causes of one rebalance that are kept.
MOST_CAUSES = 20


class Circumstances(NamedTuple):
    """What else is known of the time of a rebalance (ms), which is ``at_ms``, or None if unknown.

    ``last_commit_ms``: when each earlier member last committed before it. ``due_ms``: when the earlier
    generation of a Streams application requested the next rebalance. ``counts``: the number of
    partitions of each topic that the group had been assigned at most. ``coordinator_moved_ms``: when
    the group last got another coordinator. ``exists`` says whether a topic exists, as far as known, and
    ``is_new`` whether it was certainly made lately.
    """

    at_ms: int | None
    last_commit_ms: Mapping[str, int]
    counts: Mapping[str, int]
    due_ms: int | None = None
    coordinator_moved_ms: int | None = None
    exists: Callable[[str], bool] = lambda _: True
    is_new: Callable[[str], bool] = lambda _: False


def causes(before: Membership, after: Membership, evidence: Circumstances) -> list[Cause]:
    """Return the causes of the rebalance between two decided assignments, the surest first.

    At least one; at most MOST_CAUSES.
    """
    old, new = _by_id(before), _by_id(after)
    gone, came = old.keys() - new.keys(), new.keys() - old.keys()
    statics = {one.instance_id: name for name, one in old.items() if name in gone}
    returned = {
        name: statics[one.instance_id]
        for name, one in sorted(new.items())
        if name in came and one.instance_id is not None and one.instance_id in statics
    }
    # Clients that all join again at once poll: what they lost together was their coordinator.
    back = {(one.client_id, one.host) for name, one in new.items() if name in came}
    together = (
        len(old) > 1
        and gone == old.keys()
        and (
            all((one.client_id, one.host) in back for one in old.values())
            or _all_silent(old, evidence)
        )
    )
    kept = {name: name for name in old.keys() & new.keys()} | returned
    found = [
        *_of_group(before, after),
        *(
            _of_member("static_member_returned", "certain", new[name], _instance(new[name]))
            for name in returned
        ),
        *_subscriptions(old, new, kept, evidence, by_epochs=after.by_epochs),
        *_topics(before, after, evidence),
        *(
            _of_member("joined", "certain", new[name], _again(new[name], old, gone))
            for name in sorted(came - returned.keys())
        ),
        *(
            _gone(old[name], new, evidence, together=together)
            for name in sorted(gone - set(returned.values()))
        ),
    ]
    if not found:
        found = [_without_change(before, evidence)]
    found.sort(key=lambda cause: SURENESS.index(cause.sure))
    return found[:MOST_CAUSES]


def _of_group(before: Membership, after: Membership) -> Iterator[Cause]:
    """Yield what changed for all members: the protocol, or the assignor."""
    if before.members and before.by_epochs != after.by_epochs:
        why = f"it was a group of the type {_type(before)}, and is one of {_type(after)}"
        yield Cause("protocol_converted", "certain", why=why)
    elif before.assignor and after.assignor and before.assignor != after.assignor:
        why = f"it was {before.assignor:.80}, and is {after.assignor:.80}"
        yield Cause("assignor_changed", "certain", why=why)


def _type(group: Membership) -> str:
    return group.group_type if group.by_epochs else "classic"


def _subscriptions(
    old: Mapping[str, Member],
    new: Mapping[str, Member],
    kept: Mapping[str, str],
    evidence: Circumstances,
    *,
    by_epochs: bool,
) -> Iterator[Cause]:
    """Yield which members changed their subscriptions, or which topics match them since.

    If all members' subscriptions changed alike, they are patterns that match another topic.
    ``kept``: the id of each member that stayed, and its id before; ``by_epochs`` as in Membership.
    """
    changes: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
    resubscribed: list[str] = []
    for name, before in sorted(kept.items()):
        was, now = old[before], new[name]
        more, fewer = now.topics - was.topics, was.topics - now.topics
        if was.pattern != now.pattern:
            resubscribed.append(name)
        elif more or fewer:
            changes[name] = more, fewer
    by_pattern = {name for name in changes if new[name].pattern}
    alike = len(set(changes.values())) == 1 and changes.keys() == kept.keys()
    matched = changes.keys() if alike and len(changes) > 1 else by_pattern
    # A client that resolves its pattern itself writes only topics down: another one may match it, which
    # the other members don't know yet.
    sure: Sureness = "certain" if by_epochs else "likely"
    for name in sorted({*resubscribed, *(changes.keys() - matched)}):
        more, fewer = changes.get(name, (NO_TOPICS, NO_TOPICS))
        deleted = sorted(one for one in fewer if not evidence.exists(one))
        made = sorted(one for one in more if evidence.is_new(one))
        if deleted and not more:
            why = f"{new[name].client_id} doesn't subscribe to it any more, and it doesn't exist"
            yield Cause("topic_vanished", "likely", topic=deleted[0], why=why)
            continue
        if made and len(made) == len(more) and not fewer and not by_epochs:
            why = f"{new[name].client_id} subscribes to it as well, and it is new"
            yield Cause("topic_appeared", "likely", topic=made[0], why=why)
            continue
        topic = or_absent(min(more | fewer) if len(more | fewer) == 1 else None)
        yield _of_member("resubscribed", sure, new[name], _difference(more, fewer), topic)
    topics: dict[tuple[CauseKind, str], bool] = {}
    for name in sorted(matched):
        more, fewer = changes[name]
        for topic in sorted(more):
            topics["topic_appeared", topic] = name in by_pattern
        for topic in sorted(fewer):
            topics["topic_vanished", topic] = name in by_pattern
    for (kind, topic), certain in topics.items():
        why = "the subscriptions are patterns" if certain else "every subscription changed alike"
        yield Cause(kind, "certain" if certain else "likely", topic=topic, why=why)


def _difference(more: frozenset[str], fewer: frozenset[str]) -> str:
    parts = [f"with {topic}" for topic in sorted(more)[:3]]
    parts += [f"without {topic}" for topic in sorted(fewer)[:3]]
    return f"it subscribes now {', '.join(parts)}" if parts else "its pattern is another one"


def _topics(before: Membership, after: Membership, evidence: Circumstances) -> Iterator[Cause]:
    """Yield topics that got more partitions, or are no longer assigned although subscribed."""
    had, has = partition_counts(before.owners), partition_counts(after.owners)
    read = {topic for member in after.members for topic in member.topics}
    for topic in sorted(had.keys() | has.keys()):
        most = max(had.get(topic, 0), evidence.counts.get(topic, 0))
        if topic in had and has.get(topic, 0) > most:
            why = f"it had {most} partitions, and has {has[topic]}"
            # Cooperative members may have been revoking its last partitions ever since.
            whole = before.by_epochs or before.assignor in _EAGER
            yield Cause("topic_grew", "certain" if whole else "likely", topic=topic, why=why)
        elif topic in had and topic in read and topic not in has and after.members:
            gone = not evidence.exists(topic)
            why = "no partition of it is assigned any more"
            decided = after.by_epochs and not after.unnamed
            sure: Sureness = "certain" if gone or decided else "likely"
            why += ", and it doesn't exist" if gone else ""
            yield Cause("topic_vanished", sure, topic=topic, why=why)


def _all_silent(old: Mapping[str, Member], evidence: Circumstances) -> bool:
    """Return whether no member committed for a session's time before the rebalance."""
    if evidence.at_ms is None or not evidence.last_commit_ms.keys() >= old.keys():
        return False
    session_ms = max(one.session_timeout_ms or _SESSION_TIMEOUT_MS for one in old.values())
    return evidence.at_ms - max(evidence.last_commit_ms[name] for name in old) >= session_ms


def _gone(
    member: Member, new: Mapping[str, Member], evidence: Circumstances, *, together: bool
) -> Cause:
    """Return why a member is gone, by the time since its last commit.

    ``together``: all of several members are gone, and their clients joined again as others, or none
    of them had committed for as long: one that is too slow to poll explains neither.
    """
    if (moved := _moved(member, new, evidence)) is not None:
        return moved
    session_ms = member.session_timeout_ms or _SESSION_TIMEOUT_MS - _HEARTBEAT_MS
    poll_ms = None if together else member.poll_interval_ms
    committed_ms = evidence.last_commit_ms.get(member.member_id)
    if committed_ms is None or evidence.at_ms is None:
        return _of_member("left", "possible", member, "when it last committed is not known")
    silent_ms = max(evidence.at_ms - committed_ms, 0)
    silent = f"its last commit was {duration(silent_ms / 1000)} before"
    near = _near_timeouts(silent_ms, session_ms, poll_ms)
    is_static = member.instance_id is not None
    if is_static and silent_ms >= session_ms and "poll_interval_exceeded" not in near:
        # A static member that is stopped or too slow doesn't leave; its session has to time out.
        return _of_member("session_timed_out", "likely", member, f"it is static, and {silent}")
    if near:
        kind = max(sorted(near), key=near.__getitem__)
        session = member.session_timeout_ms or _SESSION_TIMEOUT_MS
        timeout = duration((session if kind == "session_timed_out" else poll_ms or 0) / 1000)
        name = "session.timeout.ms" if kind == "session_timed_out" else "max.poll.interval.ms"
        why = f"{silent}, and its {name} is {timeout}"
        return _of_member(kind, "likely" if len(near) == 1 else "possible", member, why)
    if member.session_timeout_ms is None and member.poll_interval_ms is None:
        # Coordinators that are asked do not tell them, and they may be shorter than Kafka's defaults.
        return _of_member("left", "possible", member, f"{silent}, and its timeouts are not known")
    if silent_ms < min(session_ms, poll_ms or session_ms):
        return _of_member("left", "likely", member, f"{silent}, which is less than its timeouts")
    return _of_member("left", "possible", member, silent)


def _moved(member: Member, new: Mapping[str, Member], evidence: Circumstances) -> Cause | None:
    """Return that the coordinator moved after a member's last commit, and its client joined again.

    While there is no coordinator no member can commit, so that its silence says nothing.
    """
    moved = _since_move(evidence)
    committed_ms = evidence.last_commit_ms.get(member.member_id)
    if moved is None or committed_ms is None or evidence.at_ms is None:
        return None
    client = (member.client_id, member.host)
    if committed_ms > evidence.at_ms - moved[0] or client not in {
        (one.client_id, one.host) for one in new.values()
    }:
        return None
    return _of_member("coordinator_moved", "likely", member, f"{moved[1]}, and it joined again")


def _since_move(evidence: Circumstances) -> tuple[int, str] | None:
    """Return how long before the rebalance the coordinator moved (ms), and that in words.

    None if it didn't. That it moved is seen a little later than it does, by the first read from
    the new one: that may be after the time of the rebalance.
    """
    at_ms, moved_ms = evidence.at_ms, evidence.coordinator_moved_ms
    if at_ms is None or moved_ms is None or not -_SLACK_MS <= at_ms - moved_ms <= _MOVE_MS:
        return None
    since_ms = max(at_ms - moved_ms, 0)
    return since_ms, f"it moved {duration(since_ms / 1000)} before"


def _near_timeouts(silent_ms: int, session_ms: int, poll_ms: int | None) -> dict[CauseKind, int]:
    """Return the timeouts (ms) that a member's silence may have exceeded, if it isn't much longer.

    A client that commits in the background still does so after its last poll. One that doesn't leave when
    it polls too seldom, as static members, sends no heartbeats from then on.
    """
    found: dict[CauseKind, int] = {}
    if 0 <= silent_ms - session_ms <= _SLACK_MS:
        found["session_timed_out"] = session_ms
    for timeout_ms in () if poll_ms is None else (poll_ms, poll_ms + session_ms):
        if -_COMMITTED_LATER_MS <= silent_ms - timeout_ms <= _SLACK_MS:
            found["poll_interval_exceeded"] = timeout_ms
    return found


def _without_change(before: Membership, evidence: Circumstances) -> Cause:
    """Return why a group rebalanced whose members and topics stayed the same."""
    at_ms, due_ms = evidence.at_ms, evidence.due_ms
    if at_ms is not None and due_ms is not None and due_ms <= at_ms <= due_ms + _LATE_MS:
        return Cause("scheduled", "certain", why="the leader had requested it for this time")
    withheld = sum(evidence.counts.values()) - len(before.owners)
    if withheld > 0 and not before.by_epochs:
        why = f"{withheld} partitions had no member: others had to revoke them first"
        return Cause("follow_up", "likely", why=why)
    if (moved := _since_move(evidence)) is not None:
        return Cause("coordinator_moved", "possible", why=moved[1])
    return Cause("requested", "possible")


def _of_member(
    kind: CauseKind, sure: Sureness, member: Member, why: str, topic: str | Absent = ABSENT
) -> Cause:
    host = or_absent(member.host or None)
    return Cause(kind, sure, member.client_id, member.member_id, host, topic, why)


def _instance(member: Member) -> str:
    return f"its group.instance.id is {member.instance_id}"


def _again(member: Member, old: Mapping[str, Member], gone: set[str]) -> str:
    """Return whether a client joined that another member was of."""
    for name in sorted(gone):
        if (old[name].client_id, old[name].host) == (member.client_id, member.host):
            return "the same client was another member before"
    return ""


def _by_id(membership: Membership) -> dict[str, Member]:
    return {member.member_id: member for member in membership.members}
