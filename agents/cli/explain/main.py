"""``caughtup explain``: what the leader decided, why, and what caughtup recommends."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click
import msgspec
from rich.console import Console

from caughtup.agents.cli.examples import examples
from caughtup.agents.cli.explain.tables import print_explanation
from caughtup.agents.cli.lag.main import NOTHING_MATCHED
from caughtup.agents.cli.options import connection_options, format_option, settings_of
from caughtup.agents.looks import read_snapshot
from caughtup.agents.progress import Progress
from caughtup.models.decisions.life import DecidedGeneration
from caughtup.models.records.fields import ABSENT, Absent, changed, or_absent
from caughtup.models.records.recommendations import (
    KnownConfigRecord,
    LeaderRecord,
    RecommendationRecord,
    RecommendedMovement,
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


class AssignedTasks(msgspec.Struct):
    """The tasks that a process was assigned, standbys with the warm-ups among them."""

    active: list[str]
    standby: list[str]


class Explanation(msgspec.Struct, kw_only=True):
    """The object of ``explain --format json``; ``leader_decision``: by process."""

    group: str
    generation: int
    leader_decision: dict[str, AssignedTasks]
    exact: LeaderRecord
    configs: Sequence[KnownConfigRecord]
    leader_movements: Sequence[RecommendedMovement]
    recommendation: RecommendationRecord | Absent = ABSENT


def explanation(decided: DecidedGeneration) -> Explanation:
    """Return what is known of a generation's decision, and what is recommended instead."""
    generation = decided.generation
    return Explanation(
        group=generation.group,
        generation=generation.generation,
        leader_decision={
            str(process): AssignedTasks(
                [str(task) for task in sorted(client.active())],
                [str(task) for task in sorted(client.standby())],
            )
            for process, client in generation.clients.items()
        },
        exact=changed(decided.exact.leader, identical=ABSENT, told=ABSENT),
        configs=decided.inputs.configs,
        leader_movements=decided.leader_movements or (),
        recommendation=or_absent(decided.recommendation),
    )
