"""``caughtup bench fleet``: the history of a generated fleet, on an embedded broker or in files."""

from __future__ import annotations

import resource
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from rich.console import Console
from rich.table import Table

from caughtup.agents.cli.commands import examples, not_in_checkout
from caughtup.agents.cli.options import format_option
from caughtup.agents.errors import UserError
from caughtup.agents.progress import Progress
from caughtup.bench.figures import Figures
from caughtup.models.errors import CaughtupError
from caughtup.models.polls.batch import decode_columns
from caughtup.models.wire.record_keys import RecordType

if TYPE_CHECKING:
    from caughtup.demo.cluster.cluster import EmbeddedCluster
    from caughtup.demo.fleet.offset_commits import RawRecord
    from caughtup.demo.fleet.raw_records import RawRecordFiles
    from caughtup.demo.fleet.timeline import FleetSettings

#: Kafka's own default.
_OFFSETS_PARTITIONS = 50
#: More groups take hours: each member has a connection, and members wait for each other.
_MOST_BY_PROTOCOL = 1_000
_ENCODED_AT_ONCE = 10_000
_COUNTED = ("records", "bytes", "commits", "group_records", "tombstones", "others", "errors")
_POSITIVE = click.IntRange(min=1)
_PERCENT = click.IntRange(0, 100)


@click.command(
    short_help="Generate the history of a fleet of groups.",
    epilog=examples("caughtup bench fleet --groups 10"),
)
@click.option("--groups", type=_POSITIVE, default=1_000, show_default=True, help="How many groups.")
@click.option(
    "--partitions",
    type=_POSITIVE,
    default=100,
    show_default=True,
    help="Partitions that each group reads.",
)
@click.option(
    "--minutes",
    type=_POSITIVE,
    default=60,
    show_default=True,
    help="The simulated time, in minutes.",
)
@click.option(
    "--interval", type=_POSITIVE, default=60, show_default=True, help="Seconds between commits."
)
@click.option(
    "--changes",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    help="How often a member of a group joins or leaves.",
)
@click.option(
    "--streams",
    type=_PERCENT,
    default=30,
    show_default=True,
    help="The percentage of groups that are Kafka Streams applications.",
)
@click.option(
    "--deleted",
    type=_PERCENT,
    default=5,
    show_default=True,
    help="The percentage of groups that are deleted.",
)
@click.option(
    "--makes",
    type=_POSITIVE,
    default=50,
    show_default=True,
    help="How many of the groups are different; the others repeat them.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="The seed; the same seed gives the same fleet.",
)
@click.option(
    "--by",
    "way",
    type=click.Choice(["codecs", "protocol"]),
    default="codecs",
    show_default=True,
    help="Who writes the records: our encoders, or a broker on behalf of members that speak the group protocol.",
)
@click.option(
    "--output",
    "directory",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep the raw records here as Parquet; with --by codecs, no broker is started then.",
)
@click.option(
    "--looks",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seconds between samples of end offsets, which a broker gets with --by codecs; 0 for none.",
)
@click.option("--hold", is_flag=True, help="Keep the broker until Ctrl-C, and print its address.")
@format_option
def fleet(way: str, directory: Path | None, hold: bool, output: str, **options: int) -> None:
    """Generate the history of a fleet of consumer groups: commits, generations, deletions.

    All figures are labelled as generated. Records on a broker are read back and decoded, and the
    figures describe those; for files the figures describe what was written.
    """
    try:
        from caughtup.demo.fleet.timeline import FleetSettings
    except ImportError as error:
        raise not_in_checkout(error) from error
    settings = FleetSettings(
        groups=options["groups"],
        partitions=options["partitions"],
        interval_ms=options["interval"] * 1000,
        span_ms=options["minutes"] * 60_000,
        changes=options["changes"],
        streams_percent=options["streams"],
        deleted_percent=options["deleted"],
        makes=options["makes"],
        seed=options["seed"],
    )
    if settings.interval_ms > settings.span_ms:
        raise UserError("--interval is longer than --minutes: no group would commit")
    if way == "protocol" and settings.groups > _MOST_BY_PROTOCOL:
        raise UserError(f"--by protocol plays {_MOST_BY_PROTOCOL:,} groups at most")
    if options["looks"] and (way == "protocol" or directory is not None):
        raise UserError("--looks needs --by codecs without --output")
    if hold and way == "codecs" and directory is not None:
        raise UserError("--hold: with --output and --by codecs there is no broker")
    try:
        figures = _figures(settings, way, directory, hold, options["looks"] * 1000)
    except ImportError as error:
        raise not_in_checkout(error) from error
    except CaughtupError as error:
        raise UserError(error.message) from error
    if output == "json":
        click.echo(msgspec.json.encode(figures).decode())
    else:
        Console().print(fleet_table(figures))


