"""Play the story of two applications in the terminal, with what to open and type at each step."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

from rich.console import Console
from rich.table import Table

from caughtup.demo.story.facts import Facts
from caughtup.demo.story.growing import LAST, PROBING_SECONDS
from caughtup.demo.story.show import narrator, program, to_compare
from caughtup.demo.story.twins.grow import Cost, grow
from caughtup.demo.story.twins.stage import (
    FOLLOWS,
    KAFKAS,
    RECORDS,
    RECORDS_PER_SECOND,
    TASKS,
    TwinStage,
)

#: Kafka's default of probing.rebalance.interval.ms.
_DEFAULT_PROBING_MINUTES = 10


def side_by_side(costs: Sequence[Cost]) -> Table:
    """Return a table with a column for each application."""
    table = Table("since the fourth instance joined", title="What it cost")
    for each in costs:
        table.add_column(each.application, justify="right")
    for name, cell in _ROWS:
        table.add_row(name, *(cell(each) for each in costs))
    return table


def punch_line(follows: Cost, kafkas: Cost) -> str:
    """Return the result in a few sentences: what each of the two applications did."""
    said = f"{_sentence(follows)} {_sentence(kafkas)}"
    if probed := interval_waits(kafkas):
        said += (
            f" Of that it waited {probed} × {PROBING_SECONDS} s for"
            " probing.rebalance.interval.ms, whose default is"
            f" {_DEFAULT_PROBING_MINUTES} minutes."
        )
    return said


def interval_waits(each: Cost) -> int:
    """Count the rebalances that came after a whole probing.rebalance.interval.ms.

    A little less counts: the interval begins when the leader decides, a moment later than that by
    which a generation is dated.
    """
    return sum(waited >= 1000 * (PROBING_SECONDS - 2) for waited in each.waits_ms)


def _sentence(each: Cost) -> str:
    copies = f"{each.copies} {'copy' if each.copies == 1 else 'copies'} of state"
    rebalances = f"{each.rebalances} rebalance{'' if each.rebalances == 1 else 's'}"
    if each.balanced:
        return f"{each.application} built {copies} in {rebalances}: {each.seconds:.0f} s."
    return (
        f"{each.application} built {copies} in {rebalances} so far, and after"
        f" {each.seconds:.0f} s is not balanced yet."
    )


def _seconds(each: Cost) -> str:
    return f"{each.seconds:,.0f}" if each.balanced else f"not within {each.seconds:,.0f}"


def _waited(each: Cost) -> str:
    return f"{len(each.waits_ms)}, {each.waited_seconds:,.0f} s"


_ROWS: Sequence[tuple[str, Callable[[Cost], str]]] = (
    ("copies of state built", lambda each: f"{each.copies:,}"),
    (
        "copies that caughtup foretold",
        lambda each: "–" if each.foretold is None else f"{each.foretold:,}",
    ),
    ("offsets restored", lambda each: f"{each.offsets:,}"),
    ("rebalances", lambda each: f"{each.rebalances:,}"),
    ("of these waited for", _waited),
    (
        f"of these for the probing interval ({PROBING_SECONDS} s)",
        lambda each: str(interval_waits(each)),
    ),
    ("seconds until each instance has its share", _seconds),
)


#: The time from the start at which the story prints its result.
_ENDS_AFTER_SECONDS = 285.0
_GROWS_FOR_AT_LEAST_SECONDS = 120.0
_AGREE_SECONDS = 30.0
_ALIVE_SECONDS = 2.0


def play(stage: TwinStage, *, facts: Facts, console: Console) -> list[Cost]:
    """Play the story once; return the costs of both applications, and check them in ``facts``.

    Raises CaughtupError.
    """
    teller = _Teller(stage, console)
    teller.set_up()
    with stage.load():
        costs = teller.grow()
        _check(stage, facts, costs)
    return costs


def run(stage: TwinStage, console: Console) -> None:
    """Play the story for users to watch, keep the load going, and wait for Ctrl-C."""
    teller = _Teller(stage, console)
    teller.set_up()
    with stage.load():
        teller.grow()
        teller.look(f"{stage.url}: what both took stays there, side by side")
        console.print("  The orders go on coming. Ctrl-C ends everything.")
        while True:
            stage.check_alive()
            time.sleep(_ALIVE_SECONDS)


class _Teller:
    """Prints each step as it begins, and what to look at."""

    def __init__(self, stage: TwinStage, console: Console) -> None:
        self._stage = stage
        self._console = console
        self._say = narrator(console)
        self._started = time.monotonic()

    def look(self, at: str) -> None:
        """Print what to look at now."""
        self._console.print(f"        [cyan]look at[/] {at}", soft_wrap=True)

    def set_up(self) -> None:
        """Start everything, and give both applications their state. Raises CaughtupError."""
        stage, say = self._stage, self._say
        say("starting two Kafka brokers")
        stage.start_cluster()
        say("starting caughtup")
        stage.start_service()
        say("the page is there")
        self._invite()
        say(f"starting three instances each of {FOLLOWS}, which follows caughtup, and of its twin")
        say(f"  {KAFKAS}, which has Kafka's own assignor: the same topology, topic and configs")
        stage.start_instances()
        self.look(f"{stage.url}groups/{KAFKAS}: {TASKS} tasks, a third of them on each instance")
        say(f"producing orders that both read: {RECORDS:,} records of state for each task")
        stage.build_state()
        self.look("caughtup simulate (above): what would a fourth instance cost?")

    def grow(self) -> list[Cost]:
        """Start the fourth instances, and print what they cost. Raises CaughtupError."""
        say = self._say
        say(f"{RECORDS_PER_SECOND} orders a second, and a fourth instance of each joins: {LAST}")
        self.look(f"{self._stage.url}: 'Since an instance joined or left' counts, side by side")
        self.look(f"{self._stage.url}groups/{KAFKAS}: every copy that is built, and its reason")
        left = _ENDS_AFTER_SECONDS - (time.monotonic() - self._started)
        costs = grow(self._stage, say, max(left, _GROWS_FOR_AT_LEAST_SECONDS))
        self._console.print()
        self._console.print(side_by_side(costs))
        self._console.print(f"\n[bold]{punch_line(*costs)}[/]\n", soft_wrap=True)
        return costs

    def _invite(self) -> None:
        """Print where everything is, and what to type in another terminal."""
        stage, servers = self._stage, self._stage.cluster.bootstrap_servers
        self._console.print(
            f"\n  The page:  [bold]{stage.url}[/]\n  Kafka:     {servers}\n  Try, in another terminal:"
        )
        for command in to_compare(program(sys.argv[0]), servers, stage.url, FOLLOWS, KAFKAS):
            self._console.print(f"    {command}", markup=False, soft_wrap=True)
        self._console.print("  Ctrl-C ends everything.\n")


def _check(stage: TwinStage, facts: Facts, costs: Sequence[Cost]) -> None:
    """Check the costs against the expectation, and the page's figures against the costs."""
    follows, kafkas = costs
    facts.check(
        f"copies that {FOLLOWS} built",
        f"fewer than the {kafkas.copies} of {KAFKAS}",
        follows.copies,
        0 < follows.copies < kafkas.copies,
    )
    facts.check(f"{FOLLOWS} is balanced", True, follows.balanced)
    for each in costs:
        if each.balanced:
            seen = stage.wait(
                f"{each.application} at rest", partial(_change, stage, each), _AGREE_SECONDS
            )
            facts.check(f"copies of {each.application}, by the page", each.copies, seen["copies"])
            facts.check(
                f"rebalances of {each.application}, by the page",
                each.rebalances,
                seen["rebalances"],
            )


def _change(stage: TwinStage, each: Cost) -> dict[str, object] | None:
    """Return the page's figures since the fourth instance joined; None until all is at rest."""
    view = stage.application_view(each.application) or {}
    change: dict[str, object] = view.get("change", {})
    return change if "at_rest_ms" in change else None
