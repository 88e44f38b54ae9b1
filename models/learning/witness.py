"""Inputs within their bounds by which an assignor decides exactly what a leader decided.

End offsets are known within bounds, and some configs as ranges. One choice of all of them that leads
to the leader's decision shows that the decision is consistent with what is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, product
from math import prod
from typing import NamedTuple

from caughtup.models.assignment.client_state import is_caught_up
from caughtup.models.assignment.configs import Release
from caughtup.models.assignment.decision import Decision
from caughtup.models.decisions.exact.comparison import misplaced_tasks
from caughtup.models.durations import counted
from caughtup.models.errors import ScenarioError
from caughtup.models.histories.offset_sums import EndOffsetSum
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.learning.evidence import Evidence
from caughtup.models.learning.likely_configs import TaskRunners, likely_configs
from caughtup.models.learning.ranges import (
    LAG,
    STANDBYS,
    WARM_UPS,
    ConfigRange,
    Hypotheses,
)
from caughtup.models.offsets import task_lag
from caughtup.models.parameters import NON_OVERLAP_COST, STRATEGY, TAGS, TRAFFIC_COST
from caughtup.models.records.recommendations import WitnessRecord
from caughtup.models.records.scenarios import ConfigValue

#: The most decisions to find a witness for one generation; large groups get fewer, but at least this
#: many: a decision reads each client's lags.
MOST_DECISIONS, _LEAST_DECISIONS, _MOST_LAGS = 48, 4, 100_000
#: The most sets of caught-up copies that are tried one by one, in how many configs, and the most
#: lags that are read for them.
MOST_DECISIONS_OF_ALL, _MOST_ENUMERATED, _MOST_LAGS_OF_ALL = 256, 2, 100_000
#: The most sets of caught-up copies that are counted.
MOST_ALTERNATIVES = 1_000_000


@dataclass(frozen=True, slots=True)
class Witness:
    """Inputs by which an assignor decides exactly what the leader decided.

    ``config`` has one value for each config. ``ends`` are the end offset sums of the tasks of which
    only bounds are known. ``open_tasks`` counts the tasks of which the bounds leave open who is
    caught up, and ``alternatives`` the sets of caught-up copies that are possible within all bounds,
    counted up to ``MOST_ALTERNATIVES``. No more decisions than that were possible.
    """

    config: ConfigRange
    ends: Mapping[TaskId, int]
    decision: Decision
    open_tasks: int
    alternatives: int

    def text(self) -> str:
        """Return the configs of the witness, and how much the bounds leave open, in words."""
        values = ", ".join(f"{name} {value}" for name, value in self.record().config.items())
        if not self.open_tasks:
            return f"it decides this with {values} and some end offsets within their bounds"
        more = "or more " if self.alternatives >= MOST_ALTERNATIVES else ""
        tasks = counted(self.open_tasks, "task depends", "tasks depend")
        return (
            f"it decides this with {values} and some end offsets within their bounds; {tasks} on "
            f"them, with {self.alternatives:,} {more}possible sets of caught-up copies"
        )

    def record(self) -> WitnessRecord:
        """Return the witness as records have it."""
        one, algorithm = self.config, self.config.algorithm
        config: dict[str, ConfigValue] = {
            name: one.span(name).low for name in (STANDBYS, WARM_UPS, LAG)
        }
        if algorithm.tags:
            config[TAGS] = list(algorithm.tags)
        if algorithm.strategy != "none":
            config[STRATEGY] = algorithm.strategy
            traffic, non_overlap = algorithm.costs or (None, None)
            config |= {TRAFFIC_COST: traffic, NON_OVERLAP_COST: non_overlap}
        return WitnessRecord(
            algorithm.assignor,
            algorithm.release.text,
            config,
            {str(task): end for task, end in self.ends.items()},
            self.open_tasks,
            self.alternatives,
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """End offset sums of a task, from ``low`` to ``high``, by which the same clients are caught up."""

    low: int
    high: int
    caught_up: frozenset[ProcessId]


def find_witness(
    evidence: Evidence, hypotheses: Hypotheses, most: int = MOST_DECISIONS
) -> Witness | None:
    """Return inputs within the bounds that explain a generation; None if none is found.

    ``hypotheses`` are the configs that remain. The search makes at most ``most`` decisions and may
    miss a witness, but what it returns was decided and compared member by member.
    """
    last = evidence.decisions + min(most, _affordable(evidence))
    begun: list[tuple[int, int, _Search, _Tried]] = []
    for config in likely_configs(evidence, hypotheses):
        if evidence.decisions >= last:
            break
        with suppress(ScenarioError):
            search = _Search(evidence, config, last)
            tried = search.begin()
            if not tried.differences:
                return search.witness(tried)
            begun.append((tried.differences, len(begun), search, tried))
    for *_, search, tried in sorted(begun, key=lambda one: one[:2]):
        if evidence.decisions >= last:
            break
        with suppress(ScenarioError):
            best = search.improve(tried)
            if not best.differences:
                return search.witness(best)
    for *_, search, _ in sorted(begun, key=lambda one: one[:2])[:_MOST_ENUMERATED]:
        with suppress(ScenarioError):
            found = search.enumerate()
            if found is not None:
                return search.witness(found)
    return None


def is_refuted(evidence: Evidence, hypotheses: Hypotheses, most: int = MOST_DECISIONS) -> bool:
    """Return whether no end offsets within their bounds, nor none at all, explain who has which task.

    True only if all were tried: if every config that remains has one value, and the sets of caught-up
    copies that the bounds allow are no more than ``most`` together.
    """
    tried, most = 0, min(most, _affordable(evidence))
    for one in hypotheses:
        spans = one.standbys, one.warm_ups, one.lag
        if any(span.low != span.high for span in spans):
            return False
        for releases in evidence.releases(one):
            algorithm = one.algorithm._replace(release=Release(releases.high))
            config = replace(one, algorithm=algorithm, releases=releases)
            try:
                search = _Search(evidence, config, evidence.decisions + most)
                tried += search.alternatives
                if tried > most or evidence.is_explained_without_ends(algorithm, one.standbys.low):
                    return False
                if not search.is_refuted():
                    return False
            except ScenarioError:
                return False
    return True


def _affordable(evidence: Evidence) -> int:
    """Return the number of decisions that a group of this size gets."""
    return max(_LEAST_DECISIONS, _MOST_LAGS // max(1, evidence.lags))


class _Tried(NamedTuple):
    """A choice of end offset sums, the decision by them, and its differences from the leader's."""

    chosen: Mapping[TaskId, _Part]
    ends: Mapping[TaskId, int]
    decision: Decision
    differences: int


