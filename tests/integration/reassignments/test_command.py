"""``caughtup reassignments`` as operators run it, on a real cluster."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from caughtup.agents.kafka.protocol.client import reassigner
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.throttle import clear_throttle, set_throttle
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.story.stage import caughtup_command
from caughtup.models.ids import TopicPartition
from tests.support.service import Ran, Service, caughtup, wait_for

PARCELS = TopicPartition("parcels", 0)
THROTTLE_BYTES = 300_000
RECORDS, RECORD_BYTES = 8_000, 5_000
ALL_BYTES = RECORDS * RECORD_BYTES


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(nodes=2) as cluster:
        yield cluster


def reassignments(cluster: EmbeddedCluster, directory: Path, *arguments: str | Path) -> Ran:
    servers = ("--bootstrap-servers", cluster.bootstrap_servers)
    return caughtup("reassignments", *servers, *arguments, directory=directory)


@pytest.fixture
def reassigning(own_cluster: EmbeddedCluster) -> Iterator[tuple[int, int]]:
    """Move 40 MB from one broker to the other at 0.3 MB/s; give both."""
    cluster = own_cluster
    if PARCELS.topic not in AdminClient(cluster.client_config()).list_topics(timeout=10).topics:
        create_topics(cluster, {PARCELS.topic: 1}, replicas=1)
        produce(cluster, PARCELS.topic, RECORDS, value_bytes=RECORD_BYTES)
    admin = AdminClient(cluster.client_config())
    source = admin.list_topics(PARCELS.topic).topics[PARCELS.topic].partitions[0].leader
    set_throttle(cluster, PARCELS.topic, THROTTLE_BYTES)
    reassign = reassigner(cluster.bootstrap_servers)
    reassign(PARCELS, [3 - source])
    try:
        yield source, 3 - source
    finally:
        reassign(PARCELS, None)
        clear_throttle(cluster, PARCELS.topic)


def test_where_nothing_moves_it_says_so_in_one_line_and_exits_with_3(
    own_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    for arguments in ((), ("--format", "json")):
        ran = reassignments(own_cluster, tmp_path, *arguments)
        assert (ran.code, ran.out) == (3, "")
        assert ran.err == "no partition is in movement, and no throttle is orphaned\n"


def test_a_throttled_move_has_its_figures_as_json(
    own_cluster: EmbeddedCluster, reassigning: tuple[int, int], tmp_path: Path
) -> None:
    source, target = reassigning
    ran = reassignments(own_cluster, tmp_path, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    (line,) = ran.lines
    assert (line["kind"], line["topic"], line["partition"]) == ("partition", *PARCELS)
    assert (line["phase"], line["original"], line["target"]) == ("A", [source], [target])
    assert (line["adding"], line["removing"], line["isr"]) == ([target], [source], [source])
    assert line["leader"] == source
    assert line["verdict"] in {"moving", "measuring"}  # it copies in steps of seconds
    assert 0 < line["bytes_remaining"] <= 1.1 * ALL_BYTES
    assert 0 < line["offsets_remaining"] <= RECORDS
    # Nobody told it since when the partition has been in movement.
    assert not {"age_seconds", "idle_seconds"} & line.keys()
    assert None not in line.values()


def test_the_table_says_from_where_to_where_and_how_far_it_is(
    own_cluster: EmbeddedCluster, reassigning: tuple[int, int], tmp_path: Path
) -> None:
    source, target = reassigning
    ran = reassignments(own_cluster, tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert f"{source} → {target}" in ran.out
    assert "0 of 1" in ran.out
    assert "MB" in ran.out


def test_a_services_observations_count_so_that_it_knows_since_when(
    own_cluster: EmbeddedCluster, reassigning: tuple[int, int], tmp_path: Path
) -> None:
    with Service(own_cluster) as service:
        series = {"name": "reassignment_age_seconds", "topic": PARCELS.topic}
        wait_for("the service has seen it", lambda: (service.value(**series) or 0) > 1)
        ran = caughtup(
            "reassignments",
            "--format",
            "json",
            "--config",
            service.settings_file,
            directory=tmp_path,
        )
        (line,) = ran.lines
        assert line["age_seconds"] > 1


def test_a_throttle_that_is_left_over_has_a_line_with_what_takes_it_off(
    own_cluster: EmbeddedCluster, reassigning: tuple[int, int], tmp_path: Path
) -> None:
    reassigner(own_cluster.bootstrap_servers)(PARCELS, None)
    try:
        ran = reassignments(own_cluster, tmp_path, "--format", "json")
        assert (ran.code, ran.err) == (0, "")
        named = {(line["kind"], line["on"], line["name"]) for line in ran.lines}
        assert named == {
            ("throttle", "broker", "1"),
            ("throttle", "broker", "2"),
            ("throttle", "topic", PARCELS.topic),
        }
        table = reassignments(own_cluster, tmp_path).out
        assert "no partition is in movement" in table
        assert f"orphaned throttle on the topic {PARCELS.topic}" in table
        assert "--delete-config" in table
    finally:
        reassigner(own_cluster.bootstrap_servers)(
            PARCELS, [reassigning[1]]
        )  # for the fixture to take back


def test_watching_goes_on_until_it_is_interrupted(
    own_cluster: EmbeddedCluster, reassigning: tuple[int, int], tmp_path: Path
) -> None:
    command = [*caughtup_command(), "reassignments", "--watch", "--format", "json"]
    command += ["--bootstrap-servers", own_cluster.bootstrap_servers]
    watching = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert watching.stdout is not None
        seen = [json.loads(watching.stdout.readline()) for _ in range(3)]
        assert seen[0]["at_ms"] < seen[1]["at_ms"] < seen[2]["at_ms"]
        watching.send_signal(signal.SIGINT)
        _, errors = watching.communicate(timeout=60)
        assert (watching.returncode, errors) == (0, "")
    finally:
        watching.kill()
        watching.wait()


LETTERS = TopicPartition("letters", 0)


@pytest.fixture
def onto_a_dead_broker(own_cluster: EmbeddedCluster) -> Iterator[EmbeddedCluster]:
    """Kill the second broker, and move a partition of the first one onto it."""
    cluster = own_cluster
    admin = AdminClient(cluster.client_config())
    if LETTERS.topic not in admin.list_topics(timeout=10).topics:
        topic = NewTopic(LETTERS.topic, 1, replica_assignment=[[1]])
        admin.create_topics([topic])[LETTERS.topic].result(30)
        produce(cluster, LETTERS.topic, 100)
    cluster.kill_node(2)
    cluster.wait_ready()  # the controller has noticed
    reassign = reassigner(cluster.bootstrap_servers)
    reassign(LETTERS, [2])
    try:
        yield cluster
    finally:
        reassign(LETTERS, None)
        cluster.start_node(2)


@pytest.mark.thorough
def test_one_look_at_a_destination_that_is_down_does_not_say_that_it_moves(
    onto_a_dead_broker: EmbeddedCluster, tmp_path: Path
) -> None:
    ran = reassignments(onto_a_dead_broker, tmp_path, "--format", "json")
    assert ran.code == 0
    (line,) = ran.lines
    assert (line["topic"], line["verdict"]) == (LETTERS.topic, "measuring")
    assert line["cause"] == "destination-broker-down"
    assert 3 < line["evidence"]["away_seconds"] < 30
    assert line["advice"].startswith("start broker 2")
    ran = reassignments(onto_a_dead_broker, tmp_path)
    assert "letters-0: measuring (destination-broker-down), and no copy grows" in ran.out
    assert "--for 70s observes for longer; --service URL asks a service" in ran.out


@pytest.mark.thorough
def test_who_looks_for_a_minute_or_asks_a_service_is_told_that_it_is_dead(
    onto_a_dead_broker: EmbeddedCluster, tmp_path: Path
) -> None:
    cluster = onto_a_dead_broker
    with Service(cluster) as service:
        asked = ["reassignments", "--service", service.url, "--format", "json"]
        # Its topics have another name than those that the command would read by itself.
        ran = caughtup(
            *("reassignments", "-b", cluster.bootstrap_servers, "--for", "70s", "--format", "json"),
            directory=tmp_path,
            seconds=120,
        )
        verdicts = [(one["verdict"], one.get("cause")) for one in ran.lines]
        assert verdicts == [("dead target", "destination-broker-down")]
        ran = caughtup(*asked, directory=tmp_path)
        (line,) = ran.lines
        assert (line["verdict"], line["never"]) == ("dead target", True)
        assert line["age_seconds"] > 60
        assert ran.seconds < 10


def test_a_cluster_that_is_away_is_told_in_one_line(tmp_path: Path) -> None:
    ran = caughtup("reassignments", "--bootstrap-servers", "127.0.0.1:1", directory=tmp_path)
    assert ran.code == 1
    assert "cannot reach Kafka at 127.0.0.1:1" in ran.message
