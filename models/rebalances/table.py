"""The last rebalances of each group: compared when its assignment changes, and settled by commits."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from caughtup.models.commits.table import LastCommits
from caughtup.models.groups.membership import Membership
from caughtup.models.ids import TopicPartition, partition_counts
from caughtup.models.rebalances.causes import Circumstances, causes
from caughtup.models.rebalances.rebalance import CauseKind, GroupRebalance, RebalanceStorm
from caughtup.models.records.fields import ABSENT, changed, or_absent, or_none

#: The most rebalances of a group that are kept, the newest.
MOST_KEPT = 50
#: The window of storms, in ms, and this many unscheduled rebalances in one are a storm.
_WINDOW_MS, _MANY = 10 * 60_000, 6
#: As many rebalances of each client are two restarts, which each of a group's may have in a window.
_OF_RESTARTS = 4
#: Rebalances that belong to another one, and to no storm.
_EXPECTED: frozenset[CauseKind] = frozenset({"scheduled", "follow_up", "protocol_converted"})
#: How long (ms) after a rebalance commits are waited for.
_PATIENCE_MS = 10 * 60_000


@dataclass(slots=True)
class _Settling:
    """A rebalance, and when each partition that had to stop was last committed on before it (ms)."""

    at_ms: int
    before_ms: dict[TopicPartition, int]
    stood_still_ms: dict[TopicPartition, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Group:
    decided: Membership
    counts: dict[str, int]
    kept: deque[GroupRebalance] = field(default_factory=lambda: deque(maxlen=MOST_KEPT))
    settling: _Settling | None = None
    #: The numbers of rebalances by their surest cause, and the seconds lost by settled ones.
    by_cause: Counter[CauseKind] = field(default_factory=Counter)
    lost_seconds: float = 0.0
    #: The members that have something to revoke, and since when (ms), None where that isn't known;
    #: None before it was noted for the first time.
    revoking: dict[str, int | None] | None = None


class Rebalances:
    """The rebalances of each group since it was first seen."""

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}

    def begin(self, group: str, decided: Membership | None) -> None:
        """Take a group's decided assignment as the one that the next is compared with.

        A group that is known already keeps its own, unless names of its topics were missing.
        """
        if decided is None:
            return
        known = self._groups.get(group)
        if known is None:
            self._groups[group] = _Group(decided, partition_counts(decided.owners))
        elif known.decided.unnamed and not _is_later(decided, known.decided):
            # Members that came meanwhile are of the next assignment.
            known.decided = replace(known.decided, owners=decided.owners, unnamed=decided.unnamed)
            known.counts |= partition_counts(decided.owners)

    def is_complete(self, group: str) -> bool:
        """Return whether a group is known with the names of all its topics."""
        known = self._groups.get(group)
        return known is not None and not known.decided.unnamed

    def restore(self, group: str, decided: Membership, counts: Mapping[str, int]) -> None:
        """Take what ``last`` returned, to continue with it; the group has no rebalances then."""
        self._groups[group] = _Group(decided, dict(counts))

    def last(self, group: str) -> tuple[Membership, Mapping[str, int]] | None:
        """Return a group's last decided assignment, and the most partitions that each topic had in one."""
        known = self._groups.get(group)
        return None if known is None else (known.decided, known.counts)

    def compare(
        self,
        group: str,
        decided: Membership | None,
        at_ms: int | None,
        commits: Collection[LastCommits],
        due_ms: int | None = None,
        coordinator_moved_ms: int | None = None,
        exists: Callable[[str], bool] = lambda _: True,
        is_new: Callable[[str], bool] = lambda _: False,
    ) -> GroupRebalance | None:
        """Compare a group's new assignment with the one before, and return the rebalance, if it is one.

        ``at_ms`` is when it was decided, None if that isn't known. ``commits`` are the group's last
        commits at one or more times near it. The others as in Circumstances. None, too, for
        a group that is new or gone.
        """
        known = self._groups.get(group)
        if decided is None:
            self._groups.pop(group, None)
            return None
        if known is None:
            self.begin(group, decided)
            return None
        before = known.decided
        same_protocol = decided.by_epochs == before.by_epochs
        if same_protocol and not _is_later(decided, before):
            # A static member may be another member now. The partitions stay those of the assignment: the
            # coordinator may have noticed already that one of its topics is gone.
            if not decided.by_epochs or (
                _ids(decided) != _ids(before) and _identities(decided) == _identities(before)
            ):
                known.decided = decided
            return None
        last_ms = _last_before(commits, at_ms)
        by_member: dict[str, int] = {}
        for partition, owner in before.owners.items():
            if (ms := last_ms.get(partition)) is not None:
                by_member[owner.member_id] = max(by_member.get(owner.member_id, 0), ms)
        evidence = Circumstances(
            at_ms, by_member, known.counts, due_ms, coordinator_moved_ms, exists, is_new
        )
        moved = [
            partition
            for partition, owner in sorted(decided.owners.items())
            if partition in before.owners and before.owners[partition].member_id != owner.member_id
        ]
        skipped = decided.generation - before.generation - 1
        rebalance = GroupRebalance(
            generation=decided.generation,
            causes=causes(before, decided, evidence),
            members=len(decided.members),
            partitions=ABSENT if decided.unnamed else len(decided.owners),
            moved=ABSENT if decided.unnamed or before.unnamed else len(moved),
            at_ms=or_absent(at_ms),
            after=before.generation if same_protocol and before.group_type else ABSENT,
            unfinished=max(skipped, 0) if not decided.by_epochs and before.members else 0,
        )
        known.decided = decided
        counts = partition_counts(decided.owners)
        read = {topic for member in decided.members for topic in member.topics} | counts.keys()
        known.counts = {
            topic: max(counts.get(topic, 0), known.counts.get(topic, 0)) for topic in sorted(read)
        }
        known.kept.append(rebalance)
        known.by_cause[rebalance.cause.kind] += 1
        self._close(known)
        if at_ms is not None and decided.members:
            stopped = list(decided.owners) if _stops_all(decided) else moved
            known.settling = _Settling(
                at_ms, {one: last_ms[one] for one in stopped if one in last_ms}
            )
            rebalance.unsettled = len(known.settling.before_ms)
        return rebalance

    def settle(
        self, group: str, committed_after: Callable[[TopicPartition, int], int | None], now_ms: int
    ) -> None:
        """Note which partitions are committed on again since the group's last rebalance.

        ``committed_after`` returns when the group first committed on a partition after a time (ms).
        """
        known = self._groups.get(group)
        if known is None or known.settling is None:
            return
        settling = known.settling
        for partition, before_ms in list(settling.before_ms.items()):
            ms = committed_after(partition, settling.at_ms)
            if ms is not None:
                settling.stood_still_ms[partition] = ms - before_ms
                del settling.before_ms[partition]
        stood = settling.stood_still_ms
        rebalance = known.kept[-1]
        rebalance.unsettled = len(settling.before_ms)
        if stood:
            rebalance.stood_still_seconds = max(stood.values()) / 1000
            rebalance.lost_seconds = sum(stood.values()) / 1000
        if not settling.before_ms or now_ms - settling.at_ms > _PATIENCE_MS:
            self._close(known)

    def _close(self, known: _Group) -> None:
        if known.settling is not None:
            known.lost_seconds += sum(known.settling.stood_still_ms.values()) / 1000
            known.settling = None

    def __contains__(self, group: str) -> bool:
        return group in self._groups

    def is_settling(self, group: str) -> bool:
        """Return whether commits are waited for since the group's last rebalance."""
        known = self._groups.get(group)
        return known is not None and known.settling is not None

    def of(self, group: str) -> list[GroupRebalance]:
        """Return a group's rebalances, the newest first, as copies."""
        known = self._groups.get(group)
        return [] if known is None else [changed(one) for one in reversed(known.kept)]

    def note_revoking(self, group: str, members: Collection[str], at_ms: int | None) -> None:
        """Note which members of a group have partitions or tasks to revoke now.

        ``at_ms``: when that was read, None if it may have been so for longer.
        """
        known = self._groups.get(group)
        if known is not None:
            before = known.revoking or {}
            known.revoking = {one: before.get(one, at_ms) for one in sorted(members)}

    def has_revoking(self, group: str) -> bool:
        """Return whether ``note_revoking`` was called for a group that is known."""
        known = self._groups.get(group)
        return known is None or known.revoking is not None

    def revoking_since(self, group: str, member: str) -> int | None:
        """Return since when (ms) a member has had something to revoke; None if that isn't known."""
        known = self._groups.get(group)
        return None if known is None or known.revoking is None else known.revoking.get(member)

    def counts(self, group: str) -> Mapping[CauseKind, int]:
        """Return how many rebalances of a group each cause had, by the surest one of each."""
        known = self._groups.get(group)
        return {} if known is None else known.by_cause

    def lost_seconds(self, group: str) -> float | None:
        """Return the seconds for which partitions of the group stood still, None without rebalances."""
        known = self._groups.get(group)
        if known is None or not known.kept:
            return None
        settling = known.settling
        now = 0 if settling is None else sum(settling.stood_still_ms.values())
        return known.lost_seconds + now / 1000

    def storm(self, group: str, now_ms: int) -> RebalanceStorm | None:
        """Return a group's storm of rebalances, None without one.

        A rolling restart, or two, is none as long as each client leaves once in each.
        """
        known = self._groups.get(group)
        return None if known is None else _storm(known.kept, now_ms)

    def keep_only(self, groups: Collection[str]) -> None:
        """Remove groups that are gone."""
        for group in self._groups.keys() - groups:
            del self._groups[group]


