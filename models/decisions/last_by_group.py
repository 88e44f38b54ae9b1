"""The last few values of each group, of no more groups than there may be."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

Value = TypeVar("Value")

#: Values kept of a group: a follower may have followed a recommendation before the last.
MOST_VALUES = 4
#: Groups that values are kept of: anybody may write of groups that there aren't.
MOST_GROUPS = 20_000


class LastByGroup(Generic[Value]):
    """Keeps the last values of groups, in the order in which they came."""

    def __init__(self) -> None:
        self._values: dict[str, deque[Value]] = {}

    def add(self, group: str, value: Value) -> bool:
        """Keep a group's value; return False if there are too many groups for another one."""
        known = self._values.get(group)
        if known is None:
            if len(self._values) >= MOST_GROUPS:
                return False
            known = self._values[group] = deque(maxlen=MOST_VALUES)
        known.append(value)
        return True

    def of(self, group: str) -> tuple[Value, ...]:
        """Return a group's values, the oldest first."""
        return tuple(self._values.get(group, ()))

    def newest(self, group: str) -> Value | None:
        """Return a group's newest value, None if there is none."""
        known = self._values.get(group)
        return known[-1] if known else None

    def each_newest(self) -> Iterator[tuple[str, Value]]:
        """Yield the newest value of each group, by group, sorted."""
        for group, known in sorted(self._values.items()):
            yield group, known[-1]

    def forget(self, group: str) -> bool:
        """Forget a group's values; return whether there were any."""
        return self._values.pop(group, None) is not None

    def groups(self) -> set[str]:
        """Name the groups that have values."""
        return set(self._values)
