"""How the service knows that its reader hears nothing any more."""

from __future__ import annotations

from caughtup.agents.process.health import MOMENTS_RECORDS, Health, Pulses
from tests.support.observability.scraping import scrape
from tests.support.states import cluster_state, everything

POLLED = "caughtup_offsets_last_poll_timestamp_seconds"


def test_what_is_not_safe_is_a_notice_and_hinders_nothing() -> None:
    health = Health(ready=True, unsafe=("all is read by anybody",))
    assert health.notices() == ["security: all is read by anybody"]
    assert health.unready() == []


def test_a_poll_that_leaves_only_moments_is_one_that_read_the_log() -> None:
    health = Health(ready=True)
    health.polled(1_000, MOMENTS_RECORDS)
    assert (health.polled_ms, health.read_ms, health.reader_lag) == (1_000, 1_000, MOMENTS_RECORDS)
    health.polled(2_000, MOMENTS_RECORDS + 1)
    assert (health.polled_ms, health.read_ms) == (2_000, 1_000)
    health.polled(3_000, 0)
    assert (health.polled_ms, health.read_ms) == (3_000, 3_000)


def test_a_new_connection_that_was_not_answered_yet_is_no_poll() -> None:
    health = Health(ready=True)
    health.polled(1_000, 0)
    health.polled(None, 0)
    assert (health.polled_ms, health.read_ms) == (1_000, 1_000)


def test_the_last_poll_is_told_once_there_was_one() -> None:
    health = Health(ready=True)
    assert POLLED not in scrape(cluster_state(), health)
    health.polled(1_500, 0)
    assert scrape(cluster_state(), health)[POLLED] == {(): 1.5}


def test_an_instance_that_stands_by_has_read_the_log_and_is_neither_ready_nor_alive() -> None:
    health = Health(ready=True, standby="host:1 is active")
    assert (health.has_read, health.is_alive) == (True, False)
    health.hinder("topics", "caughtup-lag is gone")
    assert health.unready() == ["standby: host:1 is active", "topics: caughtup-lag is gone"]
    health.standby = None
    health.hinder("topics", None)
    assert (health.unready(), health.is_alive) == ([], True)


def test_on_standby_nobody_is_told_figures_that_the_active_instance_tells() -> None:
    standby = scrape(everything(), Health(ready=True, standby="host:1 is active"))
    assert standby["caughtup_active"] == {(): 0}
    assert standby["caughtup_offsets_reader_ready"] == {(): 1}
    told = scrape(everything(), Health(ready=True))
    assert told["caughtup_active"] == {(): 1}
    of_itself = ("offsets", "snapshot", "probe", "decode", "records", "faults", "recent", "active")
    of_itself += ("build", "event_loop", "web", "rebalance_requests", "source")
    others = [
        name for name in standby if not name.startswith(tuple(f"caughtup_{n}" for n in of_itself))
    ]
    assert others == []
    assert len(told) > 2 * len(standby)


def test_problems_of_own_topics_are_notices_and_series() -> None:
    health = Health(ready=True)
    health.topic_problems["caughtup-lag", "partitions"] = "3 partitions, not 1: hm"
    assert health.notices() == ["caughtup-lag: 3 partitions, not 1: hm"]
    assert health.unready() == []
    found = scrape(cluster_state(), health)["caughtup_topic_problems"]
    assert found == {("caughtup-lag", "partitions"): 1}


def test_who_is_in_doubt_says_so_when_asked_whatever_has_run_since() -> None:
    health, doubts = Health(ready=True), ["another may be active"]
    health.doubt = lambda: doubts[0] if doubts else None
    assert health.unready() == ["group: another may be active"]
    assert scrape(cluster_state(), health)["caughtup_active"] == {(): 0}
    doubts.clear()
    assert health.unready() == []
    assert scrape(cluster_state(), health)["caughtup_active"] == {(): 1}


def test_ticks_without_a_beat_are_counted_by_part() -> None:
    pulses = Pulses()
    assert pulses.tick() == {}
    pulses.beat("loop")
    pulses.beat("reader")
    assert pulses.tick() == {"loop": 0, "reader": 0}
    pulses.beat("loop")
    assert pulses.tick() == {"loop": 0, "reader": 1}
    assert pulses.tick() == {"loop": 1, "reader": 2}
    pulses.beat("reader")
    pulses.beat("reader")
    assert pulses.tick() == {"loop": 2, "reader": 0}


def test_a_part_that_rests_is_not_watched_until_it_beats_again() -> None:
    pulses = Pulses()
    pulses.beat("loop")
    pulses.tick()
    pulses.tick()
    pulses.rest("loop")
    pulses.rest("nobody")
    assert pulses.tick() == {}
    pulses.beat("loop")
    assert pulses.tick() == {"loop": 0}
    assert pulses.tick() == {"loop": 1}
