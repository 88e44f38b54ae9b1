"""What the state knows of a group, gathered once for all links; large groups take several steps."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

from caughtup.models.groups.membership import Membership
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.assessed import Assessed
from caughtup.models.lag.group_lag import PartitionRow
from caughtup.models.lag.verdict import GroupVerdict
from caughtup.models.state.cluster import ClusterState

#: Rows gathered in one step: about a millisecond's work.
_STEP = 500
_UNASSESSED = GroupVerdict("unknown", None, "the group has not been assessed yet")


@dataclass(slots=True)
class Known:
    """A group at ``now_ms``: its partitions with lag, without a member, without a log end.

    ``lags``: by partition, in offsets, None where the log end is unknown. ``held``: what lies
    beyond the last stable offset, by partition. ``behind`` has the rows and assessments of partitions with
    lag, ``without_member`` those that were committed on and have none, and ``without_end`` those
    whose log end is unknown. ``leaderless``: those without a
    leader, with the brokers of their replicas that are down. ``last_seen_ms``: when the log end of each partition was last listed.
    ``by_verdict``: the partitions with lag, each after the negated age of its oldest record (s).
    """

    state: ClusterState
    group: str
    now_ms: int
    verdict: GroupVerdict
    membership: Membership | None
    lags: dict[TopicPartition, int | None] = field(default_factory=dict)
    held: dict[TopicPartition, int] = field(default_factory=dict)
    behind: dict[TopicPartition, tuple[PartitionRow, Assessed | None]] = field(default_factory=dict)
    without_member: list[TopicPartition] = field(default_factory=list)
    without_end: list[TopicPartition] = field(default_factory=list)
    leaderless: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    last_seen_ms: dict[TopicPartition, int] = field(default_factory=dict)
    by_verdict: dict[str, list[tuple[float, TopicPartition]]] = field(default_factory=dict)

    @property
    def lag(self) -> int:
        """The group's lag in offsets: at least, if that of some partitions is unknown."""
        return sum(lag for lag in self.lags.values() if lag is not None)

    @property
    def has_members(self) -> bool:
        """Whether the group's record has members."""
        return self.membership is not None and bool(self.membership.members)

    @property
    def is_connect(self) -> bool:
        """Whether it is the group of a Connect worker cluster, which commits nothing itself."""
        return self.group in self.state.connect.groups

    def of_verdict(self, *words: str) -> list[TopicPartition]:
        """Return the partitions with one of these verdicts, those with the oldest record first."""
        found = sorted(one for word in words for one in self.by_verdict.get(word, ()))
        return [partition for _, partition in found]

    def sum_of(self, partitions: list[TopicPartition]) -> int:
        """Return the lag on some partitions (offsets), as far as it is known."""
        return sum(self.lags.get(one) or 0 for one in partitions)


def gather(state: ClusterState, group: str, now_ms: int) -> Generator[None, None, Known]:
    """Return what is known of a group, in steps."""
    known = Known(
        state,
        group,
        now_ms,
        state.assessments.verdicts.get(group, _UNASSESSED),
        state.groups.membership(group),
    )
    behind = set(state.assessments.behind(group))
    owns = known.membership is not None and known.membership.group_type in ("classic", "consumer")
    leaderless = state.leaderless or {}
    for count, row in enumerate(state.partition_rows(group), 1):
        if count % _STEP == 0:
            yield
        partition = row.partition
        known.lags[partition] = None if row.lag is None else row.lag.lag
        if partition in leaderless:
            known.leaderless[partition] = leaderless[partition]
        if row.ends is None:
            known.without_end.append(partition)
            continue
        known.last_seen_ms[partition] = row.ends.as_of_ms
        if row.lag is not None and row.lag.lag_committed_view > row.lag.lag:
            known.held[partition] = row.lag.lag_committed_view - row.lag.lag
        if partition in behind or (row.lag is not None and (row.lag.lag or row.lag.out_of_range)):
            assessed = state.assessments.find(group, partition)
            known.behind[partition] = (row, assessed)
            if assessed is not None:
                aged = -(assessed.lag_seconds or 0.0), partition
                known.by_verdict.setdefault(assessed.verdict, []).append(aged)
        if owns and row.member is None:
            known.without_member.append(partition)
    return known
