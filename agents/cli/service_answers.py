"""What a service answers about groups, as far as commands use it; other fields are ignored."""

from __future__ import annotations

from collections.abc import Sequence

from caughtup.models.rebalances.rebalance import GroupRebalance
from caughtup.models.records.fields import ABSENT, Absent, Part
from caughtup.models.shown.groups import GroupLine


class PartitionAnswer(Part, kw_only=True, omit_defaults=True):
    """A group's lag on a partition, with the verdict on it and the reason; None is not known."""

    topic: str
    partition: int
    lag: int | None = None
    lag_seconds: float | None = None
    verdict: str | None = None
    why: str | None = None
    committed: int | None = None
    end_offset: int | None = None
    client_id: str | None = None


class OverviewAnswer(Part):
    """The lines of all groups, the worst first, and how many the service left out."""

    groups: Sequence[GroupLine]
    groups_more: int = 0


class GroupAnswer(Part):
    """A group: its line, absent for an unknown one, its worst partitions, its last rebalances."""

    group: GroupLine | Absent = ABSENT
    partitions: Sequence[PartitionAnswer] = ()
    partitions_more: int = 0
    rebalances: Sequence[GroupRebalance] = ()
