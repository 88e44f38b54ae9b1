"""Which of a process's threads gets which of its tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import chain, cycle

from caughtup.models.ids import TaskId
from caughtup.models.partition_assignor.clients import Client
from caughtup.models.partition_assignor.task_queue import TaskQueue

#: Consumer → its tasks.
ThreadTasks = dict[str, list[TaskId]]


class ThreadAssignment:
    """Deals a client's tasks out to its consumers, each time evening out all that was dealt.

    Source: StreamsPartitionAssignor.assignTasksToThreads.
    """

    def __init__(self, client: Client, lags: Mapping[TaskId, int]) -> None:
        """Prepare a client's threads; ``lags`` are its own of each task with state, in offsets."""
        self._consumers = client.consumers
        self._previous = {
            consumer: sorted(
                (task for task in client.reported[consumer] if task in lags),
                key=lambda task: (lags[task], task),
            )
            for consumer in client.consumers
        }
        self._loads = dict.fromkeys(client.consumers, 0)

    def deal_stateful(self, tasks: Sequence[TaskId]) -> ThreadTasks:
        """Deal tasks with state, preferably to the thread that reported them.

        ``tasks`` are in the order in which Java hands them out.
        """
        return self._deal(tasks, self._previous)

    def deal_stateless(self, tasks: Sequence[TaskId]) -> ThreadTasks:
        """Deal tasks without state. Who had them means nothing."""
        return self._deal(tasks, {})

    def deal_apart(self, stateful: Sequence[TaskId], stateless: Sequence[TaskId]) -> ThreadTasks:
        """Deal as releases before 3.2 do, where what was dealt before doesn't count.

        Tasks without state, sorted, go first to the threads that have one less than others, then
        to all in turn. Before 3.1 Kafka's leader fails where a thread reports a task that has no
        state, or that isn't there, and nobody is given anything.
        """
        loads, self._loads = self._loads, dict.fromkeys(self._consumers, 0)
        given = self._deal(stateful, self._previous)
        self._loads = loads
        share, left = divmod(len(stateful), len(self._consumers))
        first = [c for c in self._consumers if left and len(given[c]) == share]
        for task, consumer in zip(stateless, chain(first, cycle(self._consumers)), strict=False):
            given[consumer].append(task)
        return given

    def _deal(
        self, tasks: Sequence[TaskId], previous: Mapping[str, Sequence[TaskId]]
    ) -> ThreadTasks:
        """Fill every thread up to an even share, then give one more to some of them."""
        given: ThreadTasks = {consumer: [] for consumer in self._consumers}
        share = (len(tasks) + sum(self._loads.values())) // len(self._consumers)
        if tasks:
            unassigned = TaskQueue(tasks)
            skipped = self._keep(given, unassigned, previous, share)
            self._fill(given, unassigned, share)
            self._deal_leftovers(given, unassigned, skipped, share)
        for consumer, own in given.items():
            self._loads[consumer] += len(own)
        return given

    def _keep(
        self,
        given: ThreadTasks,
        unassigned: TaskQueue,
        previous: Mapping[str, Sequence[TaskId]],
        share: int,
    ) -> Mapping[TaskId, str]:
        """Leave threads what they had, least lag first, up to their share.

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

    def _fill(self, given: ThreadTasks, unassigned: TaskQueue, share: int) -> None:
        """Return the threads below their share one task after the other, in turn."""
        waiting = deque(c for c in self._consumers if self._load(c, given) < share)
        while waiting:
            consumer = waiting.popleft()
            given[consumer].append(unassigned.poll())
            if self._load(consumer, given) < share:
                waiting.append(consumer)

    def _deal_leftovers(
        self,
        given: ThreadTasks,
        unassigned: TaskQueue,
        skipped: Mapping[TaskId, str],
        share: int,
    ) -> None:
        """Assign one more to threads that have just their share: first to those that had the task.

        What is then left goes out in the order in which Java's queue has it in its array.
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
