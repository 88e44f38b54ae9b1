"""A group's generations as they were recorded, and the changes of membership among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from caughtup.models.assignment.catch_up import is_caught_up
from caughtup.models.assignment.scenario_lags import lag_of
from caughtup.models.histories.trend import median

#: The change that a group's first known generation stands for, since what was before isn't known.
FIRST = "first known"


@dataclass(frozen=True, slots=True)
class RecordedGeneration:
    """One generation: what it was decided from, and what its members were given.

    ``scenario`` and ``assigned`` are as ``caughtup assign`` reads and prints them; warm-ups count
    among ``standby`` only, since the wire doesn't tell them apart. A task that its owner had to let
    go of first is nobody's. ``offset_sums``: process → task → what it reported, in offsets.
    ``doubts`` say why the leader may have decided from something else.
    """

    group: str
    generation: int
    as_of_ms: int
    scenario: Mapping[str, Any]
    assigned: Mapping[str, Any]
    offset_sums: Mapping[str, Mapping[str, int]]
    doubts: tuple[str, ...] = ()

    def held(self, process: str) -> set[str]:
        """Name the tasks that this generation gave a process, in whatever role."""
        given = self.assigned["clients"].get(process, {"active": (), "standby": ()})
        return {*given["active"], *given["standby"]}


@dataclass(frozen=True, slots=True)
class Episode:
    """A change of membership and the rebalances after it, until the next one.

    ``before`` is the last generation before it, None where that isn't known; ``until_ms`` is when
    the next change came, None after the last.
    """

    change: str
    before: RecordedGeneration | None
    generations: tuple[RecordedGeneration, ...]
    until_ms: int | None


def episodes(generations: Iterable[RecordedGeneration]) -> Iterator[Episode]:
    """Part one group's generations where its members change, oldest first."""
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
    """Return how fast one copy catches up, in offsets a second: the median over what was seen.

    From one generation to the next, only copies that were restoring all the time count: those
    that still weren't caught up in the end. None where there was no such copy.
    """
    ordered = sorted(generations, key=lambda one: (one.as_of_ms, one.generation))
    rates: list[float] = []
    for before, after in pairwise(ordered):
        seconds = (after.as_of_ms - before.as_of_ms) / 1000
        if seconds > 0:
            rates += [gained / seconds for gained in _gained(before, after)]
    return median(rates) if rates else None


def _gained(before: RecordedGeneration, after: RecordedGeneration) -> Iterator[int]:
    """Return the offsets by which each copy that is still behind has come further."""
    acceptable = after.scenario["config"]["acceptable.recovery.lag"]
    for process in sorted(after.scenario["clients"]):
        earlier, later = (one.offset_sums.get(process, {}) for one in (before, after))
        for task in sorted(before.held(process) & later.keys()):
            gained = later[task] - max(earlier.get(task, 0), 0)
            lag = lag_of(after.scenario, process, task)
            if lag is not None and lag > 0 and not is_caught_up(lag, acceptable) and gained > 0:
                yield gained


def _change(before: RecordedGeneration | None, after: RecordedGeneration) -> str | None:
    """Describe how the members changed: processes that came and went, or have other threads."""
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
