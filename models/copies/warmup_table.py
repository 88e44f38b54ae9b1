"""The copies of one application that restore: their observations and assessments."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from caughtup.models.clocks import AHEAD_MS
from caughtup.models.copies.figures import CatchUpRate, CopyFigures, copy_figures
from caughtup.models.copies.history import REPORTED, CopyHistory, CopyLosses, Observation
from caughtup.models.copies.restoration import copies_by_thread, waiting_standbys, with_shared_pace
from caughtup.models.copies.warmups import CopyAssessment, CopyContext, assess_copy
from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.histories.offset_sums import EndOffsetSum, SumHistory
from caughtup.models.histories.trend import trend
from caughtup.models.ids import CopyKey, TaskId
from caughtup.models.offsets import LATEST_OFFSET, UNKNOWN_OFFSET_SUM
from caughtup.models.parameters import ApplicationParameters

#: Roles in which a copy restores: not running actives, nor state that isn't assigned.
CATCHING_UP = frozenset({"warmup", "standby", "restoring"})
#: The number of caught-up copies whose rates are kept, to estimate those of the next ones.
PACES_KEPT = 8


class WarmupTable:
    """Every copy of an application that restores.

    A copy is forgotten when it runs or isn't assigned any more; its losses are remembered for some
    generations. ``paces``: offsets a second by which the lags of the last caught-up copies shrank.
    ``held_back``: by task, what an open transaction holds back on its changelogs.
    """

    def __init__(self, parameters: ApplicationParameters) -> None:
        self.parameters = parameters
        self._generation: StreamsGeneration | None = None
        self._moment: tuple[int, int] | None = None
        self._roles: dict[CopyKey, str] = {}
        self._histories: dict[CopyKey, CopyHistory] = {}
        self._ends: dict[TaskId, SumHistory] = {}
        self._rates: dict[CopyKey, CatchUpRate] = {}
        self._threads: list[list[CopyKey]] = []
        self._waiting: dict[CopyKey, tuple[TaskId, ...]] = {}
        self.held_back: Mapping[TaskId, str] = {}
        self.paces: deque[float] = deque(maxlen=PACES_KEPT)
        self._losses = CopyLosses()

    def apply_generation(
        self,
        generation: StreamsGeneration,
        rows: Sequence[TaskCopy],
        ends: Mapping[TaskId, EndOffsetSum | None],
    ) -> Iterator[None]:
        """Apply a decided generation, or the newest one again when the roles of copies changed.

        ``rows``: its task table; ``ends``: ``GenerationInputs.ends``. The offset sums that members
        reported become observations. The caller may do other work between two steps.
        """
        self._generation = generation
        is_new = self._apply((generation.generation, generation.as_of_ms), rows)
        restoring = {copy for copy, role in self._roles.items() if role == "restoring"}
        self._waiting = {
            copy: blockers
            for copy, blockers in waiting_standbys(generation, restoring).items()
            if copy in self._roles
        }
        yield
        self._threads = copies_by_thread(generation)
        yield
        if not is_new:
            return
        sums = {str(process): client.offset_sums for process, client in generation.clients.items()}
        for copy in self._roles:
            yield
            end = ends.get(copy.task)
            offset_sum = sums[copy.process].get(copy.task, 0)
            if end is None or offset_sum == UNKNOWN_OFFSET_SUM:
                continue
            self.observe_end(copy.task, generation.as_of_ms, end)
            seen = Observation(generation.as_of_ms, offset_sum, None, end, REPORTED)
            if offset_sum == LATEST_OFFSET:  # it ran the task until now and has everything
                seen = seen._replace(offset_sum=None, lag=0)
            self.observe(copy, seen)

    def apply_assignment(self, rows: Sequence[TaskCopy]) -> None:
        """Apply the task table of a group whose tasks the coordinator assigns (KIP-1071).

        Such a group has no probing rebalances, and its records don't say which thread has a task.
        """
        self._apply((rows[0].generation if rows else 0, 0), rows)
        self._threads = [[copy] for copy in self._roles]

    def _apply(self, moment: tuple[int, int], rows: Sequence[TaskCopy]) -> bool:
        """Apply a task table; return whether its generation is new."""
        is_new = moment != self._moment
        self._moment = moment
        if is_new:
            held = {CopyKey(row.process, row.task) for row in rows if row.role != "none"}
            self._losses.apply_generation(held)
        self._roles = {
            CopyKey(row.process, row.task): row.role for row in rows if row.role in CATCHING_UP
        }
        for gone in (self._histories.keys() | self._rates.keys()) - self._roles.keys():
            self._histories.pop(gone, None)
            self._rates.pop(gone, None)
        for unwatched in self._ends.keys() - self.watched_tasks():
            del self._ends[unwatched]
        return is_new

    def observe(self, copy: CopyKey, observation: Observation) -> bool:
        """Add an observation; return False if its copy doesn't restore, or it isn't the newest."""
        if copy not in self._roles:
            return False
        history = self._histories.get(copy)
        if history is None:
            history = self._histories[copy] = CopyHistory()
        set_back, was_caught_up = history.set_back, history.caught_up_since_ms is not None
        lags = [] if was_caught_up else history.rate_points()
        limit = self._limit(self._roles[copy])
        if not history.observe(observation, self._ends_of(copy.task), limit):
            return False
        lost = history.set_back
        if lost is not None and lost != set_back and lost.after * 2 < lost.before:
            self._losses.record_rebuilt(copy)
        if history.caught_up_since_ms is not None and (moved := trend(lags)) is not None:
            self.paces.append(-moved.per_second)
        if self._waits_for(copy, observation.at_ms):
            history.record_waited_until(observation.at_ms)
        return True

    def observe_end(self, task: TaskId, at_ms: int, end: EndOffsetSum) -> None:
        """Add a task's end offset sum as of a moment (ms since the epoch).

        A sum certainly lower than the last means that a changelog was recreated.
        """
        ends = self._ends_of(task)
        if ends.last is not None and at_ms >= ends.last.at_ms and end.high < ends.last.low:
            ends.keep_last(0)
        ends.add(at_ms, end.low, end.high)

    def forget_the_future(self, now_ms: int) -> None:
        """Forget observations from the future, which exist if a clock was set back.

        Otherwise new observations would be ignored as older.
        """
        latest_ms = now_ms + AHEAD_MS
        for copy, history in list(self._histories.items()):
            if history.last_ms is not None and history.last_ms > latest_ms:
                del self._histories[copy]
        for ends in self._ends.values():
            ends.forget_after(latest_ms)

    def set_rate(self, copy: CopyKey, rate: CatchUpRate | None) -> None:
        """Set a copy's published catch-up rate; None removes it."""
        if rate is None:
            self._rates.pop(copy, None)
        elif copy in self._roles:
            self._rates[copy] = rate

    @property
    def warmup_roles(self) -> frozenset[str]:
        """The roles of copies that a rebalance promotes once they are caught up.

        If ``num.standby.replicas`` is set to 0, standbys are warm-ups, too.
        """
        no_standbys = self.parameters.config.get("num.standby.replicas") == 0
        return frozenset({"warmup", "standby"} if no_standbys else {"warmup"})

    def watched_tasks(self) -> set[TaskId]:
        """Return the tasks with a copy that restores."""
        return {copy.task for copy in self._roles}

    def assess(self, now_ms: int) -> Iterator[CopyAssessment]:
        """Yield the assessment of every copy that restores, thread by thread.

        The caller may do other work between two.
        """
        due = None if self._generation is None else self._generation.next_rebalance()
        # Without a generation the coordinator assigns, and promotes without a rebalance of the
        # members: with the time of now, no warm-up is called stranded.
        since_ms = now_ms if self._generation is None else self._generation.as_of_ms
        for copies in self._threads:
            known = [(copy, self._roles[copy]) for copy in copies if copy in self._roles]
            waits = [self._waits_for(copy, now_ms) for copy, _ in known]
            figures = [
                self._figures(copy, role, now_ms, waits=bool(blockers))
                for (copy, role), blockers in zip(known, waits, strict=True)
            ]
            shared = with_shared_pace(figures)
            for (copy, role), blockers, found in zip(known, waits, shared, strict=True):
                context = CopyContext(
                    is_warmup=role in self.warmup_roles,
                    since_ms=since_ms,
                    patience_ms=self.parameters.value("probing.rebalance.interval.ms"),
                    rebalance_due_ms=None if due is None else due[0],
                    waits_for=blockers,
                    flaps=self._losses.of(copy),
                    held_back=self.held_back.get(copy.task, ""),
                )
                yield assess_copy(copy, role, found, context, now_ms)

    def _figures(self, copy: CopyKey, role: str, now_ms: int, *, waits: bool) -> CopyFigures:
        history = self._histories.get(copy) or CopyHistory()
        if waits:
            history.record_waited_until(now_ms)
        ends, rate = self._ends_of(copy.task), self._rates.get(copy)
        return copy_figures(history, ends, rate, self._limit(role), now_ms)

    def _waits_for(self, copy: CopyKey, now_ms: int) -> tuple[TaskId, ...]:
        """Return the actives that a standby's thread restores first, as far as is known.

        An active without input never shows that it runs, so it counts for a probing interval
        after it was last observed restoring.
        """
        patience_ms = self.parameters.value("probing.rebalance.interval.ms")
        blockers = []
        for task in self._waiting.get(copy, ()):
            history = self._histories.get(CopyKey(copy.process, task))
            lag = None if history is None else history.lags.last
            seen_ms = lag.at_ms if lag else self._generation.as_of_ms if self._generation else 0
            if (lag is None or lag.high > 0) and now_ms - seen_ms <= patience_ms:
                blockers.append(task)
        return tuple(blockers)

    def _limit(self, role: str) -> int:
        """Return the greatest lag of a caught-up copy, in offsets: 0 for an active."""
        return 0 if role == "restoring" else self.parameters.value("acceptable.recovery.lag")

    def _ends_of(self, task: TaskId) -> SumHistory:
        return self._ends.setdefault(task, SumHistory())
