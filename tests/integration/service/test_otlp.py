"""The service sends its metrics over OTLP, and an endpoint that hangs costs itself only."""

from __future__ import annotations

import threading

import caughtup
from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.support.observability.otlp_receiver import receiving
from tests.support.service import Service, wait_for


def test_metrics_of_a_real_cluster_arrive_with_its_id(cluster: EmbeddedCluster) -> None:
    with receiving() as receiver:
        settings = {"otlp_endpoint": receiver.url, "otlp_interval": 1, "cluster_name": "here"}
        with Service(cluster, log_format="json", **settings) as service:
            wait_for("a second round", lambda: len(receiver.requests) > 1)
            identity = {one["kafka.cluster.id"] for one in receiver.resources()}
            build = next(one for one in receiver.metrics() if one.name == "caughtup_build_info")
            (point,) = build.gauge.data_points
            labels = {one.key: one.value.string_value for one in point.attributes}
            assert labels["version"] == caughtup.__version__
            assert identity == {labels["cluster"]}
            assert service.log.count("\n") == sum(
                line.startswith("{") for line in service.log.splitlines()
            )


def test_while_the_endpoint_hangs_the_service_works_and_ends_in_time(
    cluster: EmbeddedCluster,
) -> None:
    with receiving() as receiver:
        asked, never = threading.Event(), threading.Event()

        def hang() -> int:
            asked.set()
            never.wait(120)
            return 200

        receiver.answers = hang
        try:
            with Service(cluster, otlp_endpoint=receiver.url, otlp_interval=1) as service:
                assert asked.wait(60)
                assert service.ready()
                wait_for(
                    "the failure is counted",
                    lambda: service.value("probe_errors_total", probe="otlp"),
                )
                assert service.ready()
                assert service.stop() == 0
                assert "did not end" not in service.log
        finally:
            never.set()
