"""How the history grows with executors: ``python -m tests.support.pipelines.growth``.

Measures it with few executors of one core each, in CPU seconds, which hardly depend on other work on
the machine; then computes the rate with up to a hundred of them, on paper. Assumed there: an executor
has a core to itself, and takes as long for a record as the measured ones; the broker and the network
keep up; the driver's work on a batch, which is serial, takes the CPU time that it took with the most
executors measured, and some more for each file. Tasks are given to executors the longest first.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import click

from caughtup.agents.settings import Settings
from caughtup.bench import history as bench
from caughtup.bench import usage
from caughtup.bench.offsets.command import OFFSETS_PARTITIONS
from caughtup.demo.fleet.offset_logs import Shape, group_names
from caughtup.demo.story.stage import DemoStage
from caughtup.models.assignors.java.strings import coordinator_partition
from caughtup.pipelines.schema import RECORDS_PER_BATCH, bucket, buckets_for

_EXECUTOR = b"CoarseGrainedExecutorBackend"
_SPARK = "--conf spark.eventLog.enabled=true --conf spark.eventLog.compress=false"
#: The numbers of executors in the computed table.
_COUNTS = (1, 2, 4, 8, 16, 32, 50, 64, 100)


class Shares(NamedTuple):
    """CPU seconds of a run: executors' for a million records, by stage; the driver's for a batch.

    ``largest``: the most that one executor took, of all executors' CPU time. ``wall``: seconds of
    the run for a million records.
    """

    executors: int
    read: float
    fold: float
    largest: float
    driver: float
    commit: float
    files: int
    wall: float


class Growth(NamedTuple):
    """A batch's seconds with a number of executors: of each stage and of the driver."""

    executors: int
    buckets: int
    read: float
    fold: float
    driver: float

    @property
    def rate(self) -> float:
        """Records a second."""
        return RECORDS_PER_BATCH / (self.read + self.fold + self.driver)


def longest(loads: Sequence[float], executors: int) -> float:
    """Return the share of all work of the executor with the most, the longest task first."""
    busy = [0.0] * executors
    for load in sorted(loads, reverse=True):
        busy[busy.index(min(busy))] += load
    return max(busy) / sum(loads)


def grown(shares: Shares, groups: Sequence[str], partitions: int, executors: int) -> Growth:
    """Compute a batch's seconds with a number of executors, from measured shares."""
    buckets = buckets_for(executors)
    homes = Counter(coordinator_partition(name, partitions) for name in groups)
    in_bucket = Counter(bucket(name, buckets) for name in groups)
    millions = RECORDS_PER_BATCH / 1e6
    files = shares.files * buckets / buckets_for(shares.executors)
    return Growth(
        executors,
        buckets,
        shares.read * millions * longest(list(homes.values()), executors),
        shares.fold * millions * longest(list(in_bucket.values()), executors),
        shares.driver + shares.commit * (files / shares.files - 1),
    )


def measure(servers: str, directory: Path, executors: int, commits: int) -> Shares:
    """Run the history with executors of one core, from a new checkpoint; return what it cost."""
    events = directory / "events"
    events.mkdir()
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        f"{_SPARK} --conf spark.eventLog.dir={events.as_uri()} pyspark-shell"
    )
    from caughtup.agents.cli.pipeline_jobs import running_spark
    from caughtup.agents.kafka.log_ranges import LogRangeReader
    from caughtup.pipelines.history.stream import HistoryOptions, history
    from caughtup.pipelines.history.tables import HistoryTables

    committing = [0.0]

    def timed(method: str) -> None:
        inner = getattr(HistoryTables, method)

        def outer(*given: object) -> None:
            began = time.process_time()
            inner(*given)
            committing[0] += time.process_time() - began

        setattr(HistoryTables, method, outer)

    with running_spark("growth", f"local-cluster[{executors},1,1024]") as spark:
        options = [
            HistoryOptions(
                servers,
                str(directory / name / "tables"),
                str(directory / name / "checkpoint"),
                None,
                topics={"end_offsets": bench._ENDS_TOPIC},
                upkeep=False,
                records_per_batch=most,
                read=LogRangeReader(Settings(bootstrap_servers=servers)),
            )
            for name, most in (("warming", 500_000), ("measured", RECORDS_PER_BATCH))
        ]
        history(spark, options[0], Path(options[0].checkpoint, "commits", "0").exists)
        timed("add")
        timed("finish")
        before, own, began = _used(), time.process_time(), time.time()
        history(spark, options[1], lambda: False)
        seconds, own = time.time() - began, time.process_time() - own
        used = {one: cpu - before.get(one, 0.0) for one, cpu in _used().items()}
        of_executors: dict[int, float] = {}
        for (root, _), cpu in used.items():
            of_executors[root] = of_executors.get(root, 0.0) + cpu
        driver = own + of_executors.pop(0, 0.0)
    batches = len([*Path(options[1].checkpoint, "commits").glob("[0-9]*")])
    files = len([*Path(options[1].output).rglob("*.parquet")])
    total, part = sum(of_executors.values()) * 1e6 / commits, _read_part(events, began)
    return Shares(
        executors,
        total * part,
        total * (1 - part),
        max(of_executors.values()) / sum(of_executors.values()),
        driver / batches,
        committing[0] / batches,
        files // batches,
        seconds * 1e6 / commits,
    )


