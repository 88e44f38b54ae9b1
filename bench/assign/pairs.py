"""Time our decisions and those of Kafka's own assignors, in turns in one run."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.table import Table

from caughtup.agents.progress import Progress
from caughtup.bench.assign.group_sizes import YARDSTICKS, GroupSize, first_round, next_round
from caughtup.bench.figures import Figures
from caughtup.models.assignment.decision import DecisionLine
from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.registry import decide

if TYPE_CHECKING:
    from caughtup.demo.apps.published_assignor import PublishedAssignor

_ROUNDS = ("starts", "goes on")
_ALIKE = {True: "alike", False: "NOT ALIKE", None: "ties broken differently"}


class Timing(NamedTuple):
    """The time of a decision: wall-clock, and CPU time of its thread.

    On a busy machine the CPU time is the better figure.
    """

    milliseconds: float
    cpu_milliseconds: float


def measure_pairs(
    assignor: str, sizes: Sequence[GroupSize], repeats: int, warm_up_seconds: float
) -> Iterator[dict[str, object]]:
    """Measure both on each group size: on a new group, and after its first decision.

    Only the decisions are timed, not making the scenarios. ``same``: whether all repeats had the
    jar's actives, standbys and need of a probing rebalance. One of our own assignors is compared
    with its yardstick, each after its own first decision; ``same`` is None then. Raises
    CaughtupError when the jar cannot be run.
    """
    from caughtup.demo.apps.published_assignor import PublishedAssignor

    yardstick = YARDSTICKS.get(assignor, assignor)
    with (
        PublishedAssignor() as published,
        Progress().task("Deciding", len(sizes) * len(_ROUNDS) * repeats) as advance,
    ):
        for size in sizes:
            scenario = first_round(assignor, size)
            theirs_too = first_round(yardstick, size)
            for name in _ROUNDS:
                _warm_up(published, scenario, theirs_too, warm_up_seconds)
                timings: list[Timing] = []
                theirs: list[Timing] = []
                same = True
                for _ in range(repeats):
                    timing, decision = decide_timed(scenario)
                    answer = published.decide()
                    timings.append(timing)
                    theirs.append(Timing(answer.milliseconds, answer.cpu_milliseconds))
                    same = same and _without_warm_ups(decision) == answer.decision
                    advance(1)
                alike = same if yardstick == assignor else None
                yield figure(assignor, str(size), name, timings, theirs, alike)
                scenario = next_round(scenario, decision)
                theirs_too = next_round(theirs_too, answer.decision)


def figure(
    assignor: str,
    shape: str,
    group: str,
    ours: Sequence[Timing],
    theirs: Sequence[Timing],
    same: bool | None,
) -> dict[str, object]:
    """Return a row: a group's timings, ours and the jar's, and whether all decisions were equal."""
    own, jar = summary(ours), summary(theirs)
    return {
        "assignor": assignor,
        "shape": shape,
        "group": group,
        "ours": own,
        "jar": jar,
        "ratio": own["median_ms"] / jar["median_ms"],
        "cpu_ratio": own["cpu_ms"] / jar["cpu_ms"],
        "same": same,
    }


def pairs_table(
    figures: Sequence[Figures],
    parts: str = "partitions × clients × threads of each × standbys",
) -> Table:
    """Return the figures as a table. ``parts``: the meaning of the numbers in a group's size."""
    table = Table(
        title="Milliseconds for a decision: median, least to most",
        caption=f"Groups: {parts}. The jar is Kafka's own, in a warm JVM.",
    )
    table.add_column("group", no_wrap=True)
    table.add_column("it …")
    for column in ("ours", "the jar's", "ratio", "of CPU", "decided"):
        table.add_column(column, justify="right")
    for figure in figures:
        table.add_row(
            figure["shape"].replace("x", "×"),
            figure["group"],
            spread(figure["ours"]),
            spread(figure["jar"]),
            f"{figure['ratio']:.3f}",
            f"{figure['cpu_ratio']:.3f}",
            _ALIKE[figure["same"]],
        )
    return table


def decide_timed(scenario: dict[str, object]) -> tuple[Timing, DecisionLine]:
    """Parse a scenario and decide it; return the time of deciding only, and the decision.

    Other objects of this process, such as other scenarios, are frozen, so that the garbage collector
    does not traverse them.
    """
    parsed = parse_scenario(scenario)
    gc.freeze()
    start, start_of_thread = time.perf_counter_ns(), time.thread_time_ns()
    decision = decide(parsed)
    end_of_thread, end = time.thread_time_ns(), time.perf_counter_ns()
    gc.unfreeze()
    timing = Timing((end - start) / 1e6, (end_of_thread - start_of_thread) / 1e6)
    return timing, decision.to_dict()


def summary(timings: Sequence[Timing]) -> dict[str, float]:
    """Summarize repeats, in ms: wall-clock times, and the median CPU time."""
    milliseconds = [timing.milliseconds for timing in timings]
    return {
        "median_ms": statistics.median(milliseconds),
        "least_ms": min(milliseconds),
        "most_ms": max(milliseconds),
        "cpu_ms": statistics.median(timing.cpu_milliseconds for timing in timings),
    }


def spread(figures: dict[str, float]) -> str:
    """Format a summary on two lines: the median; least and greatest."""
    return "{median_ms:,.1f}\n{least_ms:,.1f} – {most_ms:,.1f}".format(**figures)


def _warm_up(
    published: PublishedAssignor, ours: dict[str, object], theirs: dict[str, object], seconds: float
) -> None:
    """Decide with both without measuring, with the JVM at least twice, so that it compiles."""
    decide_timed(ours)
    published.load(theirs)
    end = time.monotonic() + seconds
    for _ in range(2):
        published.decide()
    while time.monotonic() < end:
        published.decide()


def _without_warm_ups(decision: DecisionLine) -> dict[str, object]:
    """Return a decision without the list of warm-ups, which Kafka's assignors do not have."""
    clients = {
        process_id: {"active": given["active"], "standby": given["standby"]}
        for process_id, given in decision["clients"].items()
    }
    return {**decision, "clients": clients}
