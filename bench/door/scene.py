"""A service with a large group, and costly questions about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from caughtup.agents.clock import now_ms
from caughtup.bench.door.crowd import Crowd
from caughtup.demo.cluster.load import produce_empty
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.fleet.large_group import CHANGELOG, END_OFFSET, GROUP, SOURCE, LargeGroup
from caughtup.demo.fleet.offset_commits import (
    RawRecord,
    make_offsets_topic,
    write_records,
)
from caughtup.demo.story.stage import DemoStage
from caughtup.models.assignors.java.strings import coordinator_partition
from caughtup.models.errors import CaughtupError

_OFFSETS_PARTITIONS = 3
_WAIT_SECONDS = 120.0
_SAFE = f"/api/groups/{GROUP}/safe?leave_group=true&stop="


@contextmanager
def staged(processes: int, tasks: int) -> Iterator[DemoStage]:
    """Start a cluster with a generated group, and a service that has decided its generation."""
    group = LargeGroup(processes, tasks, 1)
    described = f'applications."{GROUP}"'
    settings: dict[str, int | str | list[str]] = {
        f'{described}."{name}"': value for name, value in group.config.items()
    }
    settings[f"{described}.changelogs.0"] = [CHANGELOG]
    properties = {"offsets.topic.num.partitions": str(_OFFSETS_PARTITIONS)}
    with DemoStage(nodes=1, broker_properties=properties, settings=settings) as stage:
        _prepare(stage, group)
        yield stage


async def questions(crowd: Crowd, count: int) -> list[str]:
    """Return distinct paths that ask whether an instance of the group can be stopped."""
    refusal = await crowd.ask(f"{_SAFE}nobody")
    if refusal.status != 404:
        raise CaughtupError("bench_failed", f"a request for safe got {refusal.status}")
    clients = refusal.body.partition(b"among ")[2].rstrip(b'"}').decode().split(", ")
    return [
        f"{_SAFE}{clients[number % len(clients)]}&within={1 + number // len(clients)}"
        for number in range(count)
    ]


def _prepare(stage: DemoStage, group: LargeGroup) -> None:
    """Start both of ``staged``, and wait for the decision."""
    stage.start_cluster()
    create_topics(stage.cluster, {SOURCE: group.tasks, CHANGELOG: group.tasks})
    make_offsets_topic(stage.cluster)
    produce_empty(stage.cluster, group.partitions(), END_OFFSET)
    stage.start_service()
    home = coordinator_partition(GROUP, _OFFSETS_PARTITIONS)
    for generation in (1, 2):
        at_ms = now_ms()
        records = [group.rebalance(at_ms), *group.commits(at_ms)]
        write_records(stage.cluster, [RawRecord(home, 0, at_ms, *record) for record in records])
        stage.wait("the generation is decided", partial(_decided, stage, generation), _WAIT_SECONDS)


def _decided(stage: DemoStage, generation: int) -> bool:
    view = stage.application_view(GROUP)
    return view is not None and view["generation"] == generation and "exact" in view
