"""The document's six cases on three real workers, with ``make thorough``.

First those that need nobody to come back in time; all six are ``caughtup demo --story connect``.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field

import pytest

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.connect.decided_again import DecidedAgain, decide_again
from caughtup.demo.connect.group_log import ConfigLog
from caughtup.demo.story.connect.cases import CASES
from caughtup.demo.story.connect.play import SixCases
from caughtup.demo.story.connect.rows import CaseRow
from caughtup.demo.story.connect.stage import Foretold, WatchedGroup
from caughtup.demo.story.stage import caughtup_command

pytestmark = pytest.mark.thorough

MAX_DELAY_MS = 5_000
QUICK = ("the first worker joins", "two workers join one", "a worker leaves", "the leader leaves")


@dataclass
class PlayedCases:
    """The cases' rounds, every generation decided again, and what the service said."""

    watched: WatchedGroup
    rows: list[CaseRow] = field(default_factory=list)
    foretold: dict[str, Foretold] = field(default_factory=dict)
    again: list[DecidedAgain] = field(default_factory=list)


@pytest.fixture(scope="module")
def played(cluster: EmbeddedCluster, make_workers, follow, watch) -> PlayedCases:
    workers = make_workers(max_delay_ms=MAX_DELAY_MS)
    log, played = follow(workers), PlayedCases(watch(workers))

    def tell(row: CaseRow) -> None:
        played.rows.append(row)
        played.watched.heard(row.logged)
        if row.logged.rejoin_at_ms is not None:
            played.foretold[row.step.number] = played.watched.foretold(row.logged)

    cases = SixCases(cluster, workers, log, print, tell)
    cases.set_up()
    cases.play({name: CASES[name] for name in QUICK})
    configured = ConfigLog.read(cluster, workers.config_topic)
    played.again += decide_again(log.generations(), configured.before, MAX_DELAY_MS)
    return played


def test_every_generation_is_decided_as_its_leader_did(played: PlayedCases) -> None:
    assert [one.differs for one in played.again if not one.match] == []
    # The service does so from the first generation on, without knowing the longest delay.
    wanted = {one.logged.number: "match" for one in played.again}
    assert played.watched.results == wanted, played.watched.whys


def test_each_round_is_what_kafka_is_known_to_decide(played: PlayedCases) -> None:
    rows = played.rows
    assert [row.step.number for row in rows] == ["1.1", "2.1", "2.2", "3.1", "3.2", "5.1"]
    assert [row.line(match=True) for row in rows if not row.as_decided] == []
    # docs/design.md: Connect deals connectors and tasks apart.
    assert [row.step.number for row in rows if row.as_documented is False] == ["3.2"]


def test_what_nobody_has_goes_where_and_when_it_was_said_to(played: PlayedCases) -> None:
    (due,) = [row for row in played.rows if row.is_due]
    foretold = played.foretold["3.1"]
    assert len(foretold.goes_to) == 2  # a connector and a task
    assert foretold.came(due.logged), (foretold, due.kafka, foretold.late_ms(due.logged))


@pytest.mark.timeout(400)
def test_the_six_cases_are_played_and_known() -> None:
    command = [*caughtup_command(), "demo", "--story", "connect", "--scripted", "--format", "json"]
    ran = subprocess.run(
        [*command, "--max-delay", "30"], capture_output=True, text=True, check=False
    )

    *rounds, last = map(json.loads, ran.stdout.splitlines())

    assert (ran.returncode, last["ok"]) == (0, True), (rounds, ran.stderr[-3000:])
    assert [one["case"] for one in rounds] == list(
        dict.fromkeys(step.number for steps in CASES.values() for step in steps)
    )
    assert all(one["match"] for one in rounds)
    assert [one["case"] for one in rounds if one.get("as_foretold")] == ["3.2", "4.3"]
    assert [one["case"] for one in rounds if one["as_documented"] is False] == ["3.2", "6.3", "6.4"]
