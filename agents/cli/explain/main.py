"""``caughtup explain``: what a group's members have, who decided it, why, and what would be better."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

import click
import msgspec
from rich.console import Console
from rich.table import Table

from caughtup.agents.cli.commands import examples
from caughtup.agents.cli.explain.consumers import print_consumer_group, print_rebalances
from caughtup.agents.cli.options import (
    NOTHING_MATCHED,
    Connection,
    connection_options,
    format_option,
    service_of,
    service_options,
    settings_of,
)
from caughtup.agents.looks.cluster import read_snapshot
from caughtup.agents.progress import Progress
from caughtup.models.assignment.explanation import lag_clause
from caughtup.models.decisions.exact.comparison import ASSIGNOR
from caughtup.models.decisions.life import DecidedGeneration
from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.durations import duration
from caughtup.models.ids import TaskId
from caughtup.models.rebalances.rebalance import GroupRebalance
from caughtup.models.records.fields import ABSENT, Absent, changed, or_absent, or_none
from caughtup.models.records.recommendations import (
    CostRecord,
    KnownConfigRecord,
    LeaderRecord,
    RecommendationRecord,
    RecommendedMovement,
)
from caughtup.models.shown.consumer_group import ConsumerGroupExplanation, explain_consumer_group
from caughtup.models.state.cluster import ClusterState


@click.command(
    short_help="Explain a group's last assignment.",
    epilog=examples(
        "caughtup explain -b broker:9092 orders",
        "caughtup explain -b broker:9092 orders 0_3",
        "caughtup explain --service http://127.0.0.1:8080 orders",
    ),
)
@click.argument("group")
@click.argument("tasks", nargs=-1, metavar="[TASK]...")
@service_options
@connection_options
@format_option
def explain(group: str, tasks: tuple[str, ...], output: str, connection: Connection) -> None:
    """Explain a group's last assignment. Of a Streams application: what its leader decided, why,
    what it costs, and what caughtup would do instead. Of a consumer group: who has which
    partitions, which client's assignor decided it, how uneven it is, and what one member more or
    fewer would change.

    Both have the last rebalances, each with its causes. With TASK, such as 0_3, show everything about
    that task of a Streams application. With --service, ask a service that has seen more rebalances
    than the log still has, about groups of consumers. Exits 3 if GROUP has no members on this
    cluster, is of neither kind, or has no such task.
    """
    service = service_of(connection)
    if service is not None:
        if tasks:
            raise click.UsageError(
                "a service explains groups, not tasks: leave TASK or --service out"
            )
        _show(service.explanation(group), output)
        return
    state = read_snapshot(settings_of(connection), Progress(), [group])
    application = state.applications.get(group)
    if application is None and not tasks:
        consumers = explain_consumer_group(state, group)
        if consumers is not None:
            _show(consumers, output)
            return
    if application is None or application.decided is None:
        _refuse(f"{group} {_what_it_is(state, group)}")
    decided = application.decided
    known = set(map(str, decided.inputs.scenario.tasks))
    for task in tasks:
        if task not in known:
            _refuse(f"{group} has no task {task}")
    if output == "json":
        rebalances = state.rebalances.of(group)
        click.echo(msgspec.json.encode(explanation(decided, rebalances)).decode())
    else:
        print_explanation(Console(markup=False), decided, state.task_rows(group), tasks)
        if not tasks:
            print_rebalances(Console(markup=False), state.rebalances.of(group))


def _show(consumers: ConsumerGroupExplanation, output: str) -> None:
    if output == "json":
        click.echo(msgspec.json.encode(consumers).decode())
    else:
        print_consumer_group(Console(markup=False), consumers)


def _refuse(what: str) -> NoReturn:
    click.echo(f"caughtup: {what}", err=True)
    sys.exit(NOTHING_MATCHED)


def _what_it_is(state: ClusterState, group: str) -> str:
    if group in state.applications:
        return "is rebalancing: try again in a few seconds"
    if group in state.group_names():
        return "has no members that are consumers or run Kafka Streams"
    return "is not known on this cluster"


class AssignedTasks(msgspec.Struct):
    """The tasks assigned to a process; standbys include warm-ups."""

    active: list[str]
    standby: list[str]


class Explanation(msgspec.Struct, kw_only=True):
    """The object of ``explain --format json``; ``leader_decision`` is by process."""

    group: str
    generation: int
    leader_decision: dict[str, AssignedTasks]
    exact: LeaderRecord
    configs: Sequence[KnownConfigRecord]
    leader_movements: Sequence[RecommendedMovement]
    recommendation: RecommendationRecord | Absent = ABSENT
    rebalances: Sequence[GroupRebalance] = ()


def explanation(
    decided: DecidedGeneration, rebalances: Sequence[GroupRebalance] = ()
) -> Explanation:
    """Return a generation's decision, the recommendation, and the last rebalances."""
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
        rebalances=rebalances,
    )


