"""How a member gets from its assignment to its target: it revokes first, then gets what is free.

Source: CurrentAssignmentBuilder of streams groups and of consumer groups, Kafka 4.3.1. A partition
of a consumer group is treated like an active task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from caughtup.models.ids import TaskId


class MemberState(StrEnum):
    """The state of a member, by Kafka's names."""

    STABLE = "stable"
    UNREVOKED = "unrevoked"
    UNRELEASED = "unreleased"


class Tasks(NamedTuple):
    """A member's tasks, present or planned."""

    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()

    def all(self) -> frozenset[TaskId]:
        """Return the tasks of both kinds."""
        return self.active | self.standby


NONE = Tasks()


@dataclass(frozen=True, slots=True)
class Reconciled:
    """A member as the coordinator knows it. ``revoking``: the tasks that it has yet to give up."""

    process: str
    epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Tasks = NONE
    revoking: Tasks = NONE


@dataclass(frozen=True, slots=True)
class Owners:
    """The owners of all copies, as the coordinator knows them, by their processes."""

    active: dict[TaskId, str]
    standby: set[tuple[TaskId, str]]

    @classmethod
    def of(cls, members: Iterable[Reconciled]) -> Owners:
        """Return the owners of all tasks that members have, or have yet to give up."""
        active: dict[TaskId, str] = {}
        standby: set[tuple[TaskId, str]] = set()
        for member in members:
            for tasks in (member.assigned, member.revoking):
                active.update(dict.fromkeys(tasks.active, member.process))
                standby.update((task, member.process) for task in tasks.standby)
        return cls(active, standby)

    def active_is_free(self, task: TaskId, process: str) -> bool:
        """Return whether an active can be assigned: no owner, and no copy in the process."""
        return task not in self.active and (task, process) not in self.standby

    def standby_is_free(self, task: TaskId, process: str) -> bool:
        """Return whether a standby can be assigned: the process has no copy."""
        return self.active.get(task) != process and (task, process) not in self.standby


def reconcile(
    member: Reconciled, target_epoch: int, target: Tasks, owned: Tasks, owners: Owners
) -> Reconciled:
    """Return a member after a heartbeat that reports what it owns; ``owners`` are all members'."""
    if member.state is MemberState.STABLE and member.epoch == target_epoch:
        return member
    epoch = member.epoch
    if member.state is MemberState.UNREVOKED:
        if owned.active & member.revoking.active or owned.standby & member.revoking.standby:
            return member
        epoch += 1
    kept = _both(member.assigned, target)
    revoking = _without(member.assigned, kept)
    if owned.active & revoking.active or owned.standby & revoking.standby:
        return Reconciled(member.process, epoch, MemberState.UNREVOKED, kept, revoking)
    wanted = _without(target, kept)
    free = Tasks(
        _free(wanted.active, member.process, owners.active_is_free),
        _free(wanted.standby, member.process, owners.standby_is_free),
    )
    state = MemberState.STABLE if free == wanted else MemberState.UNRELEASED
    given = Tasks(kept.active | free.active, kept.standby | free.standby)
    return Reconciled(member.process, target_epoch, state, given)


def _both(one: Tasks, other: Tasks) -> Tasks:
    return Tasks(one.active & other.active, one.standby & other.standby)


def _without(one: Tasks, other: Tasks) -> Tasks:
    return Tasks(one.active - other.active, one.standby - other.standby)


def _free(
    tasks: AbstractSet[TaskId], process: str, is_free: Callable[[TaskId, str], bool]
) -> frozenset[TaskId]:
    return frozenset(task for task in tasks if is_free(task, process))
