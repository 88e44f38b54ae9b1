"""Single values of the configs that remain, those first that explain best who runs which task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product, zip_longest
from typing import NamedTuple

from caughtup.models.assignment.client_state import RUNNING, UNKNOWN, is_caught_up
from caughtup.models.assignment.configs import Release
from caughtup.models.assignment.decision import Decision
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import TaskId
from caughtup.models.learning.evidence import Evidence, seen_standbys
from caughtup.models.learning.ranges import (
    LAG,
    WARM_UPS,
    ConfigRange,
    Hypotheses,
    IntSpan,
    distance,
)
from caughtup.models.offsets import task_lag
from caughtup.models.parameters import DEFAULTS

#: The most configs, and the most ranges that they are of.
_MOST_CONFIGS, _MOST_RANGES = 24, 16
#: The most values of acceptable.recovery.lag that are compared for one range.
_MOST_LAGS = 200
#: The most tasks that are held back for which other numbers of warm-ups are tried.
_MOST_HELD_BACK = 4


def likely_configs(evidence: Evidence, hypotheses: Hypotheses) -> Iterator[ConfigRange]:
    """Yield single values of all configs, the likeliest of each hypothesis first.

    Only the hypotheses nearest to Kafka's defaults count.
    """
    standbys = seen_standbys(evidence.generation)
    ranked = sorted(hypotheses, key=lambda one: distance(one, standbys))
    cut = (
        _of_range(evidence, replace(one, releases=releases), standbys)
        for one in ranked
        for releases in evidence.releases(one)
    )
    turns = zip_longest(*islice(cut, _MOST_RANGES))
    every = (one for turn in turns for one in turn if one is not None)
    yield from islice(dict.fromkeys(islice(every, 4 * _MOST_CONFIGS)), _MOST_CONFIGS)


def _of_range(evidence: Evidence, one: ConfigRange, standbys: int) -> Iterator[ConfigRange]:
    release = Release(one.releases.high)
    algorithm = one.algorithm._replace(release=release)
    for number in dict.fromkeys((one.standbys.nearest(standbys), one.standbys.low)):
        warm_ups, lags = [DEFAULTS[WARM_UPS]], [one.lag.nearest(DEFAULTS[LAG])]
        if algorithm.assignor == "high_availability":
            try:
                target = evidence.target(algorithm, number)
            except ScenarioError:
                continue
            # A task that is held back may have a standby meanwhile, and so count as a warm-up.
            extra = evidence.copies_given - target.copies
            warm_ups = [*range(extra, extra - min(evidence.held_back, _MOST_HELD_BACK) - 1, -1)]
            lags = _likely_lags(evidence, target.decision, one.lag)
        numbers = dict.fromkeys((*map(one.warm_ups.nearest, warm_ups), one.warm_ups.high))
        for lag, most in product(lags, numbers):
            yield ConfigRange(
                algorithm,
                IntSpan(number, number),
                IntSpan(most, most),
                IntSpan(lag, lag),
                IntSpan(release, release),
            )


class TaskLags(NamedTuple):
    """Lags of a task by one end offset sum, in offsets or Kafka's sentinels.

    ``should`` is that of the client that is to run it in the end; ``has`` that of another client
    that runs it, None if there is none; ``least`` the least of all clients.
    """

    should: int
    has: int | None
    least: int

    def fit(self, acceptable: int) -> bool:
        """Return whether this acceptable.recovery.lag explains who runs the task.

        It runs on the client that is to have it in the end if that one is caught up, or if no client
        is; else on another that is.
        """
        should = is_caught_up(self.should, acceptable) or not is_caught_up(self.least, acceptable)
        if self.has is None:
            return should
        return not should and is_caught_up(self.has, acceptable)


class TaskRunners:
    """Who runs each task, and who is to run it in the end."""

    def __init__(self, evidence: Evidence, target: Decision) -> None:
        self._clients = evidence.processes
        self._should = {task: p for p, one in target.clients.items() for task in one.active}
        given = evidence.generation.clients.items()
        self._has = {task: process for process, one in given for task in one.active()}

    def lags(self, task: TaskId, end: int) -> TaskLags:
        """Return the lags of a task by one end offset sum."""
        by_client = {
            process: task_lag(client.offset_sums.get(task, 0), end)
            for process, client in self._clients.items()
        }
        should, has = self._should[task], self._has.get(task)
        least = min((lag for lag in by_client.values() if lag >= 0), default=UNKNOWN)
        return TaskLags(
            by_client[should],
            None if has in (None, should) else by_client[has],
            RUNNING if RUNNING in by_client.values() else least,
        )


def _likely_lags(evidence: Evidence, target: Decision, span: IntSpan) -> list[int]:
    """Return values of acceptable.recovery.lag, those first by which the most tasks fit."""
    runners, default = TaskRunners(evidence, target), DEFAULTS[LAG]
    tasks: list[list[TaskLags]] = []
    cuts = {span.nearest(default), span.low, span.high}
    for task, bound in evidence.ends.items():
        if bound is not None:
            both = [runners.lags(task, end) for end in {*bound}]
            tasks.append(both)
            cuts.update(span.nearest(one.should) for one in both if one.should >= 0)
            cuts.update(span.nearest(one.should - 1) for one in both if one.should > 0)
    compared = sorted(cuts, key=lambda lag: abs(lag - default))[:_MOST_LAGS]
    misfits = {
        lag: sum(not any(one.fit(lag) for one in both) for both in tasks) for lag in compared
    }
    return sorted(compared, key=lambda lag: misfits[lag])
