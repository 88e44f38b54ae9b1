"""Probing rebalances: those of the past, when the next is due, and when one is worthwhile.

Kafka Streams checks its warm-ups at a fixed interval, whatever their lags, and each time starts at
most ``max.warmup.replicas`` new ones, which limits how fast state can move. A probing rebalance is
worthwhile once a warm-up is caught up, or shortly after that if others will be caught up by then.

A generation began with a *probe* if its predecessor had scheduled a rebalance for later, that time
had come, and the members are the same. A probe is *needless* if it found no warm-up of the
generation before newly caught up; it is *in vain* if no warm-up's lag even shrank.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from caughtup.models.copies.warmups import GRACE_MS, CopyAssessment
from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.durations import counted, duration
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.histories.trend import median
from caughtup.models.ids import CopyKey
from caughtup.models.lag.partition_lag import CLOCK_ALLOWANCE_MS
from caughtup.models.parameters import ApplicationParameters

#: The number of probes that are kept for the page.
PROBES_KEPT = 50
#: Probing is called endless after this many probes in a row that were in vain.
PROBES_IN_VAIN = 3


@dataclass(frozen=True, slots=True)
class Probe:
    """A probing rebalance: the generation that it started, and when (ms).

    ``promoted``: warm-ups of the generation before that it found caught up. ``nearer``: whether
    the lag of any had shrunk; None where lags weren't known.
    """

    generation: int
    at_ms: int
    promoted: tuple[CopyKey, ...]
    nearer: bool | None

    @property
    def needless(self) -> bool:
        """Whether it found no warm-up newly caught up, as far as lags are known."""
        return not self.promoted and self.nearer is not None


class ProbingHistory:
    """The probing rebalances of one application, counted, and when the next one is due.

    ``fired`` and ``needless`` count from the start, ``in_vain`` since the last probe that wasn't.
    ``due_ms``: when the next rebalance is due, None if none is; ``since_ms``: when the newest
    generation began.
    """

    def __init__(self) -> None:
        self.probes: deque[Probe] = deque(maxlen=PROBES_KEPT)
        self.fired = 0
        self.needless = 0
        self.in_vain = 0
        self.due_ms: int | None = None
        self.since_ms: int | None = None
        self._number: int | None = None
        self._members: frozenset[str] = frozenset()
        self._warmups: dict[CopyKey, int | None] = {}

    @property
    def endless(self) -> bool:
        """Whether the last ``PROBES_IN_VAIN`` probes were in vain."""
        return self.in_vain >= PROBES_IN_VAIN

    def apply(
        self,
        generation: StreamsGeneration,
        rows: Iterable[TaskCopy],
        limit: int,
        warmup_roles: frozenset[str],
    ) -> Probe | None:
        """Apply a decided generation with its task table; return the probe, if it was one.

        ``limit``: ``acceptable.recovery.lag``. ``warmup_roles``: see ``WarmupTable``. A generation
        that was applied already changes nothing.
        """
        if (generation.generation, generation.as_of_ms) == (self._number, self.since_ms):
            return None
        table = {CopyKey(row.process, row.task): row for row in rows}
        members = frozenset(member.member_id for member in generation.members())
        probe = None
        if self._was_probed(generation, members):
            probe = self._compare(generation, table, limit)
            self.probes.append(probe)
            self.fired += 1
            self.needless += probe.needless
            self.in_vain = self.in_vain + 1 if probe.nearer is False else 0
        elif members != self._members:
            self.in_vain = 0
        due = generation.next_rebalance()
        self.due_ms = None if due is None else due[0]
        self.since_ms, self._number = generation.as_of_ms, generation.generation
        self._members = members
        self._warmups = {copy: row.lag for copy, row in table.items() if row.role in warmup_roles}
        return probe

    def _was_probed(self, generation: StreamsGeneration, members: frozenset[str]) -> bool:
        return (
            self._number is not None
            and self.due_ms is not None
            and self.since_ms is not None
            and generation.generation == self._number + 1
            and members == self._members
            and self.due_ms > self.since_ms
            and generation.as_of_ms >= self.due_ms - CLOCK_ALLOWANCE_MS
        )

    def _compare(
        self, generation: StreamsGeneration, table: Mapping[CopyKey, TaskCopy], limit: int
    ) -> Probe:
        promoted: list[CopyKey] = []
        gains: list[bool | None] = []
        for copy, before in self._warmups.items():
            row = table.get(copy)
            was_caught_up = before is not None and before <= limit
            if row is not None and row.role in ("active", "restoring") and not was_caught_up:
                promoted.append(copy)
            elif row is None or row.lag is None or before is None:
                gains.append(None)
            elif row.lag <= limit < before:
                promoted.append(copy)
            else:
                gains.append(row.lag < before)
        nearer: bool | None = True
        if not promoted and True not in gains:
            nearer = None if None in gains else False
        return Probe(generation.generation, generation.as_of_ms, tuple(promoted), nearer)


#: How much longer than the first warm-up took to wait for further ones, as a share: the rebalance
#: that this saves costs the application more than this time.
GATHERING_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Probing:
    """The assessment of an application's next probing rebalance. Times are in ms since the epoch.

    ``needed``: there are warm-ups, or a rebalance is scheduled. ``due_ms``: the scheduled time.
    ``worthwhile_at_ms``: from when on a rebalance would promote a warm-up, None if unknown;
    ``worthwhile_now``: whether that time has come. ``overdue_ms``: how long ago the rebalance was
    due, None up to ``GRACE_MS``. ``fired``, ``needless``, ``endless``: see ``ProbingHistory``.
    ``plan_seconds``: how long building the remaining copies takes at Kafka's fixed interval;
    ``plan_seconds_worthwhile``: the same if each rebalance came when it is worthwhile, infinite =
    never, None = unknown.
    """

    needed: bool
    due_ms: int | None
    worthwhile_now: bool
    worthwhile_at_ms: int | None
    reason: str
    overdue_ms: int | None
    fired: int
    needless: int
    endless: bool
    plan_seconds: float
    plan_seconds_worthwhile: float | None


def assess_probing(
    history: ProbingHistory,
    copies: Iterable[CopyAssessment],
    parameters: ApplicationParameters,
    now_ms: int,
    to_build: Sequence[int] = (),
    paces: Iterable[float] = (),
) -> Probing:
    """Return the assessment of the next probing rebalance at ``now_ms``.

    ``to_build``: lags, in offsets, of the copies that the plan builds after the present warm-ups.
    ``paces``: offsets a second by which lags of earlier copies shrank (``WarmupTable.paces``).
    """
    warmups = [copy for copy in copies if copy.is_warmup]
    at_ms, promoted = _worthwhile(history, warmups, now_ms)
    due_ms = history.due_ms
    late_ms = 0 if due_ms is None else now_ms - due_ms
    return Probing(
        needed=bool(warmups) or due_ms is not None,
        due_ms=due_ms,
        worthwhile_now=at_ms is not None and at_ms <= now_ms,
        worthwhile_at_ms=at_ms,
        reason=_reason(history, warmups, promoted, at_ms, now_ms),
        overdue_ms=late_ms if late_ms > GRACE_MS else None,
        fired=history.fired,
        needless=history.needless,
        endless=history.endless,
        plan_seconds=plan_seconds(len(warmups) + len(to_build), parameters),
        plan_seconds_worthwhile=_plan_worthwhile(warmups, to_build, list(paces), parameters),
    )


def plan_seconds(copies: int, parameters: ApplicationParameters) -> float:
    """Return how long building copies takes at Kafka's greatest rate, in seconds.

    That is ``max.warmup.replicas`` copies per ``probing.rebalance.interval.ms``.
    """
    rounds = math.ceil(copies / parameters.value("max.warmup.replicas"))
    return rounds * parameters.value("probing.rebalance.interval.ms") / 1000


def seconds_one_after_another(build_seconds: Iterable[float], at_once: int) -> float:
    """Return how long copies take (s) if at most ``at_once`` are built at a time, in order."""
    places = [0.0] * at_once
    for seconds in build_seconds:
        heapq.heappush(places, heapq.heappop(places) + seconds)
    return max(places)


def _worthwhile(
    history: ProbingHistory, warmups: Sequence[CopyAssessment], now_ms: int
) -> tuple[int | None, list[CopyAssessment]]:
    """Return from when (ms) a probe is worthwhile, and the warm-ups that it promotes."""
    moments: list[tuple[int, CopyAssessment]] = []
    for copy in warmups:
        eta = copy.figures.eta
        if copy.caught_up_since_ms is not None:
            moments.append((copy.caught_up_since_ms, copy))
        elif copy.verdict == "warming" and eta is not None and math.isfinite(eta.seconds):
            moments.append((now_ms + math.ceil(eta.seconds * 1000), copy))
    if not moments:
        return None, []
    first = min(at_ms for at_ms, _ in moments)
    took = first - (first if history.since_ms is None else min(first, history.since_ms))
    together = [entry for entry in moments if entry[0] <= first + took * GATHERING_SHARE]
    return max(at_ms for at_ms, _ in together), [copy for _, copy in together]


def _plan_worthwhile(
    warmups: Sequence[CopyAssessment],
    to_build: Sequence[int],
    paces: Sequence[float],
    parameters: ApplicationParameters,
) -> float | None:
    """Return how long all copies take if each is promoted once caught up, in seconds.

    The lags of copies that aren't begun yet are assumed to shrink at the median rate of the others.
    """
    builds: list[float] = []
    for copy in warmups:
        eta = copy.figures.eta
        if copy.verdict in ("stalled", "waiting") or eta is None:
            return None
        builds.append(eta.seconds)
    if to_build:
        present = (copy.figures.closing for copy in warmups)
        speeds = [*paces, *(closing.per_second for closing in present if closing is not None)]
        if not speeds:
            return None
        speed = median(speeds)
        limit = parameters.value("acceptable.recovery.lag")
        builds += [
            0.0 if lag <= limit else (lag - limit) / speed if speed > 0 else math.inf
            for lag in to_build
        ]
    return seconds_one_after_another(builds, parameters.value("max.warmup.replicas"))


def _reason(
    history: ProbingHistory,
    warmups: Sequence[CopyAssessment],
    promoted: Sequence[CopyAssessment],
    at_ms: int | None,
    now_ms: int,
) -> str:
    scheduled = _scheduled(history.due_ms, now_ms)
    if not warmups:
        if history.due_ms is None:
            return "there is no warm-up, and no rebalance is scheduled"
        return f"there is no warm-up to promote; {scheduled}"
    names = ", ".join(str(task) for task in sorted(copy.copy.task for copy in promoted))
    count = f"{len(promoted)} of {counted(len(warmups), 'warm-up')} ({names})"
    if at_ms is None:
        verdicts = ", ".join(f"{copy.copy.task} {copy.verdict}" for copy in warmups)
        reason = f"no warm-up is known to catch up: {verdicts}; {scheduled}"
    elif at_ms <= now_ms:
        reason = f"{count} caught up; a rebalance would promote {'it' if len(promoted) == 1 else 'them'}; {scheduled}"
    else:
        reason = f"{count} caught up in {duration((at_ms - now_ms) / 1000)}; {scheduled}"
    if history.endless:
        reason += f"; no warm-up's lag had fallen at the last {history.in_vain} probing rebalances"
    return reason


def _scheduled(due_ms: int | None, now_ms: int) -> str:
    if due_ms is None:
        return "no rebalance is scheduled"
    seconds = (due_ms - now_ms) / 1000
    if seconds >= 0:
        return f"the next rebalance is due in {duration(seconds)}"
    return f"the next rebalance was due {duration(-seconds)} ago"
