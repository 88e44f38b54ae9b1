"""Somebody deletes the service's own topics while it runs, or makes them otherwise than it would."""

from __future__ import annotations

import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from caughtup.agents.topics.definitions import SERVICE_TOPICS
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.topics import create_topics
from tests.integration.conftest import MakeTopic
from tests.support.kafka.background import in_background
from tests.support.kafka.topics import log_end
from tests.support.service import Service, caughtup, commit, wait_for

#: From the deletion on.
BACK_SECONDS = 30.0
STOP_SECONDS = 10.0


@contextmanager
def commits(cluster: EmbeddedCluster, topic: str) -> Iterator[None]:
    """Commit as a group some hundred times a second."""
    commit(cluster, f"busy-{topic}", topic, 0)  # its coordinator has read the group by then

    def work(over: threading.Event) -> None:
        consumer = Consumer({**cluster.client_config(), "group.id": f"busy-{topic}"})
        offset = 0
        while not over.wait(0.005):
            offset += 1
            consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
        consumer.close()

    with in_background(work):
        yield


def test_all_of_them_at_once_and_half_a_minute_later_everything_moves_again(
    cluster: EmbeddedCluster, make_topic: MakeTopic
) -> None:
    words = make_topic("words")
    produce(cluster, words, 10)
    readers = f"readers-{words}"
    commit(cluster, readers, words, 4)
    admin = AdminClient(cluster.client_config())
    with Service(cluster, lag_interval=300) as service, commits(cluster, words):
        own = {service.topic(topic.name) for topic in SERVICE_TOPICS}
        service.wait_value(6, "group_lag_records", group=readers)
        wait_for("the lag table is written", lambda: log_end(cluster, service.topic("lag")))
        produce(cluster, words, 5)
        service.wait_value(11, "group_lag_records", group=readers)
        began = time.monotonic()

        def left() -> float:
            return BACK_SECONDS - (time.monotonic() - began)

        for deleted in admin.delete_topics(sorted(own)).values():
            deleted.result(30)
        wait_for("it notices", lambda: "creating them again" in service.log, left())
        wait_for("all topics exist", lambda: own <= admin.list_topics(timeout=10).topics.keys())
        wait_for("it is ready", service.ready, left())
        produce(cluster, words, 7)
        wait_for(
            "lag moves again",
            lambda: service.value("group_lag_records", group=readers) == 18,
            left(),
        )
        for name in ("end-offsets", "lag", "reassignments"):
            wait_for(f"{name} is filled", lambda n=name: log_end(cluster, service.topic(n)), left())
        print(f"{BACK_SECONDS - left():.1f} s from the deletion until everything was back")
        assert "Traceback" not in service.log
        began = time.monotonic()
        assert service.stop() == 0
        assert time.monotonic() - began < STOP_SECONDS


def test_topics_that_are_not_as_they_have_to_be_are_named_on_the_page_and_by_check(
    cluster: EmbeddedCluster,
) -> None:
    application_id = f"caughtup-{uuid.uuid4().hex[:8]}"
    create_topics(cluster, {f"{application_id}-lag": 2}, {"cleanup.policy": "delete"})
    policy = f"{application_id}-lag: cleanup.policy is delete, not compact: "
    with Service(cluster, application_id=application_id) as service:

        def said() -> list[str]:
            with urllib.request.urlopen(service.url + "ready", timeout=10) as response:
                return response.read().decode().splitlines()

        wait_for("it is checked", lambda: len(said()) > 1)
        first, *others = said()
        assert (first, len(others)) == ("ready", 2)
        assert others[0].startswith(policy)
        assert others == service.page()["notices"]
        for problem in ("cleanup.policy", "partitions"):
            assert service.value("topic_problems", topic=service.topic("lag"), problem=problem) == 1
        checked = caughtup(
            "check",
            "--format",
            "json",
            "--config",
            service.settings_file,
            directory=cluster.processes.directory,
        )
        assert checked.code == 1
        assert [line["check"] for line in checked.lines if not line["ok"]] == [
            f"cleanup.policy of {service.topic('lag')}",
            f"partitions of {service.topic('lag')}",
        ]
