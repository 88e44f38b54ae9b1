"""How old a group's oldest unread record may be: objectives, by the group's name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_NAMES = 1 << 16


class Objectives:
    """Objectives in seconds, each with a pattern for whole names; the first that fits counts.

    Each name is held against the patterns once.
    """

    def __init__(self, given: Sequence[tuple[str, float]] = ()) -> None:
        self._given = [(re.compile(pattern), seconds) for pattern, seconds in given]
        self.of = lru_cache(_NAMES)(self._find)

    def __bool__(self) -> bool:
        return bool(self._given)

    def _find(self, group: str) -> float | None:
        """Return a group's objective; None where it has none."""
        fitting = (seconds for pattern, seconds in self._given if pattern.fullmatch(group))
        return next(fitting, None)
