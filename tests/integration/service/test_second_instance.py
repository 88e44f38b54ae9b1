"""Two services with the same settings: one decides, the other stands by and takes over."""

from __future__ import annotations

import json
import os
import signal
import time
import uuid
from collections import Counter
from collections.abc import Iterator

import pytest

from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.chaos.cluster import ChaosCluster
from tests.support.groups.emulated import EmulatedApplication
from tests.support.kafka.topics import whole_topic, words_read
from tests.support.service import Service, caughtup, wait_for

#: A member's session, and more for a machine that is busy with other tests.
TAKEN_OVER_SECONDS = 20.0
#: What a service that broke has for ending, on a busy machine.
GONE_SECONDS = 20.0


@pytest.fixture
def pair(cluster: EmbeddedCluster) -> Iterator[tuple[Service, Service]]:
    """An active service and one that stands by."""
    own = f"caughtup-{uuid.uuid4().hex[:8]}"
    first, second = (Service(cluster, application_id=own) for _ in range(2))
    with first:
        second.begin()
        try:
            wait_for("the second stands by", lambda: "is active" in second.unready())
            yield first, second
        finally:
            second.process.terminate(10)


@pytest.fixture
def application(cluster: EmbeddedCluster, pair: tuple[Service, Service]) -> EmulatedApplication:
    application = EmulatedApplication(cluster)
    application.rebalance()
    wait_for("it is decided", lambda: decisions(cluster, pair[0], application) == {1: 1})
    return application


def decisions(
    cluster: EmbeddedCluster, service: Service, application: EmulatedApplication
) -> Counter[int]:
    """Count the recommendations by generation, what compaction would drop included."""
    messages = whole_topic(cluster, service.topic("recommended-assignments"))
    records = [json.loads(message.value() or b"") for message in messages]
    return Counter(one["generation"] for one in records if one["group"] == application.group)


def newest_decided(
    cluster: EmbeddedCluster, service: Service, application: EmulatedApplication
) -> int:
    """Return the generation of the last recommendation on the topic: what compaction would keep."""
    messages = whole_topic(cluster, service.topic("recommended-assignments"))
    records = [json.loads(message.value() or b"") for message in messages]
    last: int = [one["generation"] for one in records if one["group"] == application.group][-1]
    return last


def wait_decided_by(
    cluster: EmbeddedCluster, application: EmulatedApplication, active: Service
) -> None:
    """Wait until the newest generation is decided."""
    newest = application.generation
    wait_for("it is decided", lambda: newest in decisions(cluster, active, application))


def known(service: Service, application: EmulatedApplication) -> int | None:
    """Return the newest generation that a service has read."""
    for view in service.page()["applications"]:
        if view["group"] == application.group:
            read: int = view["generation"]
            return read
    return None


def check_roles(cluster: EmbeddedCluster, active: Service, standby: Service) -> None:
    """Check what both say of who they are, everywhere."""
    name = f":{active.process.pid}"
    assert active.unready() == ""
    assert f"{name} is active" in standby.unready()
    assert f"{name} is active" in standby.log
    assert (active.value("active"), standby.value("active")) == (1, 0)
    assert "caughtup_group" not in standby.metrics_text()
    directory = cluster.processes.directory
    checked = caughtup("check", "--config", active.settings_file, directory=directory)
    said = " ".join(checked.out.split())
    assert f"{name} is active; standby: " in said, said


def wait_decided(
    cluster: EmbeddedCluster, application: EmulatedApplication, active: Service, standby: Service
) -> None:
    """Wait until the newest generation is decided, and read by who stands by."""
    newest = application.generation
    wait_decided_by(cluster, application, active)
    wait_for("the other has read it", lambda: known(standby, application) == newest)


def wait_roles(active: Service, standby: Service) -> None:
    """Wait until an instance is ready and the other knows that it is active."""
    name = f":{active.process.pid}"
    wait_for("one is active", active.ready, TAKEN_OVER_SECONDS)
    wait_for("the other stands by", lambda: f"{name} is active" in standby.unready())


