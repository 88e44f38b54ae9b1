"""The sticky assignor of streams groups (KIP-1071), which runs in the group coordinator.

Source: StickyTaskAssignor of the group coordinators 4.3.1 and 4.4.0. It is the only task assignor of
4.3.1; neither warms up anything, and only 4.4.0's knows how far copies are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum

from caughtup.models.assignors.java.priority_queue import JavaPriorityQueue
from caughtup.models.assignors.java.strings import in_computed_map_order, in_hash_map_order
from caughtup.models.ids import TaskId


class BrokerRelease(Enum):
    """The coordinators that decide differently, by their first release."""

    V4_3 = "4.3"
    V4_4 = "4.4"


class ProcessState:
    """The tasks of a process's members during an assignment. ``load`` is tasks per member.

    Source: ProcessState of the group coordinator of Kafka 4.3.1.
    """

    def __init__(self, members: Iterable[str]) -> None:
        self.counts = dict.fromkeys(members, 0)
        self.active: dict[str, set[TaskId]] = {member: set() for member in self.counts}
        self.standby: dict[str, set[TaskId]] = {member: set() for member in self.counts}
        self._tasks: set[TaskId] = set()
        self._by_load: JavaPriorityQueue[str] | None = None

    @property
    def load(self) -> float:
        """Tasks per member."""
        return sum(self.counts.values()) / len(self.counts)

    def has(self, task: TaskId) -> bool:
        """Return whether any member has a copy of the task."""
        return task in self._tasks

    def add(self, member: str, task: TaskId, *, active: bool) -> int:
        """Assign a task to a member, and return its number of tasks."""
        self._by_load = None
        return self._add(member, task, active=active)

    def add_to_least_loaded(self, task: TaskId, *, active: bool) -> int:
        """Assign a task to the member with the fewest tasks, and return its new number of tasks."""
        if len(self.counts) == 1:
            return self._add(next(iter(self.counts)), task, active=active)
        if self._by_load is None:
            self._by_load = JavaPriorityQueue(self.counts)
            self._by_load.offer_all(in_hash_map_order(self.counts))
        member = self._by_load.poll()
        count = self._add(member, task, active=active)
        self._by_load.offer(member)
        return count

    def _add(self, member: str, task: TaskId, *, active: bool) -> int:
        self._tasks.add(task)
        (self.active if active else self.standby)[member].add(task)
        self.counts[member] += 1
        return self.counts[member]


@dataclass(frozen=True, slots=True)
class MemberTasks:
    """A member's process and its tasks, before or in its new target assignment.

    Before, they are those of its target assignment in 4.3.1, of its current one in 4.4.0, where
    ``offsets`` has the sums of the offsets that it reported of tasks in its state directory.
    """

    process: str
    active: AbstractSet[TaskId] = frozenset()
    standby: AbstractSet[TaskId] = frozenset()
    offsets: Mapping[TaskId, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Quota:
    """The number of tasks that a member may have, while members fill up one after the other."""

    tasks: int
    members: int

    @property
    def share(self) -> int:
        """Tasks per member that isn't full yet, rounded up."""
        return -(-self.tasks // self.members) if self.members else 0

    def note(self, count: int) -> None:
        """Take a member out of the quota once its ``count`` of tasks has reached its share."""
        if count == self.share:
            self.members -= 1
            self.tasks -= count


def assign_sticky(
    members: Mapping[str, MemberTasks],
    tasks: Iterable[TaskId],
    stateful: AbstractSet[TaskId],
    standbys: int,
    release: BrokerRelease = BrokerRelease.V4_3,
) -> dict[str, MemberTasks]:
    """Return each member's tasks by member id. ``standbys`` is the number for each stateful task.

    ``members`` are in the order in which the assignor iterates over them: that of a HashMap in a
    coordinator.
    """
    return _Sticky(members, list(tasks), stateful, standbys, release).assigned()


class _Sticky:
    def __init__(
        self,
        members: Mapping[str, MemberTasks],
        tasks: list[TaskId],
        stateful: AbstractSet[TaskId],
        standbys: int,
        release: BrokerRelease,
    ) -> None:
        self._release = release
        self._members, self._tasks, self._stateful = members, tasks, stateful
        self._standbys = standbys
        order = list(members)
        by_process: dict[str, list[str]] = {}
        for member in order:
            by_process.setdefault(members[member].process, []).append(member)
        processes = {process: ProcessState(own) for process, own in by_process.items()}
        in_order = in_hash_map_order(processes, capacity=len(members))
        if release is not BrokerRelease.V4_3:
            in_order = in_computed_map_order(
                (members[member].process for member in order), len(members)
            )
        self._states = [processes[process] for process in in_order]
        self._state_of = {member: processes[members[member].process] for member in members}
        self._was_active = {task: member for member in order for task in members[member].active}
        self._were_standby = self._former_standbys(order)
        copies = len(tasks) + standbys * sum(task in stateful for task in tasks)
        self._actives = _Quota(len(tasks), len(members))
        self._all = _Quota(copies, len(members))

    def _former_standbys(self, order: Iterable[str]) -> dict[TaskId, list[str]]:
        """Return the members with a copy of each task; in 4.4.0 the most complete copies first."""
        found: dict[TaskId, list[str]] = {}
        for name in order:
            for task in self._members[name].standby:
                found.setdefault(task, []).append(name)
        if self._release is BrokerRelease.V4_3:
            return found
        ranked = {
            task: [(False, -self._offset(name, task), name) for name in own]
            for task, own in found.items()
        }
        for name in order:
            member = self._members[name]
            for task, offset in member.offsets.items():
                if task not in member.standby:
                    ranked.setdefault(task, []).append((True, -offset, name))
        return {
            task: [name for *_, name in sorted(copies, key=lambda copy: copy[:2])]
            for task, copies in ranked.items()
        }

    def _offset(self, member: str, task: TaskId) -> int:
        return self._members[member].offsets.get(task, 0)

    def assigned(self) -> dict[str, MemberTasks]:
        self._assign_actives()
        if self._standbys:
            self._assign_standbys()
        return {
            name: MemberTasks(
                member.process,
                frozenset(self._state_of[name].active[name]),
                frozenset(self._state_of[name].standby[name]),
            )
            for name, member in self._members.items()
        }

    def _assign_actives(self) -> None:
        """Assign actives to previous members, then to previous standbys, and the rest by load."""
        waiting = sorted(self._tasks, key=_by_partition)
        for previous in (self._was_active.get, self._least_loaded_standby):
            rest = []
            for task in waiting:
                member = previous(task)
                if member is None or self._count(member) >= self._actives.share:
                    rest.append(task)
                else:
                    self._note_active(self._state_of[member].add(member, task, active=True))
            waiting = rest
        queue = self._by_load()
        for task in sorted(waiting, key=_by_subtopology):
            place = queue.poll()
            self._note_active(self._states[place].add_to_least_loaded(task, active=True))
            queue.offer(place)

    def _assign_standbys(self) -> None:
        """Assign standbys to members that had a copy, and the rest by load, the last task first."""
        waiting = sorted(
            (task for task in self._tasks if task in self._stateful),
            key=_by_partition,
            reverse=True,
        )
        missing: list[tuple[TaskId, int]] = []
        for task in waiting:
            for number in range(self._standbys):
                member = self._standby_again(task)
                if member is None:
                    missing.append((task, self._standbys - number))
                    break
                self._all.note(self._state_of[member].add(member, task, active=False))
        missing.sort(key=lambda one: _by_subtopology(one[0]), reverse=True)
        queue = self._by_load()
        for task, count in missing:
            for _ in range(count):
                if not self._standby_anywhere(queue, task):
                    break

    def _standby_again(self, task: TaskId) -> str | None:
        """Return a member that had a copy and has room: the former active, or a former standby."""
        member = self._was_active.get(task)
        if (
            member is not None
            and not self._state_of[member].has(task)
            and self._count(member) < self._all.share
        ):
            return member
        member = self._least_loaded_standby(task, without=True)
        if member is not None and self._count(member) < self._all.share:
            return member
        return None

    def _standby_anywhere(self, queue: JavaPriorityQueue[int], task: TaskId) -> bool:
        """Assign a standby to the process with the least load that has no copy of the task."""
        passed: list[int] = []
        found = False
        while len(queue) and not found:
            place = queue.poll()
            passed.append(place)
            if not self._states[place].has(task):
                self._all.note(self._states[place].add_to_least_loaded(task, active=False))
                found = True
        for place in reversed(passed):
            queue.offer(place)
        return found

    def _least_loaded_standby(self, task: TaskId, *, without: bool = False) -> str | None:
        """Return the former standby with the least load, both of its process and its own.

        ``without``: only of those whose process has no copy of the task yet. Kafka 4.3.1 checks this
        for the first former standby at the end, whichever member became the candidate.
        """
        members = self._were_standby.get(task)
        if members and without and self._release is not BrokerRelease.V4_3:
            members = [one for one in members if not self._state_of[one].has(task)]
        if not members:
            return None
        candidate = members[0]
        first = self._state_of[candidate]
        load, count = first.load, first.counts[candidate]
        for member in members[1:]:
            state = self._state_of[member]
            if without and state.has(task):
                continue
            if state.load < load and state.counts[member] < count:
                candidate, load, count = member, state.load, state.counts[member]
        return None if without and first.has(task) else candidate

    def _note_active(self, count: int) -> None:
        self._actives.note(count)
        self._all.note(count)

    def _count(self, member: str) -> int:
        return self._state_of[member].counts[member]

    def _by_load(self) -> JavaPriorityQueue[int]:
        """Return a queue of the processes, as places in ``_states``, by load."""
        queue = JavaPriorityQueue[int](_Loads(self._states))
        queue.offer_all(range(len(self._states)))
        return queue


class _Loads:
    def __init__(self, states: list[ProcessState]) -> None:
        self._states = states

    def __getitem__(self, place: int, /) -> float:
        return self._states[place].load


def _by_partition(task: TaskId) -> tuple[int, str]:
    return task.partition, str(task.subtopology)


def _by_subtopology(task: TaskId) -> tuple[str, int]:
    return str(task.subtopology), task.partition
