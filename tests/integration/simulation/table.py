"""The table of docs/measured.md: ``python -m tests.integration.simulation.table``."""

from __future__ import annotations

import argparse
import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.followers.kafka_streams.jar import build_jar
from tests.integration.simulation import safe
from tests.integration.simulation.application import SlowApplication
from tests.integration.simulation.stories import (
    CONFIGS,
    FOLLOWER,
    STORIES,
    Rates,
    Told,
    measure,
    tell,
)
from tests.support.kafka.quotas import BROKER
from tests.support.service import Service

RECORDS, PER_SECOND, RESTORE_BYTES = 2_500, 5.0, 375_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stories", nargs="*", type=int, help="by their numbers, from 0")
    parser.add_argument("--tasks", action="store_true", help="what each task did, too")
    parser.add_argument("--marks", action="store_true", help="what happened, in its order, too")
    parser.add_argument("--tries", type=int, default=0, help="of `safe`, on the same broker")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    given = parser.parse_args()
    chosen = [
        one
        for number, one in enumerate(STORIES)
        if given.stories is None or number in given.stories
    ]
    told: list[Told] = []
    with (
        tempfile.TemporaryDirectory() as scratch,
        EmbeddedCluster(nodes=1, broker_properties=BROKER) as cluster,
    ):
        asked = Thread(target=safe.printed, args=(given.seed, given.tries, cluster))
        if given.tries:
            asked.start()
        for of in dict.fromkeys(one.of for one in chosen):
            with ExitStack() as stack:
                app, rates = begin(cluster, of, Path(scratch), stack)
                print(f"{of}: {rates}", flush=True)
                for story in chosen:
                    if story.of == of:
                        told.append(tell(app, story, rates))
                        print("\n".join(rows(told)), flush=True)
                        if given.tasks:
                            print("\n".join(task_rows(told[-1])), flush=True)
                        if given.marks:
                            print("\n".join(mark_rows(told[-1])), flush=True)
        print("load", *(f"{one:.1f}" for one in os.getloadavg()), flush=True)
        if given.tries:
            asked.join()


def mark_rows(told: Told) -> Iterator[str]:
    """Write what really happened, and what was simulated."""
    for what, marks in (("real", told.happened), ("simulated", told.played)):
        yield from (f"  {what} {one.at_ms:>7} {one.kind}: {one.what}" for one in marks)


def begin(
    cluster: EmbeddedCluster, of: str, scratch: Path, stack: ExitStack
) -> tuple[SlowApplication, Rates]:
    """Start an application, with the service beside one that follows, and measure its rates."""
    configs, class_path, prefix = dict(CONFIGS[of]), [], "caughtup-"
    if of == FOLLOWER:
        service = stack.enter_context(Service(cluster))
        prefix = service.topic("")
        configs["caughtup.topic.prefix"] = prefix
        class_path = [build_jar(scratch / "caughtup-follower.jar")]
    app = stack.enter_context(
        SlowApplication(
            cluster,
            of,
            restore_bytes=RESTORE_BYTES,
            properties=configs,
            class_path=class_path,
            prefix=prefix,
        )
    )
    app.set_up(RECORDS, PER_SECOND)
    return app, measure(app)


def rows(told: list[Told]) -> Iterator[str]:
    """Write the table as docs/measured.md has it."""
    yield (
        "| story | copies, real/simulated | rebalances | s to balance | "
        "median s a task stood still | worst task, s |"
    )
    yield "|---|---|---|---|---|---|"
    for one in told:
        real, simulated = one.real, one.simulated
        task, apart = one.worst
        worst = (
            f"{real.still_ms[task] / 1_000:.1f}/{simulated.still_ms[task] / 1_000:.1f} "
            f"({apart:.0%})"
        )
        yield (
            f"| {one.story.name} | {real.copies}/{simulated.copies} | "
            f"{real.rebalances}/{simulated.rebalances} | "
            f"{real.balanced_ms / 1_000:.1f}/{simulated.balanced_ms / 1_000:.1f} | "
            f"{real.median_ms / 1_000:.1f}/{simulated.median_ms / 1_000:.1f} | {worst} |"
        )


def task_rows(told: Told) -> Iterator[str]:
    """Write for how long each task stood still."""
    for task, still in sorted(told.real.still_ms.items()):
        yield f"  {task}: {still / 1_000:.1f} s, {told.simulated.still_ms[task] / 1_000:.1f} s"


if __name__ == "__main__":
    main()
