"""A bounded table of values of copies of tasks, by group."""

from __future__ import annotations

from collections.abc import Callable, KeysView, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

from caughtup.models.ids import CopyKey

Value = TypeVar("Value")


_NONE: Mapping[CopyKey, object] = MappingProxyType({})


class CopyTable(Generic[Value]):
    """The newest value of each copy; the sizes of all groups' values add up to at most ``most``.

    Anyone who may write to the topics can report values, so that the bound is needed.
    """

    def __init__(self, most: int, size: Callable[[Value], int] = lambda _: 1) -> None:
        self._groups: dict[str, dict[CopyKey, Value]] = {}
        self._most = most
        self._size = size
        self._sizes = 0

    def apply(self, group: str, copy: CopyKey, value: Value | None) -> bool:
        """Set a copy's value, or remove it (None).

        Returns False if there are too many to take another one.
        """
        known = self._groups.get(group, {})
        more = self._size_of(value) - self._size_of(known.get(copy))
        if more > 0 and self._sizes + more > self._most:
            return False
        self._sizes += more
        if value is not None:
            self._groups.setdefault(group, known)[copy] = value
            return True
        known.pop(copy, None)
        if not known:
            self._groups.pop(group, None)
        return True

    def groups(self) -> KeysView[str]:
        """Return the groups that have values."""
        return self._groups.keys()

    def forget(self, group: str) -> None:
        """Remove a group's values."""
        self._sizes -= sum(map(self._size, self._groups.pop(group, {}).values()))

    def of(self, group: str) -> Mapping[CopyKey, Value]:
        """Return the values of a group's copies."""
        return self._groups.get(group, _NONE)  # type: ignore[arg-type]

    def _size_of(self, value: Value | None) -> int:
        return 0 if value is None else self._size(value)
