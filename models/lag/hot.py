"""The partition that has most of a group's lag, which no other member can help to read."""

from __future__ import annotations

from collections.abc import Mapping

from caughtup.models.ids import TopicPartition
from caughtup.models.records.fields import Part

#: From this share of the group's lag on, a partition is the one that has to be read faster.
HOT_SHARE = 0.5


class HotPartition(Part):
    """A partition with most of the group's lag; ``share`` is its part of it, up to 1."""

    topic: str
    partition: int
    share: float


def hot_partition(lags: Mapping[TopicPartition, int | None]) -> HotPartition | None:
    """Return the partition with most of the lag, None if none has, or a lag is unknown.

    ``lags``: by partition, in offsets, None where unknown. A single partition is not hot.
    """
    known = {one: lag for one, lag in lags.items() if lag is not None}
    total = sum(known.values())
    if len(known) < len(lags) or len(lags) < 2 or not total:
        return None
    worst = min(known, key=lambda one: (-known[one], one))
    share = known[worst] / total
    return HotPartition(*worst, share) if share >= HOT_SHARE else None
