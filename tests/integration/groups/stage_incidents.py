"""``python -m tests.integration.groups.stage_incidents``: how often ``why`` names the true cause first.

Stages every incident of tests/support/groups/staged_incidents.py with real members, ``--seeds`` times,
``--at-once`` groups at a time, and asks a running service. ``--around``: those of
tests/support/groups/staged_surroundings.py, on three brokers, one at a time, since brokers are lost. Exits 1 if an answer calls a cause certain
that was not staged.
"""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path

import click

from caughtup.agents.progress import Progress
from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.support.groups.recorded_incidents import Recorder
from tests.support.groups.staged_incidents import INCIDENTS, answered
from tests.support.groups.staged_rebalances import old_topic
from tests.support.groups.staged_surroundings import AROUND, BROKERS, NODES
from tests.support.service import Service


@click.command(help=__doc__)
@click.option("--seeds", default=3, show_default=True, help="How often each incident is staged.")
@click.option("--first", default=1, show_default=True, help="The first seed.")
@click.option("--at-once", default=5, show_default=True, help="Groups at a time.")
@click.option("--around", is_flag=True, help="Stage what happens around a group's members.")
@click.option("--only", default="", help="Stage incidents whose names match this expression.")
@click.option("--answers", is_flag=True, help="Print each answer.")
@click.option("--record", type=click.Path(path_type=Path), help="Write recordings to this folder.")
def main(
    seeds: int,
    first: int,
    at_once: int,
    around: bool,
    only: str,
    answers: bool,
    record: Path | None,
) -> None:
    incidents = [one for one in (AROUND if around else INCIDENTS) if re.search(only, one.name)]
    jobs = [(one, seed) for seed in range(first, first + seeds) for one in incidents]
    counts = {1: [0, 0, 0], 2: [0, 0, 0]}
    invented = 0
    with ExitStack() as running:
        nodes, config = (NODES, BROKERS) if around else (1, {})
        cluster = running.enter_context(EmbeddedCluster(nodes=nodes, broker_properties=config))
        topic = old_topic(cluster)
        service = running.enter_context(Service(cluster))
        pool = running.enter_context(ThreadPoolExecutor(1 if around else at_once))
        advance = running.enter_context(Progress().task("staging incidents", len(jobs)))
        recorder = None if record is None else running.enter_context(Recorder(cluster))
        futures = {
            pool.submit(answered, cluster, service.url, one, seed, topic, recorder): (one, seed)
            for one, seed in jobs
        }
        for future in as_completed(futures):
            incident, seed = futures[future]
            advance(1)
            staged = " and ".join(incident.name.split("+"))
            try:
                found, recorded = future.result()
            except AssertionError as error:
                print(f"{staged}, seed {seed}: {error}", file=sys.stderr)
                counts[len(incident.acts)][0] += 1
                continue
            if record is not None and recorded is not None:
                record.mkdir(parents=True, exist_ok=True)
                recorded.write(record / f"{incident.name}-{seed}.json.gz")
            count = counts[len(incident.acts)]
            count[0] += 1
            count[1] += found.is_right
            count[2] += found.has_all
            invented += bool(found.invented)
            if answers or not (found.is_right and found.has_all) or found.invented:
                texts = [f"{link['kind']} ({link['sure']})" for link in found.answer["links"]]
                print(f"{staged}, seed {seed}: {', '.join(texts)}", file=sys.stderr)
    for causes, (total, right, whole) in counts.items():
        print(
            f"{causes} cause{'s' * (causes > 1)}: a true one first in {right} of {total}, "
            f"all of them named in {whole}"
        )
    print(f"a cause called certain that was not staged: {invented}")
    sys.exit(bool(invented))


if __name__ == "__main__":
    main()
