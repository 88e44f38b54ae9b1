"""java.util.PriorityQueue, with the order in which it hands out elements that compare equal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Keys(Protocol[T_contra]):
    """What has a key for each element: a list for places in it, a dictionary for anything."""

    def __getitem__(self, element: T_contra, /) -> Any:
        """Return an element's key."""


class JavaPriorityQueue(Generic[T]):
    """A binary heap that moves its elements exactly as Java's does.

    ``heapq`` sifts differently, so that equal elements would come out in another order, and so
    would elements whose key changed while they were queued: Kafka's assignors have both. ``keys``
    are read anew at every comparison, as by Java's comparators.

    Source: java.util.PriorityQueue of Java 8 to 25 (siftUp, siftDown and removeAt).
    """

    __slots__ = ("_heap", "_keys")

    def __init__(self, keys: Keys[T]) -> None:
        self._heap: list[T] = []
        self._keys = keys

    def __len__(self) -> int:
        return len(self._heap)

    def in_array_order(self) -> list[T]:
        """Return what is queued as the array has it, which is how Java's iterator walks it."""
        return self._heap.copy()

    def offer(self, element: T) -> None:
        """Add an element."""
        self._heap.append(element)
        self._sift_up(len(self._heap) - 1, element)

    def offer_all(self, elements: Iterable[T]) -> None:
        """Add elements, one after the other."""
        for element in elements:
            self.offer(element)

    def poll(self) -> T:
        """Remove and return the head. Raises IndexError when there is none."""
        heap = self._heap
        last = heap.pop()
        if not heap:
            return last
        head = heap[0]
        self._sift_down(0, last)
        return head

    def remove(self, element: T) -> None:
        """Remove an element, wherever it is. Raises ValueError when it isn't there."""
        heap = self._heap
        place = heap.index(element)
        last = heap.pop()
        if place == len(heap):
            return
        self._sift_down(place, last)
        if heap[place] is last:
            self._sift_up(place, last)

    def _sift_up(self, place: int, element: T) -> None:
        heap, keys = self._heap, self._keys
        own = keys[element]
        while place > 0:
            parent = (place - 1) >> 1
            above = heap[parent]
            if not own < keys[above]:
                break
            heap[place] = above
            place = parent
        heap[place] = element

    def _sift_down(self, place: int, element: T) -> None:
        heap, keys = self._heap, self._keys
        last = len(heap) - 1
        own = keys[element]
        child = 2 * place + 1
        while child <= last:
            below = heap[child]
            least = keys[below]
            if child < last and (other := keys[heap[child + 1]]) < least:
                child += 1
                below, least = heap[child], other
            if not least < own:
                break
            heap[place] = below
            place = child
            child = 2 * place + 1
        heap[place] = element
