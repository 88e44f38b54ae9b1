"""``caughtup bench stalls`` and ``churn``: what is said of moves that fail, and of healthy ones."""

from __future__ import annotations

import asyncio
import random
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from caughtup.agents.cli.options import format_option
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.alter_reassignments import mover, quorum_leader
from caughtup.agents.progress import Progress
from caughtup.models.errors import CaughtupError

if TYPE_CHECKING:
    from caughtup.demo.reassignments.churn import ChurnedMove, EtaError
    from caughtup.demo.reassignments.staged import StagedMove
    from caughtup.demo.story.stage import Stage

#: An ETA is right when it is off by no more than this share of what was left.
_ETA_SHARE = 0.25
#: What no ETA can know: one observation, and the two seconds that joining the ISR takes.
_ALLOWED_SECONDS = 3.0


@click.command(short_help="What is said of moves that fail, and how soon.")
@click.option("--act", "acts", multiple=True, help="Only this act; may be given again.")
@format_option
def stalls(acts: tuple[str, ...], output: str) -> None:
    """Stage reassignments of every kind on six real brokers, and note what the service says.

    Healthy ones, throttled and starved ones, targets, leaders and controllers that die mid-copy,
    moves that are taken back. The exit status is 1 if a verdict that is due isn't given, or an
    alarm is that isn't.
    """
    moves: list[StagedMove] = []
    with _six_nodes() as stage:
        for name, move in stage_moves(stage, acts):
            moves.append(move)
            if output == "json":
                click.echo(msgspec.json.encode(staged_figures(name, move)).decode())
    if output == "table":
        Console().print(stalls_table(moves))
    if not all(move.ok for move in moves):
        raise SystemExit(1)


