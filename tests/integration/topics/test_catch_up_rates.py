"""Catch-up rates on a real cluster: Spark measures them, the service uses them and does without."""

from __future__ import annotations

import json
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.story.stage import caughtup_command
from caughtup.followers.python.reports import PositionReports
from caughtup.followers.python.topology import TopicGroup, Topology
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from tests.support.application_settings import add_parameters
from tests.support.kafka.background import in_background
from tests.support.kafka.topics import log_end, whole_topic
from tests.support.service import Service, caughtup, wait_for

pytestmark = pytest.mark.xdist_group("spark")

PARTITIONS = 2
ORDERS = 8_000
#: Where the copy begins and how many offsets a second it is told to restore: it isn't caught up
#: before the test is over.
BEGINNING = 1_000
PER_SECOND = 6
TRIGGER_SECONDS = 1
#: Time for Spark to start and for half a minute of reports, on a busy machine.
SECONDS = 240.0
PROPERTIES = {"num.standby.replicas": "0", "probing.rebalance.interval.ms": "600000"}


@contextmanager
def reported(
    cluster: EmbeddedCluster,
    topic: str,
    application: StreamsApplication,
    process: str,
    task: TaskId,
) -> Iterator[None]:
    """Report each second where a copy is, as applications do, until the block is left."""
    changelogs = application.topology.changelogs(application.application_id)
    groups = [
        TopicGroup((f"read by {number}",), {"table": topics[0]})
        for number, topics in sorted(changelogs.items())
    ]
    changelog = TopicPartition(changelogs[task.subtopology][0], task.partition)
    end = {changelog: log_end(cluster, *changelog)}
    assert end[changelog] > BEGINNING + PER_SECOND * 400
    reports = PositionReports(
        Topology(groups), application.application_id, ProcessId.parse(process), "two"
    )
    producer = Producer(cluster.client_config())

    def report(over: threading.Event) -> None:
        began = time.monotonic()
        while not over.wait(1.0):
            clock = time.monotonic()
            at = {changelog: BEGINNING + round(PER_SECOND * (clock - began))}
            now_ms = time.time_ns() // 1_000_000
            found = reports.records([], [task], at, {changelog: 0}, end, now_ms, clock)
            for key, value in found.items():
                producer.produce(topic, value, key)
            producer.flush(30)

    with in_background(report):
        yield


def warm_ups(service: Service, group: str) -> list[dict[str, Any]]:
    """Return what the page says of the copies that warm up."""
    views = [view for view in service.page()["applications"] if view["group"] == group]
    return [
        {"task": task["task"], **copy}
        for view in views
        for task in view["tasks"]
        for copy in task["copies"]
        if copy["role"] == "warmup"
    ]


def application_rates(service: Service, group: str) -> dict[str, Any]:
    (view,) = (view for view in service.page()["applications"] if view["group"] == group)
    rates: dict[str, Any] = view["rates"]
    return rates


def last_rates(
    cluster: EmbeddedCluster, topic: str, copy: dict[str, Any], group: str
) -> dict[str, Any]:
    """Return the newest record of a copy with a rate over the last minute."""
    key, newest = [group, copy["process"], copy["task"]], None
    for message in whole_topic(cluster, topic):
        if json.loads(message.key()) == key and message.value():
            newest = json.loads(message.value())
    assert newest is not None, f"no record of {key}"
    return newest


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_the_services_estimate_is_sparks_while_the_job_runs_and_its_own_when_it_is_killed(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    name = f"warming-{uuid.uuid4().hex[:8]}"
    service = Service(cluster)
    with ExitStack() as stack:
        application = stack.enter_context(
            StreamsApplication(cluster, name, partitions=PARTITIONS, properties=PROPERTIES)
        )
        add_parameters(service, application)
        stack.enter_context(service)
        application.start_instance("one")
        produce(cluster, application.source, ORDERS, keys=50)
        application.wait_caught_up()
        application.start_instance("two")
        warming = wait_for("a warm-up", lambda: warm_ups(service, name), SECONDS)[0]
        command = [*caughtup_command(), "pipeline", "rates", "--config", service.settings_file]
        options = ["--checkpoint", tmp_path / "checkpoint", "--master", "local[1]"]
        options += ["--trigger-seconds", str(TRIGGER_SECONDS)]
        job = cluster.processes.start(f"{name}-rates", [*command, *options])
        stack.callback(job.kill)

        def warm_up() -> dict[str, Any]:
            assert job.exit_code in (None, -signal.SIGKILL), job.output()
            found = [one for one in warm_ups(service, name) if one["task"] == warming["task"]]
            return found[0] if found else {}

        reports = service.topic("task-positions")
        task = TaskId.parse(warming["task"])
        stack.enter_context(reported(cluster, reports, application, warming["process"], task))
        wait_for("its own pace", lambda: warm_up().get("rates") == "own", SECONDS)
        wait_for("Spark's rate", lambda: warm_up().get("rates") == "spark", SECONDS)
        measured = warm_up()
        assert "measured by Spark" in measured["why"]
        assert measured["verdict"] == "warming"
        expected = (measured["lag"] - 10) / PER_SECOND
        assert measured["eta_seconds"] == pytest.approx(expected, rel=0.25)
        assert application_rates(service, name).get("spark") == 1
        counted = {"name": "catch_up_rates_copies", "group": name, "source": "spark"}
        service.wait_value(1, **counted)
        newest = last_rates(cluster, service.topic("catch-up-rates"), measured, name)
        minute = newest["windows"][0]
        assert minute["position_per_second"] == pytest.approx(PER_SECOND, rel=0.1)
        assert minute["end_offset_per_second"] == 0

        # Without the service the same is to be had from the topic.
        shown = caughtup(
            "lag", name, "--format", "json", "--config", service.settings_file, directory=tmp_path
        )
        lines = [line for line in shown.lines if line["kind"] == "task"]
        copy = {field: measured[field] for field in ("task", "process")}
        (line,) = (line for line in lines if copy.items() <= line.items())
        assert (line["role"], line["rates"]) == ("warmup", "spark"), line

        job.kill()
        wait_for("its own rate", lambda: warm_up().get("rates") == "own", SECONDS)
        assert "measured from its own positions" in warm_up()["why"]
        assert application_rates(service, name)["silent_since_ms"] < time.time() * 1000
        service.wait_value(0, **counted)
