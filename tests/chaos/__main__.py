"""``make chaos``: ``python -m tests.chaos --minutes 30 --seed 7``."""

from __future__ import annotations

import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from random import Random

import click
from rich.console import Console

from caughtup.agents.progress import Progress
from tests.chaos.judge import Judge
from tests.chaos.report import Report
from tests.chaos.run import ClusterLost, Run
from tests.chaos.scene import Scene
from tests.chaos.schedule import KINDS, ONE_ACTIVE, faults

#: So much of the log of an instance is shown, if there is something to look for.
_LOG = 6_000


def chaos(
    seconds: float,
    seed: int,
    *,
    brokers: int = 3,
    kinds: tuple[str, ...] = (),
    applied: bool = True,
    instances: int = 1,
    stop: threading.Event | None = None,
) -> Report:
    """Bring faults upon a cluster and the service for so long, and report what was violated.

    ``kinds``: by default, all that fit. ``instances``: how many share the groups; with 1, one is active.
    """
    stop = stop or threading.Event()
    console = Console()
    # Of two, one that is down would be no majority.
    controllers = Random(seed).choice((1, brokers if brokers > 2 else 1))
    kinds = kinds or (tuple(KINDS) if instances > 1 else ONE_ACTIVE)
    console.print(
        f"seed {seed}: {brokers} brokers, {controllers} of them controllers, too; "
        + (f"{instances} instances share the groups" if instances > 1 else "one instance is active")
    )
    with ExitStack() as stack:
        scene = stack.enter_context(
            Scene(seed, brokers, controllers, applied=applied, sharing=instances)
        )
        scene.start()
        report = Report(seed, console)
        judge = stack.enter_context(Judge(scene, report.violated))
        judge.start()
        advance = stack.enter_context(Progress().task("Chaos", int(seconds)))
        run = Run(scene, judge, report, _whole(advance), stop)
        try:
            run.faults(faults(seed, kinds), seconds)
            for violation in judge.ends_well():
                report.violated(violation)
        except ClusterLost as lost:
            report.note(f"gave up: {lost}")
            console.print(scene.active.service.log[-_LOG:], markup=False, highlight=False)
            raise
        finally:
            judge.close()
            for instance in scene.instances if report.violations else ():
                console.print(instance.service.log[-_LOG:], markup=False, highlight=False)
            console.print(report.table())
            console.print(
                f"{judge.judged:,} figures held against the truth, {judge.unjudged.total():,} not"
                + "".join(f", {n:,} of {what}" for what, n in judge.unjudged.most_common(3))
                + "; "
                f"{scene.teller.once.told:,} records told once; {scene.groups.committed:,} commits; "
                f"{judge.restarts} restarts"
                + "".join(
                    f"; {group} was with no instance for up to {longest} s"
                    for group, longest in judge.unshared.longest.most_common(1)
                )
                + (f"; instances of the application {_comings(scene)}" if applied else "")
            )
    return report


def _comings(scene: Scene) -> str:
    application = scene.application
    assert application is not None
    return f"came {application.starts}, went {application.ends}, failed {application.failures}"


def _whole(advance: Callable[[int], None]) -> Callable[[float], None]:
    """Add up fractions of seconds for a bar that counts whole ones."""
    began, told = time.monotonic(), 0

    def add(_: float) -> None:
        nonlocal told
        due = int(time.monotonic() - began)
        advance(due - told)
        told = due

    return add


@click.command()
@click.option("--minutes", type=float, default=3.0, show_default=True)
@click.option("--seed", type=int, help="Of the schedule; by default a random one.")
@click.option("--brokers", type=click.IntRange(2, 3), default=3, show_default=True)
@click.option("--only", multiple=True, type=click.Choice(sorted(KINDS)), help="Only these faults.")
@click.option(
    "--instances",
    type=click.IntRange(1, 4),
    default=1,
    show_default=True,
    help="So many share the groups; with 1, one is active.",
)
@click.option("--without-application", is_flag=True, help="Without the Kafka Streams application.")
def main(
    minutes: float,
    seed: int | None,
    brokers: int,
    only: tuple[str, ...],
    instances: int,
    without_application: bool,
) -> None:
    """Bring faults drawn from a seed upon the service, and hold it against the truth."""
    stop = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    report = chaos(
        minutes * 60,
        secrets.randbelow(1 << 31) if seed is None else seed,
        brokers=brokers,
        kinds=only,
        applied=not without_application,
        instances=instances,
        stop=stop,
    )
    sys.exit(1 if report.violations else 0)


if __name__ == "__main__":
    main()