@click.command(short_help="Healthy moves for half an hour: false alarms, and ETAs.")
@click.option(
    "--minutes",
    type=click.FloatRange(min=0.5),
    default=30,
    show_default=True,
    help="How long partitions are moved about.",
)
@click.option("--seed", type=int, help="Of the moves; a random one is printed.")
@click.option(
    "--at-once",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="How many move at a time, at most.",
)
@click.option(
    "--throttled-megabytes",
    type=click.IntRange(min=1),
    default=60,
    show_default=True,
    help="Of a partition whose copying is throttled, to 3 MB/s.",
)
@format_option
def churn(
    minutes: float, seed: int | None, at_once: int, throttled_megabytes: int, output: str
) -> None:
    """Move random partitions to random brokers of six, under load, throttled and not.

    The exit status is 1 if any of them is given an alarming verdict.
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
def _six_nodes() -> Iterator[Stage]:
    """Start six brokers, three of them controllers, and the service."""
    try:
        from caughtup.demo.reassignments.stage import CONTROLLERS, NODES
        from caughtup.demo.story.stage import Stage

        with Stage(nodes=NODES, controllers=CONTROLLERS) as stage:
            stage.start_cluster()
            stage.start_service()
            yield stage
    except ImportError as error:
        raise UserError(f"{error}; type: pip install 'caughtup[demo]'") from error
    except CaughtupError as error:
        raise UserError(error.message) from error


def stage_moves(stage: Stage, acts: Sequence[str] = ()) -> Iterator[tuple[str, StagedMove]]:
    """Play the acts, all unless some are named, and yield each move with its act's name.

    Raises CaughtupError for an act that there isn't, and when the cluster fails.
    """
    from caughtup.demo.reassignments.stage import ACTS, StagedMoves

    servers = stage.cluster.bootstrap_servers
    say = Console(stderr=True, highlight=False).print
    moves = StagedMoves(
        stage.cluster,
        mover(servers),
        lambda: asyncio.run(quorum_leader(servers)),
        stage.page,
        lambda text: say(f"  {text}", style="dim"),
    )
    for name in acts or ACTS:
        for move in moves.play(name):
            yield name, move


def staged_figures(act: str, move: StagedMove) -> dict[str, Any]:
    """Return what was said of a move as it is printed; seconds from the trouble to the verdict."""
    return {
        "act": act,
        "staged": move.name,
        "due": move.due,
        "seconds": None if move.named_after is None else round(move.named_after, 1),
        "cause": move.named_cause,
        "said": sorted({verdict for verdict, _ in move.said}),
        "outcome": move.ended,
        "false_alarms": move.false_alarms,
        "ok": move.ok,
    }


def stalls_table(moves: Sequence[StagedMove]) -> Table:
    """Lay out what was said of each move."""
    table = Table(title="Staged reassignments")
    for column in ("staged", "due", "named after", "cause", "said", "ended", "false alarms", ""):
        table.add_column(column)
    for move in moves:
        table.add_row(
            move.name,
            move.due or "silence",
            "" if move.named_after is None else f"{move.named_after:.1f} s",
            move.named_cause or "",
            ", ".join(sorted({verdict for verdict, _ in move.said})) or "never listed",
            move.ended or "",
            ", ".join(move.false_alarms),
            "ok" if move.ok else "WRONG",
        )
    return table


def measure_churn(
    stage: Stage, seconds: float, seed: int, at_once: int, throttled_megabytes: int
) -> dict[str, Any]:
    """Move partitions about for so long, and sum up what was said. Raises CaughtupError."""
    from caughtup.demo.reassignments.churn import Churn

    churning = Churn(
        stage.cluster,
        mover(stage.cluster.bootstrap_servers),
        stage.page,
        seed,
        at_once,
        throttled_megabytes,
    )
    churning.prepare()
    with Progress().task("Churning", round(seconds)) as advance:
        churning.run(seconds, lambda done: advance(done))
    kinds = {
        name: [move for move in churning.moves if move.throttled == throttled]
        for name, throttled in (("unthrottled", False), ("throttled", True))
    }
    return {
        "seed": seed,
        "minutes": round(seconds / 60, 1),
        "alarms": dict(Counter(a for move in churning.moves for a in sorted(move.alarms))),
        **{name: _churned(moves) for name, moves in kinds.items()},
    }


def _churned(moves: Sequence[ChurnedMove]) -> dict[str, Any]:
    errors = [error for move in moves for error in move.errors()]
    alone = [error for error in errors if error.alone]
    lasted = [move.ended - move.began for move in moves if move.ended is not None]
    return {
        "moves": len(moves),
        "seen": sum(move.seen for move in moves),
        "seconds_median": round(statistics.median(lasted), 1) if lasted else None,
        "etas": len(errors),
        "eta_within_quarter": _within_quarter(errors),
        "etas_alone": len(alone),
        "alone_within_quarter": _within_quarter(alone),
    }


def _within_quarter(errors: Sequence[EtaError]) -> float | None:
    """Return the share of ETAs that were within a quarter of what was left, or within the allowance."""
    if not errors:
        return None
    good = sum(one.seconds <= max(_ETA_SHARE * one.left, _ALLOWED_SECONDS) for one in errors)
    return round(good / len(errors), 3)


def churn_table(figures: Mapping[str, Any]) -> Table:
    """Lay out how healthy moves fared."""
    alarms = ", ".join(f"{count} {name}" for name, count in figures["alarms"].items())
    table = Table(
        title=f"{figures['minutes']:g} minutes of healthy moves, seed {figures['seed']}",
        caption=f"False alarms: {alarms or 'none'}. ETAs are those told from half-way on; within a "
        f"quarter of what was left, or {_ALLOWED_SECONDS:g} s. Alone: while nothing else moved.",
    )
    names = ("moves", "seen", "seconds_median", "etas", "eta_within_quarter", "etas_alone")
    names += ("alone_within_quarter",)
    table.add_column("")
    for name in names:
        table.add_column(name.replace("_", " "), justify="right")
    for kind in ("unthrottled", "throttled"):
        table.add_row(kind, *(str(figures[kind][name]) for name in names))
    return table
