"""What becomes of partitions' movements: planned, promoted or dropped, each told once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.events import ReassignmentEvents
from caughtup.models.reassignments.tracker import ReassignmentTracker
from caughtup.models.records.fields import json_values
from caughtup.models.records.keys import encode_partition
from caughtup.models.records.movements import PartitionMovementRecord, read_movement
from caughtup.models.records.reassignments import ReassignmentRecord
from tests.support.reassignments.observations import a_reassignment

PARTITION = TopicPartition("orders", 3)
AT_MS = 1_000_000


def observation(
    replicas: tuple[int, ...],
    adding: tuple[int, ...],
    removing: tuple[int, ...],
    at_ms: int = AT_MS,
) -> ReassignmentRecord:
    return a_reassignment(
        PARTITION, at_ms=at_ms, replicas=replicas, adding=adding, removing=removing
    )


ON_ITS_WAY = observation((3, 4, 1, 2), (3, 4), (1, 2))


class Told:
    """A tracker and the events that are told of it, as a reader of the topic has them."""

    def __init__(self) -> None:
        self.tracker = ReassignmentTracker()
        self.movements = ReassignmentEvents()
        self.events: list[dict[str, Any]] = []

    def see(self, at: ReassignmentRecord) -> list[dict[str, Any]]:
        self.tracker.apply(at)
        return self._tell()

    def end(self, replicas: tuple[int, ...] | None, at_ms: int = AT_MS + 9) -> list[dict[str, Any]]:
        self.tracker.end(PARTITION, replicas, (), at_ms)
        return self._tell()

    def _tell(self) -> list[dict[str, Any]]:
        told = self.movements.new_events(self.tracker, PARTITION)
        as_read = [json_values(event) for event in told]
        self.events += as_read
        return as_read

    def restarted(self) -> Told:
        """Start anew with what was told, and nothing else."""
        again = Told()
        for event in self.events:
            record = read_movement(encode_partition(PARTITION), json.dumps(event).encode())
            assert isinstance(record, PartitionMovementRecord)
            again.movements.restore(record)
        return again


def steps(events: list[dict[str, Any]]) -> list[tuple[str, list[int], str | None]]:
    return [(event["event"], event["to"], event.get("why")) for event in events]


def test_a_reassignment_is_planned_when_it_is_first_seen_and_promoted_when_it_is_completed() -> (
    None
):
    told = Told()
    assert told.see(ON_ITS_WAY) == [
        {
            "schema": 1,
            "event": "planned",
            "kind": "partition",
            "topic": "orders",
            "partition": 3,
            "from": [1, 2],
            "to": [3, 4],
            "at_ms": AT_MS,
        }
    ]
    assert told.see(ON_ITS_WAY) == []
    (promoted,) = told.end((3, 4))
    assert (promoted["event"], promoted["at_ms"], "why" in promoted) == (
        "promoted",
        AT_MS + 9,
        False,
    )
    assert told.end((3, 4)) == []
    assert told.movements.on_their_way() == []


@pytest.mark.parametrize(
    ("replicas", "why"), [((1, 2), "cancelled"), (None, "vanished"), ((7, 8), "superseded")]
)
def test_a_reassignment_that_ends_otherwise_is_dropped_with_how_it_ended(
    replicas: tuple[int, ...] | None, why: str
) -> None:
    told = Told()
    told.see(ON_ITS_WAY)
    assert steps(told.end(replicas)) == [("dropped", [3, 4], why)]


def test_one_that_is_sent_elsewhere_is_dropped_and_another_planned() -> None:
    told = Told()
    told.see(ON_ITS_WAY)
    elsewhere = observation((3, 5, 1, 2, 4), (3, 5), (1, 2, 4))
    assert steps(told.see(elsewhere)) == [
        ("dropped", [3, 4], "superseded"),
        ("planned", [3, 5], None),
    ]
    assert steps(told.end((1, 2, 4))) == [("dropped", [3, 5], "reverted-partial")]


def test_nothing_is_told_again_after_a_restart_and_an_end_meanwhile_is_told_then() -> None:
    told = Told()
    told.see(ON_ITS_WAY)
    again = told.restarted()
    assert [event.to for event in again.movements.on_their_way()] == [(3, 4)]
    assert again.see(ON_ITS_WAY) == []
    assert steps(again.end((3, 4))) == [("promoted", [3, 4], None)]
    assert again.restarted().end((3, 4)) == []


def test_an_observation_that_saw_no_replicas_tells_nothing() -> None:
    told = Told()
    told.see(ON_ITS_WAY)
    assert told.see(observation((), (), ())) == []
    assert told.end(()) == []
    assert len(told.movements.on_their_way()) == 1


BROKERS = st.lists(st.integers(1, 5), unique=True, max_size=4).map(tuple)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("see"), BROKERS, BROKERS, BROKERS),
        st.tuples(st.just("end"), st.none() | BROKERS),
        st.just(("restart",)),
    ),
    max_size=12,
)


@given(STEPS)
def test_whatever_is_seen_each_plan_has_one_end_before_the_next(taken: list[Any]) -> None:
    told = Told()
    for step in taken:
        match step:
            case ("see", replicas, adding, removing):
                told.see(observation(replicas, adding, removing))
            case ("end", replicas):
                told.end(replicas)
            case _:
                events = told.events
                told = told.restarted()
                told.events = events
    open_to: list[int] | None = None
    for event in told.events:
        assert (event["event"] == "planned") == (open_to is None)
        assert open_to in (None, event["to"])
        open_to = event["to"] if event["event"] == "planned" else None
