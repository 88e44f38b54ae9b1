"""What is told once: a recommendation for a generation, an event for a step of a movement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

RECOMMENDATIONS, MOVEMENTS = "recommended-assignments", "movements"


class Once:
    """Counts what was told of some groups, anew for each life of a topic."""

    def __init__(self, groups: frozenset[str]) -> None:
        self._groups = groups
        self._counts: Counter[Hashable] = Counter()
        self._lives: Counter[str] = Counter()
        #: The newest generation that was recommended for, by group.
        self.recommended: dict[str, int] = {}

    def begin_anew(self, topic: str) -> None:
        """Note that a topic was deleted: what was told on it may be told again."""
        self._lives[topic] += 1

    def add(self, topic: str, record: dict[str, Any]) -> str | None:
        """Count a record, and say what is wrong with it; None if nothing is."""
        group = record.get("group")
        if group not in self._groups:
            return None
        if topic == RECOMMENDATIONS:
            about: tuple[Hashable, ...] = (group, record["generation"])
            self.recommended[group] = max(
                record["generation"], self.recommended.get(group, record["generation"])
            )
        else:
            about = tuple(
                record.get(name) for name in ("plan", "decision_id", "event", "task", "to")
            )
        key = (topic, self._lives[topic], *about)
        self._counts[key] += 1
        if self._counts[key] > 1:
            words = " ".join(map(str, about))
            return f"{topic}: {words} was told {self._counts[key]} times"
        return None

    @property
    def told(self) -> int:
        """How many different things were told."""
        return len(self._counts)