def test_one_decides_and_the_other_takes_over_whichever_way_it_goes(
    cluster: EmbeddedCluster, application: EmulatedApplication, pair: tuple[Service, Service]
) -> None:
    active, standby = pair
    check_roles(cluster, active, standby)
    for end in ("SIGTERM", "SIGKILL"):
        application.rebalance(5)
        wait_decided(cluster, application, active, standby)
        application.rebalance(5)
        began = time.monotonic()
        if end == "SIGTERM":
            assert active.stop() == 0
        else:
            active.kill()
        wait_for("the other is ready", standby.ready, TAKEN_OVER_SECONDS)
        print(f"{time.monotonic() - began:.1f} s from {end} until the other was ready")
        active, standby = standby, active
        standby.begin()
        wait_roles(active, standby)
        wait_decided(cluster, application, active, standby)
        active.wait_value(application.generation, "group_generation", group=application.group)
        check_roles(cluster, active, standby)
    counted = decisions(cluster, active, application)
    assert set(counted.values()) == {1}, counted


@pytest.mark.thorough
def test_one_that_was_suspended_until_the_other_took_over_ends_and_decides_nothing(
    cluster: EmbeddedCluster, application: EmulatedApplication, pair: tuple[Service, Service]
) -> None:
    suspended, other = pair
    os.kill(suspended.process.pid, signal.SIGSTOP)
    try:
        application.rebalance(3)
        wait_for("the other is ready", other.ready, TAKEN_OVER_SECONDS)
        newest = application.generation
        wait_for("it is decided", lambda: newest in decisions(cluster, other, application))
    finally:
        os.kill(suspended.process.pid, signal.SIGCONT)
    code = wait_for("it has ended", lambda: suspended.process.exit_code, GONE_SECONDS)
    name = f":{other.process.pid} is active"
    (line,) = (line for line in suspended.log.splitlines() if line.startswith("caughtup: "))
    assert code == 1
    assert line.startswith("caughtup: the service broke: ")
    assert name in line
    assert set(decisions(cluster, other, application).values()) == {1}


@pytest.fixture
def behind_proxy() -> Iterator[ChaosCluster]:
    with ChaosCluster(nodes=1, controllers=1) as cluster:
        words_read(cluster, 10, 1)
        yield cluster


@pytest.mark.thorough
def test_what_a_replaced_one_had_sent_is_refused_when_it_arrives(
    behind_proxy: ChaosCluster,
) -> None:
    """The network holds back a decision until another instance has made later ones."""
    own = f"caughtup-{uuid.uuid4().hex[:8]}"
    old = Service(behind_proxy.behind_proxy(), application_id=own)
    new = Service(behind_proxy, application_id=own)
    with old:
        application = EmulatedApplication(behind_proxy)
        application.rebalance()
        wait_for("it is decided", lambda: decisions(behind_proxy, old, application) == {1: 1})
        new.begin()
        try:
            wait_for("the second stands by", lambda: "is active" in new.unready())
            behind_proxy.proxy.catch_produce(old.topic("recommended-assignments"))
            application.rebalance()
            assert behind_proxy.proxy.caught.wait(20)
            os.kill(old.process.pid, signal.SIGSTOP)
            application.rebalance(2)
            wait_for("the other is ready", new.ready, TAKEN_OVER_SECONDS)
            wait_decided_by(behind_proxy, application, new)
            before = newest_decided(behind_proxy, new, application)
            behind_proxy.proxy.let_go()
            time.sleep(0.5)
            assert newest_decided(behind_proxy, new, application) == before == 4
            os.kill(old.process.pid, signal.SIGCONT)
            code = wait_for("it has ended", lambda: old.process.exit_code, GONE_SECONDS)
            (line,) = (line for line in old.log.splitlines() if line.startswith("caughtup: "))
            assert code == 1
            assert line.startswith("caughtup: the service broke: ")
            assert f":{new.process.pid} is active" in line or "fenced" in line
            counted = decisions(behind_proxy, new, application)
            assert set(counted.values()) == {1}, counted
        finally:
            new.process.terminate(10)


@pytest.mark.thorough
def test_one_that_was_suspended_for_a_moment_stays_active_and_ends_when_it_is_told(
    cluster: EmbeddedCluster,
) -> None:
    with Service(cluster) as service:
        os.kill(service.process.pid, signal.SIGSTOP)
        time.sleep(1)
        os.kill(service.process.pid, signal.SIGCONT)
        wait_for("it is ready", service.ready)
        assert service.stop() == 0
