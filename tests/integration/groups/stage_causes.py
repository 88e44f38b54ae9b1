"""``python -m tests.integration.groups.stage_causes``: how many causes of rebalances are named right.

Stages every cause with real members on both protocols, ``--seeds`` times, ``--at-once`` groups at a time,
and asks a running service for what it names. Exits 1 if a cause that isn't so is called certain.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack

import click

from caughtup.agents.progress import Progress
from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.support.groups.staged_rebalances import SCENARIOS, Stage, Staged, old_topic, staged
from tests.support.service import Service

#: A cause has to be named within this time (s) after the rebalance.
SOON = 5.0


@click.command(help=__doc__)
@click.option("--seeds", default=10, show_default=True, help="How often each cause is staged.")
@click.option("--first", default=1, show_default=True, help="The first seed.")
@click.option("--at-once", default=6, show_default=True, help="Groups at a time.")
def main(seeds: int, first: int, at_once: int) -> None:
    jobs = [
        (protocol, scenario, seed)
        for seed in range(first, first + seeds)
        for protocol, scenarios in SCENARIOS.items()
        for scenario in scenarios
    ]
    right, slow, total = Counter[tuple[str, str]](), 0, Counter[tuple[str, str]]()
    wrongly_certain = 0
    with ExitStack() as running:
        cluster = running.enter_context(EmbeddedCluster(nodes=1))
        topic = old_topic(cluster)
        service = running.enter_context(Service(cluster))
        pool = running.enter_context(ThreadPoolExecutor(at_once))
        advance = running.enter_context(Progress().task("staging rebalances", len(jobs)))

        def run(
            protocol: str, scenario: Callable[[Stage], Staged], seed: int
        ) -> Staged | AssertionError:
            try:
                return staged(cluster, service.url, protocol, scenario, seed, topic)
            except AssertionError as error:  # nothing was named in time
                return error

        futures = {pool.submit(run, *job): job for job in jobs}
        for future in as_completed(futures):
            protocol, scenario, seed = futures[future]
            key, found = (protocol, scenario.__name__), future.result()
            total[key] += 1
            advance(1)
            if isinstance(found, AssertionError):
                print(f"{protocol} {scenario.__name__}, seed {seed}: {found}", file=sys.stderr)
                continue
            if found.is_right and found.named.seconds <= SOON:
                right[key] += 1
                continue
            slow += found.is_right
            certain = found.named.cause["sure"] == "certain"
            wrongly_certain += certain and not found.is_right
            print(
                f"{protocol} {scenario.__name__}, seed {seed}: {found.named.cause} "
                f"after {found.named.seconds:.1f} s",
                file=sys.stderr,
            )
    for protocol, name in total:
        print(f"{protocol:9} {name:24} {right[protocol, name]:3} of {total[protocol, name]}")
    share = sum(right.values()) / sum(total.values())
    print(
        f"named right within {SOON:.0f} s: {sum(right.values())} of {sum(total.values())} ({share:.1%}), "
        f"{slow} right but later; wrong and called certain: {wrongly_certain}"
    )
    sys.exit(bool(wrongly_certain))


if __name__ == "__main__":
    main()
