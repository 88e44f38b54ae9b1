"""What wakes the agent that decides generations."""

from __future__ import annotations

from enum import Enum


class Wakeup(Enum):
    """The reason why a decision may be due.

    ``GROUPS``: a new generation. ``POSITIONS``: reported positions, by which copies may have caught
    up. ``END_OFFSETS``: end offsets for which a generation waits. ``RECREATED``: the topic of
    recommendations was recreated.
    """

    GROUPS = "groups"
    POSITIONS = "positions"
    END_OFFSETS = "end_offsets"
    TIME = "time"
    RECREATED = "recreated"
