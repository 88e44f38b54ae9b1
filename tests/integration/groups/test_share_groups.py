"""Share groups (KIP-932): members, start offsets and lag are those of Kafka's own Admin."""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.topics import create_topics
from tests.support.groups.share_groups import ONE_BROKER, ShareGroups, share_groups
from tests.support.service import Service, caughtup, wait_for

pytestmark = pytest.mark.heavy

SEED = int(os.environ.get("SHARE_SEED", "1"))
_PARTITIONS = 3


@pytest.fixture(scope="module")
def sharing() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(broker_properties=ONE_BROKER) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def java(sharing: EmbeddedCluster) -> Iterator[ShareGroups]:
    with share_groups(sharing) as java:
        yield java


@pytest.fixture(scope="module", params=["log", "ask"])
def service(sharing: EmbeddedCluster, request: pytest.FixtureRequest) -> Iterator[Service]:
    with Service(sharing, source=request.param, ask_interval=1) as service:
        yield service


def told(service: Service, group: str) -> dict[tuple[str, int], tuple[int, int]]:
    """Return the start offset and the lag of each partition, as the service says them."""
    return {
        (line["topic"], line["partition"]): (line["share_start_offset"], line.get("lag", -1))
        for line in service.lines(f"api/lag?group={group}")
        if line["kind"] == "partition" and "share_start_offset" in line
    }


def agree(service: Service, java: ShareGroups, group: str) -> None:
    """Wait until the service says of a group at rest what Kafka's Admin says."""
    seen: list[Any] = []

    def same() -> bool:
        seen[:] = [java.offsets(group), told(service, group)]
        return bool(seen[0]) and seen[0] == seen[1]

    try:
        wait_for(f"the same about {group}", same, 60)
    except AssertionError as error:
        raise AssertionError(f"{error}: the Admin, and the service: {seen}") from None


@pytest.mark.parametrize(
    ("groups", "rounds"), [(2, 3), pytest.param(20, 10, marks=pytest.mark.thorough)]
)
def test_start_offsets_and_lag_are_the_admins(
    sharing: EmbeddedCluster, java: ShareGroups, service: Service, groups: int, rounds: int
) -> None:
    rng = random.Random(SEED)
    names = [f"share-{uuid.uuid4().hex[:8]}" for _ in range(groups)]
    topics = {name: f"{name}-topic" for name in names}
    create_topics(sharing, dict.fromkeys(topics.values(), _PARTITIONS))
    for name in names:
        for _ in range(rng.randint(1, 2)):
            java.tell(f"join {name} {topics[name]}")
    for number in range(rounds):
        for name in names:
            produce(sharing, topics[name], rng.randint(1, 200), keys=50)
            java.tell(f"poll {name} {rng.choice([0.1, 0.5, 1.0])} {rng.randint(0, 1 << 30)}")
            if number == 1 and rng.random() < 0.3:
                java.tell(f"join {name} {topics[name]}")
                java.tell(f"take {name}")
        for name in names:
            agree(service, java, name)
    for name in names:
        java.tell(f"leave {name}")


def test_members_and_the_verdict(
    sharing: EmbeddedCluster, java: ShareGroups, service: Service, tmp_path: Path
) -> None:
    name = f"share-{uuid.uuid4().hex[:8]}"
    create_topics(sharing, {f"{name}-topic": _PARTITIONS})
    for _ in range(2):
        java.tell(f"join {name} {name}-topic")
    produce(sharing, f"{name}-topic", 300)
    while sum(lag for _, lag in java.offsets(name).values()) or not java.offsets(name):
        java.tell(f"poll {name} 1 1")

    def line() -> dict[str, Any]:
        found: list[dict[str, Any]] = service.page()["groups"]
        return next((one for one in found if one["group"] == name), {})

    wait_for("it has its members", lambda: line().get("members") == 2, 30)
    assert line()["group_type"] == "share"
    wait_for("it is ok", lambda: line().get("status") == "ok", 30)
    print(line())
    explained = caughtup("explain", name, "-b", sharing.bootstrap_servers, directory=tmp_path)
    assert explained.code == 0, explained
    assert "sharer" in explained.out
    assert "epoch" in explained.out.splitlines()[0]
    print(explained.out)
    java.tell(f"leave {name}")
    wait_for("nobody is left", lambda: line().get("members") == 0, 60)

    produce(sharing, f"{name}-topic", 5)
    wait_for("it has the lag", lambda: line().get("lag") == 5, 30)

    def causes(*where: str) -> list[tuple[str, int | None]]:
        asked = caughtup("why", *where, "--format", "json", name, directory=tmp_path)
        return [(link["kind"], link.get("lag")) for link in asked.lines[0]["links"]]

    assert causes("-b", sharing.bootstrap_servers) == [("no_members", 5)]
    wait_for(
        "it has stopped for that reason",
        lambda: causes("--service", service.url) == [("no_members", 5)],
        60,
    )
