"""A service that starts again, or reads the log again: what was decided stays decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from caughtup.models.decisions.life import END_OFFSETS_WAIT_MS, LEADER_STATE_WAIT_MS
from caughtup.models.errors import CaughtupError
from tests.support.decisions import decided_generation, recommendation_of, recommended_record
from tests.support.groups.records import GROUP, START_MS
from tests.support.groups.streams import HANDED_OVER, HANDING_OVER, WARMING, Member, generation
from tests.support.states import (
    application,
    cluster_state,
    known_ends,
    publish,
    read,
    state_with_ends,
)

LATER_MS = START_MS + 30_000


def published_before(number: int, *members: Member) -> Mapping[str, Any]:
    """Return the record that an earlier process of the service published for a generation."""
    now_ms = START_MS + LEADER_STATE_WAIT_MS
    return recommended_record(*members, number=number, now_ms=now_ms)


def test_a_restart_publishes_nothing_again_and_keeps_the_verdict() -> None:
    record = published_before(5, *WARMING)
    state = cluster_state()
    state.applications.apply_published(GROUP, recommendation_of(record))
    read(state, generation(5, *WARMING), seen_ms=LATER_MS)
    # No end offsets are listed: what was known then is in the record.
    assert publish(state, LATER_MS + END_OFFSETS_WAIT_MS) == []
    decided = decided_generation(state)
    assert decided.exact.leader.result == "match"
    assert decided.exact.decision is not None
    assert decided.recommendation == recommendation_of(record)
    assert [(copy.role, copy.lag) for copy in state.task_rows(GROUP)] == [
        ("active", None),
        ("active", None),
        ("warmup", 50_000),
    ]


def test_a_restart_keeps_the_verdict_of_a_leader_that_decided_otherwise() -> None:
    swapped = (
        Member("a", 1, sums={"0_0": 50_000}, active=("0_1",)),
        Member("b", 2, sums={"0_1": 50_000}, active=("0_0",)),
    )
    record = published_before(5, *swapped)
    assert record["leader"]["result"] == "mismatch"
    state = cluster_state()
    state.applications.apply_published(GROUP, recommendation_of(record))
    read(state, generation(5, *swapped), seen_ms=LATER_MS)
    assert publish(state, LATER_MS) == []
    decided = decided_generation(state)
    assert decided.exact.leader.why == record["leader"]["why"]
    assert application(state).exact_counts == {"mismatch": 1}


def test_a_restart_that_reads_older_generations_first_takes_up_the_newest() -> None:
    """The log of ``__consumer_offsets`` may not be compacted yet; nothing is decided meanwhile."""
    record = published_before(5, *HANDED_OVER)
    state = state_with_ends()
    state.applications.apply_published(GROUP, recommendation_of(record))
    read(state, generation(4, *HANDING_OVER, at_ms=START_MS - 10), seen_ms=LATER_MS)
    read(state, generation(5, *HANDED_OVER), seen_ms=LATER_MS)
    state.applications.log_read_to_end()
    assert publish(state, LATER_MS) == []
    decided = decided_generation(state)
    assert decided.generation.generation == 5


def test_a_generation_that_precedes_the_published_one_in_the_same_moment_is_not_mixed_up() -> None:
    record = published_before(5, *HANDED_OVER)
    state = cluster_state()
    state.applications.apply_published(GROUP, recommendation_of(record))
    read(state, generation(4, *HANDING_OVER), seen_ms=LATER_MS)
    read(state, generation(5, *HANDED_OVER), seen_ms=LATER_MS)
    assert publish(state, LATER_MS) == []
    decided = decided_generation(state)
    assert decided.generation.generation == 5
    assert decided.recommendation == recommendation_of(record)
    assert state.applications.awaited() == []


def test_reading_the_log_again_from_its_start_decides_nothing_again() -> None:
    state = state_with_ends()
    generations = [
        generation(1, *WARMING, at_ms=START_MS - 20),
        generation(2, *HANDING_OVER, at_ms=START_MS - 10),
        generation(3, *HANDED_OVER),
    ]
    for _ in range(2):
        for record in generations:
            read(state, record)
    assert [record["generation"] for record in publish(state)] == [1, 2, 3]
    for record in generations:
        read(state, record)
    assert publish(state) == []
    assert application(state).newest.generation == 3
    assert application(state).rebalances == 3


@pytest.mark.parametrize(
    "other", [published_before(4, *WARMING), published_before(5, HANDED_OVER[0])]
)
def test_a_record_of_another_generation_or_other_processes_is_not_taken_up(
    other: Mapping[str, Any],
) -> None:
    state = state_with_ends()
    state.applications.apply_published(GROUP, recommendation_of(other))
    read(state, generation(5, *WARMING))
    (record,) = publish(state)
    assert record["generation"] == 5
    assert len(record["process_ids"]) == 2


@pytest.mark.parametrize("later", [{"generation": 2**31 - 1}, {"as_of_ms": 4_102_444_800_000}])
@pytest.mark.parametrize("first", ["published", "read"])
def test_what_was_published_for_a_later_generation_mutes_none(
    later: dict[str, int], first: str
) -> None:
    """Which one is the newest only the log of groups tells, once it was read."""
    forged = {**published_before(5, *WARMING), "generation": 9, "as_of_ms": LATER_MS, **later}
    state = state_with_ends()
    if first == "published":
        state.applications.apply_published(GROUP, recommendation_of(forged))
    read(state, generation(5, *WARMING))
    state.applications.log_read_to_end()
    if first == "read":
        state.applications.apply_published(GROUP, recommendation_of(forged))
    read(state, generation(6, *WARMING, at_ms=START_MS + 10), seen_ms=START_MS + 10)
    known_ends(state, since_ms=START_MS + 10)
    assert [record["generation"] for record in publish(state, LATER_MS)] == [5, 6]


def test_a_clock_that_is_set_back_keeps_no_generation_waiting() -> None:
    state = cluster_state()
    read(state, generation(5, *WARMING), seen_ms=LATER_MS)  # end offsets never come
    assert publish(state, LATER_MS) == []
    (record,) = publish(state, LATER_MS - 3_600_000)
    assert record["generation"] == 5


def damaged(*path: str | int, value: Any = None) -> Any:
    """Return a published record with one value replaced."""
    record = published_before(5, *WARMING)
    inside: Any = record
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = value
    return record


@pytest.mark.parametrize(
    "record",
    [
        damaged("inputs"),
        damaged("inputs", "scenario", value={}),
        damaged("inputs", "end_offset_sums", "0_0", value="ab"),
        damaged("inputs", "end_offset_sums", value={"0-0": [1, 2]}),
        damaged("inputs", "unknown", value=7),
        damaged("leader", value=[]),
        damaged("leader", "result", value=["match"]),
        damaged("movements", value=[{}]),
        damaged("movements"),
    ],
)
def test_a_record_that_is_not_ours_is_refused(record: Any) -> None:
    with pytest.raises(CaughtupError):
        recommendation_of(record)


def test_one_that_cannot_be_decided_again_is_ignored_and_the_generation_decided() -> None:
    record = published_before(5, *WARMING)
    for client in record["inputs"]["scenario"]["clients"].values():
        client["lags"].clear()
    record["inputs"]["scenario"]["greatest_lags"].clear()
    state = state_with_ends()
    state.applications.apply_published(GROUP, recommendation_of(record))
    read(state, generation(5, *WARMING))
    (own,) = publish(state)
    assert own["leader"]["result"] == "match"
    assert application(state).rebalances == 1


def test_of_what_the_log_held_at_the_start_only_the_newest_generation_is_decided() -> None:
    state = state_with_ends()
    for number in (3, 4, 5):
        read(state, generation(number, *WARMING, at_ms=START_MS + number))
    state.applications.log_read_to_end()
    known_ends(state, since_ms=START_MS + 5)
    assert [record["generation"] for record in publish(state, LATER_MS)] == [5]
    assert [past.generation for past in application(state).history] == [5]


def test_what_another_instance_published_while_this_one_stood_by_is_taken_up() -> None:
    record = published_before(5, *WARMING)
    state = state_with_ends(generation(4, WARMING[0]), generation(5, *WARMING))
    state.applications.apply_published(GROUP, recommendation_of(record))
    state.applications.restore_published()
    assert publish(state, START_MS + LEADER_STATE_WAIT_MS) == []
    decided = decided_generation(state)
    assert decided.recommendation == recommendation_of(record)
    assert application(state).rebalances == 1
    state.applications.restore_published()
    assert application(state).rebalances == 1
    assert state.applications.newest_published() == [(GROUP, recommendation_of(record))]


def test_what_no_other_instance_published_is_decided_after_it_has_gone() -> None:
    state = state_with_ends()
    state.applications.apply_published(GROUP, recommendation_of(published_before(4, WARMING[0])))
    read(state, generation(4, WARMING[0]), generation(5, *WARMING))
    state.applications.restore_published()
    assert [record["generation"] for record in publish(state, START_MS + LEADER_STATE_WAIT_MS)] == [
        5
    ]
