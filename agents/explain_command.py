"""``caughtup explain``: what the leader decided, why, and what caughtup recommends."""

from __future__ import annotations

import sys
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from caughtup.agents.lag_command import NOTHING_MATCHED
from caughtup.agents.options import connection_options, format_option, settings_of
from caughtup.agents.progress import Progress
from caughtup.agents.snapshot import read_snapshot
from caughtup.models.deciding import DecidedGeneration
from caughtup.models.exact import ASSIGNOR


@click.command(short_help="Explain an application's last assignment.")
@click.argument("group")
@connection_options
@format_option
def explain(group: str, output: str, **connection: Any) -> None:
    """Explain a Streams application's last assignment, move by move.

    Exits 3 when GROUP isn't a Kafka Streams application of this cluster.
    """
    state = read_snapshot(settings_of(connection), Progress())
    application = state.applications.get(group)
    if application is None or application.decided is None:
        if application is not None:
            what = "is just being rebalanced: try again in some seconds"
        elif group in state.groups.streams:
            what = "is assigned its tasks by the broker (KIP-1071): no leader decides there"
        elif group in state.group_names():
            what = "has no members that run Kafka Streams"
        else:
            what = "is not known on this cluster"
        click.echo(f"caughtup: {group} {what}", err=True)
        sys.exit(NOTHING_MATCHED)
    if output == "json":
        click.echo(msgspec.json.encode(explanation(application.decided)).decode())
    else:
        _print(Console(markup=False), application.decided)


def explanation(decided: DecidedGeneration) -> dict[str, Any]:
    """Give the JSON object of ``explain --format json``."""
    generation = decided.generation
    line: dict[str, Any] = {
        "group": generation.group,
        "generation": generation.generation,
        "leader_decision": {
            str(process): {
                "active": [str(task) for task in sorted(client.active())],
                "standby": [str(task) for task in sorted(client.standby())],
            }
            for process, client in generation.clients.items()
        },
        "exact": {
            "assignor": ASSIGNOR,
            "result": decided.exact.result,
            "why": decided.exact.why,
        },
    }
    if decided.record is not None:
        line["recommendation"] = decided.record
    return line


def _print(console: Console, decided: DecidedGeneration) -> None:
    generation = decided.generation
    names = {str(process): client.name for process, client in generation.clients.items()}
    console.print(f"{generation.group}, generation {generation.generation}", style="bold")
    verdict = {
        "match": f"The leader decided exactly what {ASSIGNOR} decides.",
        "mismatch": f"The leader's decision differs from {ASSIGNOR}'s: {decided.exact.why}.",
        "undetermined": f"What the leader decided from is not fully known: {decided.exact.why}.",
    }
    console.print(verdict[decided.exact.result])
    for line in decided.inputs.inferred:
        console.print(f"  inferred: {line}", style="dim")
    for line in decided.inputs.assumed:
        console.print(f"  assumed: {line} is at Kafka's default", style="dim")

    clients = Table(
        "client", "threads", "active", "standby", title="Assigned", title_justify="left"
    )
    for client in generation.clients.values():
        clients.add_row(
            client.name,
            str(client.capacity),
            " ".join(str(task) for task in sorted(client.active())),
            " ".join(str(task) for task in sorted(client.standby())),
        )
    console.print(clients)

    moves = Table("task", "kind", "from", "to", "why", title="Movements", title_justify="left")
    for movement in decided.movements:
        moves.add_row(
            movement["task"],
            movement["kind"],
            names.get(movement.get("from", ""), ""),
            names.get(movement["to"], movement["to"]),
            movement["reason"],
        )
    if decided.movements:
        console.print(moves)
    else:
        console.print("Nothing moves.")
    if decided.record is not None:
        probing, cost = decided.record["probing_rebalance"], decided.record["cost"]
        needed = "needed" if probing["needed"] else "not needed"
        console.print(f"A probing rebalance is {needed}: {probing['reason']}.")
        console.print(
            f"Cost: {cost['copies']} copies of state built, {cost['offsets']} offsets restored."
        )
