"""A Connect group with a worker that left, its unassigned work, and a failed task."""

from __future__ import annotations

from caughtup.models.connect.work import written
from caughtup.models.connect_clusters.topic_sets import TopicSet
from tests.support.connect.clusters import WorkerCluster
from tests.support.connect.playing import Group
from tests.support.pictures.played_cluster import MINUTE, NOW_MS, SECOND, Cluster, gains

_TOPICS = TopicSet("connect-eu-configs", "connect-eu-status", "connect-eu-offsets")
_TRACE = "org.apache.kafka.connect.errors.RetriableException: S3 answers 503 SlowDown"


def play_connect() -> Cluster:
    """Simulate three workers for an hour; one leaves 90 s before the end."""
    cluster = Cluster(60)
    orders = cluster.topic("orders", 6, 900.0)
    cluster.reads(
        "connect-orders-to-s3",
        orders,
        gains(NOW_MS - 30 * MINUTE, 600.0, 1.1),
        "connector-consumer",
    )
    group = Group({}, max_delay_ms=5 * MINUTE)
    group.now_ms = NOW_MS - 50 * MINUTE
    workers = WorkerCluster(group, cluster.state, "connect-eu", _TOPICS)
    workers.configure(
        "orders-to-s3",
        6,
        topics="orders",
        **{"connector.class": "io.confluent.connect.s3.S3SinkConnector"},
    )
    workers.configure("customers-cdc", 1)
    workers.configure("invoices-jdbc", 3)
    group.join("worker-1", "worker-2", "worker-3")
    workers.round()
    workers.round(3 * SECOND)
    workers.run()
    for name in ("customers-cdc", "invoices-jdbc"):
        group.now_ms = NOW_MS - 8 * SECOND
        workers.source_offset(name)
    group.now_ms = NOW_MS - 12 * MINUTE
    failed = written(group.owned["worker-1"])[-1]
    workers.status(failed, "FAILED", "worker-1", trace=_TRACE)
    for name in written(group.owned["worker-3"]):
        workers.status(name, "UNASSIGNED", "worker-3")
    group.now_ms = NOW_MS - 90 * SECOND
    group.leave("worker-3")
    workers.round()
    cluster.play()
    return cluster
