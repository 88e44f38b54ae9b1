"""The document's six cases on three real workers: those that need nobody to come back in time.

All six are ``caughtup demo --story connect``.
"""

from __future__ import annotations

import pytest

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.connect.decided_again import DecidedAgain, decide_again
from caughtup.demo.connect.group_log import ConfigLog
from caughtup.demo.story.connect.cases import CASES
from caughtup.demo.story.connect.play import SixCases
from caughtup.demo.story.connect.rows import Row

MAX_DELAY_MS = 5_000
QUICK = ("the first worker joins", "two workers join one", "a worker leaves", "the leader leaves")


@pytest.fixture(scope="module")
def played(cluster: EmbeddedCluster, make_workers, follow) -> tuple[list[Row], list[DecidedAgain]]:
    """The cases' rounds, and every generation decided again."""
    workers = make_workers(max_delay_ms=MAX_DELAY_MS)
    log = follow(workers)
    cases = SixCases(cluster, workers, log, print, lambda row: print(row.line(match=False)))
    cases.set_up()
    rows = cases.play({name: CASES[name] for name in QUICK})
    configured = ConfigLog.read(cluster, workers.config_topic)
    return rows, list(decide_again(log.generations(), configured.before, MAX_DELAY_MS))


def test_every_generation_is_decided_as_its_leader_did(played) -> None:
    rows, again = played
    assert [one.differs for one in again if not one.match] == []
    assert {row.logged.number for row in rows} <= {one.logged.number for one in again}


def test_each_round_is_what_kafka_is_known_to_decide(played) -> None:
    rows, _ = played
    assert [row.step.number for row in rows] == ["1.1", "2.1", "2.2", "3.1", "3.2", "5.1"]
    assert [row.line(match=True) for row in rows if not row.as_decided] == []
    # docs/design.md: Connect deals connectors and tasks apart.
    assert [row.step.number for row in rows if row.as_documented is False] == ["3.2"]
