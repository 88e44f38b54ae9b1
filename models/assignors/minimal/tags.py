"""Spread the copies of a task over client tags, with as few new copies as that takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence


class TagSpread:
    """Counts the distinct tag values among a task's copies: the more, the better spread.

    ``tags`` are those of each client by its place; only those in ``keys`` count. Without keys all
    clients are alike. Source of the aim: KIP-708.
    """

    def __init__(self, tags: Sequence[Mapping[str, str]], keys: Collection[str]) -> None:
        self._tags = [frozenset((k, v) for k, v in own.items() if k in keys) for own in tags]
        self.matters = any(self._tags)
        self._values_of_key = Counter(key for key, _ in frozenset().union(*self._tags))

    def values(self, clients: Iterable[int]) -> int:
        """Return the number of distinct tag values of these clients."""
        return len(frozenset().union(*map(self._tags.__getitem__, clients)))

    def may_move(self, copies: Collection[int], source: int, destination: int) -> bool:
        """Return whether a copy can move to another client without fewer distinct tag values."""
        if self._tags[source] == self._tags[destination]:
            return True
        moved = [one for one in copies if one != source]
        return self.values((*moved, destination)) >= self.values(copies)

    def choose(
        self,
        assigned: Collection[int],
        existing: Collection[int],
        size: int,
        rank: Callable[[int], tuple[object, ...]],
    ) -> list[int]:
        """Return the clients of a task's copies; some copies exist, and some of these are assigned.

        Assigned copies are kept unless another existing copy adds values, and existing ones unless
        a new one does. Of clients that add as many values, the one with the least ``rank`` comes
        first.
        """
        chosen = list(assigned)
        if len(chosen) > size:
            chosen = self._pick(assigned, (), size, rank)
        if len(chosen) < size or len(existing) > len(assigned):
            better = self._pick(existing, chosen, size, rank)
            if len(better) > len(chosen) or self.values(better) > self.values(chosen):
                chosen = better
        if len(chosen) < size:
            chosen = self._pick(range(len(self._tags)), chosen, size, rank)
        return self.improve(chosen, rank)

    def improve(self, chosen: list[int], rank: Callable[[int], tuple[object, ...]]) -> list[int]:
        """Return other clients for as long as that adds values."""
        most = sum(min(values, len(chosen)) for values in self._values_of_key.values())
        while True:
            if self.values(chosen) == most:
                return chosen
            better = self._pick(range(len(self._tags)), chosen, len(chosen), rank)
            if self.values(better) <= self.values(chosen):
                return chosen
            chosen = better

    def _pick(
        self,
        candidates: Iterable[int],
        preferred: Collection[int],
        size: int,
        rank: Callable[[int], tuple[object, ...]],
    ) -> list[int]:
        """Return clients, each time the one that adds the most values.

        Preferred ones come first.
        """
        left = set(candidates)
        covered: set[tuple[str, str]] = set()
        picked: list[int] = []
        while left and len(picked) < size:
            best = min(
                left,
                key=lambda one: (
                    -len(self._tags[one] - covered),
                    one not in preferred,
                    rank(one),
                ),
            )
            left.remove(best)
            covered |= self._tags[best]
            picked.append(best)
        return picked
