"""Groups that several files ask about."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.watching import Watching, WatchPatterns
from tests.support.groups.asked import Groups, standing_groups


@pytest.fixture(scope="package")
def groups(shared_cluster: EmbeddedCluster) -> Iterator[Groups]:
    with standing_groups(shared_cluster) as made:
        yield made


@pytest.fixture
def watching(groups: Groups) -> Watching:
    """Watches these groups only."""
    return Watching(WatchPatterns(groups=(groups.pattern,)))
