from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given

from caughtup.models.errors import DecodeError
from caughtup.models.ids import ConnectorTaskId
from caughtup.models.wire.connect_protocol import (
    NOTHING,
    ConnectorsAndTasks,
    WorkerAssignment,
    WorkerState,
    decode_worker_assignment,
    decode_worker_state,
)
from tests.models.wire.connect_encoders import worker_assignment, worker_state
from tests.models.wire.connect_strategies import worker_assignments, worker_states
from tests.models.wire.strategies import thorough
from tests.support import wire

# Bytes that a real worker of Kafka 4.1 wrote, in each version.
URL = "http://w1:8083/"
HEAD = "0000000000086c65616465722d31000f687474703a2f2f77313a383038332f000000000000002a"
GIVEN = HEAD[4:] + "0000000100014100000002ffffffff00000000"
TOLD = GIVEN + "0000000100014200000002ffffffff00000000000493e0"
STATE = "000f687474703a2f2f77313a383038332f000000000000002a"
A_AND_ITS_TASK = ConnectorsAndTasks(("A",), (ConnectorTaskId("A", 0),))
B_AND_ITS_TASK = ConnectorsAndTasks(("B",), (ConnectorTaskId("B", 0),))
ASSIGNMENT = WorkerAssignment(
    version=1,
    error=0,
    leader="leader-1",
    leader_url=URL,
    config_offset=42,
    assigned=A_AND_ITS_TASK,
    revoked=B_AND_ITS_TASK,
    delay_ms=300_000,
)


@pytest.mark.parametrize("version", [1, 2])
def test_a_workers_bytes_are_read_as_what_it_owned_and_was_told(version):
    told = dataclasses.replace(ASSIGNMENT, version=version)
    raw = bytes.fromhex(f"{version:04x}{TOLD}")
    assert decode_worker_assignment(raw) == told
    joined = bytes.fromhex(f"{version:04x}{STATE}{len(raw):08x}") + raw
    state = decode_worker_state(joined)
    assert state == WorkerState(version, URL, 42, told)
    assert state.owned == A_AND_ITS_TASK
    nothing = decode_worker_state(bytes.fromhex(f"{version:04x}{STATE}ffffffff"))
    assert nothing == WorkerState(version, URL, 42, None)
    assert nothing.owned == NOTHING


def test_an_eager_workers_bytes_hold_nothing_that_it_owned_or_shall_let_go():
    assert decode_worker_state(bytes.fromhex(f"0000{STATE}")) == WorkerState(0, URL, 42, None)
    given_all = dataclasses.replace(ASSIGNMENT, version=0, revoked=NOTHING, delay_ms=0)
    assert decode_worker_assignment(bytes.fromhex(f"0000{GIVEN}")) == given_all


def test_arrays_that_are_null_are_empty():
    raw = worker_assignment(dataclasses.replace(ASSIGNMENT, assigned=NOTHING, revoked=NOTHING))
    null = raw.replace(bytes(8) + wire.number("i", 300_000), b"\xff" * 8 + wire.number("i", 7))
    read = decode_worker_assignment(null)
    assert (read.assigned, read.revoked, read.delay_ms) == (NOTHING, NOTHING, 7)


@thorough
@given(worker_states())
def test_what_a_worker_says_reads_back_in_every_version(state):
    assert decode_worker_state(worker_state(state)) == state


@thorough
@given(worker_assignments())
def test_what_a_worker_is_told_reads_back_in_every_version(assignment):
    raw = worker_assignment(assignment)
    assert decode_worker_assignment(raw) == assignment
    assert decode_worker_assignment(raw + b"later") == assignment


@pytest.mark.parametrize("version", [-1, 3, 32767])
def test_a_version_that_is_not_known_is_refused(version):
    written = wire.number("h", version)
    with pytest.raises(DecodeError, match=f"unknown_version: Connect assignment version {version}"):
        decode_worker_assignment(written + bytes.fromhex(TOLD))
    with pytest.raises(DecodeError, match=f"unknown_version: Connect subscr.* version {version}"):
        decode_worker_state(written + bytes.fromhex(STATE) + b"\xff" * 4)


def test_a_worker_whose_work_cannot_be_read_cannot_be_read():
    raw = bytes.fromhex(f"0001{STATE}") + wire.byte_string(wire.number("h", 9))
    with pytest.raises(DecodeError, match="unknown_version: Connect assignment version 9"):
        decode_worker_state(raw)
