"""A valid record of every own topic of the service, and its reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from caughtup.models.decisions.inputs.application_state import read_state
from caughtup.models.decisions.learned_configs import learned_record, read_learned
from caughtup.models.decisions.recommendation import read_recommendation
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.records import topics
from caughtup.models.records.catch_up_rates import read_rates
from caughtup.models.records.end_offsets import EndOffsetsRecord, read_end_offsets
from caughtup.models.records.fields import changed, json_values
from caughtup.models.records.keys import encode_copy
from caughtup.models.records.learned_configs import LearnedRecord
from caughtup.models.records.movements import read_movement
from caughtup.models.records.pipeline_progress import read_progress
from caughtup.models.records.reassignments import (
    CLUSTER_FORMAT,
    CLUSTER_KEY,
    read_reassignment,
)
from caughtup.models.records.task_positions import read_position
from caughtup.models.records.transactions import TransactionRecord, read_transaction
from tests.support.decisions import decided_state, recommended_with_events
from tests.support.groups.records import GROUP, START_MS
from tests.support.groups.streams import WARMING, Member, process
from tests.support.own_topics.application_states import state_record
from tests.support.reassignments.one_reassignment import CLUSTER, an_observation
from tests.support.states import open_transaction

#: The time at which all of them were written, long before they are read.
WRITTEN_MS = START_MS + 60_000
PROCESS = str(process(2))


class ServiceRecord(NamedTuple):
    """A record: its topic, key, value as JSON values, and reader."""

    name: str
    topic: str
    key: bytes
    value: dict[str, Any]
    read: Callable[[bytes | None, bytes | None], object]

    @property
    def encoded(self) -> bytes:
        return json.dumps(self.value).encode()

    def changed(self, **fields: Any) -> bytes:
        """Return its value with some fields replaced."""
        return json.dumps({**self.value, **fields}).encode()


def a_learned_record() -> LearnedRecord:
    """Return the learned configs of an application without settings, from a warm-up."""
    state = decided_state(*WARMING, parameters=ApplicationParameters())
    ((group, known),) = state.applications.learned.each()
    return learned_record(group, known)


def service_records() -> list[ServiceRecord]:
    """Return one record of every form."""
    recommendation, events = recommended_with_events()
    look = an_observation(3, {4: 60_000, 5: 20_000})
    ends = EndOffsetsRecord.from_ends(
        TopicPartition("orders-in", 3), EndOffsets(5, 90, 100, WRITTEN_MS, 88), bytes(range(16))
    )
    copy = encode_copy(GROUP, PROCESS, "0_1")
    named = {"group": GROUP, "process": PROCESS, "task": "0_1"}
    joining = (Member("a", 1, ("0_0",), {"0_0": -2}, ("0_0",)), Member("b", 2))
    told = state_record(*joining, given={1: (["0_0"], []), 2: ([], [])})
    moved = {"schema": 1, "event": "planned", "kind": "partition", "topic": "t", "partition": 3}
    transaction = open_transaction("shop", [TopicPartition("orders-in", 3)])
    held = TransactionRecord(1, WRITTEN_MS, transaction)
    window = {"seconds": 60, "position_per_second": 5.0, "spread": 0.5, "samples": 6}
    return [
        ServiceRecord(
            "end offsets", topics.END_OFFSETS, b"orders-in-3", json_values(ends), read_end_offsets
        ),
        ServiceRecord(
            "partition look",
            topics.REASSIGNMENTS,
            b"events-0",
            json_values(changed(look, since_ms=10_000, original=(1, 2, 3))),
            read_reassignment,
        ),
        ServiceRecord(
            "cluster look",
            topics.REASSIGNMENTS,
            CLUSTER_KEY,
            json_values(CLUSTER),
            lambda _, value: None if value is None else CLUSTER_FORMAT.decode(value),
        ),
        ServiceRecord(
            "recommendation",
            topics.RECOMMENDATIONS,
            GROUP.encode(),
            recommendation,
            lambda key, value: read_recommendation(key, value, WRITTEN_MS),
        ),
        ServiceRecord(
            "learned configs",
            topics.LEARNED_CONFIGS,
            GROUP.encode(),
            json_values(a_learned_record()),
            lambda key, value: read_learned(key, value, WRITTEN_MS),
        ),
        ServiceRecord("task movement", topics.MOVEMENTS, GROUP.encode(), events[0], read_movement),
        ServiceRecord(
            "partition movement",
            topics.MOVEMENTS,
            b"t-3",
            {**moved, "from": [1], "to": [2], "at_ms": 5},
            read_movement,
        ),
        ServiceRecord(
            "transaction", topics.TRANSACTIONS, held.key, json_values(held), read_transaction
        ),
        ServiceRecord(
            "task position",
            topics.TASK_POSITIONS,
            copy,
            {
                "schema": 1,
                **named,
                "client_id": "b",
                "role": "standby",
                "lag": 40,
                "lags": {"orders-counts-changelog": 40},
                "leads": {"orders-counts-changelog": 7},
                "at_ms": WRITTEN_MS,
            },
            read_position,
        ),
        ServiceRecord(
            "application state",
            topics.APPLICATION_STATES,
            GROUP.encode(),
            told,
            lambda key, value: read_state(key, value, WRITTEN_MS),
        ),
        ServiceRecord(
            "catch-up rates",
            topics.CATCH_UP_RATES,
            copy,
            {
                "schema": 1,
                **named,
                "as_of_ms": WRITTEN_MS,
                "trigger_seconds": 10,
                "windows": [window],
            },
            read_rates,
        ),
        ServiceRecord(
            "pipeline progress",
            topics.PIPELINE_PROGRESS,
            b"history",
            {"schema": 1, "state": "running", "batch": 3, "rows": 20, "trigger_seconds": 10.0},
            read_progress,
        ),
    ]


SERVICE_RECORDS = service_records()
