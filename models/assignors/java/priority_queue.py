"""java.util.PriorityQueue, including the order in which it polls elements that compare equal."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import chain
from operator import lt
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Comparable(Protocol):
    """Something with an order, such as a number or a tuple of numbers."""

    def __lt__(self, other: Any, /) -> bool:
        """Return whether this one comes first."""


#: Numbers, or tuples of them.
N = TypeVar("N", bound=Comparable)


class Keys(Protocol[T_contra]):
    """A mapping from elements to their keys: a list, by places, or a dictionary."""

    def __getitem__(self, element: T_contra, /) -> Comparable:
        """Return an element's key."""


class JavaPriorityQueue(Generic[T]):
    """A binary heap that moves its elements exactly as Java's does.

    ``heapq`` sifts differently. Equal elements, and elements whose key changes while they are
    queued, would come out in another order, and Kafka's assignors have both. ``keys`` are read at
    every comparison, as by Java's comparators.

    Source: java.util.PriorityQueue of Java 8 to 25 (siftUp, siftDown and removeAt).
    """

    __slots__ = ("_heap", "_keys")

    def __init__(self, keys: Keys[T]) -> None:
        self._heap: list[T] = []
        self._keys = keys

    def __len__(self) -> int:
        return len(self._heap)

    def in_array_order(self) -> list[T]:
        """Return the queued elements in the order of the array, as Java's iterator does."""
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
        """Remove and return the head. Raises IndexError if the queue is empty."""
        heap = self._heap
        last = heap.pop()
        if not heap:
            return last
        head = heap[0]
        self._sift_down(0, last)
        return head

    def remove(self, element: T) -> None:
        """Remove an element, wherever it is. Raises ValueError if it isn't queued."""
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


class _IdentityKeys:
    """Maps each element to itself."""

    def __getitem__(self, element: N, /) -> N:
        return element


class JavaNumberQueue(JavaPriorityQueue[N]):
    """A JavaPriorityQueue of distinct numbers, mostly at the speed of ``heapq``.

    ``heapq`` sifts up exactly as Java does. It sifts down in another way, all the way and up again,
    which has the same result for distinct elements as long as every element is greater than its
    parent. Once a change has violated that, Java's own steps are taken.
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
        """Remove and return all elements, in the order of polls."""
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
