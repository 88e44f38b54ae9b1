"""The assignment of a process's tasks to its stream threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import chain, cycle

from caughtup.models.ids import TaskId
from caughtup.models.partition_assignor.rebalance import ClientMetadata

#: Consumer → its tasks.
ThreadTasks = dict[str, list[TaskId]]


class ThreadAssignment:
    """Assigns a client's tasks to its consumers so that all their tasks together are even.

    Source: StreamsPartitionAssignor.assignTasksToThreads.
    """

    def __init__(self, client: ClientMetadata, lags: Mapping[TaskId, int]) -> None:
        """Prepare a client's threads; ``lags`` are its own of each stateful task, in offsets."""
        self._consumers = client.consumers
        self._previous = {
            consumer: sorted(
                (task for task in client.reported[consumer] if task in lags),
                key=lambda task: (lags[task], task),
            )
            for consumer in client.consumers
        }
        self._loads = dict.fromkeys(client.consumers, 0)

    def assign_stateful(self, tasks: Sequence[TaskId]) -> ThreadTasks:
        """Assign stateful tasks, preferably to the thread that reported them.

        ``tasks`` are in the order in which Java iterates over them.
        """
        return self._assign(tasks, self._previous)

    def assign_stateless(self, tasks: Sequence[TaskId]) -> ThreadTasks:
        """Assign stateless tasks, regardless of their previous threads."""
        return self._assign(tasks, {})

    def assign_apart(self, stateful: Sequence[TaskId], stateless: Sequence[TaskId]) -> ThreadTasks:
        """Assign as releases before 3.2 do, regardless of tasks that were assigned before.

        Stateless tasks, sorted, go first to the threads that have one less than others, then to all
        in turn. Before 3.1 Kafka's leader fails if a thread reports a task that is stateless or
        doesn't exist, and no member gets an assignment.
        """
        loads, self._loads = self._loads, dict.fromkeys(self._consumers, 0)
        given = self._assign(stateful, self._previous)
        self._loads = loads
        share, left = divmod(len(stateful), len(self._consumers))
        first = [c for c in self._consumers if left and len(given[c]) == share]
        for task, consumer in zip(stateless, chain(first, cycle(self._consumers)), strict=False):
            given[consumer].append(task)
        return given

    def _assign(
        self, tasks: Sequence[TaskId], previous: Mapping[str, Sequence[TaskId]]
    ) -> ThreadTasks:
        """Fill every thread up to an even share, then assign one more to some of them."""
        given: ThreadTasks = {consumer: [] for consumer in self._consumers}
        share = (len(tasks) + sum(self._loads.values())) // len(self._consumers)
        if tasks:
            unassigned = JavaTaskQueue(tasks)
            skipped = self._keep(given, unassigned, previous, share)
            self._fill(given, unassigned, share)
            self._assign_leftovers(given, unassigned, skipped, share)
        for consumer, own in given.items():
            self._loads[consumer] += len(own)
        return given

    def _keep(
        self,
        given: ThreadTasks,
        unassigned: JavaTaskQueue,
        previous: Mapping[str, Sequence[TaskId]],
        share: int,
    ) -> Mapping[TaskId, str]:
        """Leave threads their previous tasks up to their share, the least lag first.

        Returns the tasks for which there was no room, each with the last thread that had it.
        """
        skipped: dict[TaskId, str] = {}
        for consumer in self._consumers:
            own, room = given[consumer], share - self._loads[consumer]
            for task in previous.get(consumer, ()):
                if task in unassigned:
                    if len(own) < room:
                        own.append(task)
                        unassigned.remove(task)
                    else:
                        skipped[task] = consumer
        return skipped

    def _fill(self, given: ThreadTasks, unassigned: JavaTaskQueue, share: int) -> None:
        """Assign the threads below their share one task after the other, in turn."""
        waiting = deque(c for c in self._consumers if self._load(c, given) < share)
        while waiting:
            consumer = waiting.popleft()
            given[consumer].append(unassigned.poll())
            if self._load(consumer, given) < share:
                waiting.append(consumer)

    def _assign_leftovers(
        self,
        given: ThreadTasks,
        unassigned: JavaTaskQueue,
        skipped: Mapping[TaskId, str],
        share: int,
    ) -> None:
        """Assign one more to threads at just their share: first to those that had the task.

        Remaining tasks follow in the order of the array of Java's queue.
        """
        waiting = {c: None for c in self._consumers if self._load(c, given) == share}
        for task, consumer in sorted(skipped.items()):
            if consumer in waiting and task in unassigned:
                given[consumer].append(task)
                unassigned.remove(task)
                del waiting[consumer]
        for consumer, task in zip(waiting, unassigned.in_array_order(), strict=False):
            given[consumer].append(task)

    def _load(self, consumer: str, given: ThreadTasks) -> int:
        return self._loads[consumer] + len(given[consumer])


class JavaTaskQueue:
    """Different tasks in a heap with the layout of java.util.PriorityQueue.

    The layout matters, because Kafka finally iterates over the array of the remaining tasks.
    ``heapq`` sifts differently, so its layout is another one.

    Source: java.util.PriorityQueue of Java 8 to 25 (heapify, poll, removeAt).
    """

    __slots__ = ("_heap", "_tasks")

    def __init__(self, tasks: Sequence[TaskId]) -> None:
        """Queue the tasks in the iteration order of the collection that they come from."""
        self._heap = list(tasks)
        self._tasks = set(tasks)
        for place in reversed(range(len(tasks) // 2)):
            self._sift_down(place, self._heap[place])

    def __contains__(self, task: TaskId) -> bool:
        return task in self._tasks

    def in_array_order(self) -> Sequence[TaskId]:
        """Return the remaining tasks in the order of the array, which isn't that of ``poll``."""
        return self._heap

    def poll(self) -> TaskId:
        """Remove and return the least task. Raises IndexError if the queue is empty."""
        task = self._heap[0]
        self._take_out(0)
        return task

    def remove(self, task: TaskId) -> None:
        """Remove a task. Raises ValueError if it isn't queued."""
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
