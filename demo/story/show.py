"""The two ways to show the demo: played once and checked, or watched until Ctrl-C."""

from __future__ import annotations

import shlex
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from caughtup.demo.cluster.load import produce
from caughtup.demo.story.facts import Fact, Facts
from caughtup.demo.story.scripted import Reassign, ScriptedStory
from caughtup.demo.story.stage import APPLICATION, DemoStage
from caughtup.demo.story.verdict import check_generations, check_history


def program(called_as: str, executable: str = sys.executable) -> str:
    """Return the shell command for caughtup; ``called_as`` is this program's ``sys.argv[0]``."""
    if Path(called_as).name == "caughtup":
        return shlex.quote(called_as)
    return f"{shlex.quote(executable)} -m caughtup.agents"


def to_try(caughtup: str, bootstrap_servers: str, url: str, application: str) -> tuple[str, ...]:
    """Return the commands, a line each: for the cluster, and for the service at ``url``."""
    service = url.rstrip("/")
    return (
        f"{caughtup} lag --bootstrap-server {bootstrap_servers}",
        f"{caughtup} lag --service {service} {application}",
        f"{caughtup} top --service {service}",
        f"{caughtup} explain --bootstrap-server {bootstrap_servers} {application}",
        f"{caughtup} reassignments --service {service} --watch",
    )


def to_compare(
    caughtup: str, bootstrap_servers: str, url: str, follows: str, kafkas: str
) -> tuple[str, ...]:
    """Return the commands for the story of two applications, of which one follows."""
    service = url.rstrip("/")
    cluster = f"--bootstrap-server {bootstrap_servers}"
    beside = "--assignor high_availability --assignor minimal_movement"
    return (
        f"{caughtup} lag {cluster}",
        f"{caughtup} lag --service {service} {follows}",
        f"{caughtup} simulate {cluster} {kafkas} --add 1 --restore-rate 20000 {beside}",
        f"{caughtup} explain {cluster} {kafkas}",
        f"{caughtup} top --service {service}",
    )


_ORDERS_PER_SECOND = 200.0
_MINUTE_OF_ORDERS = int(60 * _ORDERS_PER_SECOND)
_ALIVE_SECONDS = 2.0
#: How long the demo waits before it reassigns a partition.
_CALM_SECONDS = 45.0
Say = Callable[[str], None]


def play(stage: DemoStage, *, facts: Facts, reassign: Reassign, console: Console) -> None:
    """Play the story once, and check caughtup's output in ``facts``. Raises CaughtupError."""
    say = narrator(console)
    set_up(stage, say)
    story = ScriptedStory(stage, facts, reassign, say)
    story.two_instances()
    joined = story.a_third_joins()
    story.a_partition_is_reassigned()
    story.warm_ups_are_promoted(joined)
    story.one_is_killed()
    say("comparing with the log and with the history on disk")
    check_generations(stage, facts)
    check_history(stage, facts)


def run(stage: DemoStage, reassign: Reassign, console: Console) -> None:
    """Play the story for users to watch, keep the load going, and wait for Ctrl-C."""
    say = narrator(console)
    set_up(stage, say)
    _invite(stage, console)
    story = ScriptedStory(stage, Facts(_ignore), reassign, say)
    story.two_instances()
    joined = story.a_third_joins()
    story.a_partition_is_reassigned()
    stop = threading.Event()
    threading.Thread(target=_load, args=(stage, stop), daemon=True).start()
    try:
        say(f"now {_ORDERS_PER_SECOND:.0f} orders a second; the page shows what happens next")
        _watch(stage, say, joined["generation"])
    finally:
        stop.set()


def _invite(stage: DemoStage, console: Console) -> None:
    """Print where everything is, and what to type in another terminal."""
    servers = stage.cluster.bootstrap_servers
    console.print(f"\n  The page:  [bold]{stage.url}[/]\n  Kafka:     {servers}\n  Try:")
    for command in to_try(program(sys.argv[0]), servers, stage.url, APPLICATION):
        console.print(f"    {command}", markup=False, soft_wrap=True)
    console.print("  Ctrl-C ends everything.\n")


def set_up(stage: DemoStage, say: Say) -> None:
    """Start the cluster, the service and the Spark job. Raises CaughtupError."""
    say("starting two Kafka brokers")
    stage.start_cluster()
    say("starting caughtup")
    stage.start_service()
    say("starting the Spark job")
    stage.start_spark()


def _watch(stage: DemoStage, say: Say, generation: int) -> None:
    """Describe each new generation, and stop or start an instance once the group has settled."""
    settled_since = None
    while True:
        stage.check_alive()
        view = stage.application_view()
        if view is not None and view["generation"] != generation:
            generation = view["generation"]
            result = view.get("exact", {}).get("result", "not decided yet")
            say(f"generation {generation}: exact mode says {result}")
        if view is None or view["probing"]["scheduled"]:
            settled_since = None
        elif settled_since is None:
            settled_since = time.monotonic()
        elif time.monotonic() - settled_since > _CALM_SECONDS:
            _stir(stage, say)
            settled_since = None
        time.sleep(_ALIVE_SECONDS)


def _stir(stage: DemoStage, say: Say) -> None:
    """Stop the third instance, or start it again."""
    if "orders-c" in stage.application.instances:
        say("all has settled: orders-c leaves")
        stage.application.stop_instance("orders-c")
    else:
        say("all has settled: orders-c comes back")
        stage.application.start_instance("orders-c")


def _load(stage: DemoStage, stop: threading.Event) -> None:
    while not stop.is_set():
        produce(
            stage.cluster,
            stage.application.source,
            _MINUTE_OF_ORDERS,
            records_per_second=_ORDERS_PER_SECOND,
            stop=stop,
        )


def narrator(console: Console) -> Say:
    """Return a function that prints a line with the seconds since this call."""
    started = time.monotonic()

    def say(text: str) -> None:
        console.print(f"[dim]{time.monotonic() - started:5.0f} s[/] {text}", soft_wrap=True)

    return say


def _ignore(fact: Fact) -> None:
    """Ignore a fact: nothing is checked while users watch."""
