"""``caughtup demo``: real Kafka, real Streams applications, the service and the page."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import click
import msgspec
from rich.console import Console
from rich.table import Table

from caughtup.agents.cli.commands import examples, not_in_checkout
from caughtup.agents.cli.options import format_option
from caughtup.agents.cli.run import require_free_port
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.protocol.client import reassigner
from caughtup.agents.settings import Settings
from caughtup.models.errors import CaughtupError

if TYPE_CHECKING:
    from caughtup.demo.story.facts import Fact


@click.command(
    short_help="Start a demo cluster on this machine and watch it.",
    epilog=examples(
        "caughtup demo",
        "caughtup demo --story streams --scripted",
        "caughtup demo --story connect --max-delay 30",
    ),
)
@click.option("--scripted", is_flag=True, help="Play the story once, check it, and exit.")
@click.option(
    "--story",
    type=click.Choice(["twins", "streams", "connect"]),
    default="twins",
    show_default=True,
    help="twins: two Kafka Streams applications get a fourth instance, of which one follows "
    "caughtup; streams: one application with standbys, a reassignment, the history on Spark; "
    "connect: six cases of a rebalance, played once and checked.",
)
@click.option(
    "--max-delay",
    type=click.IntRange(5, 3600),
    default=15,
    show_default=True,
    metavar="SECONDS",
    help="Connect's scheduled.rebalance.max.delay.ms.",
)
@click.option(
    "--web-port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="The port of the page; 0 for any free port.",
)
@format_option
def demo(scripted: bool, story: str, max_delay: int, web_port: int, output: str) -> None:
    """Watch caughtup at work on an embedded Kafka cluster, on this machine, until Ctrl-C.

    The terminal says what the demo does, what to open and what to type. With --scripted the demo
    ends by itself, and exits 0 only if caughtup saw everything that it did. So does the Connect
    story, which plays six cases on three workers and ends.

    Only a checkout has this command: a wheel is made without the demo.
    """
    try:
        import caughtup.demo.story.stage
        import caughtup.demo.story.verdict  # noqa: F401 - all that the stories need is there
    except ImportError as error:
        raise not_in_checkout(error) from None
    console = Console(stderr=output == "json", highlight=False)
    _forget_settings()
    if not scripted:
        require_free_port(Settings(web_port=web_port))
    end_on_signals()
    port = 0 if scripted else web_port
    try:
        if story == "connect":
            sys.exit(_connect(max_delay, port, console, output))
        elif story == "twins":
            sys.exit(_twins(scripted, port, console, output))
        else:
            sys.exit(_streams(scripted, port, console, output))
    except CaughtupError as error:
        raise UserError(error.message) from None
    except Ended as ended:
        console.print("The demo ended all its processes and removed its files.")
        if scripted or story == "connect":
            sys.exit(ended.code)


def _twins(scripted: bool, web_port: int, console: Console, output: str) -> int:
    from caughtup.demo.story.twins import show
    from caughtup.demo.story.twins.stage import TwinStage
    from caughtup.followers.kafka_streams.jar import SOURCES

    with TwinStage(sorted(SOURCES.glob("*.java")), web_port=web_port) as stage:
        if scripted:
            return _scripted(partial(show.play, stage), console, output)
        show.run(stage, console)
    return 0


def _streams(scripted: bool, web_port: int, console: Console, output: str) -> int:
    from caughtup.demo.story import show
    from caughtup.demo.story.stage import DemoStage

    with DemoStage(web_port=web_port) as stage:
        reassign = reassigner(stage.cluster.bootstrap_servers)
        if scripted:
            return _scripted(partial(show.play, stage, reassign=reassign), console, output)
        show.run(stage, reassign, console)
    return 0


def _scripted(play: Callable[..., object], console: Console, output: str) -> int:
    """Play a story once (``play(facts=…, console=…)``), and print the checked facts."""
    from caughtup.demo.story.facts import Facts

    started = time.monotonic()

    def tell(fact: Fact) -> None:
        if output == "json":
            click.echo(msgspec.json.encode(fact.line()).decode())
        else:
            mark = "[green]ok[/]" if fact.ok else "[red]WRONG[/]"
            console.print(f"  {mark} {fact.fact}: {fact.seen}", soft_wrap=True)

    facts = Facts(tell)
    failure = ""
    try:
        play(facts=facts, console=console)
    except CaughtupError as error:
        failure = error.message
        facts.check("the story was played to its end", "yes", failure, False)
    seconds = time.monotonic() - started
    if output == "json":
        click.echo(msgspec.json.encode({"ok": facts.ok, "seconds": round(seconds, 1)}).decode())
    else:
        table = Table("fact", "expected", "seen", "", title="What caughtup saw")
        for fact in facts.checked:
            table.add_row(fact.fact, fact.expected, fact.seen, "ok" if fact.ok else "WRONG")
        console.print(table)
        console.print(
            f"{'Every statement holds' if facts.ok else 'Not every statement holds'}: {seconds:.0f} s"
        )
    return 0 if facts.ok else 1


def _connect(max_delay: int, web_port: int, console: Console, output: str) -> int:
    from caughtup.demo.story.connect import show
    from caughtup.demo.story.connect.show import play
    from caughtup.demo.story.connect.stage import ConnectStage
    from caughtup.demo.story.show import narrator

    started = time.monotonic()
    with ConnectStage(max_delay_ms=1000 * max_delay, web_port=web_port) as stage:
        played = play(stage, narrator(console))
    if output == "json":
        for line in show.lines(played):
            click.echo(msgspec.json.encode(line).decode())
        seconds = round(time.monotonic() - started, 1)
        click.echo(msgspec.json.encode({"ok": played.ok, "seconds": seconds}).decode())
    else:
        show.print_played(played, 1000 * max_delay, console)
    return 0 if played.ok else 1


def _forget_settings() -> None:
    """Remove the settings in the environment: they may name a real cluster."""
    for name in [name for name in os.environ if name.startswith("CAUGHTUP_")]:
        # The directory of jars is no setting of the service's.
        if name != "CAUGHTUP_CACHE":
            del os.environ[name]


class Ended(SystemExit):
    """A signal requested the end; ``code`` is a shell's exit status for it.

    Not a KeyboardInterrupt: py4j catches those, prints a traceback, and fails in its handler.
    asyncio lets a SystemExit through wherever it is raised.
    """


#: How long after Python dropped it, ``Ended`` is raised again.
_AGAIN_SECONDS = 0.05


def end_on_signals() -> None:
    """Raise ``Ended`` at the first Ctrl-C, SIGTERM or closing of the terminal.

    Python drops an exception that is raised while an object is finalized, and py4j finalizes each
    Java object. A dropped one is raised again, and not printed; any other is raised once, so that
    nothing interrupts the cleanup.
    """
    awaited = [
        number
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
        # Signals that were ignored from the start, as under nohup, stay ignored.
        if signal.getsignal(number) is not signal.SIG_IGN
    ]
    unraisable = sys.unraisablehook

    def again(dropped: sys.UnraisableHookArgs) -> None:
        if isinstance(dropped.exc_value, Ended):
            signal.signal(signal.SIGALRM, partial(_raise, dropped.exc_value))
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
        else:
            unraisable(dropped)

    def end(number: int, frame: object) -> None:
        # A second Ctrl-C would interrupt the cleanup, which takes seconds.
        for one in awaited:
            signal.signal(one, signal.SIG_IGN)
        raise Ended(128 + number)

    sys.unraisablehook = again
    for number in awaited:
        signal.signal(number, end)


def _raise(ended: Ended, number: int, frame: object) -> None:
    raise ended
