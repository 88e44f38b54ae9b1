"""Compare the history's rate with another checkout's, in turns on one log.

``python -m tests.support.pipelines.paired_rates CHECKOUT`` runs the measurement of ``caughtup bench
history`` with this checkout and the other one (a git worktree) ``--rounds`` times in turn, each in
a process of its own. Each line also has the rate of Spark's own read of the log just before, and the
ratios to that and to a bare stream of Spark's into a noop sink.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import click

from caughtup.bench import history as bench
from caughtup.bench.offsets.command import OFFSETS_PARTITIONS
from caughtup.demo.fleet.offset_logs import LOGS, Shape
from caughtup.demo.story.stage import DemoStage

ROOT = Path(__file__).resolve().parents[3]
#: The program of each process; it imports the modules of its checkout.
_MEASURE = """
import json, sys
from pathlib import Path
from types import SimpleNamespace as Given
from caughtup.bench import history as bench
servers, directory, threads, written = json.loads(sys.argv[1])
stage = Given(
    cluster=Given(bootstrap_servers=servers, pids=frozenset()),
    processes=Given(directory=Path(directory)),
)
print(json.dumps(bench._measure(stage, threads, bench.RecordCounts(*written))))
"""
_HEADING = "   records  threads  whose   records/s  Spark's own  ratio  of a stream  CPU s/million  JVM MB  Python MB  load"
_FIGURES = ("records_per_second", "raw_records_per_second", "ratio", "cpu_seconds_per_million")
_FIGURES += ("stream_ratio",)
_FIGURES += ("jvm_bytes", "python_bytes")
_MEGABYTE = 1 << 20


def measured(checkout: Path, directory: Path, *given: Any) -> dict[str, Any]:
    """Measure a checkout's history, with tables in a directory that is removed."""
    directory.mkdir()
    servers, *rest = given
    command = [sys.executable, "-c", _MEASURE, json.dumps([servers, str(directory), *rest])]
    # Spark's workers import modules by it, too.
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    try:
        ran = subprocess.run(
            command, cwd=checkout, env=environment, stdout=subprocess.PIPE, check=True
        )
    finally:
        shutil.rmtree(directory)
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    found.setdefault("stream_ratio", 0.0)  # an earlier checkout has none
    found["jvm_bytes"] = found["peak_bytes"].pop("java", 0)
    found["python_bytes"] = sum(found["peak_bytes"].values())
    return found


def line(whose: str, one: dict[str, Any], load: str) -> str:
    """Return a row of text."""
    return (
        f"{one['records']:>10,}  {one['threads']:>7}  {whose:<6}  {one['records_per_second']:>9,.0f}"
        f"  {one['raw_records_per_second']:>11,.0f}  {one['ratio']:>5.2f}"
        f"  {one['stream_ratio']:>11.2f}"
        f"  {one['cpu_seconds_per_million']:>13.1f}  {one['jvm_bytes'] / _MEGABYTE:>6,.0f}"
        f"  {one['python_bytes'] / _MEGABYTE:>9,.0f}  {load}"
    )


def medians(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the median of each figure."""
    return {**rows[0], **{name: median(row[name] for row in rows) for name in _FIGURES}}


@click.command()
@click.argument("other", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--records", type=int, multiple=True, default=(4_000_000, 16_000_000))
@click.option("--threads", type=int, multiple=True, default=(1,))
@click.option("--rounds", type=int, default=3)
@click.option("--log", "kind", type=click.Choice(LOGS), default="interleaved")
@click.option("--groups", type=int, default=500)
@click.option("--partitions", type=int, default=100)
def main(
    other: Path,
    records: tuple[int, ...],
    threads: tuple[int, ...],
    rounds: int,
    kind: str,
    groups: int,
    partitions: int,
) -> None:
    """Print a line for each run, and the medians of both."""
    checkouts = {"before": other.resolve(), "now": ROOT}
    print(_HEADING, flush=True)
    for count in records:
        properties = {"offsets.topic.num.partitions": str(OFFSETS_PARTITIONS)}
        with DemoStage(nodes=1, broker_properties=properties) as stage:
            stage.start_cluster()
            written = bench._write(stage, kind, Shape(count, groups, partitions))
            for number in threads:
                found: dict[str, list[dict[str, Any]]] = {whose: [] for whose in checkouts}
                for turn in range(rounds):
                    for whose in sorted(checkouts, reverse=bool(turn % 2)):
                        place = stage.processes.directory / f"{whose}-{number}-{turn}"
                        servers = stage.cluster.bootstrap_servers
                        one = measured(checkouts[whose], place, servers, number, written)
                        found[whose].append(one)
                        print(line(whose, one, f"{one['load']:.1f}"), flush=True)
                for whose, rows in found.items():
                    print(line(whose, medians(rows), f"median of {rounds}"), flush=True)


if __name__ == "__main__":
    main()
