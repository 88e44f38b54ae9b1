"""Connect clusters of real workers on the shared cluster, and the service beside them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.connect.group_log import GroupLog
from caughtup.demo.connect.workers import ConnectWorkers
from caughtup.demo.story.connect.stage import WatchedGroup
from tests.support.service import Service

MakeWorkers = Callable[..., ConnectWorkers]
Follow = Callable[[ConnectWorkers], GroupLog]
Watch = Callable[[ConnectWorkers], WatchedGroup]


@pytest.fixture(scope="module")
def make_workers(cluster: EmbeddedCluster) -> Iterator[MakeWorkers]:
    """Makes Connect clusters, of ConnectWorkers' arguments, that end with the file's tests."""
    with ExitStack() as made:

        def make(prefix: str = "connect", **arguments: object) -> ConnectWorkers:
            group = f"{prefix}-{uuid.uuid4().hex[:8]}"
            return made.enter_context(ConnectWorkers(cluster, group, **arguments))

        yield make


@pytest.fixture(scope="module")
def follow(cluster: EmbeddedCluster) -> Iterator[Follow]:
    """Follows the generations of Connect clusters."""
    with ExitStack() as followed:
        yield lambda workers: followed.enter_context(GroupLog(cluster, workers.group))


@pytest.fixture(scope="module")
def watch(service: Service) -> Watch:
    """Asks the service for what it has of Connect clusters' groups."""
    return lambda workers: WatchedGroup(service.page, workers.group)
