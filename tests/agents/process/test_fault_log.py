"""The log tells of each kind of failure and of record refused or set aside once a minute."""

from __future__ import annotations

import logging

import pytest

from caughtup.agents.process import fault_log
from caughtup.agents.process.fault_log import FaultLog, RateLimit
from caughtup.models.state.cluster import ClusterState


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The moment (ms) at which everything happens, to be set."""
    now = [1_000_000_000]
    monkeypatch.setattr(fault_log, "now_ms", lambda: now[0])
    return now


def test_a_thousand_refused_records_are_a_line_a_minute(
    clock: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    state = ClusterState("cluster-1", {})
    FaultLog().attach(state)
    with caplog.at_level(logging.WARNING):
        for _ in range(1_000):
            state.refused.refuse("caughtup-lag", b"k" * 9_000, "bad_json", "not JSON", clock[0])
        state.refused.refuse("caughtup-lag", b"k", "too_large", "9 bytes", clock[0])
        clock[0] += 60_000
        state.refused.refuse("caughtup-lag", b"k", "bad_json", "not JSON", clock[0])
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 3
    assert max(map(len, said)) < 250
    assert said[-1].endswith("(999 more like it since the last line)")


def test_a_failure_is_logged_with_its_traceback_once_a_minute(
    clock: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    state = ClusterState("cluster-1", {})
    FaultLog().attach(state)
    for group in ("a", "b"):
        with state.faults.isolated("assessment", group, clock[0]):
            raise OverflowError("too large")
    (record,) = caplog.records
    assert record.getMessage() == "assessment of 'a' failed; continuing"
    assert record.exc_info is not None
    assert record.exc_info[0] is OverflowError


def test_a_clock_that_goes_back_silences_nobody(
    clock: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    state = ClusterState("cluster-1", {})
    FaultLog().attach(state)
    state.refused.refuse("caughtup-lag", b"k", "bad_json", "not JSON", clock[0])
    clock[0] -= 3_600_000
    state.refused.refuse("caughtup-lag", b"k", "bad_json", "not JSON", clock[0])
    assert len(caplog.records) == 2


def test_records_that_are_set_aside_are_a_line_a_minute_for_each_topic_and_reason(
    clock: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    state = ClusterState("cluster-1", {})
    FaultLog().attach(state)
    with caplog.at_level(logging.WARNING):
        for number in range(1_000):
            group = f"group-{number}".encode()
            state.set_aside.add("caughtup-movements", group, "too_large", "9 bytes", clock[0])
        state.set_aside.add("caughtup-lag", b"group-0", "too_large", "9 bytes", clock[0])
    assert [record.getMessage() for record in caplog.records] == [
        f"set aside a record for {topic}, key 'group-0': too_large: 9 bytes"
        for topic in ("caughtup-movements", "caughtup-lag")
    ]


def test_so_many_things_are_let_through_each_minute() -> None:
    limit = RateLimit(2)
    assert [limit.is_exceeded(60_000 + at) for at in (0, 1, 2)] == [False, False, True]
    assert not limit.is_exceeded(120_000)