def _storm(kept: Collection[GroupRebalance], now_ms: int) -> RebalanceStorm | None:
    recent = [
        one
        for one in kept
        if now_ms - (or_none(one.at_ms) or 0) < _WINDOW_MS and one.cause.kind not in _EXPECTED
    ]
    count = sum(1 + one.unfinished for one in recent)
    if count < _MANY:
        return None
    kinds = Counter(cause.kind for one in recent for cause in one.causes[:1])
    clients = Counter(
        client
        for one in recent
        for client in sorted({or_none(cause.client) or "" for cause in one.causes} - {""})
    )
    client = max(sorted(clients), key=clients.__getitem__, default=None)
    came_through = count - len(recent) < _MANY  # most generations had an assignment
    if client is not None and clients[client] <= _OF_RESTARTS and came_through:
        return None
    if client is not None and 2 * clients[client] <= len(recent):
        client = None
    kind = max(sorted(kinds), key=kinds.__getitem__)
    return RebalanceStorm(count, kind, kinds[kind], or_absent(client))


def _is_later(decided: Membership, before: Membership) -> bool:
    """Return whether an assignment was decided after another one.

    A classic group that is made again begins with generation 1. On the new protocols a group has an
    epoch as soon as a member joins, and a target assignment of an earlier one until the next is computed.
    """
    if not decided.by_epochs:
        return decided.generation != before.generation
    return decided.generation > before.generation


def _ids(group: Membership) -> set[str]:
    return {one.member_id for one in group.members}


def _identities(group: Membership) -> set[tuple[str, frozenset[str], str | None]]:
    """Return who the members are, and what they subscribe to; static ones whatever their ids."""
    return {(one.instance_id or one.member_id, one.topics, one.pattern) for one in group.members}


def _last_before(commits: Collection[LastCommits], at_ms: int | None) -> dict[TopicPartition, int]:
    """Return the time (ms) of each partition's last commit at ``at_ms``, of those that are known."""
    found: dict[TopicPartition, int] = {}
    for last in commits:
        for partition, ms in zip(last.partitions, last.times_ms, strict=True):
            if at_ms is not None and ms <= at_ms:
                found[partition] = max(found.get(partition, 0), ms)
    return found


def _stops_all(decided: Membership) -> bool:
    """Return whether every member stops reading while the group rebalances (eager protocol)."""
    return (
        decided.group_type == "classic"
        and not decided.by_epochs
        and decided.assignor != "cooperative-sticky"
    )
