"""The previous target assignment of each group on the new protocols, until the next is complete.

A coordinator writes the records of a target assignment one after the other, the epoch's last, so
that a batch may end in between. Other records change members' target assignments without a new
epoch: a member that leaves has none any more, and a static member's successor gets its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class _Epoch(Protocol):
    @property
    def assignment_epoch(self) -> int:
        """The epoch for which it was computed."""


class _Static(Protocol):
    @property
    def instance_id(self) -> str | None:
        """The ``group.instance.id``."""


class Coordinated(Protocol[T_co]):
    """A group whose coordinator assigns, as its records have it."""

    @property
    def epoch(self) -> int | None:
        """The group's epoch."""

    @property
    def members(self) -> Mapping[str, _Static]:
        """The members."""

    @property
    def target(self) -> Mapping[str, T_co]:
        """The members' target assignments."""

    @property
    def target_of(self) -> _Epoch | None:
        """Their epoch."""


class _Held(NamedTuple, Generic[T]):
    target: T
    instance_id: str | None


class TargetsBefore(Generic[T]):
    """One group's target assignment before the one that is being written; None if it is not known."""

    def __init__(self, *, known: bool, why: str = "") -> None:
        """Begin with a group that doesn't exist, or, if not ``known``, may have existed.

        ``why`` it isn't known, "" for no special reason.
        """
        self._held: dict[str, _Held[T]] | None = {} if known else None
        self.why = why

    @classmethod
    def of(cls, group: Coordinated[T]) -> TargetsBefore[T]:
        """Begin with a group whose last target assignment is known, unless another is due."""
        found = cls(known=False)
        if group.target_of is not None and group.epoch == group.target_of.assignment_epoch:
            found.complete(group)
        return found

    def complete(self, group: Coordinated[T]) -> None:
        """Take the group's present target assignment as the one before the next.

        If a member has no target assignment, all of it is unknown: the coordinator writes one for
        every new member.
        """
        self.why = ""
        self._held = None
        if group.members.keys() <= group.target.keys():
            self._held = {
                name: _Held(target, _instance(group, name)) for name, target in group.target.items()
            }

    def changed(self, group: Coordinated[T]) -> None:
        """Take over what changed without a new epoch."""
        if self._held is None:
            return
        successors = _statics(group)
        for name, held in list(self._held.items()):
            if name not in group.target:
                del self._held[name]
                successor = successors.get(held.instance_id or "")
                if successor is not None and successor not in self._held:
                    self._held[successor] = held
        if group.target_of is not None and group.epoch == group.target_of.assignment_epoch:
            for name, target in group.target.items():
                self._held[name] = _Held(target, _instance(group, name))

    def of_members(self, group: Coordinated[T]) -> dict[str, T] | None:
        """Return what each member had, or the member whose static successor it is; None if unknown."""
        if self._held is None:
            return None
        by_instance = {
            held.instance_id: held.target
            for name, held in self._held.items()
            if held.instance_id is not None and name not in group.members
        }
        found: dict[str, T] = {}
        for name in group.members:
            if (held := self._held.get(name)) is not None:
                found[name] = held.target
            elif (instance := _instance(group, name)) in by_instance:
                found[name] = by_instance[instance]
        return found


def apply_targets(
    table: dict[str, TargetsBefore[T]],
    group: str,
    found: Coordinated[T] | None,
    is_deleted: bool,
    is_complete: bool,
) -> TargetsBefore[T] | None:
    """Apply a batch's records of a group to the table.

    Return the group's previous target assignment if the batch completed the next one, else None.
    """
    if found is None:
        if is_deleted:  # it may come again
            table.pop(group, None)
        return None
    if not is_complete:
        table[group].changed(found)
        return None
    return table[group]


def _statics(group: Coordinated[T]) -> dict[str, str]:
    return {
        member.instance_id: name
        for name, member in sorted(group.members.items())
        if member.instance_id is not None
    }


def _instance(group: Coordinated[T], member: str) -> str | None:
    found = group.members.get(member)
    return None if found is None else found.instance_id
