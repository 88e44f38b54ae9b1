"""What goes out for a decision, and the line for the log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from caughtup.agents.recommend import summary
from caughtup.models.undecided import TELLING_MS
from tests.support.streams import (
    START_MS,
    WARMING,
    Member,
    cluster_state,
    generation,
    known_ends,
    read,
)


def record_of(*members: Member) -> Mapping[str, Any]:
    state = cluster_state()
    known_ends(state)
    read(state, generation(7, *members))
    (record,) = state.decide(START_MS + TELLING_MS)
    return record


def test_what_is_published_is_json_without_loss() -> None:
    record = record_of(*WARMING)
    assert msgspec.json.decode(msgspec.json.encode(record)) == json.loads(json.dumps(record))


def test_the_log_says_in_one_line_what_was_decided_and_why_the_leader_differs() -> None:
    assert summary(record_of(*WARMING)) == "orders generation 7: 1 movements, leader match"
    differing = record_of(replace(WARMING[0], probe_at_ms=None), WARMING[1])
    assert summary(differing) == (
        "orders generation 7: 1 movements, leader mismatch "
        "(a-StreamThread-1-consumer should ask for a probing rebalance, but asks for no rebalance)"
    )