def _used() -> dict[tuple[int, int], float]:
    """Return the CPU seconds of descendants by process, each with its executor, 0 for the driver."""
    below, found = usage._below(frozenset()), {}
    for pid, process in below.items():
        root = pid
        while root in below and not _is_executor(root):
            root = below[root].parent
        found[root if root in below else 0, pid] = process.ticks / usage._TICKS
    return found


def _is_executor(pid: int) -> bool:
    try:
        return _EXECUTOR in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _read_part(events: Path, since: float) -> float:
    """Return the share of the tasks' time that stages took which passed rows on, as reading does."""
    read = whole = 0
    # Besides them are hidden files of checksums.
    for file in [one for one in events.rglob("[!.]*") if one.is_file()]:
        for line in file.read_text().splitlines():
            event = json.loads(line)
            if event["Event"] != "SparkListenerTaskEnd" or "Task Metrics" not in event:
                continue
            if event["Task Info"]["Launch Time"] >= since * 1000:
                metrics = event["Task Metrics"]
                whole += metrics["Executor Run Time"]
                written = metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
                read += metrics["Executor Run Time"] if written else 0
    return read / whole


@click.command()
@click.option("--records", type=int, default=4_000_000)
@click.option("--executors", type=int, multiple=True, default=(1, 2, 4))
@click.option("--groups", type=int, default=500)
@click.option("--partitions", type=int, default=100)
@click.option(
    "--shares",
    type=(float, float, float, float),
    help="Measured before: read, fold (CPU s a million), the driver's and of that the commit (a batch).",
)
@click.option("--measure", "given", hidden=True)
def main(
    records: int,
    executors: tuple[int, ...],
    groups: int,
    partitions: int,
    shares: tuple[float, float, float, float] | None,
    given: str | None,
) -> None:
    """Print what was measured, and what is computed from it."""
    if shares is not None:
        read, fold, driver, commit = shares
        _print_growth(Shares(1, read, fold, 1.0, driver, commit, 1, 0.0), groups)
        return
    if given is not None:
        servers, directory, count, commits = json.loads(given)
        click.echo(json.dumps(measure(servers, Path(directory), count, commits)))
        return
    found = []
    properties = {"offsets.topic.num.partitions": str(OFFSETS_PARTITIONS)}
    with DemoStage(nodes=1, broker_properties=properties) as stage:
        stage.start_cluster()
        written = bench._write(stage, "interleaved", Shape(records, groups, partitions))
        click.echo(
            "executors  read  fold  (CPU s a million)  largest  driver s/batch  wall s/million"
        )
        for count in executors:
            with TemporaryDirectory() as directory:
                asked = (stage.cluster.bootstrap_servers, directory, count, written.commits)
                command = [sys.executable, "-m", __spec__.name, "--measure", json.dumps(asked)]
                ran = subprocess.run(command, stdout=subprocess.PIPE, check=True)
            found.append(one := Shares(*json.loads(ran.stdout.splitlines()[-1])))
            click.echo(
                f"{one.executors:>9}  {one.read:4.2f}  {one.fold:4.2f}  {one.largest:25.2f}"
                f"  {one.driver:14.1f}  {one.wall:14.2f}"
            )
    _print_growth(found[-1], groups)


def _print_growth(shares: Shares, groups: int) -> None:
    names = group_names(groups)
    click.echo("executors  buckets  read s  fold s  driver s  records/s  of the first's")
    first = grown(shares, names, OFFSETS_PARTITIONS, 1).rate
    for count in _COUNTS:
        one = grown(shares, names, OFFSETS_PARTITIONS, count)
        click.echo(
            f"{count:>9}  {one.buckets:>7}  {one.read:>6.2f}  {one.fold:>6.2f}  {one.driver:>8.2f}"
            f"  {one.rate:>9,.0f}  {one.rate / first:>14.1f}"
        )


if __name__ == "__main__":
    main()
