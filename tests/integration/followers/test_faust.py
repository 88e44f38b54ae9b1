"""An application on Faust that follows the real service, on real Kafka."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.integration.conftest import MakeTopic
from tests.support.followers.faust_group import (
    ACCEPTABLE,
    PARTITIONS,
    RECORDS,
    FaustApplication,
    FaustWorker,
    started,
)
from tests.support.followers.service_records import assert_checked, position_reports
from tests.support.service import Service, caughtup, commit

pytestmark = pytest.mark.thorough


@pytest.mark.unsteady
@pytest.mark.parametrize("store", ["rocksdb://", "caughtup-memory://"])
def test_a_third_worker_gets_partitions_once_it_is_warm_as_the_service_recommends(
    cluster: EmbeddedCluster, make_topic: MakeTopic, store: str, tmp_path: Path
) -> None:
    # The first commit of a cluster waits until there is a topic for commits.
    commit(cluster, "anybody", make_topic(), 0)
    with (
        Service(cluster) as service,
        started(
            cluster,
            make_topic,
            store,
            topic_prefix=service.topic(""),
            # Without end: only what is recommended moves anything.
            follow_ups=1_000_000,
        ) as application,
    ):
        application.begin("one")
        application.start("two")
        application.wait("three each", lambda: application.spread() == [3, 3])
        assert_warm(application.workers[1])
        application.start("three")
        application.wait("two each", lambda: application.spread() == [2, 2, 2])
        application.write()
        application.wait("all goes on", application.all_is_counted)
        application.assert_counted_one_after_the_other()
        three = application.workers[2]
        assert_warm(three)
        leaders = [worker.assigned()["leader"] for worker in application.workers]
        assert sorted(leaders) == [False, False, True]
        (urls,) = {tuple(worker.assigned()["urls"]) for worker in application.workers}
        assert len(urls) == 3
        assert_checked(cluster, service, application.group)
        assert_reported(cluster, service, application, three)
        assert_shown(service, application, tmp_path)


def assert_warm(worker: FaustWorker) -> None:
    """It restored each partition while it stood by for it, and nothing of that once more."""
    partitions = worker.assigned()["sources"]
    restored = worker.events("restored")
    for partition in partitions:
        given = next(one for one in worker.events("assigned") if partition in one["sources"])
        ours = [one for one in restored if one["partition"] == partition]
        before = [one["offset"] for one in ours if one["at"] < given["at"]]
        assert max(before) >= RECORDS - ACCEPTABLE - 1, f"{partition} was handed over cold"
        assert all(one["offset"] > max(before) for one in ours if one["at"] >= given["at"])


def assert_reported(
    cluster: EmbeddedCluster, service: Service, application: FaustApplication, worker: FaustWorker
) -> None:
    """Its copies were reported while they warmed up, and taken back after."""
    ours = worker.assigned()
    tasks = {f"{PARTITIONS}_{partition}" for partition in ours["sources"]}
    reports = position_reports(cluster, service, application.group, ours["process"], tasks)
    for seen in reports.values():
        standby = [one for one in seen if one is not None and one["role"] == "standby"]
        assert standby[-1]["lag"] <= ACCEPTABLE
        assert standby[-1]["leads"][application.changelog] >= RECORDS - ACCEPTABLE


def assert_shown(service: Service, application: FaustApplication, directory: Path) -> None:
    """``caughtup lag`` has who runs which task."""
    command = ("lag", application.group, "--format", "json", "--config", service.settings_file)
    ran = caughtup(*command, directory=directory)
    assert ran.code == 0, ran.err
    shown = {
        (line["client_id"], line["task"])
        for line in ran.lines
        if line["kind"] == "task" and line["role"] == "active"
    }
    expected = {
        (worker.name, f"{PARTITIONS}_{partition}")
        for worker in application.workers
        for partition in worker.assigned()["sources"]
    }
    assert {one for one in shown if one[1].startswith(f"{PARTITIONS}_")} == expected
    # And one of them is Faust's leader, for which there is a topic of one partition.
    assert len(shown) == PARTITIONS + 1


def test_without_the_service_the_group_still_balances_and_creates_no_topic(
    cluster: EmbeddedCluster, make_topic: MakeTopic
) -> None:
    prefix = f"nobody-{uuid.uuid4().hex[:8]}-"
    with started(
        cluster, make_topic, "caughtup-memory://", topic_prefix=prefix, follow_ups=1
    ) as application:
        application.begin("one")
        application.start("two")
        two = application.workers[1]
        # The second one warms up two partitions, which is as many as there may be.
        application.wait("warm-ups", lambda: len(two.assigned()["standby"]) == 2)
        warming = set(two.assigned()["standby"])
        application.wait(
            "they are warm",
            lambda: (
                {
                    one["partition"]
                    for one in two.events("restored")
                    if one["offset"] >= RECORDS - 1 and not one["active"]
                }
                >= warming
            ),
        )
        # Another one brings another rebalance, and what is caught up by then is handed over.
        application.start("three")
        application.wait("two are handed over", lambda: set(two.assigned()["sources"]) == warming)
        assert_warm(two)
        application.write()
        application.wait("all goes on", application.all_is_counted)
        application.stop("one")
        application.wait("the others have all", lambda: sum(application.spread()) == PARTITIONS)
        application.write()
        application.wait("all goes on without it", application.all_is_counted)
        application.assert_counted_one_after_the_other()
    admin = AdminClient(cluster.client_config())
    assert [name for name in admin.list_topics(timeout=30).topics if name.startswith(prefix)] == []
