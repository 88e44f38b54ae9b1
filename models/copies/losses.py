"""Which copies an application lost and built again, over its last generations."""

from __future__ import annotations

from caughtup.models.ids import CopyKey

#: For how many generations a loss is remembered.
GENERATIONS_WATCHED = 10


class CopyLosses:
    """How often each copy was lost and built again within the last generations.

    A copy is lost when its process neither runs the task nor follows it in a generation, and built
    again when it does so in a later one; or when its store is found to have started over.
    """

    def __init__(self) -> None:
        self._generation = 0
        self._held: set[CopyKey] = set()
        # In which generation, counted by us, a copy was lost, and when lost ones were built again.
        self._lost: dict[CopyKey, int] = {}
        self._rebuilt: dict[CopyKey, list[int]] = {}

    def apply_generation(self, held: set[CopyKey]) -> None:
        """Apply the copies of a new generation, in whatever role."""
        self._generation += 1
        oldest = self._oldest
        self._lost = {copy: lost for copy, lost in self._lost.items() if lost >= oldest}
        self._rebuilt = {c: built for c, built in self._rebuilt.items() if built[-1] >= oldest}
        for copy in self._held - held:
            self._lost[copy] = self._generation
        for copy in held - self._held:
            if self._lost.pop(copy, None) is not None:
                self.record_rebuilt(copy)
        self._held = held

    def record_rebuilt(self, copy: CopyKey) -> None:
        """Record that a copy began again in the present generation."""
        self._rebuilt.setdefault(copy, []).append(self._generation)

    def of(self, copy: CopyKey) -> int:
        """Return how often a copy was lost and rebuilt within the generations watched."""
        return sum(built >= self._oldest for built in self._rebuilt.get(copy, ()))

    @property
    def _oldest(self) -> int:
        return self._generation - GENERATIONS_WATCHED + 1
