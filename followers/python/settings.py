"""A follower's settings, with the same names as those of the follower for Kafka Streams."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from caughtup.models.assignors.following.follower import Patience
from caughtup.models.records.topics import DEFAULT_PREFIX, with_prefix

_LONGEST_MS = 7 * 24 * 60 * 60 * 1000
_LIMITS = {
    "follow_up_ms": (100, _LONGEST_MS),
    "follow_ups": (0, 1_000_000),
    "recommendation_max_age_ms": (0, _LONGEST_MS),
    "positions_interval_ms": (100, _LONGEST_MS),
}


@dataclass(frozen=True, slots=True)
class FollowerSettings:
    """The settings that Kafka Streams has as ``caughtup.follow.up.ms`` and so on; times are in ms.

    ``topic_prefix`` is the service's. ``follow_up_ms``: until the next rebalance while no
    recommendation holds; ``follow_ups``: how many of these pass until the group is balanced
    without one; ``recommendation_max_age_ms``: an older one isn't followed if it would change
    anything; ``positions_interval_ms``: between two reports of how far copies are.
    ``signing_key_file``: with it, only recommendations that are signed with one of its keys are
    followed. Raises ValueError for a number out of its bounds.
    """

    topic_prefix: str = DEFAULT_PREFIX
    follow_up_ms: int = 5_000
    follow_ups: int = 3
    recommendation_max_age_ms: int = 900_000
    positions_interval_ms: int = 5_000
    signing_key_file: str | Path | None = None

    def __post_init__(self) -> None:
        for name, (least, most) in _LIMITS.items():
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                raise ValueError(f"{name} is {value!r}, and not a whole number in {least}..{most}")

    @property
    def patience(self) -> Patience:
        """Return the settings that the follower's rules use."""
        return Patience(self.follow_up_ms, self.recommendation_max_age_ms, self.follow_ups)

    def topic(self, name: str) -> str:
        """Return the full name of one of the service's topics."""
        return with_prefix(name, self.topic_prefix)
