"""java.util.PriorityQueue of distinct numbers, mostly at the speed of Python's own heap."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import chain
from operator import lt
from typing import Any, TypeVar

from caughtup.models.assignors.java.priority_queue import JavaPriorityQueue

#: Numbers, or tuples of them.
N = TypeVar("N", int, tuple[float, int])


class _IdentityKeys:
    """Has each element as its own key."""

    def __getitem__(self, element: Any, /) -> Any:
        return element


class JavaNumberQueue(JavaPriorityQueue[N]):
    """The same heap as Java's, down to its places, of elements that are their own keys.

    ``heapq`` sifts up exactly as Java does. It sifts down in another way, all the way and up again,
    which for distinct elements comes to the same as long as every element is greater than the one
    above it. Where a change has left one that isn't, Java's own way is gone.
    """

    __slots__ = ("_harmed",)

    def __init__(self) -> None:
        super().__init__(_IdentityKeys())
        self._harmed = False

    def offer(self, element: N) -> None:
        """Add an element."""
        heappush(self._heap, element)

    def offer_all(self, elements: Iterable[N]) -> None:
        """Add elements, one after the other."""
        heap = self._heap
        for element in elements:
            heappush(heap, element)

    def poll(self) -> N:
        """Remove and return the head. Raises IndexError when there is none."""
        if self._harmed and self._is_harmed():
            return JavaPriorityQueue.poll(self)
        return heappop(self._heap)

    def drain(self) -> list[N]:
        """Remove and return everything, in the order of polls."""
        if self._harmed and self._is_harmed():
            return [self.poll() for _ in range(len(self._heap))]
        drained = sorted(self._heap)
        self._heap.clear()
        return drained

    def change(self, element: N, changed: N) -> None:
        """Replace an element in place, without moving the new one to where it belongs."""
        self._heap[self._heap.index(element)] = changed
        self._harmed = True

    def _is_harmed(self) -> bool:
        heap = self._heap
        parents = chain.from_iterable(zip(heap, heap, strict=True))
        self._harmed = not all(map(lt, parents, heap[1:]))
        return self._harmed
