"""Recent events for display: rebalances, verdicts, movements, each with its reason."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Literal

from caughtup.models.records.fields import Part, changed

Kind = Literal["rebalance", "verdict", "movement", "reassignment", "connect", "service"]

#: The most events of all groups, of each group, and the most groups with events of their own.
_MOST, _MOST_OF_ONE, _MOST_SUBJECTS = 1_000, 100, 5_000
#: Texts are truncated: some contain names that clients chose.
_MOST_CHARACTERS = 500


class Happening(Part, omit_defaults=True):
    """An event at a time (ms) of a group or a partition, in words, and its reason."""

    at_ms: int
    kind: Kind
    text: str
    why: str | None = None
    group: str | None = None
    partition: str | None = None


class Happenings:
    """The newest events of all, and the newest of each group; the oldest are dropped first."""

    def __init__(self) -> None:
        self._all: deque[Happening] = deque(maxlen=_MOST)
        self._of: dict[str, deque[Happening]] = {}

    def note(self, happening: Happening) -> None:
        """Add an event."""
        why = happening.why
        kept = changed(
            happening,
            text=happening.text[:_MOST_CHARACTERS],
            why=None if why is None else why[:_MOST_CHARACTERS],
        )
        self._all.append(kept)
        if kept.group is None:
            return
        of_group = self._of.pop(kept.group, None)  # the group with the newest event comes last
        if of_group is None:
            of_group = deque(maxlen=_MOST_OF_ONE)
            if len(self._of) >= _MOST_SUBJECTS:
                del self._of[next(iter(self._of))]
        of_group.append(kept)
        self._of[kept.group] = of_group

    def newest(self, count: int) -> list[Happening]:
        """Return the newest events of all, the newest first."""
        return list(islice(reversed(self._all), count))

    def of(self, group: str) -> Iterator[Happening]:
        """Yield the events of a group, the newest first."""
        return reversed(self._of.get(group, deque()))

    def forget(self, group: str) -> None:
        """Remove a group's own events; they stay among those of all."""
        self._of.pop(group, None)
