"""Figures of learning in the service: ``python -m tests.models.learning.service_figures``.

Each application is read and decided in one state, as the service does it, once with nothing told
and once with everything; the difference is what learning costs.
"""

from __future__ import annotations

import argparse
import copy
import gc
import time
import tracemalloc
from dataclasses import replace

from caughtup.models.decisions.learned_configs import learned_record
from caughtup.models.decisions.life import END_OFFSETS_WAIT_MS
from caughtup.models.learning.probing_interval import PROBING
from caughtup.models.learning.ranges import LAG, STANDBYS, WARM_UPS
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.records.learned_configs import FORMAT
from caughtup.models.state.cluster import ClusterState
from tests.models.learning.applications import Application, Played


def parameters(app: Application, *, told: bool) -> ApplicationParameters:
    """Return what the settings say: the changelogs, and all configs or none."""
    if not told:
        return app.parameters
    truth = app.truth
    numbers = {STANDBYS: truth.standbys, WARM_UPS: truth.warm_ups, LAG: truth.lag}
    return replace(
        app.parameters,
        config={**numbers, PROBING: truth.probing_ms},
        tags=truth.tags,
        assignor=truth.assignor,
    )


def decide(state: ClusterState, group: str, played: Played) -> float:
    """Have a generation of a group decided; return the CPU seconds of that."""
    state.ends = played.ends
    generation = replace(played.generation, group=group)
    state.applications.apply_generation(group, generation, played.seen_ms)
    began = time.process_time()
    list(state.decide(played.seen_ms + END_OFFSETS_WAIT_MS))
    return time.process_time() - began


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--applications", type=int, default=1_000)
    asked.add_argument("--tasks", type=int, default=100)
    asked.add_argument("--generations", type=int, default=5)
    given = asked.parse_args()
    seconds: dict[bool, list[float]] = {told: [0.0] * given.generations for told in (False, True)}
    known = ClusterState("cluster-1", {})
    for number in range(given.applications):
        app, group = Application(f"service {number}", tasks=given.tasks), f"orders-{number}"
        states = {
            told: ClusterState("cluster-1", {group: parameters(app, told=told)})
            for told in (False, True)
        }
        for generation in range(given.generations):
            played = app.rebalance()
            for told, state in states.items():
                seconds[told][generation] += decide(state, group, played)
            app.live()
        for _, one in states[False].applications.learned.each():
            known.applications.learned.restore(group, one)
    records = [
        len(FORMAT.encode(learned_record(group, one)))
        for group, one in known.applications.learned.each()
    ]
    gc.collect()
    tracemalloc.start()
    kept = copy.deepcopy(known.applications.learned)
    size = tracemalloc.get_traced_memory()[0]
    print(f"{given.applications} applications of {given.tasks} tasks")
    for told, name in ((False, "nothing told"), (True, "all told")):
        each = (f"{1000 * one / given.applications:.1f}" for one in seconds[told])
        print(f"{name}: ms of CPU a generation, from the first on:", *each)
    more = [a - b for a, b in zip(seconds[False], seconds[True], strict=True)]
    print("learning, s of CPU for one generation of each:", *(f"{one:.1f}" for one in more))
    print(f"kept: {size / 1e6:.2f} MB of {len(kept.groups())} groups")
    print(f"records: {sum(records) // len(records)} bytes, largest {max(records)}", flush=True)


if __name__ == "__main__":
    main()
