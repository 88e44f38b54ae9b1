"""Play the six cases with output for users, and compare them with what caughtup shows."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from caughtup.demo.connect.decided_again import DecidedAgain, decide_again
from caughtup.demo.connect.group_log import ConfigLog
from caughtup.demo.story.connect.play import SixCases
from caughtup.demo.story.connect.rows import CaseRow
from caughtup.demo.story.connect.stage import GROUP, ConnectStage, Foretold, WatchedGroup
from caughtup.demo.story.stage import View, caughtup_command

Say = Callable[[str], None]


@dataclass
class PlayedCases:
    """The rounds that were played, and caughtup's results.

    ``again``: every generation decided again from the logs alone. ``watched``: what the running
    service showed. ``read``: the results that ``caughtup connect --json`` printed at the end.
    ``foretold``: the service's forecasts, by round.
    """

    watched: WatchedGroup
    rows: list[CaseRow] = field(default_factory=list)
    foretold: dict[str, Foretold] = field(default_factory=dict)
    again: Sequence[DecidedAgain] = ()
    read: dict[int, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether all generations are matches, and all forecasts came true."""
        return (
            bool(self.rows)
            and all(self.matches(one.logged.number) for one in self.again)
            and all(row.as_decided and self.came(row) is not False for row in self.rows)
        )

    def matches(self, generation: int) -> bool:
        """Return whether a generation was a match in all three results."""
        again = any(one.match for one in self.again if one.logged.number == generation)
        said = self.watched.results.get(generation), self.read.get(generation, "match")
        return again and said == ("match", "match")

    def came(self, row: CaseRow) -> bool | None:
        """Return whether the forecast for a round came true; None without a forecast."""
        foretold = self.foretold.get(row.step.number)
        return None if foretold is None else foretold.came(row.logged)


def play(stage: ConnectStage, say: Say) -> PlayedCases:
    """Start everything, play the cases, decide each generation again. Raises CaughtupError."""
    played = PlayedCases(WatchedGroup(stage.page, GROUP))
    waiting: list[Foretold] = []

    def tell(row: CaseRow) -> None:
        played.rows.append(row)
        number, logged = row.step.number, row.logged
        say(f"  {number} {row.event}")
        say(f"      generation {logged.number}, led by {logged.leader}: {row.kafka}")
        if waiting and row.is_due:
            played.foretold[number] = waiting[-1]
        if logged.rejoin_at_ms is None:
            played.watched.heard(logged)
            return
        waiting.append(played.watched.foretold(logged))
        say(f"      caughtup: {_in_words(waiting[-1])}")

    say("starting a Kafka broker")
    stage.start_cluster()
    say("starting caughtup")
    stage.start_service()
    say(f"the page: {stage.url}; in another terminal: {shlex.join(_connect(stage, '--watch'))}")
    with stage.log() as log:
        cases = SixCases(stage.cluster, stage.workers, log, say, tell)
        say("a first worker makes two connectors, A of two tasks and B of one, and leaves")
        cases.set_up()
        played.watched.view()
        cases.play()
        generations = log.generations()
    played.watched.heard(generations[-1])
    configured = ConfigLog.read(stage.cluster, stage.workers.config_topic)
    max_delay_ms = stage.workers.max_delay_ms
    played.again = tuple(decide_again(generations, configured.before, max_delay_ms))
    played.read = _read(stage)
    return played


def _in_words(foretold: Foretold) -> str:
    """Describe a forecast in words."""
    if foretold.at_ms is None:
        return "caughtup foretells nothing"
    goes = ", ".join(f"{item} goes to {worker}" for item, worker in foretold.goes_to.items())
    return f"{goes} at {time.strftime('%H:%M:%S', time.localtime(foretold.at_ms / 1000))}"


def _connect(stage: ConnectStage, *options: str) -> list[str]:
    config = ("--config", str(stage.settings_file))
    return [*caughtup_command(), "connect", GROUP, *config, *options]


def _read(stage: ConnectStage) -> dict[int, str]:
    """Return the newest generations' results, from ``caughtup connect --json``."""
    printed = subprocess.run(_connect(stage, "--json"), capture_output=True, text=True, check=True)
    lines: list[View] = [json.loads(line) for line in printed.stdout.splitlines()]
    (group,) = (line for line in lines if line["kind"] == "group")
    return {past["generation"]: past["result"] for past in group["history"]}


_CAPTION = (
    "d is {seconds:g} s. As documented: each worker has as many connectors and tasks as the "
    "document says. Match: caughtup decides the generation as its leader did. Foretold: "
    "unassigned work went to the worker that caughtup had named, within a second of the time it "
    "had named."
)


def lines(played: PlayedCases) -> Iterator[dict[str, object]]:
    """Yield a JSON line for each round of a case."""
    for row in played.rows:
        line = row.line(match=played.matches(row.logged.number))
        came = played.came(row)
        yield line if came is None else {**line, "as_foretold": came}


def print_played(played: PlayedCases, max_delay_ms: int, console: Console) -> None:
    """Print the table and the problems."""
    table = Table(
        *("case", "what happens", "the document", "Kafka 4.3.1", "as documented"),
        *("match", "foretold"),
        title="The document's six cases on three workers",
        caption=_CAPTION.format(seconds=max_delay_ms / 1000),
    )
    for row in played.rows:
        table.add_row(
            *(row.step.number, row.event, escape(row.document), escape(row.kafka)),
            {True: "yes", False: "[yellow]no[/]", None: "not said"}[row.as_documented],
            "yes" if played.matches(row.logged.number) else "[red]NO[/]",
            _foretold(played, row),
        )
    console.print(table)
    numbers = [one.logged.number for one in played.again]
    matches = sum(map(played.matches, numbers))
    console.print(f"{matches} of {len(numbers)} generations decided as their leaders did.")
    after = sorted(played.watched.after_ms.values())
    if after:
        console.print(
            f"Decided {after[len(after) // 2] / 1000:.2f} s after they were in the log (median of "
            f"{len(after)}), at most {after[-1] / 1000:.2f} s."
        )
    for problem in problems(played):
        console.print(f"[red]{escape(problem)}[/]")


def problems(played: PlayedCases) -> Iterator[str]:
    """Yield a sentence for each problem."""
    for one in played.again:
        number = one.logged.number
        if not played.matches(number):
            result = played.watched.results.get(number, "nothing")
            why = one.differs or played.watched.whys.get(number, "")
            yield f"generation {number}: caughtup said {result}; {why}"
    for row in played.rows:
        if not row.as_decided:
            yield f"{row.step.number}: not what Kafka 4.3.1 decides"


def _foretold(played: PlayedCases, row: CaseRow) -> str:
    came = played.came(row)
    if came is None:
        return ""
    late_ms = played.foretold[row.step.number].late_ms(row.logged)
    late = "" if late_ms is None else f" ({late_ms / 1000:+.2f} s)"
    return f"yes{late}" if came else f"[red]NO[/]{late}"
