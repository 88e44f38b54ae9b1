"""How long to wait between two rounds of observing reassignments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from caughtup.models.ids import TopicPartition
from caughtup.models.records.reassignments import (
    ReassignmentRecord,
    offsets_remaining,
)

#: Rounds take at most one tenth of the time. But a slow round may only have waited for brokers, so
#: the pause need not be longer than this rate of partitions asks for.
_SHARE = 10
_PARTITIONS_A_SECOND = 150
#: A reassignment that ends within this time is observed as often as the setting allows.
_NEAR_SECONDS = 60.0
#: The factors of the pause while no reassignment is near its end, and while there is none at all.
_FAR, _IDLE = 2.0, 2.5


class Pace:
    """Computes the pause after each round. ``floor_seconds``: the shortest pause."""

    def __init__(self, floor_seconds: float) -> None:
        self._floor = floor_seconds
        self._before: Mapping[TopicPartition, tuple[int, int]] = {}

    def pause_seconds(self, moving: Sequence[ReassignmentRecord], round_seconds: float) -> float:
        """Return the pause in seconds after a round that took ``round_seconds``."""
        remaining = {
            observation.topic_partition: (observation.as_of_ms, left)
            for observation in moving
            if (left := offsets_remaining(observation)) is not None
        }
        soonest = min(
            (
                _seconds_left(self._before[partition], now)
                for partition, now in remaining.items()
                if partition in self._before
            ),
            default=0.0,
        )
        self._before = remaining
        factor = 1.0
        if not moving:
            factor = _IDLE
        elif soonest > _NEAR_SECONDS:
            factor = _FAR
        rest = min(round_seconds * (_SHARE - 1), len(moving) / _PARTITIONS_A_SECOND)
        return max(self._floor * factor, rest)


def _seconds_left(before: tuple[int, int], now: tuple[int, int]) -> float:
    """Return the seconds to the end of a copy at its rate between two points (ms, offsets left)."""
    if now[1] == 0:
        return 0.0
    copied = before[1] - now[1]
    if copied <= 0:
        return float("inf")
    return now[1] * (now[0] - before[0]) / 1000 / copied
