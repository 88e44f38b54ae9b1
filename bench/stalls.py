"""``caughtup bench stalls`` and ``churn``: verdicts on reassignments, healthy or not."""

from __future__ import annotations

import asyncio
import random
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
import msgspec
from rich.console import Console
from rich.table import Table

from caughtup.agents.cli.commands import examples, not_in_checkout
from caughtup.agents.cli.options import format_option
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.protocol.client import quorum_leader, reassigner
from caughtup.agents.progress import Progress
from caughtup.bench.figures import Figures
from caughtup.models.errors import CaughtupError

if TYPE_CHECKING:
    from caughtup.demo.reassignments.churn import ChurnedReassignment, EtaError
    from caughtup.demo.reassignments.stage import StagedReassignment
    from caughtup.demo.story.stage import DemoStage

#: An ETA is right if its error is at most this share of the time left.
_ETA_SHARE = 0.25
#: The allowance for errors that no ETA can avoid: one observation, and 2 s for joining the ISR.
_ALLOWED_SECONDS = 3.0


@click.command(
    short_help="Show the verdicts on reassignments that fail, and how soon they come.",
    epilog=examples("caughtup bench stalls --act healthy"),
)
@click.option("--act", "acts", multiple=True, help="Only this act. May be repeated.")
@format_option
def stalls(acts: tuple[str, ...], output: str) -> None:
    """Stage reassignments of every kind on six real brokers, and note what the service says.

    Some are healthy, throttled or starved; in others a target, leader or controller dies during
    the copy; others are cancelled. The exit status is 1 if a due verdict is missing, or if there
    is a false alarm.
    """
    reassignments: list[StagedReassignment] = []
    with _six_nodes() as stage:
        for name, reassignment in stage_reassignments(stage, acts):
            reassignments.append(reassignment)
            if output == "json":
                click.echo(msgspec.json.encode(staged_figures(name, reassignment)).decode())
    if output == "table":
        Console().print(stalls_table(reassignments))
    if not all(one.ok for one in reassignments):
        raise SystemExit(1)


@click.command(
    short_help="Watch healthy reassignments for half an hour: false alarms, and ETAs.",
    epilog=examples("caughtup bench churn --minutes 5"),
)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0.5),
    default=30,
    show_default=True,
    help="How long partitions are reassigned.",
)
@click.option(
    "--seed",
    type=int,
    help="The seed of the reassignments; without it, a random one is used and printed.",
)
@click.option(
    "--at-once",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="The most reassignments at a time.",
)
@click.option(
    "--throttled-megabytes",
    type=click.IntRange(min=1),
    default=60,
    show_default=True,
    help="The size in megabytes of a partition whose copying is throttled to 3 MB/s.",
)
@format_option
def churn(
    minutes: float, seed: int | None, at_once: int, throttled_megabytes: int, output: str
) -> None:
    """Reassign random partitions to random brokers of six, under load, throttled and not.

    The exit status is 1 if any reassignment gets an alarming verdict.
    """
    seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
    with _six_nodes() as stage:
        figures = measure_churn(stage, minutes * 60, seed, at_once, throttled_megabytes)
    if output == "json":
        click.echo(msgspec.json.encode(figures).decode())
    else:
        Console().print(churn_table(figures))
    if figures["alarms"]:
        raise SystemExit(1)


@contextmanager
def _six_nodes() -> Iterator[DemoStage]:
    """Start six brokers, three of them controllers, and the service."""
    try:
        from caughtup.demo.reassignments.acts import CONTROLLERS, NODES
        from caughtup.demo.story.stage import DemoStage

        with DemoStage(nodes=NODES, controllers=CONTROLLERS) as stage:
            stage.start_cluster()
            stage.start_service()
            yield stage
    except ImportError as error:
        raise not_in_checkout(error) from error
    except CaughtupError as error:
        raise UserError(error.message) from error


def stage_reassignments(
    stage: DemoStage, acts: Sequence[str] = ()
) -> Iterator[tuple[str, StagedReassignment]]:
    """Play all or the named acts; yield each reassignment with its act's name.

    Raises CaughtupError for an unknown act, and when the cluster fails.
    """
    from caughtup.demo.reassignments.acts import ACTS, StagedReassignments
    from caughtup.demo.reassignments.stage import ReassignmentStage

    servers = stage.cluster.bootstrap_servers
    say = Console(stderr=True, highlight=False).print
    acting = StagedReassignments(
        ReassignmentStage(
            stage.cluster,
            reassigner(servers),
            stage.page,
            lambda text: say(f"  {text}", style="dim"),
        ),
        lambda: asyncio.run(quorum_leader(servers)),
    )
    for name in acts or ACTS:
        for reassignment in acting.play(name):
            yield name, reassignment


