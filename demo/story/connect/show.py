"""The six cases for somebody to watch: told as they come, then held against the log, in a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from caughtup.demo.connect.decided_again import DecidedAgain, decide_again
from caughtup.demo.connect.group_log import ConfigLog
from caughtup.demo.story.connect.play import SixCases
from caughtup.demo.story.connect.rows import Row
from caughtup.demo.story.connect.stage import ConnectStage

Say = Callable[[str], None]


@dataclass(frozen=True)
class Played:
    """What was played: the cases' rounds, and every generation of the group decided again."""

    rows: Sequence[Row]
    again: Sequence[DecidedAgain]

    @property
    def ok(self) -> bool:
        """Whether each generation was decided as its leader did, and each case came as it should."""
        return all(one.match for one in self.again) and all(row.as_decided for row in self.rows)

    def match(self, row: Row) -> bool:
        """Return whether a round was decided as its leader did."""
        return any(one.match for one in self.again if one.logged.number == row.logged.number)


def play(stage: ConnectStage, say: Say) -> Played:
    """Start the cluster, play the cases, decide each generation again. Raises CaughtupError."""

    def tell(row: Row) -> None:
        say(f"  {row.step.number} {row.event}")
        say(f"      generation {row.logged.number}, led by {row.logged.leader}: {row.kafka}")
        due_ms = row.logged.rejoin_at_ms
        if due_ms is not None:
            say(f"      nobody has {' '.join(row.unassigned)}; dealt at {_clock(due_ms)}")

    say("starting a Kafka broker")
    stage.start_cluster()
    with stage.log() as log:
        cases = SixCases(stage.cluster, stage.workers, log, say, tell)
        say("a first worker makes two connectors, A of two tasks and B of one, and leaves")
        cases.set_up()
        rows = cases.play()
        generations = log.generations()
    configured = ConfigLog.read(stage.cluster, stage.workers.config_topic)
    max_delay_ms = stage.workers.max_delay_ms
    return Played(rows, tuple(decide_again(generations, configured.before, max_delay_ms)))


def print_played(played: Played, max_delay_ms: int, console: Console) -> None:
    """Print the table: what the document says of each round, what Kafka did, whether we knew."""
    table = Table(
        "case", "what happens", "the document", "Kafka 4.3.1", "as documented", "match",
        title="The document's six cases on three workers",
        caption=f"d is {max_delay_ms / 1000:g} s. As documented: each worker has as much of each "
        "kind. Match: caughtup decides the generation as its leader did.",
    )  # fmt: skip
    for row in played.rows:
        documented = {True: "yes", False: "[yellow]no[/]", None: "not said"}[row.as_documented]
        match = "yes" if played.match(row) else "[red]NO[/]"
        table.add_row(
            row.step.number, row.event, *map(escape, (row.document, row.kafka)), documented, match
        )
    console.print(table)
    matches = sum(one.match for one in played.again)
    console.print(f"{matches} of {len(played.again)} generations decided as their leaders did.")
    for one in played.again:
        if not one.match:
            console.print(f"[red]generation {one.logged.number}[/]: {escape(one.differs)}")
    for row in played.rows:
        if not row.as_decided:
            console.print(f"[red]{row.step.number}[/]: not what 4.3.1 is known to decide")


def _clock(at_ms: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at_ms / 1000))
