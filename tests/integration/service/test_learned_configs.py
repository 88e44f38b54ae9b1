"""A real Kafka Streams application of which nobody told anything: its configs are learned, and kept."""

from __future__ import annotations

import tomllib
import uuid
from pathlib import Path
from typing import Any

import pytest

from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.models.decisions.learned_configs import read_learned
from tests.support.kafka.topics import whole_topic
from tests.support.service import Service, caughtup, wait_for

SETTLED_SECONDS = 120.0


def view_of(service: Service, group: str) -> dict[str, Any] | None:
    """Return what the page shows of an application; None before it is known."""
    found = [one for one in service.page()["applications"] if one["group"] == group]
    return found[0] if found else None


def settled(service: Service, application: StreamsApplication) -> dict[str, Any]:
    """Wait until the instances run, their copies are caught up, and every generation is decided."""
    for name in application.instances:
        application.wait_running(name)
    application.wait_caught_up()
    group = application.application_id

    def decided() -> dict[str, Any] | None:
        view = view_of(service, group)
        if view is None or not view["history"]:
            return None
        everyone = len(view["clients"]) == len(application.instances)
        newest = view["history"][0]["generation"] == view["generation"]
        return view if everyone and newest and "exact" in view else None

    return wait_for("the newest generation is decided", decided, SETTLED_SECONDS)


def known(view: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Return each config's values and provenance."""
    return {one["name"]: (one["values"], one["provenance"]) for one in view["configs"]}


@pytest.mark.thorough
def test_an_application_is_known_after_a_few_generations_and_after_a_restart(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    group = f"strangers-{uuid.uuid4().hex[:8]}"
    properties = {"num.standby.replicas": "1", "max.warmup.replicas": "2"}
    with (
        StreamsApplication(cluster, group, partitions=4, properties=properties) as application,
        Service(cluster) as service,
    ):
        application.start_instance("a")
        assert produce(cluster, application.source, 2_000, keys=200) == 2_000
        application.wait_caught_up()
        for name in ("b", "c"):
            application.start_instance(name)
            settled(service, application)
        application.stop_instance("a")
        settled(service, application)
        application.start_instance("a")
        view = settled(service, application)

        results = [past["result"] for past in reversed(view["history"])]
        print(results, [one for one in view["configs"] if one["provenance"] != "assumed"])
        assert len(results) > 5
        assert "mismatch" not in results
        assert results[5:].count("match") >= 0.95 * len(results[5:]), view["exact"]
        assert known(view)["num.standby.replicas"] == ("1", "learned")
        assert known(view)["assignor"] == ("high_availability", "learned")
        assert known(view)["probing.rebalance.interval.ms"][1] in ("read", "assumed")

        service.stop()
        service.start()
        again = settled_again(service, group)
        assert known(again) == known(view)
        records = [
            read_learned(one.key(), one.value(), 1 << 50)
            for one in whole_topic(cluster, service.topic("learned-configs"))
        ]
        (newest,) = [found for of, found in records[-1:] if of == group]
        assert newest is not None
        # Another rebalance may have followed meanwhile.
        assert newest.generation >= view["generation"]

        ran = caughtup(
            "configs", group, "--toml", "--config", service.settings_file, directory=tmp_path
        )
        assert ran.code == 0, ran
        told = tomllib.loads(ran.out)["applications"][group]
        assert told["num.standby.replicas"] == 1
        assert told["changelogs"] == {
            str(number): list(topics)
            for number, topics in application.topology.changelogs(group).items()
        }


def settled_again(service: Service, group: str) -> dict[str, Any]:
    """Wait until a service that was started again shows the application's last decision."""

    def decided() -> dict[str, Any] | None:
        view = view_of(service, group)
        return view if view is not None and "exact" in view else None

    return wait_for("what was decided is read back", decided, SETTLED_SECONDS)
