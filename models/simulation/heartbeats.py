"""The coordinator of a streams or consumer group in virtual time, and its members' heartbeats.

It computes a target whenever the members change, and each member reaches it by its own heartbeats:
it revokes first, then gets what is free. Heartbeats that would change nothing are no events here. A
partition of a consumer group is treated like an active task. Source: Kafka 4.3.1's
GroupMetadataManager (``streamsGroupHeartbeat``, ``consumerGroupHeartbeat``) and
CurrentAssignmentBuilder, KIP-848 and KIP-1071.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from caughtup.models.ids import TaskId
from caughtup.models.simulation.membership import Session, Timings
from caughtup.models.simulation.virtual_time import Event, VirtualTime


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
    """A member as the coordinator knows it. ``revoking``: the tasks that it has yet to revoke."""

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


class HeartbeatMember(Protocol):
    """The interface of a member to the coordinator; ``answers`` is whether it sends heartbeats."""

    @property
    def member_id(self) -> str:
        """Its id in the group."""

    @property
    def answers(self) -> bool:
        """Whether heartbeats are sent."""

    def given(self, epoch: int, tasks: Tasks) -> None:
        """Adopt an assignment, which is all that the member has from now on."""


#: Assigns: the previous targets by member id, in the members' order → the new targets.
Assign = Callable[[Mapping[str, Tasks]], Mapping[str, Tasks]]


@dataclass(slots=True)
class _KnownMember:
    """A member as the coordinator knows it. ``owned`` is what it reported last."""

    member: HeartbeatMember
    reconciled: Reconciled
    session: Session
    target: Tasks = NONE
    owned: Tasks = NONE
    beat: Event | None = None


class HeartbeatCoordinator:
    """A group's coordinator, and its members' side of heartbeats.

    ``assign`` computes a target; ``completed`` is called with each target's epoch and members.
    ``timings``: heartbeat and session as brokers set them, ``initial_rebalance_delay_ms`` 0 for no
    delay. ``assignment_interval_ms``: the least time between two targets.
    """

    def __init__(
        self,
        time: VirtualTime,
        assign: Assign,
        timings: Timings,
        completed: Callable[[int, list[str]], None] = lambda _epoch, _members: None,
        assignment_interval_ms: int = 1_000,
    ) -> None:
        self._time = time
        self._assign = assign
        self._timings = timings
        self._completed = completed
        self._interval_ms = assignment_interval_ms
        self._members: dict[str, _KnownMember] = {}
        self._computed_ms: int | None = None
        self._initial: Event | None = None
        self.epoch = 0
        self.target_epoch = 0

    @property
    def members(self) -> list[str]:
        """Member ids, in the order in which they joined the group."""
        return list(self._members)

    @property
    def stable(self) -> bool:
        """Whether every member has its newest target."""
        return self.epoch == self.target_epoch and all(
            known.reconciled.state is MemberState.STABLE
            and known.reconciled.epoch == self.target_epoch
            for known in self._members.values()
        )

    def resume(self, members: Iterable[tuple[HeartbeatMember, str, Tasks]], epoch: int) -> None:
        """Begin with a stable group: its members, their processes and their tasks."""
        self.epoch = self.target_epoch = epoch
        for member, process, tasks in members:
            reconciled = Reconciled(process, epoch, assigned=tasks)
            session = Session(self._time, self._timings)
            self._members[member.member_id] = _KnownMember(
                member, reconciled, session, target=tasks, owned=tasks
            )

    def join(self, member: HeartbeatMember, process: str) -> None:
        """Send the first heartbeat of a member."""
        self._time.after(self._timings.request_ms, lambda: self._join(member, process))

    def leave(self, member_id: str) -> None:
        """Send the heartbeat by which a member leaves."""
        self._time.after(self._timings.request_ms, lambda: self._remove(member_id))

    def falls_silent(self, member_id: str) -> None:
        """Expire a member whose process no longer answers, once its session times out."""
        known = self._members.get(member_id)
        if known is not None:
            known.session.falls_silent(lambda: self._remove(member_id))

    def speaks_again(self, member_id: str) -> None:
        """Resume a member that was silent and is still in the group."""
        known = self._members[member_id]
        known.session.speaks_again()
        known.owned = known.reconciled.assigned
        known.member.given(known.reconciled.epoch, known.reconciled.assigned)
        self._beat_again(known)

    def _join(self, member: HeartbeatMember, process: str) -> None:
        if not member.answers:
            return
        first = not self._members
        known = _KnownMember(member, Reconciled(process), Session(self._time, self._timings))
        self._members[member.member_id] = known
        self._changed()
        delay_ms = self._timings.initial_rebalance_delay_ms
        if first and delay_ms and self._initial is None:
            self._initial = self._time.after(delay_ms, self._initially)
        self._heard(known)

    def _initially(self) -> None:
        """Compute the first target, once members that start together had time to join."""
        self._initial = None
        if self._members:
            self._compute()

    def _changed(self) -> None:
        """Begin a new epoch, which members reach by their heartbeats."""
        self.epoch += 1
        for known in self._members.values():
            self._beat_again(known)

    def _remove(self, member_id: str) -> None:
        known = self._members.pop(member_id, None)
        if known is None:
            return
        known.session.end()
        if known.beat is not None:
            known.beat.cancel()
        self._changed()

    def _beat_again(self, known: _KnownMember) -> None:
        """Plan the next heartbeat of a member, unless one is planned."""
        if known.beat is None:
            interval = self._timings.heartbeat_interval_ms
            in_ms = interval - (self._time.now_ms - known.session.heard_ms) % interval
            known.beat = self._time.after(in_ms, lambda: self._heard(known))

    def _heard(self, known: _KnownMember) -> None:
        """Receive a heartbeat, and answer with the member's assignment if that changed."""
        known.beat = None
        if not known.member.answers or self._members.get(known.member.member_id) is not known:
            return
        known.session.hear()
        self._compute_if_due()
        before = known.reconciled
        owners = Owners.of(one.reconciled for one in self._members.values())
        after = known.reconciled = reconcile(
            before, self.target_epoch, known.target, known.owned, owners
        )
        if after.assigned != before.assigned:
            self._time.after(self._timings.request_ms, lambda: self._answered(known, after))
        elif not self._at_rest(known):
            self._beat_again(known)

    def _answered(self, known: _KnownMember, answer: Reconciled) -> None:
        """Let a member carry out an assignment, and report it in a heartbeat at once."""
        if not known.member.answers:
            return
        known.member.given(answer.epoch, answer.assigned)
        known.owned = answer.assigned
        in_ms = self._timings.request_ms + (self._timings.poll_ms if answer.revoking.all() else 0)
        if known.beat is not None:
            known.beat.cancel()
        known.beat = self._time.after(in_ms, lambda: self._heard(known))

    def _at_rest(self, known: _KnownMember) -> bool:
        reconciled = known.reconciled
        return (
            self.epoch == self.target_epoch
            and reconciled.state is MemberState.STABLE
            and reconciled.epoch == self.target_epoch
        )

    def _compute_if_due(self) -> None:
        if self.epoch == self.target_epoch or self._initial is not None:
            return
        since_ms = self._computed_ms
        if since_ms is None or self._time.now_ms - since_ms >= self._interval_ms:
            self._compute()

    def _compute(self) -> None:
        """Compute the target of the newest epoch from the members' previous targets."""
        self._computed_ms = self._time.now_ms
        targets = self._assign({name: known.target for name, known in self._members.items()})
        for name, known in self._members.items():
            known.target = targets[name]
            self._beat_again(known)
        self.target_epoch = self.epoch
        self._completed(self.epoch, list(self._members))