def fleet_table(figures: Figures) -> Table:
    """Return the figures as a table."""
    table = Table(title=f"A generated fleet by {figures['by']}", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, value in figures.items():
        if not isinstance(value, str):
            table.add_row(name.replace("_", " "), f"{round(value, 1):,}")
    return table


def count_records(batches: Iterable[Iterable[RawRecord]]) -> dict[str, int]:
    """Decode raw records, a batch at a time, and count them by kind."""
    found: Counter[str] = Counter(dict.fromkeys(_COUNTED, 0))
    for batch in batches:
        rows = list(batch)
        keys, values = [row.key for row in rows], [row.value for row in rows]
        decoded = decode_columns(keys, values)
        found["records"] += len(rows)
        found["bytes"] += sum(len(raw) for raw in chain(keys, values) if raw is not None)
        found["commits"] += decoded.records.get(RecordType.OFFSET_COMMIT, 0)
        found["group_records"] += decoded.records.get(RecordType.GROUP_METADATA, 0)
        found["tombstones"] += values.count(None)
        found["errors"] += sum(decoded.errors.values())
    found["others"] = found["records"] - found["commits"] - found["group_records"]
    return dict(found)


def _figures(
    settings: FleetSettings, way: str, directory: Path | None, hold: bool, sample_ms: int
) -> dict[str, object]:
    from caughtup.demo.cluster.cluster import EmbeddedCluster
    from caughtup.demo.fleet.raw_records import RawRecordFiles, read_back

    began = time.perf_counter()
    with ExitStack() as stack:
        cluster = None
        if way == "protocol" or directory is None:
            properties = {"offsets.topic.num.partitions": str(_OFFSETS_PARTITIONS)}
            cluster = stack.enter_context(EmbeddedCluster(broker_properties=properties))
            began = time.perf_counter()
            _write(cluster, settings, way, sample_ms)
        written = time.perf_counter() - began
        batches = _encoded(settings) if cluster is None else read_back(cluster)
        if directory is None:
            counted = count_records(batches)
        else:
            with RawRecordFiles(directory) as files:
                counted = count_records(_kept(files, batches))
        if cluster is None:
            written = time.perf_counter() - began
        figures = {
            "by": way,
            "groups": settings.groups,
            "group_partitions": settings.groups * settings.partitions,
            **counted,
            "seconds": written,
            "records_per_second": counted["records"] / written,
            "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        if hold and cluster is not None:
            _hold(cluster)
    return figures


def _kept(files: RawRecordFiles, batches: Iterable[list[RawRecord]]) -> Iterator[list[RawRecord]]:
    for batch in batches:
        files.add(batch)
        yield batch


def _write(cluster: EmbeddedCluster, settings: FleetSettings, way: str, sample_ms: int) -> None:
    from caughtup.demo.cluster.topics import create_topics
    from caughtup.demo.fleet.offset_commits import make_offsets_topic, write_records
    from caughtup.demo.fleet.protocol import play_fleet
    from caughtup.demo.fleet.records import write_end_offsets
    from caughtup.demo.fleet.timeline import fleet_events, fleet_topics

    create_topics(cluster, fleet_topics(settings))
    if way == "protocol":
        with Progress().task("playing the fleet", settings.commits) as advance:
            play_fleet(cluster, fleet_events(settings), advance)
        return
    make_offsets_topic(cluster)
    write_records(cluster, chain.from_iterable(_encoded(settings)))
    if sample_ms:
        write_end_offsets(cluster, settings, sample_ms)


def _encoded(settings: FleetSettings) -> Iterator[list[RawRecord]]:
    """Encode the fleet, with a progress bar."""
    from caughtup.demo.fleet.records import fleet_records
    from caughtup.demo.fleet.timeline import fleet_events

    batch: list[RawRecord] = []
    with Progress().task("encoding the fleet", settings.commits) as advance:
        for records in fleet_records(fleet_events(settings), _OFFSETS_PARTITIONS):
            advance(len(records))
            batch += records
            if len(batch) >= _ENCODED_AT_ONCE:
                yield batch
                batch = []
        yield batch


def _hold(cluster: EmbeddedCluster) -> None:
    click.echo(f"brokers: {cluster.bootstrap_servers}; Ctrl-C ends them", err=True)
    try:
        while True:
            time.sleep(3_600)
    except KeyboardInterrupt:
        return
