"""Decided generations and their recommendations, as values and as records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from caughtup.models.decisions.life import DecidedGeneration
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.records.fields import json_values
from caughtup.models.records.recommendations import FORMAT, RecommendationRecord
from caughtup.models.state.cluster import ClusterState
from tests.support.groups.records import GROUP, START_MS
from tests.support.groups.streams import WARMING, Member, generation
from tests.support.states import TOLD, cluster_state, publish, read, state_with_ends

#: The time at which a generation is decided, even one whose end offsets never arrive.
DECIDED_MS = START_MS + 20_000


def decided_state(
    *members: Member,
    number: int = 7,
    now_ms: int = DECIDED_MS,
    ends: bool = True,
    parameters: ApplicationParameters = TOLD,
) -> ClusterState:
    """Return a state in which a generation of these members is decided.

    ``ends``: whether the end offsets around it are known.
    """
    state = undecided_state(*members, number=number, ends=ends, parameters=parameters)
    assert len(list(state.decide(now_ms))) == 1
    return state


def undecided_state(
    *members: Member, number: int = 7, ends: bool = True, parameters: ApplicationParameters = TOLD
) -> ClusterState:
    """Return a state that has read a generation of these members and not yet decided it."""
    record = generation(number, *members)
    if ends:
        return state_with_ends(record, parameters=parameters)
    state = cluster_state(parameters)
    read(state, record)
    return state


def decided_generation(state: ClusterState, group: str = GROUP) -> DecidedGeneration:
    """Return a group's last decided generation; there must be one."""
    decided = state.applications[group].decided
    assert decided is not None
    return decided


def a_recommendation(*members: Member, number: int = 7) -> RecommendationRecord:
    """Return the recommendation for a generation of these members."""
    (recommended,) = undecided_state(*members, number=number).decide(DECIDED_MS)
    return recommended


def recommendation_of(record: Mapping[str, Any]) -> RecommendationRecord:
    """Decode a record, given as JSON values, as the service does."""
    return FORMAT.decode(json.dumps(record).encode())


def recommended_record(
    *members: Member,
    number: int = 7,
    now_ms: int = DECIDED_MS,
    ends: bool = True,
    parameters: ApplicationParameters = TOLD,
) -> dict[str, Any]:
    """Return the record of the recommendation for a generation of these members."""
    state = undecided_state(*members, number=number, ends=ends, parameters=parameters)
    (record,) = publish(state, now_ms)
    return record


def recommended_with_events() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the recommendation's record while a copy warms up, and the records of its events."""
    state = undecided_state(*WARMING)
    (record,) = publish(state, DECIDED_MS)
    return record, [
        json_values(event) for event in state.applications.movement_events(DECIDED_MS + 1)
    ]
