"""``caughtup explain``: what the leader decided, why, and what caughtup recommends."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import click
import msgspec
from rich.console import Console

from caughtup.agents.cli.examples import examples
from caughtup.agents.cli.explain.tables import print_explanation
from caughtup.agents.cli.lag.main import NOTHING_MATCHED
from caughtup.agents.cli.options import connection_options, format_option, settings_of
from caughtup.agents.cli.snapshot import read_snapshot
from caughtup.agents.progress import Progress
from caughtup.models.decisions.generation import DecidedGeneration
from caughtup.models.decisions.recommendation_fields import (
    config_fields,
    movement_fields,
    recommendation_fields,
)
from caughtup.models.state.cluster import ClusterState


@click.command(
    short_help="Explain an application's last assignment.",
    epilog=examples(
        "caughtup explain -b broker:9092 orders", "caughtup explain -b broker:9092 orders 0_3"
    ),
)
@click.argument("group")
@click.argument("tasks", nargs=-1, metavar="[TASK]...")
@connection_options
@format_option
def explain(group: str, tasks: tuple[str, ...], output: str, **connection: Any) -> None:
    """Explain a Streams application's last assignment: what its leader decided, why, what it
    costs, and what caughtup would do instead.

    With TASK, such as 0_3, show everything about that task. Exits 3 if GROUP is not a Kafka Streams
    application of this cluster, or has no such task.
    """
    state = read_snapshot(settings_of(connection), Progress(), [group])
    application = state.applications.get(group)
    if application is None or application.decided is None:
        _refuse(f"{group} {_what_it_is(state, group)}")
    decided = application.decided
    known = set(map(str, decided.inputs.scenario.tasks))
    for task in tasks:
        if task not in known:
            _refuse(f"{group} has no task {task}")
    if output == "json":
        click.echo(msgspec.json.encode(explanation(decided)).decode())
    else:
        print_explanation(Console(markup=False), decided, state.task_rows(group), tasks)


def _refuse(what: str) -> NoReturn:
    click.echo(f"caughtup: {what}", err=True)
    sys.exit(NOTHING_MATCHED)


def _what_it_is(state: ClusterState, group: str) -> str:
    if group in state.applications:
        return "is rebalancing: try again in a few seconds"
    if group in state.groups.streams:
        return "gets its tasks from the broker (KIP-1071), so that no leader decides"
    if group in state.group_names():
        return "has no members that run Kafka Streams"
    return "is not known on this cluster"


def explanation(decided: DecidedGeneration) -> dict[str, Any]:
    """Return the JSON object of ``explain --format json``."""
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
            "assignor": decided.exact.assignor,
            "result": decided.exact.result,
            "why": decided.exact.why,
        },
        "configs": config_fields(decided.inputs.configs),
        "leader_movements": [movement_fields(one) for one in decided.leader_movements or ()],
    }
    if decided.recommendation is not None:
        line["recommendation"] = recommendation_fields(decided.recommendation)
    return line
