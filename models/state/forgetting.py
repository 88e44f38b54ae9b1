"""Removes reports about groups and movements that are gone, or never existed.

Applications, jobs and others write records about groups by name. Records about a group that isn't
in the log of groups are kept for a while, since that log may be read late.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Generic, TypeVar

from caughtup.models.ids import TopicPartition
from caughtup.models.state.cluster import ClusterState

#: The time, in ms, after which an absent subject counts as gone.
GRACE_MS = 10 * 60_000

Subject = TypeVar("Subject", bound=Hashable)


class Absences(Generic[Subject]):
    """The time (ms) since which each known subject has been absent."""

    def __init__(self) -> None:
        self._since_ms: dict[Subject, int] = {}

    def gone(
        self, known: Collection[Subject], present: Collection[Subject], now_ms: int
    ) -> list[Subject]:
        """Return those of the known subjects that have been absent for too long, in no order.

        A time that is later than now is from before the clock was set back: it starts again.
        """
        since_ms = self._since_ms
        self._since_ms = {
            subject: min(now_ms, since_ms.get(subject, now_ms))
            for subject in known
            if subject not in present
        }
        return [one for one, since in self._since_ms.items() if now_ms - since >= GRACE_MS]


class Forgetting:
    """Removes reports about groups, and about partitions' movements, that don't exist."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._groups = Absences[str]()
        self._movements = Absences[TopicPartition]()

    def forget(self, now_ms: int) -> list[str]:
        """Remove what is gone by now (ms), once the log of groups was read to its end.

        Returns the groups whose recommendation has to be withdrawn, sorted.
        """
        state = self._state
        told = {
            *state.positions.groups(),
            *state.rates.groups(),
            *state.applications.groups_with_records(),
        }
        gone = self._groups.gone(told, state.commits.groups() | state.groups.names(), now_ms)
        for group in gone:
            state.positions.forget(group)
            state.rates.forget(group)
            state.set_aside.forget(group)
        known = state.reassignment_events.partitions()
        for partition in self._movements.gone(known, state.reassignments.ongoing, now_ms):
            state.reassignment_events.forget(partition)
        return sorted(state.applications.forget_records(gone))
