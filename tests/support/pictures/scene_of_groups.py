"""Two hundred groups of one cluster, some with different problems."""

from __future__ import annotations

from caughtup.models.pipeline_progress import StreamProgress
from caughtup.models.records.pipeline_progress import ProgressRecord
from tests.support.pictures.played_application import Application, Subtopology, parameters
from tests.support.pictures.played_cluster import (
    MINUTE,
    NOW_MS,
    SECOND,
    Cluster,
    Reader,
    Topic,
    falls_back,
    gains,
    keeps_up,
    reads_late,
    stalls,
    stops,
)
from tests.support.pictures.scene_of_reassignments import observe_moves

TEAMS = ("checkout", "catalog", "delivery", "pricing", "search", "loyalty", "risk", "media")
JOBS = ("indexer", "mailer", "audit", "export", "projection", "enrichment", "webhooks", "cache")

_MOST = 200


def play_groups() -> Cluster:
    """Simulate 200 groups for 90 minutes."""
    orders = Topic("orders", 4, 900.0)
    latest = Topic("orders-latest-changelog", 4, 220.0)
    subtopology = Subtopology(orders, latest)
    config = {"num.standby.replicas": 1}
    cluster = Cluster(90, {"orders": parameters(config, subtopology)})
    cluster.topics += [orders, latest]
    instances = ("orders-a", "orders-b")
    application = Application(cluster, "orders", instances, [subtopology], config, restores=2_000.0)
    application.join(NOW_MS - 4 * MINUTE, "orders-c")
    play_unwell(cluster)
    events = [cluster.topic(f"{team}.events", 3, 40.0 + 35 * n) for n, team in enumerate(TEAMS)]
    names = [f"{team}-{job}" for job in JOBS for team in TEAMS]
    names += [f"{name}-{region}" for name in names for region in ("eu", "us", "ap")]
    taken = {"orders", *(reader.group for reader in cluster.readers)}
    for number, name in enumerate(
        [name for name in names if name not in taken][: _MOST - len(taken)]
    ):
        late_ms = 150 + 377 * number % 2_600
        cluster.reads(name, events[number % len(events)], reads_late(late_ms))
    cluster.players.append(lambda now_ms: observe_moves(cluster, now_ms))
    cluster.state.pipeline.apply(
        "history",
        StreamProgress(
            NOW_MS - 12 * SECOND,
            ProgressRecord(1, "running", 60.0, 1_204, 7.4, 81_230, 10_977.0, 412),
        ),
    )
    cluster.play()
    return cluster


def play_unwell(cluster: Cluster) -> None:
    """Add the groups with problems."""
    clicks = cluster.topic("clicks", 6, 1_200.0)
    invoices = cluster.topic("invoices", 3, 45.0)
    returns = cluster.topic("returns", 3, 12.0)
    cluster.reads("search-indexer", clicks, stops(NOW_MS - 22 * MINUTE))
    cluster.reads("risk-audit", invoices, stalls(NOW_MS - 9 * MINUTE, only=1))
    cluster.reads("media-cache", clicks, falls_back(NOW_MS - 40 * MINUTE, 0.82))
    cluster.reads("delivery-mailer", invoices, gains(NOW_MS - 25 * MINUTE, 900.0, 1.2))
    moved = {
        cluster.start_ms: ("pricing-export-1",),
        NOW_MS - 12 * MINUTE: ("pricing-export-1", "pricing-export-2"),
    }
    cluster.readers.append(Reader("pricing-export", returns, keeps_up, moved))
