"""Forgets what is told of groups that are gone, or never were, and of movements that there aren't.

Applications, jobs and anybody else write of groups by name. What they write of one that the log of
groups doesn't have stays for a while, since that log may be read late, and no longer.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Generic, TypeVar

from caughtup.models.ids import TopicPartition
from caughtup.models.state.cluster import ClusterState

#: How long, in ms, what is absent is still waited for.
GRACE_MS = 10 * 60_000

Subject = TypeVar("Subject", bound=Hashable)


class Absences(Generic[Subject]):
    """Since when each subject that something is known of has been absent (ms)."""

    def __init__(self) -> None:
        self._since_ms: dict[Subject, int] = {}

    def gone(
        self, known: Collection[Subject], present: Collection[Subject], now_ms: int
    ) -> list[Subject]:
        """Return those of the known that have been absent for too long, in no order.

        A time that is yet to come is from before the clock was set back: it begins anew.
        """
        since_ms = self._since_ms
        self._since_ms = {
            subject: min(now_ms, since_ms.get(subject, now_ms))
            for subject in known
            if subject not in present
        }
        return [one for one, since in self._since_ms.items() if now_ms - since >= GRACE_MS]


class Forgetting:
    """What is told of groups and of partitions' movements, without those that there aren't."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._groups = Absences[str]()
        self._movements = Absences[TopicPartition]()

    def forget(self, now_ms: int) -> list[str]:
        """Forget what is gone by now (ms), once the log of groups was read to its end.

        Names the groups whose recommendation is to be withdrawn, sorted.
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
