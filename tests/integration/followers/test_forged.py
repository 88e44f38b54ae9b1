"""A real Kafka Streams application whose topic of recommendations anybody writes to."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from caughtup.demo.apps.instance import HEAP_MEGABYTES
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.followers.kafka_streams.jar import build_jar
from caughtup.models.security.signing import HEADER, SigningKey, sign
from tests.models.security.test_signing import KEY, line
from tests.support.followers.streams_application import FOLLOW_UP_MS, Following, recommend

pytestmark = pytest.mark.thorough

OTHER = SigningKey("other", bytes(32))


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("keys") / "keys"
    file.write_text(line(KEY.name))
    return file


@pytest.fixture(scope="module")
def following(
    cluster: EmbeddedCluster, key_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Following]:
    """One instance with state, which follows what is signed."""
    jar = build_jar(tmp_path_factory.mktemp("follower") / "caughtup-follower.jar")
    properties = {"caughtup.signing.key.file": str(key_file)}
    with Following(cluster, jar, properties=properties) as following:
        following.application.start_instance("one")
        produce(cluster, following.application.source, 600, keys=60)
        following.application.wait_caught_up()
        yield following
        assert following.application.state("one") == "RUNNING"
        log = following.log("one")
        assert "PENDING_ERROR" not in log
        assert "PENDING_SHUTDOWN" not in log


@pytest.fixture(scope="module")
def cluster_id(cluster: EmbeddedCluster) -> str:
    return str(AdminClient(cluster.client_config()).list_topics(timeout=30).cluster_id)


def recommendation(following: Following) -> dict[str, Any]:
    """Recommend what is there, and to look again soon."""
    record = recommend(following.wait_state("a rebalance", lambda _: True))
    soon = record["decided_at_ms"] + FOLLOW_UP_MS
    record["probing_rebalance"] = {"needed": True, "worthwhile_at_ms": soon}
    return record


def signed(key: SigningKey, cluster: str, group: str, record: Any) -> dict[str, bytes]:
    return {HEADER: sign(key, cluster, group, json.dumps(record).encode())}


def test_only_what_is_signed_for_the_group_with_a_key_of_the_file_is_followed(
    following: Following, cluster_id: str, key_file: Path
) -> None:
    group, record = following.group, recommendation(following)
    following.publish(record)
    following.wait_reason("not_signed")
    for headers in (
        signed(OTHER, cluster_id, group, record),
        signed(KEY, cluster_id, "another-group", record),
        signed(KEY, "another-cluster", group, record),
        signed(KEY, cluster_id, group, {**record, "generation": 5}),
    ):
        following.publish(None)
        following.wait_reason("no_recommendation")
        following.publish(record, headers=headers)
        following.wait_reason("bad_signature")
    following.publish(record, headers=signed(KEY, cluster_id, group, record))
    followed = following.wait_reason("followed")
    assert followed["outcome"]["followed"] == record["decision_id"]

    # The key is exchanged: first followers know both, then the service signs with the new one.
    key_file.write_text(line(KEY.name) + line(OTHER.name, OTHER.secret))
    record = recommendation(following)
    following.publish(record, headers=signed(OTHER, cluster_id, group, record))
    following.wait_state(
        "the other key", lambda s: s["outcome"].get("followed") == record["decision_id"]
    )
    log = following.log("one")
    assert line(KEY.name).split()[1] not in log
    assert line(OTHER.name, OTHER.secret).split()[1] not in log


def test_a_record_that_memory_does_not_hold_costs_itself(
    following: Following, cluster_id: str
) -> None:
    following.publish(None)
    following.wait_reason("no_recommendation")
    following.publish_bomb((HEAP_MEGABYTES + 50) << 20)
    failed = following.wait_reason("reader_failed")
    assert "OutOfMemoryError" in failed["outcome"]["message"]
    record = recommendation(following)
    # Written when it is being read on from the log's end.
    deadline = time.monotonic() + 60
    while following.states()[-1]["outcome"].get("followed") != record["decision_id"]:
        assert time.monotonic() < deadline, following.states()[-1]["outcome"]
        following.publish(record, headers=signed(OTHER, cluster_id, following.group, record))
        time.sleep(1)
    following.application.wait_running("one")


def test_another_decision_each_time_makes_no_storm_of_rebalances(
    following: Following, cluster_id: str
) -> None:
    """Each of these holds, and asks for a rebalance at once."""
    intervals = []
    for _ in range(4):
        record = recommendation(following)
        following.publish(record, headers=signed(OTHER, cluster_id, following.group, record))
        state = following.wait_state(
            "it is followed",
            lambda s, wanted=record["decision_id"]: s["outcome"].get("followed") == wanted,
            after=len(following.states()),
        )
        intervals.append(state["outcome"]["follow_up_ms"])
        assert state["outcome"]["follow_up_ms"] == FOLLOW_UP_MS << state["follower"]["repeated"]
    assert intervals == sorted(set(intervals)), "each later than the one before"
