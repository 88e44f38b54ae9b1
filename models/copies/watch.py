"""Assesses the copies of Streams applications that restore, and their probing rebalances."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from caughtup.models.commits.table import CommitTable
from caughtup.models.copies.catch_up_rates import CatchUpRates
from caughtup.models.copies.figures import SOURCE_BY_PACE, CatchUpRate
from caughtup.models.copies.history import MEASURED, Observation
from caughtup.models.copies.probing import Probing, ProbingHistory, assess_probing
from caughtup.models.copies.warmup_table import WarmupTable
from caughtup.models.copies.warmups import CopyAssessment
from caughtup.models.decisions.life import DecidedGeneration
from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.histories.offset_sums import EndOffsetSum
from caughtup.models.ids import CopyKey, TaskId, TopicPartition
from caughtup.models.offsets import sum_offsets
from caughtup.models.parameters import DEFAULTS, ApplicationParameters
from caughtup.models.records.fields import Absent
from caughtup.models.records.transactions import OpenTransaction
from caughtup.models.tasks.positions import TaskPosition, TaskPositions
from caughtup.models.transactions.holders import held_back
from caughtup.models.transactions.table import TransactionTable

#: Returns the application's committed offset of a partition, None without one.
Committed = Callable[[TopicPartition], int | None]


class CopyWatch:
    """The last assessments of an application's copies and of its next probing rebalance.

    ``client_ids``: the client id of each process. ``probing`` is None before the first assessment,
    and for groups whose tasks the coordinator assigns.
    """

    def __init__(self, parameters: ApplicationParameters) -> None:
        self.copies: Mapping[CopyKey, CopyAssessment] = {}
        self.client_ids: Mapping[str, str] = {}
        self.probing: Probing | None = None
        self.history = ProbingHistory()
        self._table = WarmupTable(parameters)
        self._rates: Mapping[CopyKey, CatchUpRate] = {}
        self._rated: frozenset[CopyKey] = frozenset()

    def set_rates(self, rates: Mapping[CopyKey, CatchUpRate]) -> None:
        """Set the published rates for the next assessment."""
        self._rates = rates

    def rate_sources(self) -> Counter[str]:
        """Return the number of copies by the source of their rate, one of ``SOURCES``."""
        paces = (assessed.figures.pace for assessed in self.copies.values())
        return Counter(SOURCE_BY_PACE[pace] for pace in paces if pace is not None)

    def etas_ms(self) -> dict[tuple[str, TaskId], int | None]:
        """Return the ms until each copy is caught up, by process and task; None if unknown or never."""
        return {
            (one.copy.process, one.copy.task): None
            if (eta := one.figures.eta) is None or math.isinf(eta.seconds)
            else round(eta.seconds * 1_000)
            for one in self.copies.values()
        }

    @property
    def rates(self) -> str | None:
        """The source of the rates: ``own`` if any copy's is, None while no rate is known."""
        counts = self.rate_sources()
        return "own" if counts["own"] else "spark" if counts["spark"] else None

    def future_worthwhile_ms(self, now_ms: int) -> int | None:
        """Return the time (ms) in the future from which a probe is worthwhile, None without one."""
        at_ms = None if self.probing is None else self.probing.worthwhile_at_ms
        return at_ms if at_ms is not None and at_ms > now_ms else None

    def watch_generation(
        self,
        decided: DecidedGeneration,
        rows: Sequence[TaskCopy],
        positions: Mapping[CopyKey, TaskPosition],
        ends: EndOffsetTable,
        committed: Committed,
        holders: Mapping[TopicPartition, OpenTransaction],
        now_ms: int,
    ) -> Iterator[None]:
        """Apply a decided generation and assess its copies one by one; ``rows`` is its task table.

        The caller may do other work between two steps.
        """
        table, generation, inputs = self._table, decided.generation, decided.inputs
        table.forget_the_future(now_ms)
        config = inputs.scenario.config
        table.parameters = ApplicationParameters(
            {
                name: value
                for name in DEFAULTS.keys() - set(inputs.assumed)
                if isinstance(value := config.get(name), int)
            }
        )
        yield from table.apply_generation(generation, rows, inputs.ends)
        limit = table.parameters.value("acceptable.recovery.lag")
        self.history.apply(generation, rows, limit, table.warmup_roles)
        yield
        changelogs: dict[TaskId, tuple[TopicPartition, ...]] = {}
        for task in sorted(table.watched_tasks()):
            known = inputs.scenario.tasks.get(task)
            # A leader may assign tasks that it reported nothing of, whose changelogs are unknown.
            changelogs[task] = () if known is None else known.changelogs
            self._observe_end(task, changelogs[task], generation.source_topics, ends, committed)
            yield

        def end_of(task: TaskId, at_ms: int) -> EndOffsetSum | None:
            partitions = changelogs.get(task, ())
            bounds = [
                ends.bounds(partition, at_ms, at_ms)
                for partition in partitions
                if partition.topic not in generation.source_topics
            ]
            known = [bound for bound in bounds if bound is not None]
            if not known or len(known) < len(partitions):
                return None
            low, high = (sum_offsets([bound[side] for bound in known]) for side in (0, 1))
            return EndOffsetSum(low, high)

        yield from self._observe(positions, generation.as_of_ms, end_of)
        table.held_back = {
            task: held_back(partition, holders[partition])
            for task, partitions in changelogs.items()
            for partition in partitions
            if partition in holders
        }
        yield from self._judge(rows, now_ms)
        waiting = [m.lag for m in decided.movements if m.kind == "waiting"]
        self.probing = assess_probing(
            self.history,
            self.copies.values(),
            table.parameters,
            now_ms,
            [lag for lag in waiting if not isinstance(lag, Absent)],
            table.paces,
        )

    def watch_assignment(
        self, rows: Sequence[TaskCopy], positions: Mapping[CopyKey, TaskPosition], now_ms: int
    ) -> Iterator[None]:
        """Assess the copies of a group whose tasks the coordinator assigns (KIP-1071)."""
        self._table.forget_the_future(now_ms)
        self._table.apply_assignment(rows)
        yield from self._observe(positions, 0, lambda task, at_ms: None)
        yield from self._judge(rows, now_ms)

    def _observe(
        self,
        positions: Mapping[CopyKey, TaskPosition],
        since_ms: int,
        end_of: Callable[[TaskId, int], EndOffsetSum | None],
    ) -> Iterator[None]:
        """Add positions; known ones again, as new samples narrow the end offsets around them."""
        for copy, position in list(positions.items()):
            yield
            if position.lag is not None and position.at_ms >= since_ms:
                end = end_of(copy.task, position.at_ms)
                seen = Observation(position.at_ms, None, position.lag, end, MEASURED)
                self._table.observe(copy, seen)

    def _observe_end(
        self,
        task: TaskId,
        partitions: Sequence[TopicPartition],
        source_topics: Mapping[str, int],
        ends: EndOffsetTable,
        committed: Committed,
    ) -> None:
        """Add a task's newest end offset sum, once each of its changelogs has a sample."""
        samples = [ends.latest(partition) for partition in partitions]
        known = [sample for sample in samples if sample is not None]
        if not known or len(known) < len(samples):
            return
        total = sum_offsets(
            [
                (committed(partition) or 0)
                if partition.topic in source_topics
                else sample.end_offset
                for partition, sample in zip(partitions, known, strict=True)
            ]
        )
        at_ms = min(sample.as_of_ms for sample in known)
        self._table.observe_end(task, at_ms, EndOffsetSum(total, total))

    def _judge(self, rows: Sequence[TaskCopy], now_ms: int) -> Iterator[None]:
        for copy in self._rated - self._rates.keys():
            self._table.set_rate(copy, None)
        for copy, rate in self._rates.items():
            self._table.set_rate(copy, rate)
        self._rated = frozenset(self._rates)
        copies = {}
        for assessment in self._table.assess(now_ms):
            copies[assessment.copy] = assessment
            yield
        self.copies = copies
        self.client_ids = {row.process: row.client_id for row in rows}


class CopyWatches(Mapping[str, CopyWatch]):
    """The watch of each application, by group."""

    def __init__(
        self,
        ends: EndOffsetTable,
        commits: CommitTable,
        positions: TaskPositions,
        rates: CatchUpRates,
        transactions: TransactionTable,
    ) -> None:
        self._ends = ends
        self._transactions = transactions
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
        """Assess the copies of an application, with ``rows`` as its task table.

        ``decided`` is None if the coordinator assigns its tasks. The caller may do other work
        between two steps.
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

        holders = self._transactions.holders
        return watch.watch_generation(
            decided, rows, positions, self._ends, committed, holders, now_ms
        )

    def forget(self, group: str) -> None:
        """Remove a group's watch, if it has one."""
        self._watches.pop(group, None)

    def keep_only(self, groups: Collection[str]) -> None:
        """Remove the watches of all other groups."""
        for group in self._watches.keys() - set(groups):
            del self._watches[group]
