"""A group's recorded generations, and the changes of membership among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from caughtup.models.assignment.client_state import is_caught_up
from caughtup.models.assignment.decision import DecisionLine
from caughtup.models.histories.trend import median

#: The change of a group's first known generation: what came before is unknown.
FIRST = "first known"
#: A scenario as decoded from JSON, which ``parse_scenario`` accepts.
ScenarioJson = Mapping[str, Any]
NO_LAGS: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True)
class RecordedGeneration:
    """One generation: the inputs of its decision, and the members' assignments.

    ``scenario`` and ``assigned`` are in the formats that ``caughtup assign`` reads and prints;
    warm-ups count as ``standby``, since assignments don't distinguish them. A task that its owner
    had to revoke first has no owner. ``offset_sums``: process → task → the reported offset sum.
    ``doubts`` say why the leader may have decided from other inputs.
    """

    group: str
    generation: int
    as_of_ms: int
    scenario: ScenarioJson
    assigned: DecisionLine
    offset_sums: Mapping[str, Mapping[str, int]]
    doubts: tuple[str, ...] = ()

    def held(self, process: str) -> set[str]:
        """Return the tasks that this generation assigned to a process, in any role."""
        given = self.assigned["clients"].get(process)
        return set() if given is None else {*given["active"], *given["standby"]}


@dataclass(frozen=True, slots=True)
class Episode:
    """A change of membership and the rebalances after it, until the next one.

    ``before`` is the last generation before it, None if unknown; ``until_ms`` is the time of the
    next change, None after the last.
    """

    change: str
    before: RecordedGeneration | None
    generations: tuple[RecordedGeneration, ...]
    until_ms: int | None


def episodes(generations: Iterable[RecordedGeneration]) -> Iterator[Episode]:
    """Split one group's generations where its members change, oldest first."""
    ordered = sorted(generations, key=lambda one: (one.as_of_ms, one.generation))
    starts = [
        (index, change)
        for index, one in enumerate(ordered)
        if (change := _change(ordered[index - 1] if index else None, one))
    ]
    for number, (start, change) in enumerate(starts):
        last = number + 1 == len(starts)
        end = len(ordered) if last else starts[number + 1][0]
        yield Episode(
            change,
            ordered[start - 1] if start else None,
            tuple(ordered[start:end]),
            None if last else ordered[end].as_of_ms,
        )


def observed_rate(generations: Sequence[RecordedGeneration]) -> float | None:
    """Return the restore rate of a copy, in offsets a second: the median of the observed rates.

    From one generation to the next, only copies count that were restoring all the time, and so are
    still not caught up at the end. None without such a copy.
    """
    ordered = sorted(generations, key=lambda one: (one.as_of_ms, one.generation))
    rates: list[float] = []
    for before, after in pairwise(ordered):
        seconds = (after.as_of_ms - before.as_of_ms) / 1000
        if seconds > 0:
            rates += [gained / seconds for gained in _gained(before, after)]
    return median(rates) if rates else None


def _gained(before: RecordedGeneration, after: RecordedGeneration) -> Iterator[int]:
    """Yield the offsets that each copy has restored that is still behind."""
    acceptable = after.scenario["config"]["acceptable.recovery.lag"]
    for process in sorted(after.scenario["clients"]):
        earlier, later = (one.offset_sums.get(process, {}) for one in (before, after))
        for task in sorted(before.held(process) & later.keys()):
            gained = later[task] - max(earlier.get(task, 0), 0)
            lag = lag_of(after.scenario, process, task)
            if lag is not None and lag > 0 and not is_caught_up(lag, acceptable) and gained > 0:
                yield gained


def _change(before: RecordedGeneration | None, after: RecordedGeneration) -> str | None:
    """Return how the members changed: processes that joined or left, or have other threads."""
    if before is None:
        return FIRST
    earlier, later = (_capacities(one) for one in (before, after))
    found = (
        (len(later.keys() - earlier.keys()), "joined"),
        (len(earlier.keys() - later.keys()), "left"),
        (
            sum(later[one] != earlier[one] for one in earlier.keys() & later.keys()),
            "with other threads",
        ),
    )
    return ", ".join(f"{count} {what}" for count, what in found if count) or None


def _capacities(generation: RecordedGeneration) -> dict[str, int]:
    return {process: one["capacity"] for process, one in generation.scenario["clients"].items()}


def greatest_lags(scenario: ScenarioJson) -> Mapping[str, int]:
    """Return the lag, by task, of clients that don't list their own."""
    lags: Mapping[str, int] = scenario.get("greatest_lags", NO_LAGS)
    return lags


def lag_of(scenario: ScenarioJson, process: str, task: str) -> int | None:
    """Return a client's lag of a task in offsets, or Kafka's sentinel.

    None for a stateless task.
    """
    lag: int | None = scenario["clients"][process]["lags"].get(task)
    return greatest_lags(scenario).get(task) if lag is None else lag
