"""Advice: every cause has one, and docs/protocols.md names every cause."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.advice import CAUSES, advice
from caughtup.models.verdicts import REASSIGNMENTS

PROTOCOLS = Path(__file__).resolve().parents[3] / "docs" / "protocols.md"
EVENTS = TopicPartition("events", 0)


def table() -> list[list[str]]:
    """Return the cells of the table of verdicts."""
    text = PROTOCOLS.read_text().split("## Reassignments: verdicts")[1]
    lines = text.split("| verdict | when |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_document_names_every_verdict() -> None:
    assert {row[0] for row in table()} == set(REASSIGNMENTS.words)


def test_the_document_names_every_cause_that_has_advice_and_no_other() -> None:
    named = {cause for row in table() for cause in re.findall(r"[a-z]+(?:-[a-z]+)+", row[2])}
    assert named == set(CAUSES)


@pytest.mark.parametrize("cause", sorted(CAUSES))
def test_advice_is_one_sentence_whatever_is_known(cause: str) -> None:
    bare = advice(cause, EVENTS, None, {})
    assert bare is not None
    assert "{" not in bare
    assert "\n" not in bare
    assert len(bare) < 250


def test_advice_names_brokers_and_numbers() -> None:
    evidence = {
        "throttled_as": "leader",
        "throttled_broker": 3,
        "in_sync_bytes_per_second": 900_000,
    }
    assert advice("throttle-starved", EVENTS, 3, evidence) == (
        "raise the throttle well above the 900,000 bytes/s that in-sync replicas take: "
        "kafka-configs.sh --entity-type brokers --entity-name 3 --alter "
        "--add-config leader.replication.throttled.rate=BYTES"
    )


def test_a_copy_that_stopped_under_a_throttle_may_have_too_low_a_one() -> None:
    evidence = {
        "replica": 2,
        "throttle_bytes_per_second": 10,
        "throttled_as": "leader",
        "throttled_broker": 1,
    }
    text = advice("copy-stopped", EVENTS, 1, evidence)
    assert text is not None
    assert text.startswith("check first whether 10 bytes/s is the throttle that you meant: kafka-")
    assert "--entity-name 1 " in text
    assert "restart broker 2" in text
    assert "throttle" not in (advice("copy-stopped", EVENTS, 1, {"replica": 2}) or "")


def test_without_a_cause_there_is_nothing_to_do() -> None:
    assert advice(None, EVENTS, 1, {}) is None
