"""Our decisions beside those of Kafka's own assignors, taking turns in one run."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.table import Table

from caughtup.agents.progress import Progress
from caughtup.bench.assign.group_sizes import YARDSTICKS, GroupSize, first_round, next_round
from caughtup.models.assignment.scenario import parse_scenario
from caughtup.models.assignors.registry import decide

if TYPE_CHECKING:
    from caughtup.demo.apps.published_assignor import PublishedAssignor

_ROUNDS = ("starts", "goes on")
_ALIKE = {True: "alike", False: "NOT ALIKE", None: "each its own way"}


class Timing(NamedTuple):
    """What a decision took: by the clock, and of its thread on a processor.

    On a machine that does other things, too, the latter says more.
    """

    milliseconds: float
    cpu_milliseconds: float


def measure_pairs(
    assignor: str, sizes: Sequence[GroupSize], repeats: int, warm_up_seconds: float
) -> Iterator[dict[str, Any]]:
    """Measure both on each size of group: on the group as it starts, and once that was carried out.

    Only the decisions are timed, what they decide from is made off the clock. ``same`` is
    whether all the repeats had the jar's actives, standbys and need of a probing rebalance. An
    assignor that Kafka hasn't got is timed beside its yardstick, each on what it decided itself
    before, and ``same`` is None. Raises CaughtupError when the jar can't be run.
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
) -> dict[str, Any]:
    """Return a row: a group's timings, ours and the jar's, and whether all decisions were alike."""
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
    figures: Sequence[dict[str, Any]],
    parts: str = "partitions × clients × threads of each × standbys",
) -> Table:
    """Return the figures as a table for people. ``parts`` says what a shape's numbers are."""
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


def decide_timed(scenario: dict[str, Any]) -> tuple[Timing, dict[str, Any]]:
    """Decide a scenario, read anew off the clock: what it took, and what is decided.

    The garbage collector looks through what the decision makes, not through what else this
    process holds, scenarios of other shapes above all.
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
    """Sum repeats up, in milliseconds: by the clock, and the median on a processor."""
    milliseconds = [timing.milliseconds for timing in timings]
    return {
        "median_ms": statistics.median(milliseconds),
        "least_ms": min(milliseconds),
        "most_ms": max(milliseconds),
        "cpu_ms": statistics.median(timing.cpu_milliseconds for timing in timings),
    }


def spread(figures: dict[str, float]) -> str:
    """Write a summary on two lines: the median, and the least and the most."""
    return "{median_ms:,.1f}\n{least_ms:,.1f} – {most_ms:,.1f}".format(**figures)


def _warm_up(
    published: PublishedAssignor, ours: dict[str, Any], theirs: dict[str, Any], seconds: float
) -> None:
    """Decide with both unmeasured, with the JVM at least twice: it compiles what runs often."""
    decide_timed(ours)
    published.load(theirs)
    end = time.monotonic() + seconds
    for _ in range(2):
        published.decide()
    while time.monotonic() < end:
        published.decide()


def _without_warm_ups(decision: dict[str, Any]) -> dict[str, Any]:
    """Remove which standbys are warm-ups: Kafka's assignors don't say."""
    clients = {
        process_id: {"active": given["active"], "standby": given["standby"]}
        for process_id, given in decision["clients"].items()
    }
    return {**decision, "clients": clients}