def staged_figures(act: str, reassignment: StagedReassignment) -> dict[str, object]:
    """Return a reassignment's result as printed, with the seconds from trouble to verdict."""
    return {
        "act": act,
        "staged": reassignment.name,
        "due": reassignment.due,
        "seconds": None if reassignment.named_after is None else round(reassignment.named_after, 1),
        "cause": reassignment.named_cause,
        "said": sorted({verdict for verdict, _ in reassignment.said}),
        "outcome": reassignment.ended,
        "false_alarms": reassignment.false_alarms,
        "ok": reassignment.ok,
    }


def stalls_table(reassignments: Sequence[StagedReassignment]) -> Table:
    """Return the results of all reassignments as a table."""
    table = Table(title="Staged reassignments")
    for column in ("staged", "due", "named after", "cause", "said", "ended", "false alarms", ""):
        table.add_column(column)
    for reassignment in reassignments:
        table.add_row(
            reassignment.name,
            reassignment.due or "silence",
            "" if reassignment.named_after is None else f"{reassignment.named_after:.1f} s",
            reassignment.named_cause or "",
            ", ".join(sorted({verdict for verdict, _ in reassignment.said})) or "never listed",
            reassignment.ended or "",
            ", ".join(reassignment.false_alarms),
            "ok" if reassignment.ok else "WRONG",
        )
    return table


def measure_churn(
    stage: DemoStage, seconds: float, seed: int, at_once: int, throttled_megabytes: int
) -> dict[str, object]:
    """Reassign partitions for ``seconds``; summarize the verdicts. Raises CaughtupError."""
    from caughtup.demo.reassignments.churn import Churn

    churning = Churn(
        stage.cluster,
        reassigner(stage.cluster.bootstrap_servers),
        stage.page,
        seed,
        at_once,
        throttled_megabytes,
    )
    churning.prepare()
    with Progress().task("Churning", round(seconds)) as advance:
        churning.run(seconds, lambda done: advance(round(done)))
    kinds = {
        name: [one for one in churning.reassignments if one.throttled == throttled]
        for name, throttled in (("unthrottled", False), ("throttled", True))
    }
    return {
        "seed": seed,
        "minutes": round(seconds / 60, 1),
        "alarms": dict(Counter(a for one in churning.reassignments for a in sorted(one.alarms))),
        **{name: _churned(reassignments) for name, reassignments in kinds.items()},
    }


def _churned(reassignments: Sequence[ChurnedReassignment]) -> dict[str, object]:
    errors = [error for one in reassignments for error in one.errors()]
    alone = [error for error in errors if error.alone]
    lasted = [one.ended - one.began for one in reassignments if one.ended is not None]
    return {
        "moves": len(reassignments),
        "seen": sum(one.seen for one in reassignments),
        "seconds_median": round(statistics.median(lasted), 1) if lasted else None,
        "etas": len(errors),
        "eta_within_quarter": _within_quarter(errors),
        "etas_alone": len(alone),
        "alone_within_quarter": _within_quarter(alone),
    }


def _within_quarter(errors: Sequence[EtaError]) -> float | None:
    """Return the share of ETAs within a quarter of the time left, or within the allowance."""
    if not errors:
        return None
    good = sum(one.seconds <= max(_ETA_SHARE * one.left, _ALLOWED_SECONDS) for one in errors)
    return round(good / len(errors), 3)


def churn_table(figures: Figures) -> Table:
    """Return the summary as a table."""
    alarms = ", ".join(f"{count} {name}" for name, count in figures["alarms"].items())
    table = Table(
        title=f"{figures['minutes']:g} minutes of healthy reassignments, seed {figures['seed']}",
        caption=f"False alarms: {alarms or 'none'}. ETAs are those shown from half-way on; right "
        f"means within a quarter of the time left, or {_ALLOWED_SECONDS:g} s. Alone: while it was the only one.",
    )
    names = (
        *("moves", "seen", "seconds_median", "etas", "eta_within_quarter"),
        *("etas_alone", "alone_within_quarter"),
    )
    table.add_column("")
    for name in names:
        table.add_column(name.replace("_", " "), justify="right")
    for kind in ("unthrottled", "throttled"):
        table.add_row(kind, *(str(figures[kind][name]) for name in names))
    return table
