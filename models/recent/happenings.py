"""What happened of late, for people: rebalances, verdicts, movements, each with its reason."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Literal

from caughtup.models.records.fields import Part, changed

Kind = Literal["rebalance", "verdict", "movement", "reassignment", "connect", "service"]

#: So many are kept of everything, and of each subject; and so many subjects have their own.
_MOST, _MOST_OF_ONE, _MOST_SUBJECTS = 1_000, 100, 5_000
#: Reasons are cut: some hold names that clients chose.
_MOST_CHARACTERS = 500


class Happening(Part, omit_defaults=True):
    """Something that happened at a moment (ms) to a group or a partition, in words, and why."""

    at_ms: int
    kind: Kind
    text: str
    why: str | None = None
    group: str | None = None
    partition: str | None = None


class Happenings:
    """The newest of everything, and the newest of each group, the oldest forgotten first."""

    def __init__(self) -> None:
        self._all: deque[Happening] = deque(maxlen=_MOST)
        self._of: dict[str, deque[Happening]] = {}

    def note(self, happening: Happening) -> None:
        """Keep what happened."""
        why = happening.why
        kept = changed(
            happening,
            text=happening.text[:_MOST_CHARACTERS],
            why=None if why is None else why[:_MOST_CHARACTERS],
        )
        self._all.append(kept)
        if kept.group is None:
            return
        of_group = self._of.pop(kept.group, None)  # the newest subject stands last
        if of_group is None:
            of_group = deque(maxlen=_MOST_OF_ONE)
            if len(self._of) >= _MOST_SUBJECTS:
                del self._of[next(iter(self._of))]
        of_group.append(kept)
        self._of[kept.group] = of_group

    def newest(self, count: int) -> list[Happening]:
        """Return the newest of everything, the newest first."""
        return list(islice(reversed(self._all), count))

    def of(self, group: str) -> Iterator[Happening]:
        """Yield what happened to a group, the newest first."""
        return reversed(self._of.get(group, deque()))

    def forget(self, group: str) -> None:
        """Forget what happened to a group; it stays among what happened at all."""
        self._of.pop(group, None)
