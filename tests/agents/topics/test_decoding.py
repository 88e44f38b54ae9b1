"""A record that can't be taken costs itself alone, whoever is to blame."""

from __future__ import annotations

from caughtup.agents.clock import now_ms
from caughtup.agents.topics.decoding import clock_against, taking, times_of
from caughtup.agents.topics.log import OwnRecord
from caughtup.models.records.decoding import BAD_TYPE, RefusedError
from tests.support.streams import cluster_state

HOUR_MS = 3_600_000


def test_what_is_refused_is_counted_and_what_fails_is_a_fault() -> None:
    state = cluster_state()
    with taking(state, "lag", b"key", 7) as clock:
        raise RefusedError(BAD_TYPE, "no number")
    assert clock == 7
    assert state.refused.counts == {("lag", "bad_type"): 1}
    assert state.refused.newest["lag"].at_ms == 7
    with taking(state, "lag", b"\xff" * 1_000_000, 8):
        raise RecursionError
    (fault,) = state.faults.newest()
    assert (fault.part, fault.cause, fault.last_ms) == ("reading lag", "RecursionError", 8)
    with taking(state, "lag", None) as clock:
        pass
    assert abs(clock - now_ms()) < HOUR_MS


def test_the_broker_s_clock_counts_where_it_stamps_records_and_ours_where_anybody_does() -> None:
    ahead_ms = now_ms() + HOUR_MS
    assert clock_against(ahead_ms, by_broker=True) == ahead_ms
    assert clock_against(ahead_ms, by_broker=False) < ahead_ms
    assert clock_against(0, by_broker=True) >= ahead_ms - HOUR_MS
    assert times_of(OwnRecord(None, None, ahead_ms, by_broker=True)) == (ahead_ms, ahead_ms)
    at_ms, clock_ms = times_of(OwnRecord(None, None, ahead_ms, by_broker=False))
    assert clock_ms < at_ms == ahead_ms
