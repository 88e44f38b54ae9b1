"""``caughtup bench loop``: what a large group costs the event loop, on an embedded cluster."""

from __future__ import annotations

import asyncio
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click
from rich.table import Table

from caughtup.agents.app import create_app
from caughtup.agents.cli.commands import examples, not_in_checkout
from caughtup.agents.cli.options import format_option
from caughtup.agents.cli.run import prepare
from caughtup.agents.clock import now_ms
from caughtup.agents.configuration.validating import validated
from caughtup.agents.errors import UserError
from caughtup.agents.process.turns import collect_seldom
from caughtup.bench.figures import Figures, printed
from caughtup.bench.loop.turns import WAIT_SECONDS, LoopTurns, until
from caughtup.models.assignors.java.strings import coordinator_partition
from caughtup.models.decisions.life import DecidedGeneration
from caughtup.models.decisions.recommendation import encode_recommendation, recommendation
from caughtup.models.errors import CaughtupError
from caughtup.models.state.cluster import ClusterState

if TYPE_CHECKING:
    from caughtup.demo.cluster.cluster import EmbeddedCluster
    from caughtup.demo.fleet.large_group import LargeGroup

#: With 3, the generated group is not on the partition of the service's own group: brokers reload a
#: partition of __consumer_offsets to which another client writes.
_OFFSETS_PARTITIONS = 3
#: How long each phase continues after its event, for assessments and caughtup-lag.
_GO_ON_SECONDS = 6.0
_MOST_JOIN = 10


@click.command(
    short_help="Measure what a large group costs the event loop.",
    epilog=examples("caughtup bench loop --processes 100 --tasks 1000"),
)
@click.option("--processes", type=click.IntRange(2), default=1_000, show_default=True)
@click.option("--tasks", type=click.IntRange(1), default=1_000, show_default=True)
@click.option("--standbys", type=click.IntRange(0), default=1, show_default=True)
@format_option
def loop(processes: int, tasks: int, standbys: int, output: str) -> None:
    """Measure the longest turn of the service's event loop with a large group.

    A generated Kafka Streams group starts and grows, in records of __consumer_offsets of an
    embedded broker; its changelogs are real. The service runs in this process. A turn is one
    callback of the loop, in CPU time of the loop's own thread.
    """
    try:
        from caughtup.demo.cluster.cluster import EmbeddedCluster
        from caughtup.demo.fleet.large_group import LargeGroup
    except ImportError as error:
        raise not_in_checkout(error) from error
    group = LargeGroup(processes, tasks, standbys)
    properties = {"offsets.topic.num.partitions": str(_OFFSETS_PARTITIONS)}
    try:
        with EmbeddedCluster(1, broker_properties=properties) as cluster:
            _fill(cluster, group)
            collect_seldom()
            figures = asyncio.run(_measure(cluster, group))
    except CaughtupError as error:
        raise UserError(error.message) from error
    title = f"{processes:,} processes × {tasks:,} tasks, {standbys} standbys"
    printed(figures, output, partial(loop_table, title=title))


def loop_table(figures: Sequence[Figures], title: str) -> Table:
    """Return the turns of each phase as a table."""
    table = Table("", title=f"The event loop's turns: {title}")
    for column in ("longest turn, ms", "all turns, ms", "seconds", "record, bytes", "made in, ms"):
        table.add_column(column, justify="right")
    for figure in figures:
        table.add_row(
            figure["what"],
            f"{1000 * figure['longest_seconds']:.1f}",
            f"{1000 * figure['loop_seconds']:,.0f}",
            f"{figure['seconds']:.1f}",
            *_record(figure),
        )
    return table


def _record(figure: Figures) -> tuple[str, ...]:
    if "record_bytes" not in figure:
        return ()
    made, encoded = (1000 * figure[f"{name}_seconds"] for name in ("build", "encode"))
    return f"{figure['record_bytes']:,}", f"{made:,.0f} + {encoded:.1f}"


def _fill(cluster: EmbeddedCluster, group: LargeGroup) -> None:
    """Create the group's topics with their records."""
    from caughtup.demo.cluster.load import produce_empty
    from caughtup.demo.cluster.topics import create_topics
    from caughtup.demo.fleet.large_group import CHANGELOG, END_OFFSET, SOURCE
    from caughtup.demo.fleet.offset_commits import make_offsets_topic

    create_topics(cluster, {SOURCE: group.tasks, CHANGELOG: group.tasks})
    make_offsets_topic(cluster)
    produce_empty(cluster, group.partitions(), END_OFFSET)


