"""The scenes of the pictures: clusters that are simulated up to the pictures' time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.support.pictures.played_application import Application, Subtopology, parameters
from tests.support.pictures.played_cluster import MINUTE, NOW_MS, Cluster, Topic
from tests.support.pictures.scene_of_connect import play_connect
from tests.support.pictures.scene_of_days import write_week
from tests.support.pictures.scene_of_groups import play_groups
from tests.support.pictures.scene_of_health import play_health
from tests.support.pictures.scene_of_reassignments import play_reassignments
from tests.support.pictures.scene_of_transactions import play_transactions


class Scene(NamedTuple):
    """A cluster, the path of the shown page, and a function that writes its history."""

    play: Callable[[], Cluster]
    address: str
    history: Callable[[Path], None] | None = None


def _nothing(cluster: Cluster) -> None:
    """Add nothing."""


def small(beside: Callable[[Cluster], None] = _nothing) -> Cluster:
    """Return three instances with eight tasks and a standby each, just after the third joined.

    ``beside`` adds the rest of the cluster.
    """
    orders, counts = Topic("orders", 4, 900.0), Topic("orders-counts-repartition", 4, 700.0)
    changelogs = (
        Topic("orders-latest-changelog", 4, 220.0),
        Topic("orders-counts-changelog", 4, 60.0),
    )
    subtopologies = Subtopology(orders, changelogs[0]), Subtopology(counts, changelogs[1])
    config = {"num.standby.replicas": 1}
    cluster = Cluster(90, {"orders": parameters(config, *subtopologies)})
    cluster.topics += [orders, counts, *changelogs]
    instances = ("orders-a", "orders-b")
    application = Application(
        cluster, "orders", instances, subtopologies, config, generation=17, restores=3_400.0
    )
    application.join(NOW_MS - 4 * MINUTE, "orders-c")
    beside(cluster)
    cluster.play()
    return cluster


def scale_out(beside: Callable[[Cluster], None] = _nothing) -> Cluster:
    """Return four instances with 24 tasks, six minutes after the fourth joined."""
    payments = Topic("payments", 24, 2_600.0)
    totals = Topic("payments-totals-changelog", 24, 700.0)
    subtopology = Subtopology(payments, totals)
    cluster = Cluster(90, {"payments-totals": parameters({}, subtopology)})
    cluster.topics += [payments, totals]
    names = ("payments-0", "payments-1", "payments-2")
    application = Application(
        cluster, "payments-totals", names, [subtopology], {}, generation=30, restores=2_900.0
    )
    application.join(NOW_MS - 6 * MINUTE, "payments-3")
    beside(cluster)
    cluster.play()
    return cluster


def large() -> Cluster:
    """Return fifty pods with 500 tasks and a standby each, just after two joined."""
    config = {"num.standby.replicas": 1, "max.warmup.replicas": 8}
    subtopologies = [
        Subtopology(
            Topic(f"{name}-events", 125, 1_500.0), Topic(f"fleet-{name}-changelog", 125, 400.0)
        )
        for name in ("position", "engine", "door", "trip")
    ]
    cluster = Cluster(30, {"fleet": parameters(config, *subtopologies)})
    for one in subtopologies:
        cluster.topics += one
    pods = [f"fleet-7d9f8b6c5-{0x2A3F1 + 0x5E27 * number:05x}" for number in range(50)]
    application = Application(
        cluster, "fleet", pods[:48], subtopologies, config, generation=212, restores=1_800.0
    )
    application.join(NOW_MS - 3 * MINUTE, *pods[48:])
    cluster.play()
    return cluster


SCENES = {
    "small": Scene(small, "/groups/orders"),
    "scale-out": Scene(scale_out, "/groups/payments-totals"),
    "large": Scene(large, "/groups/fleet"),
    "days": Scene(small, "/groups/orders?days=7", write_week),
    "groups": Scene(play_groups, "/"),
    "reassignments": Scene(play_reassignments, "/reassignments"),
    "transactions": Scene(play_transactions, "/transactions"),
    "connect": Scene(play_connect, "/connect"),
    "health": Scene(play_health, "/health"),
}
