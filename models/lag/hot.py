"""The partition with most of a group's lag or of its records, which no other member can help to read."""

from __future__ import annotations

from collections.abc import Mapping

from caughtup.models.ids import TopicPartition
from caughtup.models.records.fields import Part

#: From this share of all on, a partition is the one that has to be read faster.
HOT_SHARE = 0.5


class HotPartition(Part):
    """A partition with most of the group's lag or of its records a second.

    ``share`` is its part of it, up to 1.
    """

    topic: str
    partition: int
    share: float


def hot_partition(amounts: Mapping[TopicPartition, float | None]) -> HotPartition | None:
    """Return the partition with most of all, None if none has, or an amount is unknown.

    ``amounts``: by partition, the lag in offsets or records a second, None where unknown. A single
    partition is not hot.
    """
    known = {one: amount for one, amount in amounts.items() if amount is not None}
    total = sum(known.values())
    if len(known) < len(amounts) or len(amounts) < 2 or not total:
        return None
    worst = min(known, key=lambda one: (-known[one], one))
    share = known[worst] / total
    return HotPartition(*worst, share) if share >= HOT_SHARE else None
