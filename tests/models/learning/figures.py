"""Figures of learning for docs/measured.md: ``python -m tests.models.learning.figures``."""

from __future__ import annotations

import argparse
import copy
import time
import tracemalloc

from caughtup.models.learning.learned import Learned, learn
from caughtup.models.learning.ranges import LAG, STANDBYS, WARM_UPS
from caughtup.models.learning.told import ToldConfigs
from tests.models.learning.applications import Application, Played
from tests.models.learning.playing import Tables, steps
from tests.models.learning.test_groups import LIKELY, check_truth
from tests.models.learning.truths import Truth


def all_told(truth: Truth) -> ToldConfigs:
    """Return settings that tell everything, so that there is one decision to make."""
    configs = {STANDBYS: truth.standbys, WARM_UPS: truth.warm_ups, LAG: truth.lag}
    return ToldConfigs(configs, truth.tags, truth.assignor)


def tell_groups(groups: int, doubts: float, failures: float) -> None:
    """Play groups and print when what was known of them."""
    tables = Tables()
    for seed in range(groups):
        app = Application(
            seed, doubts=doubts, failures=failures, releases=LIKELY, racked=seed % 3 == 0
        )
        group = list(steps(app))
        for step in group:
            check_truth(seed, step)
        tables.add(group)
        if not (seed + 1) % 100:
            print(f"{seed + 1} groups, {time.process_time():.0f} s of CPU", flush=True)
    print(f"{groups} groups, seeds 0 to {groups - 1}, doubts {doubts}, failures {failures}")
    print(tables.text(), flush=True)


def tell_time(applications: int, tasks: int, generations: int) -> None:
    """Learn of large applications, and print the CPU time beside that of one decision each."""
    learning = deciding = 0.0
    decisions = most = count = 0
    kept: list[Learned] = []
    by_generation = [0.0] * generations
    for seed in range(applications):
        app = Application(f"large {seed}", doubts=0.1, tasks=tasks)
        played: list[Played] = []
        for _ in range(generations):
            played.append(app.rebalance())
            app.live()
        learned, known = Learned(), Learned(all_told(app.truth))
        for number, one in enumerate(played):
            began = time.process_time()
            learned, verdict = learn(learned, one.generation, one.inputs, one.seen_ms)
            took = time.process_time() - began
            began = time.process_time()
            learn(known, one.generation, one.inputs, one.seen_ms)
            deciding += time.process_time() - began
            learning += took
            by_generation[number] += took
            decisions += verdict.decisions
            most = max(most, verdict.decisions)
            count += 1
        kept.append(learned)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    copies = [copy.deepcopy(one) for one in kept]
    size = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    print(f"{applications} applications of {tasks} tasks, {generations} generations each")
    print(f"CPU s: learning {learning:.2f}, one decision each {deciding:.2f}")
    print(f"ms a generation: {1000 * learning / count:.1f}, {1000 * deciding / count:.1f}")
    print("ms by generation:", *(f"{1000 * one / applications:.1f}" for one in by_generation))
    print(f"decisions a generation: {decisions / count:.1f}, most {most}")
    print(f"bytes an application: {size // len(copies)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=2_000)
    parser.add_argument("--doubts", type=float, default=0.1)
    parser.add_argument("--failures", type=float, default=0.03)
    parser.add_argument("--applications", type=int, default=0)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--generations", type=int, default=10)
    given = parser.parse_args()
    if given.groups:
        tell_groups(given.groups, given.doubts, given.failures)
    if given.applications:
        tell_time(given.applications, given.tasks, given.generations)


if __name__ == "__main__":
    main()