async def _measure(cluster: EmbeddedCluster, group: LargeGroup) -> list[Figures]:
    from caughtup.demo.fleet.large_group import CHANGELOG, GROUP

    given = {
        "bootstrap_servers": cluster.bootstrap_servers,
        "web_port": 0,
        "applications": {GROUP: {**group.config, "changelogs": {"0": [CHANGELOG]}}},
    }
    settings, wrong = validated(given, {}, {})
    assert wrong == []
    figures: list[Figures] = []
    with LoopTurns() as turns, TemporaryDirectory() as scratch:
        for run in ("", "after a restart: "):
            settings, state = await asyncio.to_thread(prepare, settings)
            measured = _Measured(turns, figures, state)
            wired = create_app(settings, state, Path(scratch))
            await asyncio.sleep(0)
            with measured.phase(f"{run}starting up"):
                await wired.app.start()
                await until(partial(getattr, wired.health, "ready"), "the service is ready")
            try:
                if run:
                    await measured.decided("a decision read back", 2)
                else:
                    await _rebalance(cluster, group, measured, 1)
                    group.join(min(_MOST_JOIN, len(str(group.tasks)) ** 2))
                    await _rebalance(cluster, group, measured, 2)
                with measured.phase(f"{run}assessed, and written to caughtup-lag"):
                    await asyncio.sleep(_GO_ON_SECONDS)
                for path in ("metrics", "api/state"):
                    with measured.phase(f"{run}GET /{path}, three times"):
                        for _ in range(3):
                            await asyncio.to_thread(_get, wired.web.port, path)
            finally:
                await wired.app.stop()
    return figures


class _Measured:
    """Records the event loop's turns in one phase after another."""

    def __init__(self, turns: LoopTurns, figures: list[Figures], state: ClusterState) -> None:
        self._turns = turns
        self._figures = figures
        self._state = state

    @contextmanager
    def phase(self, what: str) -> Iterator[Figures]:
        """Record the turns inside the context."""
        figure: Figures = {"what": what}
        began = time.monotonic()
        self._turns.reset()
        yield figure
        figure |= {
            "longest_seconds": self._turns.longest.seconds,
            "of": self._turns.longest.what,
            "loop_seconds": self._turns.seconds,
            "seconds": time.monotonic() - began,
        }
        self._figures.append(figure)

    async def decided(self, what: str, generation: int) -> None:
        """Wait until a generation is decided and published."""
        from caughtup.demo.fleet.large_group import GROUP

        def is_done() -> bool:
            known = self._state.applications.get(GROUP)
            return (
                known is not None
                and known.decided is not None
                and known.decided.generation.generation == generation
                and not known.movements_due
            )

        with self.phase(what) as figure:
            await until(is_done, what)
            await asyncio.sleep(1)
        decided = self._state.applications[GROUP].decided
        assert decided is not None
        figure["result"] = decided.exact.leader.result
        figure |= await asyncio.to_thread(_written_again, self._state.cluster, decided)


def _written_again(cluster: str, decided: DecidedGeneration) -> Figures:
    """Make a decision's record again, and time the decision with its costs, and the JSON."""
    began = time.thread_time()
    record = recommendation(
        cluster, decided.generation, decided.inputs, decided.exact, now_ms(), None
    )
    assert record is not None
    built = time.thread_time()
    value = encode_recommendation(record)
    encoded = time.thread_time()
    return {
        "record_bytes": len(value),
        "build_seconds": built - began,
        "encode_seconds": encoded - built,
    }


async def _rebalance(
    cluster: EmbeddedCluster, group: LargeGroup, measured: _Measured, number: int
) -> None:
    """Complete a generation of the group, and wait until it is decided and published."""
    from caughtup.demo.fleet.large_group import GROUP
    from caughtup.demo.fleet.offset_commits import RawRecord, write_records

    home = coordinator_partition(GROUP, _OFFSETS_PARTITIONS)

    def write() -> None:
        at_ms = now_ms()
        records = [group.rebalance(at_ms), *group.commits(at_ms)]
        write_records(cluster, [RawRecord(home, 0, at_ms, *record) for record in records])

    await asyncio.to_thread(write)
    await measured.decided(f"generation {number}: read, decided, its movements published", number)


def _get(port: int, path: str) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=WAIT_SECONDS) as answer:
        while answer.read(1 << 20):
            pass
