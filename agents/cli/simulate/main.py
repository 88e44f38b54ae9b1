"""``caughtup simulate``: what a change to a group would cost, before it is made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from caughtup.agents.cli.commands import examples
from caughtup.agents.cli.options import Connection, Span, connection_options, format_option
from caughtup.agents.cli.simulate.answers import (
    FIGURES,
    answer_fields,
    cells,
    html_page,
    remarks,
    terminal_drawing,
)
from caughtup.agents.cli.simulate.groups import (
    changed_configs,
    rate_option,
    read_playable,
    read_recorded_group,
    refuse,
)
from caughtup.agents.cli.text_tables import Output, lines
from caughtup.agents.columns import Column
from caughtup.models.assignors.registry import ASSIGNORS
from caughtup.models.errors import CaughtupError
from caughtup.models.simulation.streams.plan import PlannedActions
from caughtup.models.simulation.streams.topology import AssignmentProtocol
from caughtup.models.what_if.consumer_group import ASSIGNORS as CONSUMER_ASSIGNORS
from caughtup.models.what_if.question import WhatIfAnswer, ask, best_plans
from caughtup.models.what_if.setting import Playable, WhatIfSetting

_ROLLING = "rolling"
#: The assignment protocol of each option; None keeps the group's own.
_PROTOCOLS = {
    "cooperative": None,
    "eager": None,
    "streams": AssignmentProtocol.STREAMS,
    "consumer": AssignmentProtocol.CONSUMER,
}


@click.command(
    short_help="Play a change to a group in virtual time: what would it cost?",
    epilog=examples(
        "caughtup simulate orders --add 1 --restore-rate 20000",
        "caughtup simulate orders --restart rolling --set num.standby.replicas=1",
        "caughtup simulate orders --add 1 --assignor high_availability --assignor minimal_movement",
        "caughtup simulate orders --restart rolling --best --restore-rate 20000",
        "caughtup simulate orders --add 1 --protocol streams --restore-rate 20000",
        "caughtup simulate --scenario scenarios.jsonl --add 1 --restore-rate 20000",
    ),
)
@click.argument("group", required=False)
@click.option(
    "--scenario",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Play the group of this file instead of a cluster's: the last scenario in it (of "
    "GROUP), as `caughtup assign` reads them, or the last row of recorded generations.",
)
@click.option("--add", type=click.IntRange(1, 1_000), metavar="N", help="Start N more instances.")
@click.option(
    "--remove", "stop", multiple=True, metavar="CLIENT", help="Stop an instance. May be repeated."
)
@click.option("--kill", multiple=True, metavar="CLIENT", help="Kill an instance. May be repeated.")
@click.option(
    "--restart",
    multiple=True,
    metavar="rolling|CLIENT",
    help="Restart all instances, one after the other, or one. May be repeated.",
)
@click.option(
    "--at-once", is_flag=True, help="Restart all of them at once instead of one after the other."
)
@click.option(
    "--down-seconds",
    type=click.FloatRange(0, 86_400),
    default=30.0,
    show_default=True,
    help="How long a restarted instance is down.",
)
@click.option(
    "--keep-state/--lose-state",
    default=True,
    show_default=True,
    help="Whether a restarted or killed instance finds its state directory again.",
)
@click.option(
    "--leave-group",
    is_flag=True,
    help="A stopped instance leaves the group at once, so that the group does not wait for its session timeout.",
)
@click.option(
    "--set", "changes", multiple=True, metavar="NAME=VALUE", help="Another config. May be repeated."
)
@click.option(
    "--assignor",
    "assignors",
    multiple=True,
    type=click.Choice(sorted((*ASSIGNORS, *CONSUMER_ASSIGNORS))),
    help="The assignor; several are shown side by side. uniform and range are for consumer groups. "
    "[default: the group's own]",
)
@click.option(
    "--protocol",
    type=click.Choice([*_PROTOCOLS]),
    help="Play the group on this protocol. With streams (KIP-1071) and consumer (KIP-848) the "
    "coordinator assigns. [default: the group's own, cooperative where a leader assigns]",
)
@click.option(
    "--before-3.8",
    "before_3_8",
    is_flag=True,
    help="While one task of a thread restores, none of them runs, as in Kafka Streams up to 3.7.",
)
@click.option(
    "--static",
    "static_members",
    is_flag=True,
    help="Play as if every member had a group.instance.id. [default: as the members have it]",
)
@click.option(
    "--best",
    is_flag=True,
    help="Try the configs and the restart orders that matter, and compare them.",
)
@click.option(
    "--step",
    type=Span(),
    help="The time that a column of the drawing stands for. [default: as short as the width allows]",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the time line into this HTML file.",
)
@rate_option
@connection_options
@format_option
def simulate(  # the options of one command
    group: str | None,
    scenario: Path | None,
    add: int | None,
    stop: tuple[str, ...],
    kill: tuple[str, ...],
    restart: tuple[str, ...],
    at_once: bool,
    down_seconds: float,
    keep_state: bool,
    leave_group: bool,
    changes: tuple[str, ...],
    assignors: tuple[str, ...],
    protocol: str | None,
    before_3_8: bool,
    static_members: bool,
    best: bool,
    step: float | None,
    html: Path | None,
    restore_rate: tuple[float, float] | None,
    output: str,
    connection: Connection,
) -> None:
    """Play a change to a Kafka Streams application in virtual time, from its present state or from
    a scenario; or to a consumer group, whose partitions are played as tasks without state.

    Shows how long each task would stand still, how many states would be copied, how many rebalances
    it takes and when the group is balanced. Kafka's own assignors decide. The command changes
    nothing on the cluster. Exits 3 when GROUP is not such an application or has no such client.
    """
    if not (add or stop or kill or restart):
        raise click.UsageError("name the change: --add, --remove, --kill or --restart")
    assigned_by = _PROTOCOLS.get(protocol or "")
    changed = changed_configs(changes)
    if scenario is not None:
        found: Playable = _from_file(scenario, group, restore_rate)
    elif group is not None:
        found = read_playable(group, connection, restore_rate, assigned_by)
    else:
        raise click.UsageError("name a GROUP, or a file with --scenario")
    plan = PlannedActions(
        add or 0,
        stop,
        kill,
        _restarted(restart, found.clients),
        round(down_seconds * 1_000),
        at_once,
        keep_state,
        leave_group or found.leaves,
    )
    settings = [
        WhatIfSetting(
            one,
            changed,
            protocol == "eager",
            before_3_8,
            static_members,
            assigned_by,
        )
        for one in (assignors or (None,))
    ]
    answers = _answers(found, plan, settings, best=best)
    if output == "json":
        for answer in answers:
            click.echo(msgspec.json.encode(answer_fields(found, answer)).decode())
    else:
        _print(found, answers, step)
    if html is not None:
        html.write_text(html_page(found, answers), encoding="utf-8")


def _from_file(path: Path, group: str | None, restore_rate: tuple[float, float] | None) -> Playable:
    try:
        return read_recorded_group(path, group, restore_rate)
    except CaughtupError as error:
        refuse(error.message)
    except OSError as problem:
        refuse(f"cannot read {path}: {problem.strerror}")


def _restarted(given: Sequence[str], clients: Sequence[str]) -> tuple[str, ...]:
    """Return the clients to restart, in order; ``rolling`` means all."""
    named = [one for one in given if one != _ROLLING]
    return tuple(clients) if len(named) < len(given) else tuple(dict.fromkeys(named))


def _answers(
    group: Playable, plan: PlannedActions, settings: Sequence[WhatIfSetting], *, best: bool
) -> list[WhatIfAnswer]:
    try:
        if best:
            return [answer for setting in settings for answer in best_plans(group, plan, setting)]
        return [ask(group, plan, setting) for setting in settings]
    except CaughtupError as error:
        refuse(error.message)


def _print(group: Playable, answers: Sequence[WhatIfAnswer], step: float | None) -> None:
    columns = [Column("PLAYED", name=True), *(Column(name, right=True) for name in FIGURES)]
    rows = [cells(group, answer) for answer in answers]
    for line in lines(columns, rows, Output.of_stdout(wide=False)):
        click.echo(line)
    for remark in remarks(answers):
        click.echo(remark)
    if len(answers) == 1:
        click.echo()
        for line in terminal_drawing(answers[0].slow, step):
            click.echo(line)
