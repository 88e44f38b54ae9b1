"""caughtup itself: ready, with an undecodable record and a refused one."""

from __future__ import annotations

from caughtup.agents.process.health import EVENT_LOOP, OFFSETS, PUBLISHER, TOPICS_READER
from caughtup.models.recent.happenings import Happening
from tests.support.pictures.played_cluster import MINUTE, NOW_MS, SECOND, Cluster


def play_health() -> Cluster:
    """Simulate some groups for an hour, with failures."""
    cluster = Cluster(60)
    clicks = cluster.topic("clicks", 6, 700.0)
    for name in ("audit", "billing", "search"):
        cluster.reads(name, clicks)
    cluster.play()
    state, pulses = cluster.state, cluster.health.pulses
    for part in (EVENT_LOOP, OFFSETS, TOPICS_READER, PUBLISHER):
        pulses.beat(part)
    pulses.tick()
    for part in (EVENT_LOOP, OFFSETS, PUBLISHER):
        pulses.beat(part)
    pulses.tick()
    cluster.read((b"\x00\x01\x00", b"a key cut short"))
    state.refused.refuse(
        "caughtup-task-positions",
        b"orders-old",
        "other_schema",
        "schema 0; this release reads 1",
        NOW_MS - 7 * MINUTE,
    )
    state.set_aside.add(
        "caughtup-recommended-assignments",
        b"fleet-eu",
        "too_large",
        "1,310,720 bytes: Broker: Message size too large",
        NOW_MS - 95 * SECOND,
    )
    state.faults.note(
        "assessment",
        "billing-legacy",
        OverflowError("offset 9223372036854775807"),
        NOW_MS - 3 * MINUTE,
    )
    state.recent.happenings.note(
        Happening(
            NOW_MS - 41 * MINUTE,
            "service",
            "this instance became the active one",
            "caughtup-1 left the group",
        )
    )
    return cluster
