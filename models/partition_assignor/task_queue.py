"""The queue from which Kafka deals tasks to threads: java.util.PriorityQueue of TaskIds."""

from __future__ import annotations

from collections.abc import Sequence

from caughtup.models.ids import TaskId


class TaskQueue:
    """Different tasks in a heap that is laid out as Java's is.

    How it is laid out matters, because Kafka walks the array of what is left in the end. It isn't
    ``heapq``'s layout: that one sifts otherwise.

    Source: java.util.PriorityQueue of Java 8 to 25 (heapify, poll, removeAt).
    """

    __slots__ = ("_heap", "_tasks")

    def __init__(self, tasks: Sequence[TaskId]) -> None:
        """Queue the tasks in the order in which the collection that they come from walks them."""
        self._heap = list(tasks)
        self._tasks = set(tasks)
        for place in reversed(range(len(tasks) // 2)):
            self._sift_down(place, self._heap[place])

    def __contains__(self, task: TaskId) -> bool:
        return task in self._tasks

    def in_array_order(self) -> Sequence[TaskId]:
        """Return what is left as the array has it, which isn't the order of ``poll``."""
        return self._heap

    def poll(self) -> TaskId:
        """Remove the least task. Raises IndexError when there is none."""
        task = self._heap[0]
        self._take_out(0)
        return task

    def remove(self, task: TaskId) -> None:
        """Remove a task. Raises ValueError when it isn't there."""
        self._take_out(self._heap.index(task))

    def _take_out(self, place: int) -> None:
        heap = self._heap
        self._tasks.remove(heap[place])
        last = heap.pop()
        if place < len(heap):
            self._sift_down(place, last)
            if heap[place] is last:
                self._sift_up(place, last)

    def _sift_up(self, place: int, task: TaskId) -> None:
        heap = self._heap
        while place > 0:
            parent = (place - 1) >> 1
            if task > heap[parent]:
                break
            heap[place] = heap[parent]
            place = parent
        heap[place] = task

    def _sift_down(self, place: int, task: TaskId) -> None:
        heap = self._heap
        size = len(heap)
        while place < size >> 1:
            child = 2 * place + 1
            if child + 1 < size and heap[child + 1] < heap[child]:
                child += 1
            if task < heap[child]:
                break
            heap[place] = heap[child]
            place = child
        heap[place] = task
