"""When the next probing rebalance is due, whether it is worth it, and how long the plan takes.

Kafka Streams looks at its warm-ups again after a fixed interval, however far they are, and then
starts at most ``max.warmup.replicas`` new ones: that is the rate at which state can move. A probe
is worth it once a warm-up is caught up; and worth waiting for where others follow at once.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from caughtup.models.copies.probing_history import ProbingHistory
from caughtup.models.copies.warmups import GRACE_MS, CopyAssessment
from caughtup.models.durations import counted, duration
from caughtup.models.histories.trend import median
from caughtup.models.parameters import ApplicationParameters

#: For how much longer than the first warm-up took it is worth to wait for further ones: the
#: rebalance that this saves costs the application more than a quarter of that time does.
GATHERING_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Probing:
    """What is to be said of an application's next probing rebalance.

    ``needed``: there are warm-ups to look at again, or a time is set. ``due_ms``: when the
    application will rebalance, as the wire says. ``worthwhile_at_ms``: from when on it would
    promote something, None where nobody knows of such a time; ``worthwhile_now``: whether that
    has come. ``overdue_ms``: for how long the time is past, None if it isn't by more than
    ``GRACE_MS``. ``fired``, ``needless``, ``endless``: see ``ProbingHistory``. ``plan_seconds``:
    how long the copies that are still to be built take at Kafka's fixed interval;
    ``plan_seconds_worthwhile``: the same if each probe came when it is worth it, infinite = never,
    None = unknown. All times in ms since the epoch.
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
    """Assess the next probing rebalance at ``now_ms`` from how the warm-ups fare.

    ``to_build``: lags, in offsets, of the copies that the plan builds after the present warm-ups.
    ``paces``: by how many offsets a second the lags of earlier ones shrank (``WarmupTable.paces``).
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
    """Compute how long so many copies take at Kafka's rate cap, in seconds.

    ``max.warmup.replicas`` copies an interval of ``probing.rebalance.interval.ms``.
    """
    rounds = math.ceil(copies / parameters.value("max.warmup.replicas"))
    return rounds * parameters.value("probing.rebalance.interval.ms") / 1000


def seconds_one_after_another(build_seconds: Iterable[float], at_once: int) -> float:
    """Compute how long copies take (s), each started once one of ``at_once`` places is free."""
    places = [0.0] * at_once
    for seconds in build_seconds:
        heapq.heappush(places, heapq.heappop(places) + seconds)
    return max(places)


def _worthwhile(
    history: ProbingHistory, warmups: Sequence[CopyAssessment], now_ms: int
) -> tuple[int | None, list[CopyAssessment]]:
    """Return from when (ms) a probe is worth it, and the warm-ups that it promotes."""
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
    """Compute how long all copies take if each is promoted when caught up, in seconds.

    Those that aren't begun yet are taken to close in on the end as the others do.
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
        reason += f"; the last {history.in_vain} probes found no warm-up nearer"
    return reason


def _scheduled(due_ms: int | None, now_ms: int) -> str:
    if due_ms is None:
        return "no rebalance is scheduled"
    seconds = (due_ms - now_ms) / 1000
    if seconds >= 0:
        return f"the next rebalance is due in {duration(seconds)}"
    return f"the next rebalance was due {duration(-seconds)} ago"
