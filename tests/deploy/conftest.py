"""What is made once for the tests that build images or boot a machine of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.support.images import Builder, Image, missing
from tests.test_packaging import run_build

#: Debian with its own Python, as the base of images.
BASE = "localhost/debian-python"


@pytest.fixture(scope="session")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    """What builds images; the test is skipped where nothing can."""
    if (reason := missing()) is not None:
        pytest.skip(reason)
    wheels = tmp_path_factory.mktemp("wheels")
    run_build(wheels)
    builder = Builder(tmp_path_factory.mktemp("images"), wheels)
    try:
        builder.make_base(BASE)
        yield builder
    finally:
        builder.close()


@pytest.fixture(scope="session")
def service_image(builder: Builder) -> Image:
    """The image of the service."""
    return builder.image("service", BASE)


@pytest.fixture(scope="session")
def history_image(builder: Builder) -> Image:
    """The image of the jobs on Spark."""
    return builder.image("history", BASE)


@pytest.fixture(scope="package")
def images_cluster() -> Iterator[EmbeddedCluster]:
    """Two nodes outside all containers."""
    with EmbeddedCluster(nodes=2) as cluster:
        yield cluster
