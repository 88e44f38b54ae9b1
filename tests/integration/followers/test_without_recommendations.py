"""A real Kafka Streams application whose follower has no recommendation, or one that is too old."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.support.followers.streams_application import (
    SECONDS,
    Following,
    assert_nothing_failed,
    newest,
    recommend,
    start_with_state,
)
from tests.support.service import wait_for

HOUR_MS = 3_600_000


@pytest.mark.thorough
def test_without_recommendations_a_new_instance_gets_work_in_the_end(
    cluster: EmbeddedCluster, jar: Path
) -> None:
    """There isn't even a topic; and nobody creates one."""
    properties = {"caughtup.follow.ups": "2"}
    with Following(cluster, jar, topics=(), properties=properties) as following:
        start_with_state(cluster, following, "one")
        application = following.application
        application.start_instance("two")

        def copies(name: str, role: str) -> int:
            threads = application.threads(name).values()
            return sum(len(getattr(thread, role)) for thread in threads)

        wait_for("warm-ups", lambda: copies("two", "standby") == 2, SECONDS)
        application.wait_caught_up()
        # Another one brings another rebalance, and what is caught up by then is handed over.
        application.start_instance("three")
        wait_for("the second runs tasks", lambda: copies("two", "active") == 2, SECONDS)
        log = following.log("one") + following.log("two") + following.log("three")
        assert "there is no topic " + following.prefix + "recommended-assignments" in log
        assert "given_up" in log
        assert_nothing_failed(following, "one", "two", "three")
        there = AdminClient(cluster.client_config()).list_topics(timeout=30).topics
        assert following.prefix not in " ".join(there)


@pytest.mark.thorough
def test_a_recommendation_that_the_log_has_left_behind_is_too_old(
    cluster: EmbeddedCluster, jar: Path
) -> None:
    """Times of the log tell it, whatever this clock says: both are of one writer's clock."""
    with Following(cluster, jar) as following:
        start_with_state(cluster, following, "one")
        record = recommend(newest(following))
        # It would change something: it wants another rebalance.
        record["probing_rebalance"]["needed"] = True
        following.application.stop_instance("one")
        following.publish(record, timestamp_ms=1_000)
        following.publish({}, key="another-group", timestamp_ms=1_000 + HOUR_MS)
        following.application.start_instance("one")
        following.wait_reason("too_old")
        assert_nothing_failed(following, "one")
