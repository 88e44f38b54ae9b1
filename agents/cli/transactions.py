"""``caughtup transactions``: open transactions, read from a cluster or asked of a service."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

import click
import msgspec

from caughtup.agents.cli.commands import examples
from caughtup.agents.cli.options import (
    NOTHING_MATCHED,
    Connection,
    connection_options,
    format_option,
    service_of,
    service_options,
    settings_of,
    watch_options,
)
from caughtup.agents.cli.text_tables import Output, escape_unencodable, lines, printable
from caughtup.agents.cli.text_tables import watch as repeat
from caughtup.agents.clock import now_ms
from caughtup.agents.columns import TRANSACTION_COLUMNS, cells
from caughtup.agents.looks.cluster import ClusterLooks
from caughtup.agents.progress import Progress
from caughtup.models.records.transactions import OpenTransaction

_NOTHING = "no open transaction holds anything back"

Look = Callable[[], list[OpenTransaction]]


@click.command(
    short_help="Show open transactions: who holds which partitions and groups back.",
    epilog=examples(
        "caughtup transactions -b broker:9092",
        "caughtup transactions -b broker:9092 --json",
        "caughtup transactions --service http://127.0.0.1:8080 --watch",
    ),
)
@click.option("--wide", "-w", is_flag=True, help="Whole names and all columns.")
@watch_options(2.0)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@service_options
@connection_options
@format_option
def transactions(
    wide: bool,
    watch: bool,
    every: float,
    as_json: bool,
    output: str,
    connection: Connection,
) -> None:
    """Show the open transactions that hold back the last stable offset of a partition: whose they
    are, since when they are open, when they time out, what is behind them, and how to end them.

    Consumers that read only committed records read nothing beyond a last stable offset. A
    transaction hangs if no coordinator will ever end it (KIP-664). Looks at the cluster as it is now
    and exits; with 3 if nothing is held back. It needs READ on the topics and DESCRIBE on the
    transactional ids; --service asks a service, which also knows which groups have been blocked for
    longer than they usually take.
    """
    service = service_of(connection)
    look = _cluster_reader(connection) if service is None else service.transactions
    escape_unencodable()
    json = as_json or output == "json"
    found = look()
    if watch:
        repeat(
            look,
            found,
            lambda some: list(output_lines(some, json=json, wide=wide)) or _nothing(json),
            every,
            json=json,
        )
        return
    for line in output_lines(found, json=json, wide=wide):
        click.echo(line)
    if not found:
        click.echo(f"caughtup: {_NOTHING}", err=True)
        sys.exit(NOTHING_MATCHED)


def _nothing(json: bool) -> list[str]:
    return [] if json else [_NOTHING]


def _cluster_reader(connection: Connection) -> Look:
    looks = ClusterLooks(settings_of(connection))

    def look() -> list[OpenTransaction]:
        state = looks.look(Progress())
        for reason in state.transactions.missing.reasons:
            click.echo(f"caughtup: not known: {reason}", err=True)
        return list(state.open_transactions(now_ms()))

    return look


def output_lines(
    found: Sequence[OpenTransaction], *, json: bool, wide: bool = False
) -> Iterator[str]:
    """Yield the output for transactions: JSON lines, or a table and then advice."""
    if json:
        for transaction in found:
            yield msgspec.json.encode(transaction).decode()
        return
    if not found:
        return
    now = now_ms()
    rows = [cells(TRANSACTION_COLUMNS, transaction, now) for transaction in found]
    yield from lines(TRANSACTION_COLUMNS, rows, Output.of_stdout(wide=wide))
    yield ""
    for transaction in found:
        yield printable(f"{transaction.name}: {transaction.advice}")
