"""Removes reports about groups and movements that don't exist, or no longer, or are another's.

Records about a group may arrive before ``__consumer_offsets`` is read up to that group, so they are
kept for ``GRACE_MS``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Hashable
from typing import Generic, TypeVar

from caughtup.models.ids import TopicPartition
from caughtup.models.state.cluster import ClusterState

#: The time (ms) after which an absent subject is removed.
GRACE_MS = 10 * 60_000

Subject = TypeVar("Subject", bound=Hashable)


class Absences(Generic[Subject]):
    """The time (ms) since which each known subject has been absent."""

    def __init__(self) -> None:
        self._since_ms: dict[Subject, int] = {}

    def gone(
        self, known: Collection[Subject], present: Collection[Subject], now_ms: int
    ) -> list[Subject]:
        """Return the known subjects that have been absent for ``GRACE_MS``, in no order.

        If the clock was set back, the time of an absence starts again.
        """
        since_ms = self._since_ms
        self._since_ms = {
            subject: min(now_ms, since_ms.get(subject, now_ms))
            for subject in known
            if subject not in present
        }
        return [one for one, since in self._since_ms.items() if now_ms - since >= GRACE_MS]


def drop_groups(state: ClusterState, of: Callable[[str], bool]) -> Generator[None, None, None]:
    """Remove all that is known of these groups, one in each step: another instance goes on with them."""
    applications = state.applications
    known = {
        *state.group_names(),
        *state.positions.groups(),
        *state.rates.groups(),
        *applications,
        *applications.groups_with_records(),
        *state.connect.groups,
    }
    dropped = sorted(group for group in known if of(group))
    for group in dropped:
        state.commits.forget_group(group)
        state.groups.forget(group)
        applications.forget(group)
        applications.rebalance_ends.pop(group, None)
        state.connect.forget(group)
        state.spark.forget(group)
        state.positions.forget(group)
        state.rates.forget(group)
        state.set_aside.forget(group)
        state.kept_records.pop(group, None)
        yield
    applications.movements.forget(of)
    applications.forget_records(dropped)
    state.forget_gone()


class Forgetting:
    """Removes reports about groups, and about movements of partitions, that don't exist."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._groups = Absences[str]()
        self._movements = Absences[TopicPartition]()

    def forget(self, now_ms: int) -> list[str]:
        """Remove reports at ``now_ms``, after ``__consumer_offsets`` was read to its end.

        Return the groups whose published records have to be removed, sorted.
        """
        state = self._state
        reported = {
            *state.positions.groups(),
            *state.rates.groups(),
            *state.applications.groups_with_records(),
        }
        gone = self._groups.gone(reported, state.commits.groups() | state.groups.names(), now_ms)
        for group in gone:
            state.positions.forget(group)
            state.rates.forget(group)
            state.set_aside.forget(group)
        known = state.reassignment_events.partitions()
        for partition in self._movements.gone(known, state.reassignments.ongoing, now_ms):
            state.reassignment_events.forget(partition)
        return sorted(state.applications.forget_records(gone))