class _Search:
    """The search of end offset sums under one value of each config."""

    def __init__(self, evidence: Evidence, config: ConfigRange, last: int) -> None:
        self._evidence = evidence
        self._config = config
        self._last = last
        self._asked = config.algorithm, config.standbys.low, config.warm_ups.low, config.lag.low
        by_lag = config.algorithm.assignor == "high_availability"
        self._parts = {
            task: self._cut(task, bound) if by_lag else [_Part(*bound, frozenset())]
            for task, bound in evidence.inexact.items()
        }
        self._open = [task for task, parts in self._parts.items() if len(parts) > 1]

    def begin(self) -> _Tried:
        """Decide by the likeliest end offset sums."""
        chosen = {task: parts[-1] for task, parts in self._parts.items()}
        return self._try(chosen | self._likely())

    def improve(self, best: _Tried) -> _Tried:
        """Return the choice with the fewest differences that is found from one."""
        while best.differences and (better := self._improved(best)) is not None:
            best = better
        if best.differences and not self._misplaced(best.decision):
            best = self._by_threads(best)
        return best

    def witness(self, tried: _Tried) -> Witness:
        """Return a choice without differences as the witness."""
        return Witness(
            self._config,
            tried.ends,
            tried.decision,
            len(self._open),
            min(self.alternatives, MOST_ALTERNATIVES),
        )

    @property
    def alternatives(self) -> int:
        """The number of sets of caught-up copies that the bounds allow."""
        return prod(len(parts) for parts in self._parts.values())

    def enumerate(self) -> _Tried | None:
        """Try each of these sets, if they are few and the group is small; return one that fits."""
        decided = self.alternatives * self._evidence.lags
        if self.alternatives > MOST_DECISIONS_OF_ALL or decided > _MOST_LAGS_OF_ALL:
            return None
        self._last = self._evidence.decisions + 2 * MOST_DECISIONS_OF_ALL
        for chosen in self._all_fitting():
            tried = self._by_threads(self._try(chosen))
            if not tried.differences:
                return tried
        return None

    def is_refuted(self) -> bool:
        """Return whether each of these sets leads to other tasks on some client than it has."""
        if self._config.algorithm.assignor == "public_sticky":
            return False  # the clients of its standbys are unpredictable
        return not any(True for _ in self._all_fitting())

    def _all_fitting(self) -> Iterator[dict[TaskId, _Part]]:
        """Yield each choice of parts by which every client gets the tasks that it has."""
        for parts in product(*self._parts.values()):
            chosen = dict(zip(self._parts, parts, strict=True))
            evidence = self._evidence.with_ends({task: one.high for task, one in chosen.items()})
            self._evidence.decisions += 1
            if not self._misplaced(evidence.decide(*self._asked)):
                yield chosen

    def _cut(self, task: TaskId, bound: EndOffsetSum) -> list[_Part]:
        """Return a task's bounds, cut where other clients are caught up."""
        lag = self._config.lag.low
        sums = {
            process: client.offset_sums.get(task, 0)
            for process, client in self._evidence.processes.items()
        }
        # A sum beyond the end counts as nothing restored.
        cuts = {end for one in sums.values() for end in (one - 1, one + lag, lag)}
        highs = sorted(end for end in cuts if bound.low <= end < bound.high)
        found: list[_Part] = []
        low = bound.low
        for high in (*highs, bound.high):
            caught_up = frozenset(
                process for process, one in sums.items() if is_caught_up(task_lag(one, high), lag)
            )
            if found and found[-1].caught_up == caught_up:
                low = found.pop().low
            found.append(_Part(low, high, caught_up))
            low = high + 1
        return found

    def _likely(self) -> dict[TaskId, _Part]:
        """Return a part of each open task that explains who runs it, if there is one."""
        algorithm, standbys, _, lag = self._asked
        if not self._open:
            return {}
        runners = TaskRunners(self._evidence, self._evidence.target(algorithm, standbys).decision)
        return {
            task: max(
                reversed(self._parts[task]),
                key=lambda part: runners.lags(task, part.high).fit(lag),
            )
            for task in self._open
        }

    def _improved(self, best: _Tried) -> _Tried | None:
        """Return a choice with fewer differences, None if none is found.

        All misplaced tasks get another part at once, then each one by itself, then any other task:
        it matters if it uses a warm-up that a misplaced one needs.
        """
        misplaced = self._misplaced(best.decision)
        others = {
            task: [part for part in self._parts[task] if part is not best.chosen[task]]
            for task in sorted(self._open, key=lambda task: task not in misplaced)
        }
        together = {task: parts[-1] for task, parts in others.items() if task in misplaced}
        single = ({task: part} for task, parts in others.items() for part in parts)
        for change in chain([together] if len(together) > 1 else [], single):
            if self._evidence.decisions >= self._last:
                return None
            tried = self._try({**best.chosen, **change})
            if tried.differences < best.differences:
                return tried
        return None

    def _by_threads(self, best: _Tried) -> _Tried:
        """Return a choice with ends by which threads kept the tasks that lag least.

        Tasks that stayed on their threads get their least ends, others their greatest; then each
        task by itself the other one of these, as long as that leaves fewer differences.
        """
        kept: set[TaskId] = set()
        for member in self._evidence.generation.members():
            if (given := member.assignment) is not None:
                kept |= member.offset_sums.keys() & {*given.active, *given.standby}
        ends = {task: part.low if task in kept else part.high for task, part in best.chosen.items()}
        best = min(best, self._try(best.chosen, ends), key=lambda one: one.differences)
        for task, part in best.chosen.items():
            if not best.differences or self._evidence.decisions >= self._last:
                break
            other = part.low if best.ends[task] == part.high else part.high
            tried = self._try(best.chosen, {**best.ends, task: other})
            best = min(best, tried, key=lambda one: one.differences)
        return best

    def _try(
        self, chosen: Mapping[TaskId, _Part], ends: Mapping[TaskId, int] | None = None
    ) -> _Tried:
        """Decide by end offset sums within the chosen parts, by default the greatest ones."""
        ends = ends or {task: part.high for task, part in chosen.items()}
        evidence = self._evidence.with_ends(ends)
        decision = evidence.decide(*self._asked)
        differences = evidence.judged_differences(*self._asked)
        self._evidence.decisions += evidence.decisions
        return _Tried(chosen, ends, decision, len(differences))

    def _misplaced(self, decision: Decision) -> frozenset[TaskId]:
        """Return the tasks that a decision has on other clients than the leader's."""
        owned, clients = self._evidence.owned, self._evidence.generation.clients
        return frozenset().union(
            *(
                misplaced_tasks(client, decision.clients[process], owned)
                for process, client in clients.items()
            )
        )
