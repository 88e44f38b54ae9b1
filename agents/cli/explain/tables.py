"""What ``caughtup explain`` prints: sentences and tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from caughtup.models.assignment.explanation import lag_clause
from caughtup.models.decisions.exact.comparison import ASSIGNOR
from caughtup.models.decisions.life import DecidedGeneration
from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.durations import duration
from caughtup.models.ids import TaskId
from caughtup.models.records.fields import Absent, or_none
from caughtup.models.records.recommendations import (
    CostRecord,
    RecommendationRecord,
    RecommendedMovement,
)


def print_explanation(
    console: Console, decided: DecidedGeneration, copies: Sequence[TaskCopy], tasks: Sequence[str]
) -> None:
    """Print what a generation's leader decided, why, and what is recommended.

    ``copies`` is the application's lag table; ``tasks`` are those asked for, none for all that
    move.
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
    """Print the configs, what of them is known, and how."""
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
    """Print what both plans cost until the group is balanced, side by side."""
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
    table.add_row("time, an interval each", *(duration(cost.seconds) for cost in costs))
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
    """Print all there is to say of one task: who has what of it, and what is to become of it."""
    table = Table("client", "has it as", title=f"Task {task}", title_justify="left")
    table.add_column("at the rebalance it")
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
