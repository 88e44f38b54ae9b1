"""Partition reassignments in KRaft: who is being added, how far it is, how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field

from caughtup.models.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionMovement:
    """One look at a partition in movement.

    ``replicas``, ``adding``, ``removing`` are the controller's; ``isr`` and ``leader`` the
    metadata's. ``log_ends``: broker → that replica's own log end offset, absent where it could
    not be had. ``as_of_ms``: when it was looked at.
    """

    partition: TopicPartition
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None
    log_ends: dict[int, int]
    as_of_ms: int

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas there will be in the end (TRS)."""
        return tuple(r for r in self.replicas if r not in self.removing)

    @property
    def phase(self) -> str:
        """``A`` while an added replica is still out of the ISR, then ``completing``."""
        return "A" if set(self.adding) - set(self.isr) else "completing"

    @property
    def offsets_remaining(self) -> int | None:
        """Offsets that the furthest added replica has yet to copy; None if one is unknown."""
        head = self.log_ends.get(self.leader) if self.leader is not None else None
        if head is None or any(r not in self.log_ends for r in self.adding):
            return None
        return max((max(0, head - self.log_ends[r]) for r in self.adding), default=0)


@dataclass(slots=True)
class TrackedMovement:
    """A movement over time: first and latest look, and when it last got anywhere (ms)."""

    first: PartitionMovement
    latest: PartitionMovement
    progressed_ms: int


@dataclass(frozen=True, slots=True)
class EndedMovement:
    """A movement that is no longer listed, and how it ended."""

    partition: TopicPartition
    outcome: str
    at_ms: int
    target: tuple[int, ...]


@dataclass(slots=True)
class ReassignmentTracker:
    """Every partition in movement, and the last movements that ended."""

    moving: dict[TopicPartition, TrackedMovement] = field(default_factory=dict)
    ended: list[EndedMovement] = field(default_factory=list)
    kept: int = 50

    def apply(self, movement: PartitionMovement) -> None:
        """Take a look at a partition that the controller lists as in movement."""
        tracked = self.moving.get(movement.partition)
        if tracked is None:
            self.moving[movement.partition] = TrackedMovement(movement, movement, movement.as_of_ms)
            return
        if _progressed(tracked.latest, movement):
            tracked.progressed_ms = movement.as_of_ms
        tracked.latest = movement

    def end(
        self, partition: TopicPartition, replicas: tuple[int, ...] | None, at_ms: int
    ) -> EndedMovement | None:
        """Take that a partition is no longer listed; ``replicas`` is its shape now, None if gone.

        completed: the target was reached; cancelled: the first replicas are back; vanished: the
        topic is gone; superseded: anything else.
        """
        tracked = self.moving.pop(partition, None)
        if tracked is None:
            return None
        first, last = tracked.first, tracked.latest
        if replicas is None:
            outcome = "vanished"
        elif replicas == last.target:
            outcome = "completed"
        elif set(replicas) == set(first.replicas) - set(first.adding):
            outcome = "cancelled"
        else:
            outcome = "superseded"
        ended = EndedMovement(partition, outcome, at_ms, last.target)
        self.ended = [*self.ended, ended][-self.kept :]
        return ended


def _progressed(before: PartitionMovement, after: PartitionMovement) -> bool:
    shape = (before.replicas, before.adding, before.removing)
    if shape != (after.replicas, after.adding, after.removing):
        return True
    if set(after.isr) - set(before.isr):
        return True
    return any(after.log_ends.get(r, 0) > before.log_ends.get(r, 0) for r in after.adding)
