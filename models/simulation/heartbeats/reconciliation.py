"""How a member gets from what it has to its target: it lets go first, and is given what is free.

Source: CurrentAssignmentBuilder of streams groups and of consumer groups, Kafka 4.3.1. A partition
of a consumer group is here what an active task is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from caughtup.models.ids import TaskId


class MemberState(StrEnum):
    """Where a member is, in Kafka's words."""

    STABLE = "stable"
    UNREVOKED = "unrevoked"
    UNRELEASED = "unreleased"


class Tasks(NamedTuple):
    """Tasks that a member has, or is to have."""

    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()

    def all(self) -> frozenset[TaskId]:
        """Return the tasks of both kinds."""
        return self.active | self.standby


NONE = Tasks()


@dataclass(frozen=True, slots=True)
class Reconciled:
    """A member as the coordinator has it. ``revoking``: what it still has to let go of."""

    process: str
    epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Tasks = NONE
    revoking: Tasks = NONE


@dataclass(frozen=True, slots=True)
class Owners:
    """Who has what, as the coordinator knows it: each copy with its owner's process."""

    active: dict[TaskId, str]
    standby: set[tuple[TaskId, str]]

    @classmethod
    def of(cls, members: Iterable[Reconciled]) -> Owners:
        """Gather who has what, or still has to let go of it."""
        active: dict[TaskId, str] = {}
        standby: set[tuple[TaskId, str]] = set()
        for member in members:
            for tasks in (member.assigned, member.revoking):
                active.update(dict.fromkeys(tasks.active, member.process))
                standby.update((task, member.process) for task in tasks.standby)
        return cls(active, standby)

    def active_is_free(self, task: TaskId, process: str) -> bool:
        """Return whether an active can be given: nobody runs it, and no copy is in the process."""
        return task not in self.active and (task, process) not in self.standby

    def standby_is_free(self, task: TaskId, process: str) -> bool:
        """Return whether a standby can be given: no copy is in the process."""
        return self.active.get(task) != process and (task, process) not in self.standby


def reconcile(
    member: Reconciled, target_epoch: int, target: Tasks, owned: Tasks, owners: Owners
) -> Reconciled:
    """Return a member after a heartbeat, in which it says what it owns. ``owners`` are everybody's."""
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
