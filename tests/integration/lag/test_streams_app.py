"""The demo's application is a real Kafka Streams application, and can be asked the truth."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from caughtup.demo.apps.instance import StreamsFailed
from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TaskId
from tests.support.kafka.topics import log_end
from tests.support.service import wait_for

pytestmark = pytest.mark.thorough

PARTITIONS = 3
TASKS = {TaskId(subtopology, number) for subtopology in (0, 1) for number in range(PARTITIONS)}
MakeApplication = Callable[..., StreamsApplication]


@pytest.fixture
def make_application(cluster: EmbeddedCluster) -> Iterator[MakeApplication]:
    with ExitStack() as applications:

        def make(**properties: str) -> StreamsApplication:
            application_id = f"orders-{uuid.uuid4().hex[:8]}"
            application = StreamsApplication(
                cluster,
                application_id,
                partitions=PARTITIONS,
                properties={name.replace("_", "."): value for name, value in properties.items()},
            )
            return applications.enter_context(application)

        yield make


def end_offsets(cluster: EmbeddedCluster, topic: str) -> dict[int, int]:
    return {number: log_end(cluster, topic, number) for number in range(PARTITIONS)}


def tasks(application: StreamsApplication, role: str) -> list[TaskId]:
    return sorted(
        task
        for name in application.instances
        for thread in application.threads(name).values()
        for task in getattr(thread, role)
    )


def test_both_subtopologies_keep_their_state_in_changelogs_of_their_own(
    cluster: EmbeddedCluster, make_application: MakeApplication
) -> None:
    application = make_application()
    application.start_instance("alone")
    assert produce(cluster, application.source, 5_000, keys=100) == 5_000
    changelogs = application.parameters[application.application_id]["changelogs"]
    for (topic,) in changelogs.values():
        wait_for(
            f"all of {topic} written",
            lambda topic=topic: sum(end_offsets(cluster, topic).values()) == 5_000,
        )
    assert tasks(application, "active") == sorted(TASKS)
    assert tasks(application, "standby") == []
    stores = application.subtopology_stores("alone")
    assert {
        subtopology: tuple(f"{application.application_id}-{name}-changelog" for name in names)
        for subtopology, names in stores.items()
    } == changelogs
    lags = application.lags("alone")
    for subtopology, (topic,) in changelogs.items():
        (store,) = stores[subtopology]
        ends = end_offsets(cluster, topic)
        assert {number: lag.end for number, lag in lags[store].items()} == ends
        assert all(lag == (lag.end, lag.end, 0) for lag in lags[store].values())


def test_a_second_instance_holds_the_standbys_and_takes_over_when_the_first_is_killed(
    cluster: EmbeddedCluster, make_application: MakeApplication
) -> None:
    application = make_application()
    application.start_instance("first")
    produce(cluster, application.source, 1_000)
    application.start_instance("second")
    application.wait_caught_up()
    wait_for("standbys", lambda: set(tasks(application, "standby")) == TASKS)
    assert tasks(application, "active") == sorted(TASKS)
    former = application.process_id("first")
    assert former != application.process_id("second")
    application.kill_instance("first")
    assert application.instances == ("second",)
    wait_for("all are active", lambda: tasks(application, "active") == sorted(TASKS))
    application.start_instance("first")
    assert application.process_id("first") == former


def test_an_instance_that_is_closed_leaves_before_its_session_would_time_out(
    make_application: MakeApplication,
) -> None:
    application = make_application(session_timeout_ms="45000")
    for name in ("staying", "leaving"):
        application.start_instance(name)
    application.stop_instance("leaving")
    wait_for("all are active", lambda: tasks(application, "active") == sorted(TASKS), 20)


def test_the_streams_group_protocol_works_too(
    cluster: EmbeddedCluster, make_application: MakeApplication
) -> None:
    application = make_application(group_protocol="streams")
    application.start_instance("new")
    produce(cluster, application.source, 100)
    application.wait_caught_up()
    assert tasks(application, "active") == sorted(TASKS)


def test_an_application_without_its_source_topic_says_so_in_one_line(
    cluster: EmbeddedCluster,
) -> None:
    application = StreamsApplication(cluster, f"sourceless-{uuid.uuid4().hex[:8]}")
    with pytest.raises(StreamsFailed) as failed:
        application.start_instance("lost")
    application.close()
    assert "instance lost is in ERROR" in failed.value.message
    assert f"missing source topics [{application.source}]" in failed.value.message
    assert "\n" not in failed.value.message


def test_a_property_that_streams_refuses_is_named_in_one_line(
    make_application: MakeApplication,
) -> None:
    application = make_application(num_stream_threads="many")
    with pytest.raises(StreamsFailed, match=r"instance odd: .*num\.stream\.threads") as failed:
        application.start_instance("odd")
    assert "\n" not in failed.value.message
    assert application.instances == ()


def test_an_instance_that_does_not_run_is_named(make_application: MakeApplication) -> None:
    application = make_application()
    with pytest.raises(CaughtupError, match="no instance nobody runs"):
        application.lags("nobody")


def test_a_rate_is_kept(cluster: EmbeddedCluster, make_application: MakeApplication) -> None:
    application = make_application()
    started = time.monotonic()
    assert produce(cluster, application.source, 201, records_per_second=100) == 201
    assert time.monotonic() - started >= 1.9
