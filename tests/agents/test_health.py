"""How the service knows that its reader hears nothing any more."""

from __future__ import annotations

from caughtup.agents.health import MOMENTS_RECORDS, Health
from tests.support.scraping import scrape
from tests.support.streams import cluster_state

POLLED = "caughtup_offsets_last_poll_timestamp_seconds"


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
