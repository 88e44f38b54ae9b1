"""``caughtup pipeline rates`` as its user runs it: a secured cluster, few rights, a signal."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ResourceType,
)

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.story.stage import caughtup_command
from tests.support.kafka.acls import READ, WRITE, allow, prefixed, topic
from tests.support.kafka.topics import read_topic
from tests.support.own_topics.end_offsets import end_offsets_record
from tests.support.service import settings_file, wait_for

pytestmark = pytest.mark.xdist_group("spark")

#: All that the job's user may do, as docs/operating.md says.
RIGHTS = (
    topic("caughtup-task-positions", READ),
    topic("caughtup-end-offsets", READ),
    topic("caughtup-catch-up-rates", WRITE),
    topic("caughtup-pipeline-progress", WRITE),
    prefixed(ResourceType.GROUP, "caughtup", READ),
)
SECONDS = 150.0


@pytest.mark.thorough
def test_a_user_with_few_rights_measures_until_told_to_stop(
    secure: EmbeddedCluster, tmp_path: Path
) -> None:
    client = {**secure.client_config("admin"), "log_level": 0}
    admin = AdminClient(client)
    topics = [NewTopic(one.name, 1) for one in RIGHTS if one.kind == ResourceType.TOPIC]
    for made in admin.create_topics(topics).values():
        made.result(30)
    allow(admin, "spark", *RIGHTS)
    key, value = end_offsets_record("a-changelog", 0, 9, time.time_ns() // 1_000_000)
    producer = Producer(client)
    producer.produce("caughtup-end-offsets", value, key)
    assert producer.flush(30) == 0

    settings = settings_file(
        tmp_path, secure.bootstrap_servers, secure.security.client_config("spark")
    )
    arguments = ["pipeline", "rates", "--config", str(settings), "--trigger-seconds", "1"]
    arguments += ["--master", "local[1]", "--checkpoint", str(tmp_path / "checkpoint")]
    job = secure.processes.start("rates", [*caughtup_command(), *arguments])
    consumer = read_topic(secure, "caughtup-catch-up-rates")

    def rate() -> bytes | None:
        assert job.exit_code is None, job.output()
        message = consumer.poll(0.2)
        return None if message is None else message.key()

    try:
        assert wait_for("a rate", rate, SECONDS) == b'["a-changelog",0]'
    finally:
        consumer.close()
    job.terminate(60)
    assert job.exit_code == 0, job.output()
    assert "Traceback" not in job.output()
    assert secure.security.users["spark"] not in job.output()
