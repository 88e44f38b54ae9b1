"""The demo's first story to its end: what it prints is what the topics say."""

from __future__ import annotations

import io
import json
from typing import NamedTuple

import pytest
from rich.console import Console

from caughtup.demo.cluster.topics import read_topic
from caughtup.demo.story.facts import Facts
from caughtup.demo.story.twins.grow import generations_of
from caughtup.demo.story.twins.show import play
from caughtup.demo.story.twins.stage import FOLLOWS, KAFKAS, TASKS, TwinStage
from caughtup.followers.kafka_streams.jar import SOURCES
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.records.topics import RECOMMENDATIONS, with_prefix
from tests.support.tables import cells

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]


class Told(NamedTuple):
    """What was printed, what didn't hold, and what the topics had in the end, by application."""

    printed: str
    wrong: list[str]
    generations: dict[str, list[StreamsGeneration]]
    recommended: dict[str, dict[str, int]]

    def row(self, name: str) -> dict[str, str]:
        """Return a row of the table by application."""
        head, *rows = cells(self.printed)
        found = next(row for row in rows if row[0] == name)
        return dict(zip(head[1:], found[1:], strict=True))


@pytest.fixture(scope="module")
def told() -> Told:
    out = io.StringIO()
    wrong: list[str] = []
    facts = Facts(lambda fact: None if fact.ok else wrong.append(str(fact)))
    with TwinStage(sorted(SOURCES.glob("*.java"))) as stage:
        play(stage, facts=facts, console=Console(file=out, width=160))
        generations = {
            name: [one for one in generations_of(stage.cluster, name) if len(one.clients) == 4]
            for name in (FOLLOWS, KAFKAS)
        }
        recommended: dict[str, dict[str, int]] = {}
        for _, _, key, value in read_topic(stage.cluster, with_prefix(RECOMMENDATIONS)):
            record = json.loads(value or b"{}")
            if len(record.get("process_ids", ())) == 4:
                costs = {by: record[by]["copies"] for by in ("cost", "kafka_cost")}
                recommended.setdefault((key or b"").decode(), costs)
    return Told(out.getvalue(), wrong, generations, recommended)


def built(generations: list[StreamsGeneration]) -> int:
    """Count how often an instance was given a copy of which it had nothing."""
    before: dict[ProcessId, set[TaskId]] = {}
    count = 0
    for one in generations:
        given = {p: client.active() | client.standby() for p, client in one.clients.items()}
        count += sum(
            not client.offset_sums.get(task, 0) and task not in before.get(process, ())
            for process, client in one.clients.items()
            for task in given[process]
        )
        before = given
    return count


def test_everything_holds(told: Told) -> None:
    assert told.wrong == [], told.printed


def test_the_one_that_follows_builds_fewer_copies(told: Told) -> None:
    copies = {name: int(cell) for name, cell in told.row("copies of state built").items()}
    assert copies == {name: built(told.generations[name]) for name in (FOLLOWS, KAFKAS)}
    # More than the fewest where one that had just begun was dropped, and begun again.
    assert TASKS // 4 <= copies[FOLLOWS] < copies[KAFKAS]


def test_the_rebalances_are_the_log_s(told: Told) -> None:
    rebalances = {name: int(cell) for name, cell in told.row("rebalances").items()}
    assert rebalances == {name: len(found) for name, found in told.generations.items()}


def test_what_was_foretold_is_what_was_recommended(told: Told) -> None:
    assert told.row("copies that caughtup foretold") == {
        FOLLOWS: str(told.recommended[FOLLOWS]["cost"]),
        KAFKAS: str(told.recommended[KAFKAS]["kafka_cost"]),
    }


def test_the_last_line_has_both(told: Told) -> None:
    for name, copies in told.row("copies of state built").items():
        assert f"{name} built {copies} copies of state" in told.printed