def print_explanation(
    console: Console, decided: DecidedGeneration, copies: Sequence[TaskCopy], tasks: Sequence[str]
) -> None:
    """Print a generation's decision, its reasons, and the recommendation.

    ``copies`` has the lag of the application's copies; with ``tasks``, print those only.
    """
    generation = decided.generation
    names = {str(process): client.name for process, client in generation.clients.items()}
    console.print(f"{generation.group}, generation {generation.generation}", style="bold")
    _print_certainty(console, decided)
    if tasks:
        for task in tasks:
            _print_task(console, decided, names, copies, task)
        return
    _print_configs(console, decided)
    _print_assignment(console, decided)
    _print_movements(console, "What the leader planned", decided.leader_movements or (), names)
    _print_movements(console, "What caughtup recommends", decided.movements, names)
    if decided.recommendation is not None:
        _print_costs(console, decided.recommendation)
        probing = decided.recommendation.probing_rebalance
        needed = "needed" if probing.needed else "not needed"
        console.print(f"A probing rebalance is {needed}: {probing.reason}.")


def _print_certainty(console: Console, decided: DecidedGeneration) -> None:
    exact = decided.exact.leader
    if exact.assignor != ASSIGNOR:
        console.print(f"Its leader decides by caughtup's {exact.assignor}.")
    verdict = {
        "match": f"The leader decided exactly what {exact.assignor} decides.",
        "consistent": f"The leader's decision may be {exact.assignor}'s: {exact.why}.",
        "mismatch": f"The leader's decision differs from {exact.assignor}'s: {exact.why}.",
        "undetermined": f"The leader's inputs are not fully known: {exact.why}.",
    }
    console.print(verdict[exact.result])
    if exact.told:
        console.print(f"The leader says: {exact.told}.", markup=False)
    for line in decided.inputs.inferred:
        console.print(f"  inferred: {line}", style="dim")
    for line in decided.inputs.contradicted:
        console.print(f"  the settings contradict the cluster: {line}", style="yellow")


def _print_configs(console: Console, decided: DecidedGeneration) -> None:
    """Print the configs, their possible values, and how they are known."""
    if not decided.inputs.configs:
        return
    table = Table("config", "value", "known", title="Configs", title_justify="left")
    for one in decided.inputs.configs:
        table.add_row(one.name, one.values, one.source)
    console.print(table)
    known = {one.provenance for one in decided.inputs.configs}
    if "assumed" in known and all(
        (or_none(one.generations) or 0) <= 1 for one in decided.inputs.configs
    ):
        console.print(
            "Known from this generation alone; a running service learns from every generation."
        )


def _print_assignment(console: Console, decided: DecidedGeneration) -> None:
    table = Table("client", "threads", "active", "standby", title="Assigned", title_justify="left")
    for client in decided.generation.clients.values():
        table.add_row(
            client.name,
            str(client.capacity),
            " ".join(str(task) for task in sorted(client.active())),
            " ".join(str(task) for task in sorted(client.standby())),
        )
    console.print(table)


def _print_movements(
    console: Console, title: str, movements: Sequence[RecommendedMovement], names: Mapping[str, str]
) -> None:
    if not movements:
        console.print(f"{title}: nothing moves.")
        return
    table = Table("task", "kind", "from", "to", "why", title=title, title_justify="left")
    for movement in movements:
        table.add_row(
            movement.task,
            movement.kind,
            names.get(movement.from_ or "", ""),
            names.get(movement.to, movement.to),
            movement.reason,
        )
    console.print(table)


def _print_costs(console: Console, recommended: RecommendationRecord) -> None:
    """Print the costs of both plans until the group is balanced, side by side."""
    table = Table("until balanced", title="Cost", title_justify="left")
    table.add_column("Kafka's assignor", justify="right")
    table.add_column("caughtup", justify="right")
    costs = (recommended.kafka_cost, recommended.cost)
    for label, numbers in (
        ("copies of state built", [cost.copies for cost in costs]),
        ("offsets restored", [cost.offsets for cost in costs]),
        ("probing rebalances", [cost.rebalances for cost in costs]),
    ):
        table.add_row(label, *map(_number, costs, numbers))
    table.add_row("time at one probing interval each", *(duration(cost.seconds) for cost in costs))
    console.print(table)


def _number(cost: CostRecord, number: int | Absent) -> str:
    if isinstance(number, Absent):
        return "unknown"
    return f"{'about ' if cost.estimated else ''}{number:,}"


def _print_task(
    console: Console,
    decided: DecidedGeneration,
    names: Mapping[str, str],
    copies: Sequence[TaskCopy],
    task: str,
) -> None:
    """Print the copies of one task, and its movements in both plans."""
    table = Table("client", "role", title=f"Task {task}", title_justify="left")
    table.add_column("at the rebalance")
    table.add_column("lag now", justify="right")
    table.add_column("known from")
    held = {copy.process: copy for copy in copies if str(copy.task) == task}
    task_id, scenario = TaskId.parse(task), decided.inputs.scenario
    stateful = task_id in decided.inputs.ends
    for process_id in scenario.clients:
        process = str(process_id)
        copy, lag = held.get(process), scenario.lag_of(process_id, task_id)
        table.add_row(
            names.get(process, process),
            copy.role if copy else "",
            lag_clause(lag) if stateful and lag is not None else "",
            f"{copy.lag:,}" if copy and copy.lag is not None else "",
            copy.provenance if copy else "",
        )
    console.print(table)
    for who, movements in (
        ("The leader", decided.leader_movements or ()),
        ("caughtup", decided.movements),
    ):
        own = [movement for movement in movements if movement.task == task]
        if not own:
            console.print(f"{who} leaves it where it is.")
        for movement in own:
            source = names.get(movement.from_ or "", "no client")
            destination = names.get(movement.to, movement.to)
            console.print(
                f"{who}: {movement.kind}, from {source} to {destination}: {movement.reason}."
            )
