"""What wakes the agent that decides."""

from __future__ import annotations

from enum import Enum


class Wakeup(Enum):
    """What may have made a decision due: a generation, the end offsets it awaits, or time.

    Or positions that applications report, by which copies have caught up since. Or the topic of
    recommendations was made anew.
    """

    GROUPS = "groups"
    POSITIONS = "positions"
    END_OFFSETS = "end_offsets"
    TIME = "time"
    RECREATED = "recreated"
