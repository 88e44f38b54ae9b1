"""Watches the copies of every Streams application, whoever assigns its tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from caughtup.models.commits.table import CommitTable
from caughtup.models.copies.catch_up_rates import CatchUpRates
from caughtup.models.copies.watch import CopyWatch
from caughtup.models.decisions.life import DecidedGeneration
from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.histories.end_offsets import EndOffsetTable
from caughtup.models.ids import TopicPartition
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.tasks.positions import TaskPositions


class CopyWatches(Mapping[str, CopyWatch]):
    """The watch of each application whose copies are watched, by group.

    It reads what is known of ``ends``, ``commits``, ``positions`` and ``rates`` when it needs it.
    """

    def __init__(
        self,
        ends: EndOffsetTable,
        commits: CommitTable,
        positions: TaskPositions,
        rates: CatchUpRates,
    ) -> None:
        self._ends = ends
        self._commits = commits
        self._positions = positions
        self._rates = rates
        self._watches: dict[str, CopyWatch] = {}

    def __getitem__(self, group: str) -> CopyWatch:
        return self._watches[group]

    def __iter__(self) -> Iterator[str]:
        return iter(self._watches)

    def __len__(self) -> int:
        return len(self._watches)

    def watch(
        self,
        group: str,
        decided: DecidedGeneration | None,
        rows: Sequence[TaskCopy],
        parameters: ApplicationParameters,
        now_ms: int,
    ) -> Iterator[None]:
        """Work out anew how the copies of an application fare.

        ``decided`` is None where the broker assigns its tasks, and ``rows`` its task table. In
        steps, between which others may have their turn.
        """
        watch = self._watches.get(group)
        if watch is None:
            watch = self._watches[group] = CopyWatch(parameters)
        watch.set_rates(self._rates.of(group, now_ms))
        positions = self._positions.of(group)
        if decided is None:
            return watch.watch_assignment(rows, positions, now_ms)

        def committed(partition: TopicPartition) -> int | None:
            known = self._commits.of(group).get(partition)
            return None if known is None else known.committed

        return watch.watch_generation(decided, rows, positions, self._ends, committed, now_ms)

    def forget(self, group: str) -> None:
        """Forget a group's watch, if it has one."""
        self._watches.pop(group, None)

    def keep_only(self, groups: Collection[str]) -> None:
        """Forget the watches of all other groups."""
        for group in self._watches.keys() - set(groups):
            del self._watches[group]
